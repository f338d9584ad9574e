-- +++
-- doc = """Copies between a device and the host or another device: which way, of what memory, and
-- how much of each no computing hides. Those that only a compilation caused are left out."""
-- key = ["rank", "event_id"]
-- materialize = true
--
-- [columns]
-- event_id = "Unit of work."
-- rank = "Distributed rank."
-- device = "Device that copies."
-- queue = "Queue that ran it."
-- name = "Name as recorded."
-- direction = "to the device, from the device, between devices; NULL where its name does not say."
-- pageable = "Whether the host's side is pageable memory, by its name: then the host waits."
-- warmed = "Whether the device had begun to compute before it: a copy of a batch, not of a model."
-- start_ns = "Start (ns)."
-- duration_ns = "Duration (ns)."
-- exposed_ns = "Part of it in which nothing computed; NULL for those that collectives make (ns)."
-- bytes = "Bytes that arrive; NULL where unknown (bytes)."
-- launch_id = "Runtime call that launched it."
-- op_id = "Innermost framework op that caused it."
-- op_name = "Its name."
-- step = "Number of the training step."
-- source_file = "File of the model line."
-- source_line = "Line of the model."
-- +++
WITH begun AS (
    SELECT
        rank,
        device,
        min(start_ns) AS start_ns
    FROM work
    WHERE kind NOT IN ('memcpy', 'memset')
    GROUP BY rank, device
)

SELECT
    w.event_id,
    w.rank,
    w.device,
    w.queue,
    w.name,
    CASE
        WHEN regexp_matches(w.name, '(?i)ptop|peer') THEN 'between devices'
        WHEN regexp_matches(w.name, '(?i)htod|host ?(to|->) ?device|(pageable|pinned) *->')
            THEN 'to the device'
        WHEN regexp_matches(w.name, '(?i)dtoh|device ?(to|->) ?host|-> *(pageable|pinned)')
            THEN 'from the device'
    END AS direction,
    contains(lower(w.name), 'pageable') AS pageable,
    coalesce(w.start_ns > b.start_ns, FALSE) AS warmed,
    w.start_ns,
    w.duration_ns,
    x.exposed_ns,
    w.write_bytes AS bytes,
    w.launch_id,
    w.op_id,
    w.op_name,
    w.step,
    w.source_file,
    w.source_line
FROM work AS w
LEFT JOIN exposed AS x ON w.rank = x.rank AND w.event_id = x.event_id
LEFT JOIN begun AS b ON w.rank = b.rank AND w.device = b.device
WHERE w.kind = 'memcpy' AND w.over_link AND w.phase IS DISTINCT FROM 'compile'
ORDER BY w.rank ASC, w.start_ns ASC, w.event_id ASC
