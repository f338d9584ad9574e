-- +++
-- doc = "Every event that lasted, in the lane it is drawn in: what a timeline pans and zooms over."
-- key = ["rank", "event_id"]
-- materialize = true
--
-- [columns]
-- rank = "Distributed rank."
-- lane = "Its lane, see `lanes`."
-- event_id = "Event."
-- start_ns = "Its start, Unix epoch (ns)."
-- end_ns = "Its end (ns)."
-- name = "Its name."
-- mark = "What bounds it where `roofline` judges it, else its kind."
-- +++
SELECT
    t.rank,
    l.lane,
    t.event_id,
    t.start_ns,
    t.end_ns,
    t.name,
    coalesce(r.bound, t.kind) AS mark
FROM tracks AS t
INNER JOIN lanes AS l
    ON
        t.rank = l.rank AND t.place = l.place AND t.track = l.track
        AND t.device IS NOT DISTINCT FROM l.device
LEFT JOIN roofline AS r ON t.rank = r.rank AND t.event_id = r.event_id
