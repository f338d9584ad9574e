-- +++
-- doc = """What a timeline draws below one another: a lane for each queue of a device, and one for
-- each thread and sort of host event."""
-- key = ["rank", "lane"]
-- materialize = true
--
-- [columns]
-- rank = "Distributed rank."
-- lane = "Number over all ranks, from 1, in the order to draw: queues before threads."
-- device = "Device of the queue; NULL for a thread."
-- place = "Queue or thread: `stream 7`, `thread 12`."
-- track = "work, marks, ops, runtime, compile, host, modules, frames or lines."
-- events = "Events in it."
-- start_ns = "Start of the first (ns)."
-- end_ns = "End of the last (ns)."
-- +++
WITH grouped AS (
    SELECT
        rank,
        device,
        place,
        track,
        count(*) AS events,
        min(start_ns) AS start_ns,
        max(end_ns) AS end_ns,
        sum(count(*)) OVER (PARTITION BY rank, device, place) AS of_place,
        list_position(
            ['work', 'marks', 'ops', 'runtime', 'compile', 'host', 'modules', 'frames', 'lines'],
            track
        ) AS depth
    FROM tracks
    GROUP BY rank, device, place, track
)

SELECT
    rank,
    row_number() OVER (
        ORDER BY rank ASC, device ASC NULLS LAST, of_place DESC, place ASC, depth ASC
    )::INTEGER AS lane,
    device,
    place,
    track,
    events,
    start_ns,
    end_ns
FROM grouped
ORDER BY lane ASC
