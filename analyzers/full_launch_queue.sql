-- +++
-- title = "The device's launch queue is full: the host waits for room"
-- question = "Does the host run so far ahead that launches wait for room in the queue?"
-- severity = "info"
-- needs = ["hardware", "runtime", "measured"]
-- message = """
-- {launches:count launch call} took {launch_ns:ns} ({typical_ns:ns} is typical) while {device} \
-- was busy and still {behind_ns:ns} behind. That is the device's pace, not the host's: \
-- {host_share:share} of the span went into waiting for room.[[ Most of it at {say_where}.]]"""
-- advice = """
-- Nothing is to be won at the host here: the device is the limit, so make its kernels faster or \
-- fewer. Profiles that show this line as slow host code mislead."""
-- key = ["rank", "device"]
-- proof = """
-- SELECT *
-- FROM launches
-- WHERE rank = {rank} AND list_contains({call_ids}, event_id)
-- ORDER BY duration_ns DESC"""
-- reference = "https://docs.pytorch.org/docs/stable/notes/cuda.html"
--
-- [params.min_ratio]
-- default = 10
-- doc = "A launch call of this many typical durations is one that waited."
--
-- [params.min_launch_ns]
-- default = 50_000
-- doc = "Shorter calls are never taken for waiting ones (ns)."
--
-- [params.min_busy_share]
-- default = 0.9
-- doc = "Least share of the call in which the device must have worked (0 to 1)."
--
-- [params.min_calls]
-- default = 3
-- doc = "Devices with fewer such calls are left out."
--
-- [columns]
-- launches = "Launch calls that waited."
-- launch_ns = "Time in them (ns)."
-- typical_ns = "Median duration of a launch call of the rank (ns)."
-- behind_ns = "Median time from the end of such a call to the start of its work (ns)."
-- host_share = "launch_ns over the span of the device."
-- call_ids = "The longest of the calls; at most twenty."
-- say_where = "Line with most of the time; NULL without stacks."
-- rank = "Distributed rank."
-- device = "Device."
-- saving_low_ns = "NULL: these waits cost nothing."
-- saving_high_ns = "NULL: these waits cost nothing."
-- saving_basis = "Why nothing is to be won."
-- confidence = "high where the work was more than a millisecond behind."
-- event_ids = "The work that was launched."
-- start_ns = "When the first of these calls began."
-- +++
-- A launch only puts work into a queue of limited length (1,024 entries on CUDA). When the host is
-- that far ahead, each further launch returns as soon as one kernel is over, so the call lasts as
-- long as a kernel. It is the sign of a device that is kept busy.
--
-- A first launch is long as well while it loads its kernel, and so is one that meets a lock: those
-- find the device idle or close behind and do not count.
--
-- Next: `roofline` and `hbm_bound_eager_ops`: what the device does.
WITH limits AS (
    SELECT
        $min_launch_ns AS min_launch_ns,
        $min_ratio AS min_ratio,
        $min_busy_share AS min_busy_share,
        $min_calls AS min_calls
),

timed AS (
    SELECT
        l.*,
        median(l.duration_ns) OVER (PARTITION BY l.rank) AS typical_ns
    FROM launches AS l
    WHERE l.duration_ns IS NOT NULL AND l.work_count > 0 AND l.kind = 'launch'
),

long_calls AS (
    SELECT
        t.rank,
        w.device,
        t.event_id,
        t.start_ns,
        t.duration_ns,
        t.typical_ns,
        t.source_file,
        t.source_line,
        w.event_id AS work_id,
        t.start_ns + t.duration_ns AS end_ns,
        w.start_ns - t.start_ns - t.duration_ns AS behind_ns
    FROM timed AS t
    INNER JOIN work AS w ON t.rank = w.rank AND t.event_id = w.launch_id
    CROSS JOIN limits
    WHERE
        t.duration_ns >= limits.min_launch_ns AND t.duration_ns >= limits.min_ratio * t.typical_ns
        AND w.start_ns > t.start_ns + t.duration_ns
),

busy AS (
    SELECT
        c.rank,
        c.event_id,
        sum(
            least(c.end_ns, t.end_ns) - greatest(c.start_ns, t.end_ns - t.busy_ns)
        ) AS busy_ns
    FROM long_calls AS c
    INNER JOIN timeline AS t
        ON
            c.rank = t.rank AND c.device = t.device AND c.start_ns < t.end_ns
            AND c.end_ns > t.end_ns - t.busy_ns
    WHERE t.busy_ns > 0
    GROUP BY c.rank, c.event_id
),

waited AS (
    SELECT c.*
    FROM long_calls AS c
    INNER JOIN busy AS b ON c.rank = b.rank AND c.event_id = b.event_id
    CROSS JOIN limits
    -- further behind than the call is long: other launches wait in the queue as well
    WHERE b.busy_ns >= limits.min_busy_share * c.duration_ns AND c.behind_ns > c.duration_ns
),

lines_of AS (
    SELECT
        rank,
        device,
        source_file,
        source_line,
        sum(duration_ns) AS line_ns
    FROM waited
    WHERE source_line IS NOT NULL
    GROUP BY ALL
),

tops AS (
    SELECT
        rank,
        device,
        arg_max(
            array_to_string(string_split(source_file, '/')[-2:], '/') || ':' || source_line,
            (line_ns, source_file, source_line)
        ) AS say_where
    FROM lines_of
    GROUP BY rank, device
),

summed AS (
    SELECT
        rank,
        device,
        count(*) AS launches,
        sum(duration_ns)::BIGINT AS launch_ns,
        any_value(typical_ns)::BIGINT AS typical_ns,
        median(behind_ns)::BIGINT AS behind_ns,
        list(event_id ORDER BY duration_ns DESC, event_id ASC)[1:20] AS call_ids,
        list(work_id ORDER BY work_id ASC) AS event_ids,
        min(start_ns) AS start_ns
    FROM waited
    GROUP BY rank, device
)

SELECT
    s.launches,
    s.launch_ns,
    s.typical_ns,
    s.behind_ns,
    s.call_ids,
    s.rank,
    s.device,
    s.event_ids,
    s.start_ns,
    t.say_where,
    NULL::BIGINT AS saving_low_ns,
    NULL::BIGINT AS saving_high_ns,
    'none: the device would be busy for as long without these waits' AS saving_basis,
    round(s.launch_ns / d.span_ns, 4) AS host_share,
    CASE WHEN s.behind_ns >= 1_000_000 THEN 'high' ELSE 'medium' END AS confidence
FROM summed AS s
INNER JOIN devices AS d ON s.rank = d.rank AND s.device = d.device
LEFT JOIN tops AS t ON s.rank = t.rank AND s.device = t.device
CROSS JOIN limits
WHERE s.launches >= limits.min_calls
ORDER BY s.launch_ns DESC, s.rank ASC, s.device ASC
