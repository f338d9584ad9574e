-- +++
-- title = "Streams that never run at the same time: {queue}"
-- question = "Which queues of a device take turns although the program uses several?"
-- severity = "info"
-- needs = ["hardware", "queues", "measured"]
-- acts_on = "device"
-- message = """
-- {kernels:count kernel} on {queue} of {device} take {busy_ns:ns}, and only {overlap_ns:ns} of \
-- that ran beside kernels of another queue. {ready_share:share} of them had been launched while \
-- the work before them still ran."""
-- advice = "{fix}"
-- key = ["rank", "device", "queue"]
-- proof = """
-- SELECT *
-- FROM work
-- WHERE rank = {rank} AND list_contains({event_ids}, event_id)
-- ORDER BY start_ns"""
-- reference = "https://docs.pytorch.org/docs/stable/notes/cuda.html"
--
-- [params.min_share]
-- default = 0.02
-- doc = "Queues that compute for less of the device's span are left out (0 to 1)."
--
-- [params.max_overlap]
-- default = 0.05
-- doc = "Queues that overlap with another for more of their own time are left out (0 to 1)."
--
-- [params.warning_share]
-- default = 0.05
-- doc = "From this share of the span on it is a warning where most kernels were ready, else info."
--
-- [columns]
-- busy_ns = "Time in which the queue computes (ns)."
-- overlap_ns = "Part of it in which another queue of the device computes too (ns)."
-- ready_share = "Kernels whose launch call was over before the work that ran before them was."
-- kernels = "Kernels on the queue."
-- queue = "Queue; the one that computes most is what the others are held against."
-- rank = "Distributed rank."
-- device = "Device."
-- severity = "warning or info, by busy_ns over the span and ready_share."
-- device_time_ns = "Duration of the kernels (ns)."
-- saving_low_ns = "0: they may need each other's results, or fill the device alone (ns)."
-- saving_high_ns = "What of busy_ns does not overlap (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "low: the trace does not say what depends on what."
-- fix = "The change to make."
-- event_ids = "The kernels."
-- start_ns = "When the first of them ran."
-- +++
-- A second stream buys time only where its kernels run beside those of the first. They do not
-- where each waits for the other (events, wait_stream, the legacy default stream), where one
-- kernel fills the device, or where the host launches so late that nothing is left to overlap.
--
-- Collectives and copies are left out: `exposed_communication` and `exposed_copies` judge them.
-- Order by data is no fault: then a second stream is only more complicated.
--
-- Next: `SELECT name, count(*), sum(duration_ns) FROM syncs GROUP BY 1`.
WITH limits AS (
    SELECT $min_share AS min_share
),

computing AS (
    SELECT
        w.rank,
        w.device,
        w.queue,
        w.event_id,
        w.launch_id,
        w.start_ns,
        w.end_ns,
        w.duration_ns
    FROM work AS w
    ANTI JOIN collectives AS c ON w.rank = c.rank AND w.event_id = c.event_id
    WHERE w.kind = 'kernel' AND w.phase IS DISTINCT FROM 'compile'
),

-- each moment of a device is of its earliest kernel; what is left of a later one on another
-- queue overlaps
reached AS (
    SELECT
        *,
        max(end_ns) OVER on_device AS device_end_ns,
        max(end_ns) OVER on_queue AS queue_end_ns
    FROM computing
    WINDOW
        on_device AS (
            PARTITION BY rank, device ORDER BY start_ns ASC, end_ns DESC, event_id ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ),
        on_queue AS (
            PARTITION BY rank, device, queue ORDER BY start_ns ASC, end_ns DESC, event_id ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
),

queued AS (
    SELECT
        rank,
        device,
        queue,
        event_id,
        launch_id,
        start_ns,
        duration_ns,
        greatest(start_ns, coalesce(queue_end_ns, start_ns)) AS from_ns,
        greatest(start_ns, coalesce(queue_end_ns, start_ns), end_ns) AS to_ns
    FROM reached
),

totals AS (
    SELECT
        rank,
        device,
        queue,
        count(*) AS kernels,
        sum(to_ns - from_ns)::BIGINT AS busy_ns
    FROM queued
    GROUP BY rank, device, queue
),

ranked AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY rank, device ORDER BY busy_ns DESC, queue ASC) AS place
    FROM totals
),

