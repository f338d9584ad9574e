-- +++
-- doc = "Stretches in which no queue of a device worked, between its first and last unit of work."
-- key = ["rank", "device", "start_ns"]
--
-- [columns]
-- rank = "Distributed rank."
-- device = "Device that stood idle."
-- start_ns = "End of the last work before (ns)."
-- end_ns = "Start of the first work after (ns)."
-- duration_ns = "How long it lasted (ns)."
-- before_event_id = "Unit of work that ended last before it."
-- after_event_id = "Unit of work that ended it."
-- step = "Training step of the work that ended it."
-- +++
SELECT
    rank,
    device,
    start_ns - idle_before_ns AS start_ns,
    start_ns AS end_ns,
    idle_before_ns AS duration_ns,
    previous_id AS before_event_id,
    event_id AS after_event_id,
    step
FROM timeline
WHERE idle_before_ns > 0
ORDER BY rank ASC, device ASC, start_ns ASC
