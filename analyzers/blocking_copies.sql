-- +++
-- title = "Copies from pageable memory hold the host up"
-- question = "Which lines copy to the device from pageable memory and wait?"
-- severity = "warning"
-- needs = ["hardware", "runtime", "measured"]
-- acts_on = "exposed"
-- message = """
-- {copies:count copy}[[ of {bytes:bytes}]] from pageable memory[[ at {bytes_per_s:rate}]]: \
-- {device_time_ns:ns}, {exposed_ns:ns} of it while no kernel ran. The host stood in the calls \
-- for {host_ns:ns}."""
-- advice = """
-- Copy from pinned memory without waiting: DataLoader(pin_memory=True) or tensor.pin_memory(), \
-- then .to(device, non_blocking=True), a batch ahead of its use; create constants on the device."""
-- key = ["rank", "device", "source_file", "source_line", "op_name"]
-- proof = """
-- SELECT *
-- FROM work
-- WHERE rank = {rank} AND list_contains({event_ids}, event_id)
-- ORDER BY duration_ns DESC"""
-- reference = "https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html"
--
-- [params.min_share]
-- default = 0.005
-- doc = "Lines that win back less of the device's span are left out (0 to 1)."
--
-- [params.warning_share]
-- default = 0.03
-- doc = "From this share of the span on it is a warning, else info."
--
-- [columns]
-- copies = "Copies to the device at this line, in the middle of the work."
-- bytes = "Their bytes, counted on one side; NULL where one is unknown (bytes)."
-- bytes_per_s = "bytes over their duration (bytes/s)."
-- host_ns = "Time of the copy calls and of the waits in the same op (ns)."
-- exposed_ns = "Part of the copies in which neither a kernel nor an earlier copy ran (ns)."
-- rank = "Distributed rank."
-- device = "Device."
-- source_file = "File of the line; NULL without stacks."
-- source_line = "That line."
-- op_name = "Op that copies; NULL for a call of the user's own."
-- steps = "Steps they happen in; NULL where the trace has no steps."
-- device_time_ns = "Duration of the copies (ns)."
-- severity = "warning or info, by exposed_ns over the span."
-- saving_low_ns = "0: the next kernel may need the data at once (ns)."
-- saving_high_ns = "exposed_ns: the copies run beside kernels (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "high where the line is known."
-- event_ids = "The copies."
-- start_ns = "When the first of them ran."
-- +++
-- The driver cannot read pageable memory by DMA: it copies into a buffer of its own first and makes
-- the host wait, whatever non_blocking says. From pinned memory a copy runs at the full speed of
-- the link, beside the kernels, while the host goes on.
--
-- Copies before the first kernel of the trace are set-up and do not count. Small ones (a scalar, an
-- index) cost their wait, not their bytes: `host_syncs` has them too.
--
-- Next: `SELECT name, count(*), sum(duration_ns), sum(bytes) FROM work WHERE kind = 'memcpy'
-- GROUP BY 1`.
WITH copied AS (
    SELECT *
    FROM copies
    WHERE warmed AND exposed_ns IS NOT NULL AND direction = 'to the device' AND pageable
),

-- the call that copies, and the wait beside it in the same op
waited AS (
    SELECT
        c.rank,
        c.event_id,
        sum(e.duration_ns) AS host_ns
    FROM copied AS c
    INNER JOIN events AS e
        ON
            c.rank = e.rank AND e.layer = 'runtime'
            AND (c.launch_id = e.event_id OR (c.op_id = e.op_id AND e.kind = 'sync'))
    GROUP BY c.rank, c.event_id
),

places AS (
    SELECT
        c.rank,
        c.device,
        c.source_file,
        c.source_line,
        c.op_name,
        count(*) AS copies,
        nullif(count(DISTINCT c.step), 0) AS steps,
        if(bool_or(c.bytes IS NULL), NULL, sum(c.bytes))::BIGINT AS bytes,
        sum(w.host_ns)::BIGINT AS host_ns,
        sum(c.duration_ns)::BIGINT AS device_time_ns,
        sum(c.exposed_ns)::BIGINT AS exposed_ns,
        list(c.event_id ORDER BY c.event_id ASC) AS event_ids,
        min(c.start_ns) AS start_ns
    FROM copied AS c
    LEFT JOIN waited AS w ON c.rank = w.rank AND c.event_id = w.event_id
    GROUP BY ALL
),

device_spans AS (
    SELECT
        rank,
        device,
        $min_share * span_ns AS least_ns,
        $warning_share * span_ns AS warning_ns
    FROM devices
)

SELECT
    p.copies,
    p.bytes,
    p.host_ns,
    p.exposed_ns,
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
    'high: the copies run beside kernels; low: the next kernel needs the data at once'
        AS saving_basis,
    round(p.bytes * 1e9 / p.device_time_ns)::BIGINT AS bytes_per_s,
    CASE WHEN p.exposed_ns >= d.warning_ns THEN 'warning' ELSE 'info' END
        AS severity,
    CASE WHEN p.source_line IS NULL THEN 'medium' ELSE 'high' END AS confidence
FROM places AS p
INNER JOIN device_spans AS d ON p.rank = d.rank AND p.device = d.device
WHERE p.exposed_ns >= d.least_ns
ORDER BY p.exposed_ns DESC, p.start_ns ASC
