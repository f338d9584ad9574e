-- +++
-- title = "Copies that nothing hides: {direction}"
-- question = "Which copies to or from the host run while nothing computes?"
-- severity = "warning"
-- needs = ["copies", "measured"]
-- acts_on = "exposed"
-- message = """
-- {copies:count copy} {direction}[[ of {bytes:bytes} in all]][[ at {bytes_per_s:rate}]]: \
-- {device_time_ns:ns}, of which {exposed_ns:ns} while nothing computed on {device}, \
-- {exposed_share:share} of its span."""
-- advice = "{fix}"
-- key = ["rank", "device", "source_file", "source_line", "op_name", "direction"]
-- proof = """
-- SELECT *
-- FROM work
-- WHERE rank = {rank} AND list_contains({event_ids}, event_id)
-- ORDER BY duration_ns DESC"""
-- reference = "https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html"
--
-- [params.min_share]
-- default = 0.01
-- doc = "Exposed time of less of the device's span is left out (0 to 1)."
--
-- [params.warning_share]
-- default = 0.05
-- doc = "From this share of the span on it is a warning, else info."
--
-- [columns]
-- copies = "Copies of this direction at this place, in the middle of the work."
-- exposed_ns = "Their time in which neither compute nor an earlier copy ran (ns)."
-- exposed_share = "The same over the span of the device."
-- hidden_ns = "The rest of their time (ns)."
-- direction = "to the device, from the device, or between devices."
-- bytes = "Their bytes, counted on one side; NULL where one is unknown (bytes)."
-- bytes_per_s = "bytes over their duration (bytes/s)."
-- rank = "Distributed rank."
-- device = "Device."
-- source_file = "File of the line; NULL without stacks."
-- source_line = "That line."
-- op_name = "Op that copies; NULL for a call of the user's own."
-- steps = "Steps they happen in; NULL where the trace has no steps."
-- device_time_ns = "Duration of the copies (ns)."
-- severity = "warning or info, by exposed_share."
-- saving_low_ns = "0: what comes next may need the data at once (ns)."
-- saving_high_ns = "exposed_ns (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "medium: the trace does not say what needed the data."
-- fix = "The change to make."
-- event_ids = "The copies."
-- start_ns = "When the first of them ran."
-- +++
-- A device copies and computes at the same time, on two queues. A copy on the queue of the kernels,
-- or one that everything waits for, stands in every step instead.
--
-- Copies to the device from pageable memory are `blocking_copies`: no queue hides those. Copies
-- before the first kernel are set-up. Copies within the device's memory are work like any other.
--
-- Next: `SELECT queue, name, count(*), sum(duration_ns) FROM work WHERE over_link GROUP BY 1, 2`.
WITH told AS (
    SELECT *
    FROM copies
    WHERE
        warmed AND exposed_ns IS NOT NULL
        AND (
            direction IN ('from the device', 'between devices')
            OR (direction = 'to the device' AND NOT pageable)
        )
),

places AS (
    SELECT
        c.rank,
        c.device,
        c.source_file,
        c.source_line,
        c.op_name,
        c.direction,
        count(*) AS copies,
        nullif(count(DISTINCT c.step), 0) AS steps,
        if(bool_or(c.bytes IS NULL), NULL, sum(c.bytes))::BIGINT AS bytes,
        sum(c.duration_ns)::BIGINT AS device_time_ns,
        sum(c.exposed_ns)::BIGINT AS exposed_ns,
        list(c.event_id ORDER BY c.event_id ASC) AS event_ids,
        min(c.start_ns) AS start_ns
    FROM told AS c
    GROUP BY ALL
),

device_spans AS (
    SELECT
        rank,
        device,
        span_ns,
        $min_share * span_ns AS least_ns,
        $warning_share * span_ns AS warning_ns
    FROM devices
)

SELECT
    p.copies,
    p.exposed_ns,
    p.direction,
    p.bytes,
    p.rank,
    p.device,
    p.source_file,
    p.source_line,
    p.op_name,
    p.steps,
    p.device_time_ns,
    p.event_ids,
    p.start_ns,
    0::BIGINT AS saving_low_ns,
    p.exposed_ns AS saving_high_ns,
    'high: the copies run beside kernels; low: what comes next needs the data at once'
        AS saving_basis,
    'medium' AS confidence,
    p.device_time_ns - p.exposed_ns AS hidden_ns,
    round(p.exposed_ns / d.span_ns, 4) AS exposed_share,
    round(p.bytes * 1e9 / nullif(p.device_time_ns, 0))::BIGINT AS bytes_per_s,
    CASE WHEN p.exposed_ns >= d.warning_ns THEN 'warning' ELSE 'info' END
        AS severity,
    CASE p.direction
        WHEN 'to the device'
            THEN
                'Copy the next batch while this one computes: .to(device, non_blocking=True) from'
                || ' pinned memory inside torch.cuda.stream(copy_stream), and wait for that stream'
                || ' just before the use.'
        WHEN 'from the device'
            THEN
                'Keep results on the device and fetch them rarely, or copy them into a pinned'
                || ' tensor with non_blocking=True on a stream of their own and read them a step'
                || ' later.'
        ELSE
            'Send it on a stream of its own while independent work runs, or place what belongs'
            || ' together on one device.'
    END AS fix
FROM places AS p
INNER JOIN device_spans AS d ON p.rank = d.rank AND p.device = d.device
WHERE p.exposed_ns >= d.least_ns
ORDER BY p.exposed_ns DESC, p.start_ns ASC
