-- +++
-- doc = """What each step is bound by. device: saved device time shortens it; host: only fewer
-- launches and less work of the host do; mixed: both, each in its part; unknown: launches were not
-- recorded. A rank without a device is bound by its ops: device. Without steps the rank has one
-- row, for all that was recorded."""
-- key = ["rank", "step"]
-- materialize = true
--
-- [columns]
-- rank = "Distributed rank."
-- step = "Number of the step; NULL where the rank has none."
-- start_ns = "Start on the host (ns)."
-- end_ns = "End on the host (ns)."
-- duration_ns = "End minus start (ns)."
-- device_busy_ns = "Time in this window in which a device of the rank worked (ns)."
-- idle_ns = "Duration minus that (ns)."
-- wait_ns = "Time in this window in which the host stood waiting for a device (ns)."
-- host_busy_ns = "Duration minus that; Python and input waits are in it (ns)."
-- work_ns = "Sum of the durations of the step's units of work (ns)."
-- paced_ns = "Part of it that sets the pace: see `work_pace` (ns)."
-- critical_device = "Device of the busiest queue; cpu where the rank has no other."
-- critical_queue = "Queue, or thread on the CPU, with the most work of the step."
-- critical_ns = "Sum of the durations of its units (ns)."
-- bound = "device, host, mixed or unknown."
-- +++
WITH windows AS (
    SELECT
        rank,
        step,
        start_ns,
        end_ns
    FROM steps
    UNION ALL
    SELECT
        rank,
        NULL AS step,
        start_ns,
        end_ns
    FROM rank_spans
    WHERE steps IS NULL
),

begun AS (
    SELECT
        w.rank,
        w.step,
        coalesce(b.before_ns + least(w.start_ns, b.end_ns) - b.start_ns, 0) AS busy_ns
    FROM windows AS w
    ASOF LEFT JOIN busy_stretches AS b ON w.rank = b.rank AND w.start_ns >= b.start_ns
),

ended AS (
    SELECT
        w.*,
        coalesce(b.before_ns + least(w.end_ns, b.end_ns) - b.start_ns, 0) AS busy_ns
    FROM windows AS w
    ASOF LEFT JOIN busy_stretches AS b ON w.rank = b.rank AND w.end_ns >= b.start_ns
),

-- several threads may wait at once: the part that no earlier wait covers counts
waits AS (
    SELECT
        rank,
        start_ns + wait_ns AS end_ns,
        greatest(
            start_ns,
            coalesce(
                max(start_ns + wait_ns) OVER (
                    PARTITION BY rank ORDER BY start_ns ASC, event_id ASC
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                ), start_ns
            )
        ) AS start_ns
    FROM syncs
),

waited AS (
    SELECT
        w.rank,
        w.step,
        sum(least(w.end_ns, s.end_ns) - greatest(w.start_ns, s.start_ns))::BIGINT AS wait_ns
    FROM windows AS w
    INNER JOIN waits AS s
        ON w.rank = s.rank AND w.start_ns < s.end_ns AND w.end_ns > s.start_ns
    WHERE s.end_ns > s.start_ns
    GROUP BY ALL
),

of_queue AS (
    SELECT
        w.rank,
        if(r.steps IS NULL, NULL, w.step) AS step,
        w.device,
        w.queue,
        sum(w.duration_ns) AS work_ns,
        sum(w.duration_ns) FILTER (WHERE p.pace = 'device') AS paced_ns,
        sum(w.duration_ns) FILTER (WHERE p.pace = 'unknown') AS unknown_ns
    FROM work AS w
    INNER JOIN rank_spans AS r ON w.rank = r.rank
    INNER JOIN work_pace AS p ON w.rank = p.rank AND w.event_id = p.event_id
    WHERE w.phase IS DISTINCT FROM 'compile'
    GROUP BY ALL
),

worked AS (
    SELECT
        rank,
        step,
        sum(work_ns)::BIGINT AS work_ns,
        coalesce(sum(paced_ns), 0)::BIGINT AS paced_ns,
        sum(unknown_ns) AS unknown_ns,
        arg_max(device, (work_ns, device, queue)) AS critical_device,
        arg_max(queue, (work_ns, device, queue)) AS critical_queue,
        max(work_ns)::BIGINT AS critical_ns
    FROM of_queue
    GROUP BY ALL
),

summed AS (
    SELECT
        e.rank,
        e.step,
        e.start_ns,
        e.end_ns,
        e.end_ns - e.start_ns AS duration_ns,
        (e.busy_ns - b.busy_ns)::BIGINT AS device_busy_ns,
        coalesce(s.wait_ns, 0) AS wait_ns,
        coalesce(k.work_ns, 0) AS work_ns,
        coalesce(k.paced_ns, 0) AS paced_ns,
        k.unknown_ns,
        k.critical_device,
        k.critical_queue,
        k.critical_ns
    FROM ended AS e
    INNER JOIN begun AS b ON e.rank = b.rank AND e.step IS NOT DISTINCT FROM b.step
    LEFT JOIN waited AS s ON e.rank = s.rank AND e.step IS NOT DISTINCT FROM s.step
    LEFT JOIN worked AS k ON e.rank = k.rank AND e.step IS NOT DISTINCT FROM k.step
)

SELECT
    s.rank,
    s.step,
    s.start_ns,
    s.end_ns,
    s.duration_ns,
    s.device_busy_ns,
    s.duration_ns - s.device_busy_ns AS idle_ns,
    s.wait_ns,
    s.duration_ns - s.wait_ns AS host_busy_ns,
    s.work_ns,
    s.paced_ns,
    s.critical_device,
    s.critical_queue,
    s.critical_ns,
    CASE
        WHEN s.work_ns = 0 OR s.unknown_ns IS NOT NULL THEN 'unknown'
        WHEN s.critical_device = 'cpu' THEN 'device'
        WHEN s.paced_ns <= (1 - t.value) * s.work_ns THEN 'host'
        WHEN
            s.paced_ns >= t.value * s.work_ns AND s.device_busy_ns >= t.value * s.duration_ns
            THEN 'device'
        ELSE 'mixed'
    END AS bound
FROM summed AS s
INNER JOIN thresholds AS t ON t.name = 'bound_by_share'
ORDER BY s.rank ASC, s.step ASC
