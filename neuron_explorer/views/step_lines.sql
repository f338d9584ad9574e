-- +++
-- doc = """What each source line takes of the host in each training step: its ops, autograd nodes,
-- runtime calls, compilations and waits, nothing twice."""
-- key = ["rank", "step", "source_file", "source_line"]
-- materialize = true
--
-- [columns]
-- rank = "Distributed rank."
-- step = "Number of the training step."
-- source_file = "File of the model line."
-- source_line = "Line of the model."
-- name = "The op or call there that takes most."
-- host_ns = "Host time of the line in the step, without what runs inside other events of it (ns)."
-- +++
-- Self time, where it is known, so that an op and the call inside it do not both count.
SELECT
    rank,
    step,
    source_file,
    source_line,
    arg_max(name, (coalesce(self_ns, duration_ns), event_id)) AS name,
    sum(coalesce(self_ns, duration_ns))::BIGINT AS host_ns
FROM events
WHERE
    step IS NOT NULL AND source_line IS NOT NULL
    AND (
        layer IN ('runtime', 'compiler') OR (layer = 'framework' AND kind IN ('op', 'autograd'))
        OR (layer = 'host' AND kind IN ('gc', 'input_wait', 'collective'))
    )
GROUP BY rank, step, source_file, source_line
