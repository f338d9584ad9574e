-- +++
-- doc = """What keeps the host busy, each nanosecond once: ops, autograd nodes, runtime calls,
-- input waits and collector pauses, each with its own time and with the Python that ran before it.
-- Compilations are left out."""
-- key = ["rank", "event_id"]
--
-- [columns]
-- rank = "Distributed rank."
-- event_id = "Event; unique within a rank."
-- step = "Number of the training step."
-- layer = "framework, runtime or host."
-- kind = "Kind of the event in its layer."
-- name = "Its name."
-- source_file = "File of the model line."
-- source_line = "Line of the model."
-- source_function = "Function of that line."
-- module = "Module path or instance."
-- input_shapes = "JSON list of input shapes."
-- input_dtypes = "JSON list of input dtypes."
-- self_ns = "Time in it in which nothing begun later ran on its thread (ns)."
-- python_ns = "Time before it, in its step, in which nothing of this view ran on any thread (ns)."
-- +++
-- Python runs on one thread at a time, so what no event of any thread covers is Python's, or that
-- of code it calls outside torch. It counts at the event that ends it, which Python prepared.
WITH covered AS (
    SELECT
        e.*,
        max(e.end_ns) OVER before AS reached_ns,
        arg_max(e.step, e.end_ns) OVER before AS step_before
    FROM events AS e
    WHERE
        e.start_ns IS NOT NULL AND e.end_ns IS NOT NULL
        AND (
            e.layer = 'runtime'
            OR (e.layer = 'framework' AND e.kind IN ('op', 'autograd'))
            OR (e.layer = 'host' AND e.kind IN ('gc', 'input_wait'))
            OR (e.layer = 'compiler' AND e.kind = 'compile')
        )
    WINDOW before AS (
        PARTITION BY e.rank ORDER BY e.start_ns ASC, e.end_ns DESC, e.event_id ASC
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
)

SELECT
    c.rank,
    c.event_id,
    c.step,
    c.layer,
    c.kind,
    c.name,
    c.source_file,
    c.source_line,
    c.source_function,
    c.module,
    c.input_shapes,
    c.input_dtypes,
    c.self_ns,
    greatest(
        0,
        CASE
            WHEN c.step IS NOT DISTINCT FROM c.step_before THEN c.start_ns - c.reached_ns
            ELSE c.start_ns - greatest(coalesce(c.reached_ns, s.start_ns), s.start_ns)
        END
    )::BIGINT AS python_ns
FROM covered AS c
LEFT JOIN steps AS s ON c.rank = s.rank AND c.step = s.step
WHERE c.layer <> 'compiler' AND c.phase IS DISTINCT FROM 'compile'
