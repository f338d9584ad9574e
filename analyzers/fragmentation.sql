-- +++
-- title = "Memory held but not usable on {device}"
-- question = "Does the allocator hold much more memory than the program uses?"
-- severity = "info"
-- needs = ["device_memory"]
-- message = """
-- At the peak {allocated_bytes:bytes} are in use on {device}, but the allocator holds \
-- {reserved_bytes:bytes}: {unused_bytes:bytes} lie unused[[, {memory_share:share} of the device's \
-- memory]].[[ It took {grown_bytes:bytes} more from the device while at least {idle_bytes:bytes} \
-- of what it held lay unused.]]"""
-- advice = """
-- Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; run the largest shapes first, pad sizes \
-- to a few buckets, and free what only set-up needs before the loop (del, then empty_cache() \
-- once)."""
-- key = ["rank", "device"]
-- proof = """
-- SELECT *
-- FROM allocations
-- WHERE rank = {rank} AND list_contains({event_ids}, event_id)
-- ORDER BY start_ns"""
-- reference = "https://docs.pytorch.org/docs/stable/notes/cuda.html"
--
-- [params.min_unused_share]
-- default = 0.3
-- doc = "Devices of whose held memory less is unused at the peak are left out (0 to 1)."
--
-- [params.min_unused_bytes]
-- default = 1_000_000_000
-- doc = "Less unused memory is left out (bytes)."
--
-- [params.warning_share]
-- default = 0.2
-- doc = "From this share of the device's memory on, if it still grew, it is a warning, else info."
--
-- [columns]
-- unused_bytes = "Held less in use when most was in use (bytes)."
-- allocated_bytes = "Most that was in use (bytes)."
-- reserved_bytes = "Held at that moment (bytes)."
-- memory_share = "unused_bytes over the memory of the device; NULL where that is unknown."
-- grown_bytes = "Taken from the device meanwhile although idle_bytes were free; NULL if none."
-- idle_bytes = "Unused just before the largest of these; NULL where none was (bytes)."
-- rank = "Distributed rank."
-- device = "Device whose memory it is."
-- source_file = "File of the line that made the allocator grow; NULL where none did."
-- source_line = "That line."
-- severity = "warning or info, by memory_share and grown_bytes."
-- saving_low_ns = "NULL: memory is no time."
-- saving_high_ns = "NULL: memory is no time."
-- saving_basis = "Why no saving is stated."
-- confidence = "high where it grew meanwhile, else low: an older peak may be the reason."
-- event_ids = "The allocation at the peak and those that made it grow."
-- start_ns = "When the peak was."
-- +++
-- The allocator takes memory in segments and cuts them up. Blocks of changing sizes leave rests
-- that fit nothing, so a new tensor needs a new segment although enough is free: the device is full
-- long before the program's own tensors are.
--
-- Held memory never shrinks by itself, so a peak before the trace looks the same. Growth while much
-- lies unused is the proof; without it the confidence is low.
--
-- Next: `SELECT start_ns, device_allocated, device_reserved FROM allocations`.
WITH limits AS (
    SELECT
        $warning_share AS warning_share,
        $min_unused_bytes AS min_unused_bytes,
        $min_unused_share AS min_unused_share
),

held AS (
    SELECT
        rank,
        device,
        event_id,
        start_ns,
        source_file,
        source_line,
        device_allocated,
        device_reserved,
        lag(device_allocated) OVER by_time AS before_allocated,
        lag(device_reserved) OVER by_time AS before_reserved,
        alloc_bytes
    FROM allocations
    WHERE device_allocated IS NOT NULL AND device_reserved IS NOT NULL
    WINDOW by_time AS (PARTITION BY rank, device ORDER BY start_ns ASC, event_id ASC)
),

peaks AS (
    SELECT *
    FROM held
    QUALIFY row_number() OVER (
        PARTITION BY rank, device ORDER BY device_allocated DESC, start_ns ASC, event_id ASC
    ) = 1
),

growth AS (
    SELECT
        rank,
        device,
        sum(device_reserved - before_reserved)::BIGINT AS grown_bytes,
        arg_max(
            {
                'file': source_file, 'line': source_line,
                'idle': before_reserved - before_allocated
            },
            (device_reserved - before_reserved, -event_id)
        ) AS place,
        list(event_id ORDER BY event_id ASC) AS event_ids
    FROM held
    -- it grew although what lay unused was larger than the request
    WHERE device_reserved > before_reserved AND before_reserved - before_allocated > alloc_bytes
    GROUP BY rank, device
)

SELECT
    p.rank,
    p.device,
    p.device_allocated AS allocated_bytes,
    p.device_reserved AS reserved_bytes,
    p.device_reserved - p.device_allocated AS unused_bytes,
    p.start_ns,
    g.grown_bytes,
    g.place.idle AS idle_bytes,
    g.place.file AS source_file,
    g.place.line AS source_line,
    NULL::BIGINT AS saving_low_ns,
    NULL::BIGINT AS saving_high_ns,
    'none: memory is no time' AS saving_basis,
    round((p.device_reserved - p.device_allocated) / z.memory_bytes, 4) AS memory_share,
    list_concat([p.event_id], coalesce(g.event_ids, [])) AS event_ids,
    CASE
        WHEN
            g.grown_bytes IS NOT NULL
            AND p.device_reserved - p.device_allocated >= limits.warning_share * z.memory_bytes
            THEN 'warning'
        ELSE 'info'
    END AS severity,
    CASE WHEN g.grown_bytes IS NULL THEN 'low' ELSE 'high' END AS confidence
FROM peaks AS p
LEFT JOIN growth AS g ON p.rank = g.rank AND p.device = g.device
LEFT JOIN device_memory AS z ON p.rank = z.rank AND p.device = z.device
CROSS JOIN limits
WHERE
    p.device_reserved - p.device_allocated >= limits.min_unused_bytes
    AND p.device_reserved - p.device_allocated >= limits.min_unused_share * p.device_reserved
ORDER BY unused_bytes DESC, p.rank ASC, p.device ASC