seconds AS (
    SELECT
        r.*,
        d.span_ns
    FROM ranked AS r
    INNER JOIN devices AS d ON r.rank = d.rank AND r.device = d.device
    CROSS JOIN limits
    WHERE r.place > 1 AND r.busy_ns >= limits.min_share * d.span_ns
),

beside AS (
    SELECT
        q.rank,
        q.device,
        q.queue,
        q.event_id,
        sum(
            greatest(0, least(q.to_ns, o.to_ns) - greatest(q.from_ns, o.from_ns))
        ) AS overlap_ns
    FROM queued AS q
    SEMI JOIN seconds AS s ON q.rank = s.rank AND q.device = s.device AND q.queue = s.queue
    INNER JOIN queued AS o
        ON
            q.rank = o.rank AND q.device = o.device AND q.queue <> o.queue
            AND q.from_ns < o.to_ns AND q.to_ns > o.from_ns
    GROUP BY ALL
),

judged AS (
    SELECT
        q.rank,
        q.device,
        q.queue,
        -- a third queue may cover the same moment again
        sum(least(coalesce(o.overlap_ns, 0), q.to_ns - q.from_ns))::BIGINT AS overlap_ns,
        count(*) FILTER (WHERE l.start_ns + l.duration_ns <= p.end_ns) AS ready,
        count(l.event_id) AS known,
        sum(q.duration_ns)::BIGINT AS device_time_ns,
        list(q.event_id ORDER BY q.event_id ASC) AS event_ids,
        min(q.start_ns) AS start_ns
    FROM queued AS q
    SEMI JOIN seconds AS s ON q.rank = s.rank AND q.device = s.device AND q.queue = s.queue
    LEFT JOIN beside AS o ON q.rank = o.rank AND q.event_id = o.event_id
    LEFT JOIN launches AS l ON q.rank = l.rank AND q.launch_id = l.event_id
    LEFT JOIN timeline AS t ON q.rank = t.rank AND q.event_id = t.event_id
    LEFT JOIN timeline AS p ON t.rank = p.rank AND t.previous_id = p.event_id
    GROUP BY q.rank, q.device, q.queue
),

shares AS (
    SELECT
        j.*,
        s.busy_ns,
        s.kernels,
        s.span_ns,
        round(j.ready / nullif(j.known, 0), 4) AS ready_share
    FROM judged AS j
    INNER JOIN seconds AS s ON j.rank = s.rank AND j.device = s.device AND j.queue = s.queue
)

SELECT
    busy_ns,
    overlap_ns,
    ready_share,
    kernels,
    queue,
    rank,
    device,
    device_time_ns,
    0::BIGINT AS saving_low_ns,
    busy_ns - overlap_ns AS saving_high_ns,
    'high: all of it beside kernels of another queue; low: they need each other''s results'
        AS saving_basis,
    'low' AS confidence,
    event_ids,
    start_ns,
    CASE
        WHEN busy_ns - overlap_ns >= $warning_share * span_ns AND ready_share >= 0.5
            THEN 'warning'
        ELSE 'info'
    END AS severity,
    CASE
        WHEN ready_share >= 0.5
            THEN
                'Look at what orders them: wait_stream and wait_event calls that wait for more'
                || ' than the data, an op on the default stream in between, or kernels that fill'
                || ' the device; where the order is needed, one stream is simpler.'
        ELSE
            'The host launches too late for two streams to meet: launch both before either is'
            || ' waited for, or launch less (torch.compile, CUDA graphs); otherwise one stream is'
            || ' as fast.'
    END AS fix
FROM shares
WHERE overlap_ns <= $max_overlap * busy_ns
ORDER BY saving_high_ns DESC, rank ASC, device ASC, queue ASC
