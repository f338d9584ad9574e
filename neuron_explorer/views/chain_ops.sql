-- +++
-- doc = """Ops of each chain with the bytes that each of them would not move if the chain were one
-- kernel."""
-- key = ["rank", "chain_id", "place"]
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
-- sure_bytes = "Part of that which nobody else can need: what a backward may need stays (bytes)."
-- most_bytes = "All of it if the chain read each of its inputs once, as one kernel does (bytes)."
-- continues = "Whether it takes what the op before it made: all ops but the first."
-- disappears = "Whether a longer op of the chain stands for it once they are one kernel."
-- +++
-- Which inputs from outside are the same tensor is not recorded. At most, all but the largest that
-- one op reads are read again.
WITH trained AS (
    SELECT DISTINCT rank
    FROM ops
    WHERE phase = 'backward'
),

linked AS (
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
        coalesce(i.read_back_bytes, 0)
        + coalesce(if(t.rank IS NULL, o.written_bytes, o.overwritten_bytes), 0) AS sure_bytes,
        greatest(0, q.read_bytes - coalesce(i.read_back_bytes, 0)) AS outer_bytes,
        i.consumer_id IS NOT NULL AS continues,
        row_number() OVER (
            PARTITION BY c.rank, c.chain_id ORDER BY q.device_time_ns DESC, q.place ASC
        ) > 1 AS disappears
    FROM chains AS c
    INNER JOIN queue_ops AS q
        ON
            c.rank = q.rank AND c.device = q.device AND c.queue = q.queue
            AND q.place BETWEEN c.first_place AND c.first_place + c.ops - 1
    LEFT JOIN trained AS t ON c.rank = t.rank
    LEFT JOIN chain_links AS i
        ON q.rank = i.rank AND q.device = i.device AND q.queue = i.queue AND q.place = i.place
    LEFT JOIN chain_links AS o
        ON q.rank = o.rank AND q.device = o.device AND q.queue = o.queue AND q.place = o.place - 1
)

SELECT
    rank,
    chain_id,
    device,
    queue,
    place,
    op_id,
    op_name,
    family,
    launches,
    event_ids,
    device_time_ns,
    bytes,
    bytes_saved,
    sure_bytes,
    bytes_saved + if(
        row_number() OVER (
            PARTITION BY rank, chain_id ORDER BY outer_bytes DESC, place ASC
        ) > 1,
        coalesce(outer_bytes, 0),
        0
    ) AS most_bytes,
    continues,
    disappears
FROM linked
