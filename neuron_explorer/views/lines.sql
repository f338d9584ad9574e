-- +++
-- doc = """Time, bytes and arithmetic by source line of the model, compilations left out.
-- A compiled kernel counts at the line that most of it comes from."""
-- key = ["rank", "source_file", "source_line"]
--
-- [columns]
-- rank = "Distributed rank."
-- source_file = "File."
-- source_line = "Line."
-- source_function = "Function the line is in."
-- module = "A module that the line ran in."
-- ops = "Framework ops it called."
-- host_ns = "Host time of its ops and runtime calls, each nanosecond once (ns)."
-- work_events = "Units of work it caused."
-- device_ns = "Sum of their durations (ns)."
-- bytes = "Sum of the bytes known; NULL where none are (bytes)."
-- flops = "Sum of the floating-point operations known (flop)."
-- bound = "What holds back most of its device time: see `roofline`."
-- +++
WITH called AS (
    SELECT
        rank,
        source_file,
        source_line,
        any_value(source_function) AS source_function,
        any_value(module) AS module,
        count(*) FILTER (WHERE layer = 'framework') AS ops,
        sum(self_ns)::BIGINT AS host_ns
    FROM events
    WHERE
        source_file IS NOT NULL AND phase IS DISTINCT FROM 'compile'
        AND ((layer = 'framework' AND kind = 'op') OR layer = 'runtime')
    GROUP BY rank, source_file, source_line
),

bounds AS (
    SELECT
        rank,
        source_file,
        source_line,
        bound,
        count(*) AS work_events,
        sum(device_time_ns) AS device_ns,
        sum(bytes) AS bytes,
        sum(flops) AS flops
    FROM roofline
    WHERE source_file IS NOT NULL
    GROUP BY rank, source_file, source_line, bound
),

worked AS (
    SELECT
        rank,
        source_file,
        source_line,
        sum(work_events)::BIGINT AS work_events,
        sum(device_ns)::BIGINT AS device_ns,
        sum(bytes)::BIGINT AS bytes,
        sum(flops)::BIGINT AS flops,
        max_by(bound, (device_ns, bound)) AS bound
    FROM bounds
    GROUP BY rank, source_file, source_line
)

SELECT
    rank,
    source_file,
    source_line,
    c.source_function,
    c.module,
    coalesce(c.ops, 0) AS ops,
    c.host_ns,
    coalesce(w.work_events, 0) AS work_events,
    w.device_ns,
    w.bytes,
    w.flops,
    w.bound
FROM called AS c
FULL JOIN worked AS w USING (rank, source_file, source_line)
ORDER BY w.device_ns DESC NULLS LAST, rank ASC, source_file ASC, source_line ASC
