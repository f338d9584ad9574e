-- +++
-- doc = "Training steps (`ProfilerStep#n`) on the host, and what the devices did meanwhile."
-- key = ["rank", "step"]
-- materialize = true
--
-- [columns]
-- rank = "Distributed rank."
-- step = "Number of the step."
-- start_ns = "Start on the host (ns)."
-- end_ns = "End on the host (ns)."
-- duration_ns = "End minus start (ns)."
-- device_busy_ns = "Time in this window in which a device of the rank worked (ns)."
-- compile_ns = "Time in it in which torch.compile compiled (ns)."
-- idle_ns = "Duration minus `device_busy_ns` and `compile_ns` (ns)."
-- input_wait_ns = "Time in it that waited for a DataLoader; NULL where the rank has none (ns)."
-- launches = "Launch calls that belong to the step."
-- work_events = "Units of work that belong to the step, whenever they ran; none of a compilation."
-- work_ns = "Sum of their durations (ns)."
-- event_ids = "Its annotations, in order: one on each thread that says so."
-- +++
-- Devices run behind the host: the busy time is of the window, the work of the step's own code.
WITH marked AS (
    SELECT
        rank,
        step,
        min(start_ns) AS start_ns,
        max(end_ns) AS end_ns,
        coalesce(sum(compile_ns), 0)::BIGINT AS compile_ns,
        list(event_id ORDER BY event_id ASC) AS event_ids
    FROM events
    WHERE
        layer = 'framework' AND kind = 'annotation' AND step IS NOT NULL
        AND starts_with(name, 'ProfilerStep') AND end_ns IS NOT NULL
    GROUP BY rank, step
),

busy AS (
    SELECT
        m.rank,
        m.step,
        sum(
            least(m.end_ns, t.end_ns) - greatest(m.start_ns, t.end_ns - t.rank_busy_ns)
        )::BIGINT AS busy_ns
    FROM marked AS m
    INNER JOIN timeline AS t
        ON
            m.rank = t.rank
            AND m.start_ns < t.end_ns
            AND m.end_ns > t.end_ns - t.rank_busy_ns
    WHERE t.rank_busy_ns > 0
    GROUP BY m.rank, m.step
),

waits AS (
    SELECT
        rank,
        start_ns,
        end_ns,
        max(end_ns) OVER (
            PARTITION BY rank ORDER BY start_ns ASC, end_ns ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
    FROM events
    WHERE
        layer = 'host' AND kind = 'input_wait'
        AND start_ns IS NOT NULL AND duration_ns IS NOT NULL
),

waited AS (
    SELECT
        m.rank,
        m.step,
        -- a loader may read from another one: only the part that no earlier wait covers counts
        coalesce(
            sum(
                greatest(
                    0,
                    least(m.end_ns, w.end_ns)
                    - greatest(m.start_ns, w.start_ns, coalesce(w.reached_ns, w.start_ns))
                )
            ) FILTER (WHERE w.start_ns IS NOT NULL),
            0
        )::BIGINT AS input_wait_ns
    FROM marked AS m
    LEFT JOIN waits AS w
        ON m.rank = w.rank AND m.start_ns < w.end_ns AND m.end_ns > w.start_ns
    WHERE m.rank IN (SELECT k.rank FROM waits AS k)
    GROUP BY m.rank, m.step
),

launched AS (
    SELECT
        rank,
        step,
        count(*) AS launches
    FROM launches
    GROUP BY rank, step
),

worked AS (
    SELECT
        rank,
        step,
        count(*) AS work_events,
        sum(duration_ns)::BIGINT AS work_ns
    FROM work
    WHERE phase IS DISTINCT FROM 'compile'
    GROUP BY rank, step
)

SELECT
    m.rank,
    m.step,
    m.start_ns,
    m.end_ns,
    m.end_ns - m.start_ns AS duration_ns,
    coalesce(b.busy_ns, 0) AS device_busy_ns,
    m.compile_ns,
    greatest(0, m.end_ns - m.start_ns - coalesce(b.busy_ns, 0) - m.compile_ns) AS idle_ns,
    i.input_wait_ns,
    coalesce(l.launches, 0) AS launches,
    coalesce(w.work_events, 0) AS work_events,
    coalesce(w.work_ns, 0) AS work_ns,
    m.event_ids
FROM marked AS m
LEFT JOIN busy AS b ON m.rank = b.rank AND m.step = b.step
LEFT JOIN waited AS i ON m.rank = i.rank AND m.step = i.step
LEFT JOIN launched AS l ON m.rank = l.rank AND m.step = l.step
LEFT JOIN worked AS w ON m.rank = w.rank AND m.step = w.step
ORDER BY m.rank ASC, m.step ASC
