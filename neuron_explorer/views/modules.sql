-- +++
-- doc = "Time, bytes and arithmetic by module of the model, each module's own part only."
--
-- [columns]
-- rank = "Distributed rank."
-- module = "Module path or instance; innermost."
-- module_class = "Its class."
-- ops = "Framework ops it called."
-- host_ns = "Host time of its ops and runtime calls, each nanosecond once (ns)."
-- work_events = "Units of work it caused."
-- device_ns = "Sum of their durations (ns)."
-- bytes = "Sum of the bytes known; NULL where none are (bytes)."
-- flops = "Sum of the floating-point operations known (flop)."
-- +++
WITH called AS (
    SELECT
        rank,
        module,
        any_value(module_class) AS module_class,
        count(*) FILTER (WHERE layer = 'framework') AS ops,
        sum(self_ns)::BIGINT AS host_ns
    FROM events
    WHERE
        module IS NOT NULL
        AND ((layer = 'framework' AND kind = 'op') OR layer = 'runtime')
    GROUP BY rank, module
),

worked AS (
    SELECT
        rank,
        module,
        any_value(module_class) AS module_class,
        count(*) AS work_events,
        sum(duration_ns)::BIGINT AS device_ns,
        sum(bytes)::BIGINT AS bytes,
        sum(flops)::BIGINT AS flops
    FROM work
    WHERE module IS NOT NULL
    GROUP BY rank, module
)

SELECT
    rank,
    module,
    coalesce(c.module_class, w.module_class) AS module_class,
    coalesce(c.ops, 0) AS ops,
    c.host_ns,
    coalesce(w.work_events, 0) AS work_events,
    w.device_ns,
    w.bytes,
    w.flops
FROM called AS c
FULL JOIN worked AS w USING (rank, module)
ORDER BY w.device_ns DESC NULLS LAST, rank ASC, module ASC
