-- +++
-- doc = "Memory taken from and given back to the allocators."
--
-- [columns]
-- event_id = "Event of the allocation or free."
-- rank = "Distributed rank."
-- kind = "alloc or free."
-- device = "Device whose memory it is."
-- start_ns = "When (ns)."
-- alloc_bytes = "Bytes taken; negative when freed (bytes)."
-- device_allocated = "In use by the allocator afterwards (bytes)."
-- device_reserved = "Held by the allocator afterwards (bytes)."
-- op_id = "Innermost framework op around it."
-- step = "Number of the training step."
-- source_file = "File of the model line."
-- source_line = "Line of the model."
-- +++
SELECT
    event_id,
    rank,
    kind,
    device,
    start_ns,
    alloc_bytes,
    device_allocated,
    device_reserved,
    op_id,
    step,
    source_file,
    source_line
FROM events
WHERE layer = 'memory'
ORDER BY rank ASC, start_ns ASC, event_id ASC
