-- +++
-- doc = "Runtime calls that put work on a device, with the work they put there."
-- key = ["rank", "event_id"]
-- materialize = true
--
-- [columns]
-- event_id = "Event of the call."
-- rank = "Distributed rank."
-- kind = "launch, graph_launch, or the kind of another call that has work."
-- name = "Name of the call: `cudaLaunchKernel`."
-- pid = "Process id."
-- tid = "Thread id."
-- start_ns = "Start on the host (ns)."
-- duration_ns = "Duration on the host (ns)."
-- op_id = "Innermost framework op around it."
-- op_name = "Name of that op."
-- step = "Number of the training step."
-- work_count = "Units of work it launched: many for a graph, 0 where the link is missing."
-- device_time_ns = "Sum of their durations; NULL where none (ns)."
-- first_work_start_ns = "When the first of them began (ns)."
-- delay_ns = "From the start of the call to that moment: time in the queue included (ns)."
-- source_file = "File of the model line that launched it."
-- source_line = "Line of the model."
-- compiled = "Whether it was launched from a compiled region."
-- +++
WITH launched AS (
    SELECT
        rank,
        launch_id,
        count(*) AS work_count,
        sum(duration_ns)::BIGINT AS device_time_ns,
        min(start_ns) AS first_work_start_ns
    FROM work
    WHERE launch_id IS NOT NULL
    GROUP BY rank, launch_id
)

SELECT
    e.event_id,
    e.rank,
    e.kind,
    e.name,
    e.pid,
    e.tid,
    e.start_ns,
    e.duration_ns,
    e.op_id,
    o.name AS op_name,
    e.step,
    coalesce(l.work_count, 0) AS work_count,
    l.device_time_ns,
    l.first_work_start_ns,
    l.first_work_start_ns - e.start_ns AS delay_ns,
    e.source_file,
    e.source_line,
    e.compiled
FROM events AS e
LEFT JOIN launched AS l ON e.rank = l.rank AND e.event_id = l.launch_id
LEFT JOIN ops AS o ON e.rank = o.rank AND e.op_id = o.event_id
WHERE
    e.layer = 'runtime'
    AND (e.kind IN ('launch', 'graph_launch') OR l.work_count IS NOT NULL)
