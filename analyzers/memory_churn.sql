-- +++
-- title = "The same memory taken and freed again and again: {place}"
-- question = "Which lines take and free large memory of one size over and over?"
-- severity = "info"
-- needs = ["addresses", "measured"]
-- message = """
-- {allocations:count time} {size_bytes:bytes}[[ (steps: {steps:count})]] taken and freed again \
-- on {device}, at most {alive:count} of them alive at once: {bytes:bytes} in all, where \
-- {peak_bytes:bytes} is the most that the trace took.[[ Ops there fill it for {op_ns:ns}.]]"""
-- advice = "{fix}"
-- key = ["rank", "device", "source_file", "source_line", "place", "size_bytes"]
-- proof = """
-- SELECT *
-- FROM allocations
-- WHERE rank = {rank} AND list_contains({event_ids}, event_id)
-- ORDER BY start_ns"""
-- reference = "https://docs.pytorch.org/docs/stable/notes/cuda.html"
--
-- [params.min_size_bytes]
-- default = 1_000_000
-- doc = "Smaller allocations are left out (bytes)."
--
-- [params.min_allocations]
-- default = 8
-- doc = "Least number in each step (in the whole trace without steps)."
--
-- [params.max_alive]
-- default = 2
-- doc = "Most of them that may be alive at once: more are results that the program keeps."
--
-- [params.min_turnover]
-- default = 4
-- doc = "Least bytes over the most memory that the trace took at any time."
--
-- [columns]
-- allocations = "Allocations of this size at this place that were freed again."
-- size_bytes = "Size of each (bytes)."
-- bytes = "All of them (bytes)."
-- alive = "Most of them alive at once."
-- peak_bytes = "Most memory of the device that the trace took at any time (bytes)."
-- op_ns = "Time of the ops that took and filled them; NULL on a device or unknown (ns)."
-- place = "Op that takes them, or the module."
-- rank = "Distributed rank."
-- device = "Device whose memory it is."
-- source_file = "File of the line; NULL without lines."
-- source_line = "That line."
-- module = "Module of the first of them; NULL where unknown."
-- steps = "Steps they happen in; NULL where the trace has no steps."
-- saving_low_ns = "NULL: what fresh pages cost is in no event."
-- saving_high_ns = "NULL: what fresh pages cost is in no event."
-- saving_basis = "Why no saving is stated."
-- confidence = "high where the line is known."
-- fix = "The change to make."
-- event_ids = "The allocations."
-- start_ns = "When the first of them was."
-- +++
-- On the host, large memory comes fresh from the system each time: its pages are cleared and mapped
-- one by one while the op writes. A device's allocator hands its own memory out again, so there it
-- costs little, but it raises the peak and fragments where sizes change.
--
-- A loop over layers that run the same op with nothing kept for the backward looks the same; it is
-- harmless on a device.
--
-- Next: `SELECT alloc_bytes, count(*) FROM allocations WHERE kind = 'alloc' GROUP BY 1 ORDER BY 2`.
WITH limits AS (
    SELECT
        $min_size_bytes AS min_size_bytes,
        $min_allocations AS min_allocations,
        $max_alive AS max_alive,
        $min_turnover AS min_turnover
),

freed AS (
    SELECT
        l.* EXCLUDE (op_ns),
        if(l.device = 'cpu', l.op_ns, NULL) AS op_ns,
        coalesce(l.op_name, l.module) AS place
    FROM lifetimes AS l
    CROSS JOIN limits
    WHERE
        l.alloc_bytes >= limits.min_size_bytes AND l.freed_ns IS NOT NULL
        AND coalesce(l.op_name, l.module) IS NOT NULL
),

borders AS (
    SELECT
        rank,
        device,
        source_file,
        source_line,
        place,
        alloc_bytes,
        start_ns AS at_ns,
        1 AS turn
    FROM freed
    UNION ALL BY NAME
    SELECT
        rank,
        device,
        source_file,
        source_line,
        place,
        alloc_bytes,
        freed_ns AS at_ns,
        -1 AS turn
    FROM freed
),

counted AS (
    SELECT
        *,
        sum(turn) OVER (
            PARTITION BY rank, device, source_file, source_line, place, alloc_bytes
            ORDER BY at_ns ASC, turn ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS alive
    FROM borders
),

most AS (
    SELECT
        rank,
        device,
        source_file,
        source_line,
        place,
        alloc_bytes,
        max(alive)::BIGINT AS alive
    FROM counted
    GROUP BY ALL
),

places AS (
    SELECT
        rank,
        device,
        source_file,
        source_line,
        place,
        alloc_bytes,
        count(*) AS allocations,
        nullif(count(DISTINCT step), 0) AS steps,
        sum(alloc_bytes)::BIGINT AS bytes,
        sum(op_ns)::BIGINT AS op_ns,
        arg_min(module, (start_ns, event_id)) AS module,
        list(event_id ORDER BY event_id ASC) AS event_ids,
        min(start_ns) AS start_ns
    FROM freed
    GROUP BY rank, device, source_file, source_line, place, alloc_bytes
),

peaks AS (
    SELECT
        rank,
        device,
        max(live_bytes) - min(live_bytes) AS peak_bytes
    FROM allocations
    GROUP BY rank, device
)

SELECT
    p.allocations,
    p.alloc_bytes AS size_bytes,
    p.bytes,
    m.alive,
    k.peak_bytes,
    p.op_ns,
    p.place,
    p.rank,
    p.device,
    p.source_file,
    p.source_line,
    p.module,
    p.steps,
    p.event_ids,
    p.start_ns,
    NULL::BIGINT AS saving_low_ns,
    NULL::BIGINT AS saving_high_ns,
    'none: what taking memory costs is in no event of its own' AS saving_basis,
    CASE WHEN p.source_line IS NULL THEN 'medium' ELSE 'high' END AS confidence,
    CASE
        WHEN p.device = 'cpu'
            THEN
                'Take it once before the loop and write into it (out=, copy_, mul_ and other'
                || ' in-place forms), fuse the ops with torch.compile, or work in pieces that fit'
                || ' the cache.'
        ELSE
            'Write into one buffer (out= or in-place forms), or fuse the ops with torch.compile;'
            || ' under CUDA graphs the same memory is used anyway.'
    END AS fix
FROM places AS p
INNER JOIN most AS m
    ON
        p.rank = m.rank AND p.device = m.device AND p.place = m.place
        AND p.alloc_bytes = m.alloc_bytes
        AND p.source_file IS NOT DISTINCT FROM m.source_file
        AND p.source_line IS NOT DISTINCT FROM m.source_line
INNER JOIN peaks AS k ON p.rank = k.rank AND p.device = k.device
CROSS JOIN limits
WHERE
    p.allocations >= limits.min_allocations * coalesce(p.steps, 1) AND m.alive <= limits.max_alive
    AND p.bytes >= limits.min_turnover * k.peak_bytes
ORDER BY p.bytes DESC, p.start_ns ASC
