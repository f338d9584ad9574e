-- +++
-- doc = """Each piece of memory that was taken: by which op, until when, and whether it was alive
-- when its device held most. Alive at a moment t are those with start_ns <= t AND
-- (freed_ns IS NULL OR freed_ns > t)."""
-- key = ["rank", "event_id"]
-- materialize = true
--
-- [columns]
-- event_id = "Event of the allocation."
-- rank = "Distributed rank."
-- device = "Device whose memory it is."
-- address = "Where it lies, as recorded."
-- alloc_bytes = "Its size (bytes)."
-- start_ns = "When it was taken (ns)."
-- freeing_event_id = "Event that gave it back; NULL where the trace has none."
-- freed_ns = "When that was; NULL where it was still alive at the end of the trace (ns)."
-- at_peak = "Whether it was alive when the device held most for the first time."
-- op_id = "Innermost framework op around the allocation."
-- op_name = "Its name."
-- op_ns = "Its duration (ns)."
-- step = "Number of the training step."
-- phase = "forward, backward, optimizer, input or other."
-- module = "Module that took it."
-- source_file = "File of the model line."
-- source_line = "Line of the model."
-- +++
-- An allocation and what gives it back share no id but the address: the next event there is its
-- end. Where that is another allocation the free was not recorded. Without addresses (they come
-- with profile_memory=True, of a PyTorch that records them) there is no row.
WITH peaks AS (
    SELECT
        rank,
        device,
        start_ns AS peak_ns,
        event_id AS peak_id
    FROM allocations
    QUALIFY row_number() OVER (
        PARTITION BY rank, device ORDER BY live_bytes DESC, start_ns ASC, event_id ASC
    ) = 1
),

placed AS (
    SELECT
        a.*,
        o.name AS op_name,
        o.duration_ns AS op_ns,
        e.module,
        e.attributes ->> '$.Addr' AS address
    FROM allocations AS a
    INNER JOIN events AS e
        ON a.rank = e.rank AND a.event_id = e.event_id AND e.layer = 'memory'
    LEFT JOIN events AS o
        ON a.rank = o.rank AND a.op_id = o.event_id AND o.layer = 'framework'
    WHERE e.attributes ->> '$.Addr' IS NOT NULL
),

followed AS (
    SELECT
        *,
        lead(kind) OVER at_address AS next_kind,
        lead(start_ns) OVER at_address AS next_ns,
        lead(event_id) OVER at_address AS next_id
    FROM placed
    WINDOW at_address AS (
        PARTITION BY rank, device, address ORDER BY start_ns ASC, event_id ASC
    )
)

SELECT
    f.event_id,
    f.rank,
    f.device,
    f.address,
    f.alloc_bytes,
    f.start_ns,
    if(f.next_kind = 'free', f.next_id, NULL) AS freeing_event_id,
    if(f.next_kind = 'free', f.next_ns, NULL) AS freed_ns,
    (f.start_ns, f.event_id) <= (p.peak_ns, p.peak_id)
    AND (
        f.next_kind IS DISTINCT FROM 'free'
        OR (f.next_ns, f.next_id) > (p.peak_ns, p.peak_id)
    ) AS at_peak,
    f.op_id,
    f.op_name,
    f.op_ns,
    f.step,
    f.phase,
    f.module,
    f.source_file,
    f.source_line
FROM followed AS f
INNER JOIN peaks AS p ON f.rank = p.rank AND f.device = p.device
WHERE f.kind = 'alloc'
ORDER BY f.rank ASC, f.start_ns ASC, f.event_id ASC
