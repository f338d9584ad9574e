-- +++
-- doc = "Calls in which the host waits for a device. Each wait counts once, at its outermost call."
-- key = ["rank", "event_id"]
-- materialize = true
--
-- [columns]
-- event_id = "Event of the call."
-- rank = "Distributed rank."
-- name = "Name of the call, or of the op where no runtime call was recorded."
-- via = "runtime; framework where no runtime calls were recorded; cpu where there is no device."
-- cause = "scalar_read, data_dependent_shape, host_copy, comparison, explicit or op."
-- start_ns = "Start (ns)."
-- duration_ns = "Duration of the call (ns)."
-- wait_ns = "How long the host stood: the duration; 0 without a device (ns)."
-- op_id = "Innermost framework op that caused it."
-- op_name = "Name of that op; NULL for a call of the user's own."
-- step = "Number of the training step."
-- phase = "forward, backward, optimizer, input or other."
-- source_file = "File of the model line."
-- source_line = "Line of the model."
-- source_function = "Function of that line."
-- +++
-- A rank without a device waits for nothing: its rows say where it would on an accelerator. Reads
-- of an optimizer's step count or of a loader's seed stay on the CPU there too and are left out.
-- Waiting for an event on the device's side does not stop the host, and rows of the profiler's own
-- synchronisation category repeat what the runtime calls say.
WITH runtime_calls AS (
    SELECT e.*
    FROM events AS e
    WHERE
        e.layer = 'runtime' AND e.start_ns IS NOT NULL
        AND NOT contains(e.name, 'WaitEvent')
        AND (
            e.kind = 'sync'
            OR (
                contains(e.name, 'Memcpy')
                AND regexp_matches(
                    e.name,
                    '^(cuda|hip|cu|musa)Memcpy(2D|3D|DtoH|HtoD|DtoD|Peer|WithStream)?(_v2)?$'
                )
            )
        )
),

deaf_ranks AS (
    SELECT
        rank,
        if(bool_or(layer = 'hardware'), 'framework', 'cpu') AS via
    FROM events
    GROUP BY rank
    HAVING NOT bool_or(layer = 'runtime')
),

waits AS (
    SELECT
        c.*,
        'runtime' AS via
    FROM runtime_calls AS c
    ANTI JOIN runtime_calls AS p ON c.rank = p.rank AND c.parent_id = p.event_id
    UNION ALL BY NAME
    SELECT
        e.* REPLACE (e.event_id AS op_id),
        d.via
    FROM events AS e
    INNER JOIN deaf_ranks AS d ON e.rank = d.rank
    WHERE
        e.layer = 'framework' AND e.kind = 'op' AND e.start_ns IS NOT NULL
        AND e.name IN (
            'aten::_local_scalar_dense', 'aten::nonzero', 'aten::equal', 'aten::masked_select'
        )
        AND (d.via <> 'cpu' OR coalesce(e.phase NOT IN ('optimizer', 'input'), TRUE))
)

SELECT
    w.event_id,
    w.rank,
    w.name,
    w.via,
    CASE
        WHEN o.name IS NULL THEN 'explicit'
        WHEN o.name IN ('aten::_local_scalar_dense', 'aten::item', 'aten::is_nonzero')
            THEN 'scalar_read'
        WHEN regexp_matches(o.name, 'nonzero|masked_select|unique|index|repeat_interleave')
            THEN 'data_dependent_shape'
        WHEN o.name IN ('aten::equal', 'aten::allclose') THEN 'comparison'
        WHEN regexp_matches(o.name, 'copy_|::to$|::_to_copy$|pin_memory') THEN 'host_copy'
        ELSE 'op'
    END AS cause,
    w.start_ns,
    w.duration_ns,
    if(w.via = 'cpu', 0, w.duration_ns) AS wait_ns,
    w.op_id,
    o.name AS op_name,
    w.step,
    w.phase,
    w.source_file,
    w.source_line,
    w.source_function
FROM waits AS w
LEFT JOIN ops AS o ON w.rank = o.rank AND w.op_id = o.event_id
ORDER BY w.rank ASC, w.start_ns ASC, w.event_id ASC
