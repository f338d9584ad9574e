-- +++
-- doc = """Ops of each chain with the bytes that each of them would not move if the chain were one
-- kernel."""
-- materialize = true
--
-- [columns]
-- rank = "Distributed rank."
-- chain_id = "Row of `chains`."
-- device = "Device."
-- queue = "Queue."
-- place = "Position in `queue_ops`."
-- op_id = "Framework op."
-- op_name = "Its name."
-- family = "Family of its cost."
-- launches = "Units of work that it launched."
-- event_ids = "They, in order."
-- device_time_ns = "Sum of their durations (ns)."
-- bytes = "Bytes that it moves (bytes)."
-- bytes_saved = "Part of them that a fused kernel would not move (bytes)."
-- sure_bytes = "Part of that which no other reader can need (bytes)."
-- continues = "Whether it takes what the op before it made: all ops but the first."
-- disappears = "Whether a longer op of the chain stands for it once they are one kernel."
-- +++
SELECT
    c.rank,
    c.chain_id,
    c.device,
    c.queue,
    q.place,
    q.op_id,
    q.op_name,
    q.family,
    q.launches,
    q.event_ids,
    q.device_time_ns,
    q.bytes,
    coalesce(i.read_back_bytes, 0) + coalesce(o.written_bytes, 0) AS bytes_saved,
    coalesce(i.read_back_bytes, 0) + coalesce(o.overwritten_bytes, 0) AS sure_bytes,
    i.consumer_id IS NOT NULL AS continues,
    row_number() OVER (
        PARTITION BY c.rank, c.chain_id ORDER BY q.device_time_ns DESC, q.place ASC
    ) > 1 AS disappears
FROM chains AS c
INNER JOIN queue_ops AS q
    ON
        c.rank = q.rank AND c.device = q.device AND c.queue = q.queue
        AND q.place BETWEEN c.first_place AND c.first_place + c.ops - 1
LEFT JOIN chain_links AS i
    ON q.rank = i.rank AND q.device = i.device AND q.queue = i.queue AND q.place = i.place
LEFT JOIN chain_links AS o
    ON q.rank = o.rank AND q.device = o.device AND q.queue = o.queue AND q.place = o.place - 1
