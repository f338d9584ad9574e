-- +++
-- title = "{cause_text} on {device}"
-- question = "Does a device run out of memory, or give memory back in the middle of the work?"
-- severity = "warning"
-- needs = ["memory_pressure"]
-- message = """
-- [[Of {memory_bytes:bytes} the allocator holds {reserved_bytes:bytes} ({memory_share:share}), \
-- {allocated_bytes:bytes} of it in use at the peak.]] [[{frees:count} {free_name} calls in the \
-- middle of the work, with {mallocs:count new allocation}, stopped the host for {call_ns:ns}.]]"""
-- advice = "{fix}"
-- key = ["rank", "device", "cause"]
-- proof = """
-- SELECT *
-- FROM events
-- WHERE rank = {rank} AND list_contains({event_ids}, event_id)
-- ORDER BY start_ns"""
-- reference = "https://docs.pytorch.org/docs/stable/notes/cuda.html"
--
-- [params.max_memory_share]
-- default = 0.9
-- doc = "From this share of the device's memory on, what the allocator holds is too much (0 to 1)."
--
-- [params.min_frees]
-- default = 3
-- doc = "Fewer calls that give memory back are left out."
--
-- [params.warning_share]
-- default = 0.01
-- doc = "From this share of the device's span on such calls are a warning, else info."
--
-- [columns]
-- cause = "full: the allocator holds nearly all memory; returned: memory goes back and forth."
-- cause_text = "The cause in words."
-- memory_share = "reserved_bytes over memory_bytes; NULL for returned."
-- reserved_bytes = "Most that the allocator held; NULL for returned (bytes)."
-- allocated_bytes = "Most that was in use; NULL for returned (bytes)."
-- memory_bytes = "Memory of the device; NULL for returned (bytes)."
-- frees = "Calls that gave memory back after the first work and before the last; NULL for full."
-- mallocs = "Calls that took new memory meanwhile; NULL for full."
-- free_name = "Name of these calls; NULL for full."
-- call_ns = "Time in both; NULL for full (ns)."
-- rank = "Distributed rank."
-- device = "Device; the only one of the rank for returned."
-- source_file = "File of the line with most of the time, or the highest peak; NULL without lines."
-- source_line = "That line."
-- severity = "warning, or info by call_ns over the span."
-- saving_low_ns = "0 for returned: the device may have had work meanwhile; NULL for full (ns)."
-- saving_high_ns = "call_ns for returned; NULL for full (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "medium: the calls do not say who made them."
-- fix = "The change to make."
-- event_ids = "The calls, or the allocation at the peak."
-- start_ns = "When the first of them was."
-- +++
-- The allocator keeps freed memory to hand it out again. When it is full it must give all of that
-- back (cudaFree waits for the device), and take it anew: retries, seen long before the program
-- fails. torch.cuda.empty_cache() in a loop, and cuDNN's search for algorithms, do the same.
--
-- What other programs hold on the device is not in these numbers, so less may be left.
--
-- Next: `SELECT max(device_reserved), max(device_allocated) FROM allocations GROUP BY device`.
WITH limits AS (
    SELECT $max_memory_share AS max_memory_share
),

held AS (
    SELECT
        rank,
        device,
        max(device_reserved) AS reserved_bytes,
        max(device_allocated) AS allocated_bytes,
        arg_max(
            { 'file': source_file, 'line': source_line, 'id': event_id, 'start_ns': start_ns },
            (device_allocated, -event_id)
        ) AS peak
    FROM events
    WHERE layer = 'memory' AND device_reserved IS NOT NULL
    GROUP BY rank, device
),

filled AS (
    SELECT
        h.rank,
        h.device,
        h.reserved_bytes,
        h.allocated_bytes,
        h.peak,
        z.memory_bytes
    FROM held AS h
    INNER JOIN device_memory AS z ON h.rank = z.rank AND h.device = z.device
    CROSS JOIN limits
    WHERE h.reserved_bytes >= limits.max_memory_share * z.memory_bytes
),

-- the calls name no device
only_devices AS (
    SELECT
        rank,
        any_value(device) AS device,
        any_value(start_ns) AS start_ns,
        any_value(end_ns) AS end_ns,
        any_value(span_ns) AS span_ns
    FROM devices
    WHERE device <> 'cpu'
    GROUP BY rank
    HAVING count(*) = 1
),

calls AS (
    SELECT
        d.rank,
        d.device,
        d.span_ns,
        e.event_id,
        e.name,
        e.source_file,
        e.source_line,
        e.start_ns,
        e.duration_ns,
        regexp_matches(e.name, '(?i)free') AS gives_back
    FROM events AS e
    INNER JOIN only_devices AS d
        ON e.rank = d.rank AND e.start_ns > d.start_ns AND e.end_ns < d.end_ns
    WHERE
        e.layer = 'runtime' AND e.kind = 'allocation'
        AND NOT regexp_matches(e.name, '(?i)host')
),

returned AS (
    SELECT
        rank,
        device,
        any_value(span_ns) AS span_ns,
        count(*) FILTER (WHERE gives_back) AS frees,
        count(*) FILTER (WHERE NOT gives_back) AS mallocs,
        any_value(name) FILTER (WHERE gives_back) AS free_name,
        sum(duration_ns)::BIGINT AS call_ns,
        arg_max(
            { 'file': source_file, 'line': source_line }, (duration_ns, event_id)
        ) AS place,
        list(event_id ORDER BY event_id ASC) AS event_ids,
        min(start_ns) AS start_ns
    FROM calls
    GROUP BY rank, device
    HAVING count(*) FILTER (WHERE gives_back) >= $min_frees
),

both_causes AS (
    SELECT
        rank,
        device,
        'full' AS cause,
        'Almost out of memory' AS cause_text,
        reserved_bytes,
        allocated_bytes,
        memory_bytes,
        round(reserved_bytes / memory_bytes, 4) AS memory_share,
        NULL::BIGINT AS frees,
        NULL::BIGINT AS mallocs,
        NULL::VARCHAR AS free_name,
        NULL::BIGINT AS call_ns,
        NULL::BIGINT AS saving_low_ns,
        peak.file AS source_file,
        peak.line AS source_line,
        'warning' AS severity,
        'none: memory is no time until the allocator has to give it back' AS saving_basis,
        [peak.id] AS event_ids,
        peak.start_ns AS start_ns,
        'Lower the peak (peak_memory names its lines: smaller micro-batches, checkpointing, bf16,'
        || ' sharding) until a tenth is free; where far less is in use than held, set'
        || ' PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.' AS fix
    FROM filled
    UNION ALL BY NAME
    SELECT
        rank,
        device,
        'returned' AS cause,
        'Memory goes back and forth' AS cause_text,
        frees,
        mallocs,
        free_name,
        call_ns,
        0::BIGINT AS saving_low_ns,
        place.file AS source_file,
        place.line AS source_line,
        CASE WHEN call_ns >= $warning_share * span_ns THEN 'warning' ELSE 'info' END AS severity,
        'high: none of these calls happens; low: the device had work meanwhile' AS saving_basis,
        event_ids,
        start_ns,
        'Take torch.cuda.empty_cache() out of the loop; if there is none, lower the peak or set'
        || ' PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True so that the allocator need not retry;'
        || ' with cudnn.benchmark=True keep input sizes fixed and warm up before the capture.'
            AS fix
    FROM returned
)

SELECT
    *,
    call_ns AS saving_high_ns,
    'medium' AS confidence
FROM both_causes
ORDER BY call_ns DESC NULLS LAST, rank ASC, device ASC, cause ASC
