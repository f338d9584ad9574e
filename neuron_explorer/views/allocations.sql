-- +++
-- doc = """Memory taken from and given back to the allocators, and how much was in use after each.
-- The peak of a device is max(live_bytes) GROUP BY rank, device."""
-- key = ["rank", "event_id"]
-- materialize = true
--
-- [columns]
-- event_id = "Event of the allocation or free."
-- rank = "Distributed rank."
-- kind = "alloc or free."
-- device = "Device whose memory it is."
-- start_ns = "When (ns)."
-- alloc_bytes = "Bytes taken; negative when freed (bytes)."
-- device_allocated = "In use by the device's allocator afterwards; NULL on the CPU (bytes)."
-- device_reserved = "Held by the device's allocator afterwards; NULL on the CPU (bytes)."
-- live_bytes = "In use on the device afterwards; see live_is_relative (bytes)."
-- live_is_relative = "Whether live_bytes counts from 0 at the first event of the trace."
-- peak_bytes = "Largest live_bytes of the device so far (bytes)."
-- op_id = "Innermost framework op around it."
-- step = "Number of the training step."
-- phase = "forward, backward, optimizer, input or other."
-- source_file = "File of the model line."
-- source_line = "Line of the model."
-- +++
-- No host allocator has a total. What was taken before the trace began is then in no sum, and
-- what of it was freed meanwhile has no event: the sum tells growth, not size.
WITH summed AS (
    SELECT
        *,
        sum(alloc_bytes) OVER (
            PARTITION BY rank, device ORDER BY start_ns ASC, event_id ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        )::BIGINT AS taken_bytes,
        bool_or(device_allocated IS NULL) OVER (PARTITION BY rank, device) AS live_is_relative
    FROM events
    WHERE layer = 'memory'
),

lived AS (
    SELECT
        *,
        if(live_is_relative, taken_bytes, device_allocated) AS live_bytes
    FROM summed
)

SELECT
    event_id,
    rank,
    kind,
    device,
    start_ns,
    alloc_bytes,
    device_allocated,
    device_reserved,
    live_bytes,
    live_is_relative,
    max(live_bytes) OVER (
        PARTITION BY rank, device ORDER BY start_ns ASC, event_id ASC
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS peak_bytes,
    op_id,
    step,
    phase,
    source_file,
    source_line
FROM lived
ORDER BY rank ASC, start_ns ASC, event_id ASC
