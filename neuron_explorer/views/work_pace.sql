-- +++
-- doc = """What sets the pace where each unit of work runs: whether the program is over sooner when
-- the unit is. device: it is, since the host waits for the device next, or the program ends; host:
-- the device runs dry next and waits for a launch, which would come no sooner; unknown: launches
-- were not recorded. Where the rank has no device the ops themselves are the program: device."""
-- key = ["rank", "event_id"]
-- materialize = true
--
-- [columns]
-- event_id = "Unit of work."
-- rank = "Distributed rank."
-- device = "Device that ran it."
-- step = "Number of the training step it belongs to."
-- duration_ns = "Its duration (ns)."
-- pace = "device, host or unknown."
-- +++
-- Time saved on the device moves what follows forward, up to the next work that starts when it is
-- launched and not when the device is free: from there on all is as it was. But a wait of the host
-- in between ends sooner too, and with it comes everything the host does after.
WITH launched AS (
    SELECT
        rank,
        count(*) AS launches
    FROM launches
    WHERE work_count > 0
    GROUP BY rank
),

waits AS (
    SELECT
        s.rank,
        s.start_ns,
        s.start_ns + s.duration_ns AS end_ns
    FROM syncs AS s
    INNER JOIN thresholds AS t ON t.name = 'wait_ns'
    WHERE s.via <> 'cpu' AND s.wait_ns >= t.value
),

late AS (
    SELECT
        t.rank,
        t.device,
        t.start_ns - t.idle_before_ns AS dry_ns,
        l.start_ns AS launch_ns
    FROM timeline AS t
    INNER JOIN thresholds AS h ON h.name = 'turnaround_ns'
    INNER JOIN work AS w ON t.rank = w.rank AND t.event_id = w.event_id
    INNER JOIN launches AS l ON w.rank = l.rank AND w.launch_id = l.event_id
    WHERE t.idle_before_ns >= h.value AND l.start_ns > t.start_ns - t.idle_before_ns
),

-- the host had been waiting for the device when it ran dry: the launch is late for that reason
held AS (
    SELECT
        l.*,
        w.start_ns < l.dry_ns AND w.end_ns >= l.dry_ns AS was_held
    FROM late AS l
    ASOF LEFT JOIN waits AS w ON l.rank = w.rank AND l.launch_ns >= w.end_ns
),

dry AS (
    SELECT *
    FROM held
    WHERE NOT coalesce(was_held, FALSE)
),

next_dry AS (
    SELECT
        w.rank,
        w.event_id,
        d.dry_ns
    FROM work AS w
    ASOF INNER JOIN dry AS d ON w.rank = d.rank AND w.device = d.device AND w.end_ns <= d.dry_ns
),

next_wait AS (
    SELECT
        w.rank,
        w.event_id,
        s.end_ns AS wait_end_ns
    FROM work AS w
    ASOF INNER JOIN waits AS s ON w.rank = s.rank AND w.end_ns <= s.end_ns
)

SELECT
    w.event_id,
    w.rank,
    w.device,
    w.step,
    w.duration_ns,
    CASE
        WHEN w.device = 'cpu' THEN 'device'
        WHEN l.rank IS NULL THEN 'unknown'
        WHEN d.dry_ns IS NULL OR s.wait_end_ns <= d.dry_ns THEN 'device'
        ELSE 'host'
    END AS pace
FROM work AS w
LEFT JOIN launched AS l ON w.rank = l.rank
LEFT JOIN next_dry AS d ON w.rank = d.rank AND w.event_id = d.event_id
LEFT JOIN next_wait AS s ON w.rank = s.rank AND w.event_id = s.event_id
