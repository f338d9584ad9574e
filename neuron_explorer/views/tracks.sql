-- +++
-- doc = """Every event that lasted, with the queue or thread and the track there that it is drawn
-- in. Rows that only mark a moment are left out."""
-- key = ["rank", "event_id"]
--
-- [columns]
-- rank = "Distributed rank."
-- event_id = "Event."
-- device = "Device of the queue; NULL for a thread."
-- place = "Queue or thread: `stream 7`, `thread 12`."
-- track = "work, marks, ops, runtime, compile, host, modules, frames or lines."
-- kind = "What sort of event of its layer."
-- name = "Its name."
-- start_ns = "Its start, Unix epoch (ns)."
-- end_ns = "Its end (ns)."
-- +++
SELECT
    rank,
    event_id,
    if(layer = 'hardware' OR kind = 'device_annotation', device, NULL) AS device,
    CASE
        WHEN layer = 'hardware' OR kind = 'device_annotation'
            THEN coalesce(queue, 'queue unknown')
        WHEN tid IS NULL THEN coalesce(thread_name, tid_raw, 'thread unknown')
        ELSE 'thread ' || tid
    END AS place,
    CASE layer
        WHEN 'hardware' THEN 'work'
        WHEN 'runtime' THEN 'runtime'
        WHEN 'python' THEN 'frames'
        WHEN 'compiler' THEN 'compile'
        WHEN 'host' THEN 'host'
        ELSE
            CASE kind
                WHEN 'annotation' THEN 'marks'
                WHEN 'device_annotation' THEN 'marks'
                WHEN 'module' THEN 'modules'
                WHEN 'line' THEN 'lines'
                ELSE 'ops'
            END
    END AS track,
    kind,
    name,
    start_ns,
    end_ns
FROM events
WHERE layer NOT IN ('meta', 'memory') AND end_ns > start_ns
