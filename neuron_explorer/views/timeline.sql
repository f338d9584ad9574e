-- +++
-- doc = """The busy time of each device cut into disjoint pieces. Where units of work overlap, the
-- time belongs to the one that began first, so `busy_ns` adds up to the union of the intervals."""
-- key = ["rank", "event_id"]
-- materialize = true
--
-- [columns]
-- event_id = "Unit of work."
-- rank = "Distributed rank."
-- device = "Device that ran it."
-- queue = "Queue that ran it."
-- step = "Number of the training step it belongs to."
-- start_ns = "Its start (ns)."
-- end_ns = "Its end (ns)."
-- busy_ns = "Its time in which no unit begun before it on the device ran (ns)."
-- queue_busy_ns = "The same among the units of its own queue only (ns)."
-- rank_busy_ns = "The same among the units of all devices of the rank (ns)."
-- idle_before_ns = "How long no queue of the device had worked when it began (ns)."
-- previous_id = "Unit that ended last before that; NULL for the first of a device."
-- +++
-- A unit adds what lies behind the latest end of all units that began before it: right for
-- nested, overlapping and touching intervals alike.
WITH ends AS (
    SELECT
        event_id,
        rank,
        device,
        queue,
        step,
        start_ns,
        end_ns,
        max(end_ns) OVER on_device AS device_end_ns,
        max(end_ns) OVER on_queue AS queue_end_ns,
        max(end_ns) OVER on_rank AS rank_end_ns,
        arg_max(event_id, end_ns) OVER on_device AS previous_id
    FROM work
    WINDOW
        on_device AS (
            PARTITION BY rank, device ORDER BY start_ns ASC, end_ns DESC, event_id ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ),
        on_queue AS (
            PARTITION BY rank, device, queue ORDER BY start_ns ASC, end_ns DESC, event_id ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ),
        on_rank AS (
            PARTITION BY rank ORDER BY start_ns ASC, end_ns DESC, event_id ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
)

SELECT
    event_id,
    rank,
    device,
    queue,
    step,
    start_ns,
    end_ns,
    greatest(0, end_ns - greatest(start_ns, device_end_ns)) AS busy_ns,
    greatest(0, end_ns - greatest(start_ns, queue_end_ns)) AS queue_busy_ns,
    greatest(0, end_ns - greatest(start_ns, rank_end_ns)) AS rank_busy_ns,
    greatest(0, start_ns - coalesce(device_end_ns, start_ns)) AS idle_before_ns,
    previous_id
FROM ends
