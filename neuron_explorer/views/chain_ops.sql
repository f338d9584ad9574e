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

members AS (
    SELECT
        rank,
        chain_id,
        device,
        queue,
        unnest(range(first_place, first_place + ops)) AS place
    FROM chains
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
        i.consumer_id IS NOT NULL AS continues
    FROM members AS c
    INNER JOIN queue_ops AS q
        ON c.rank = q.rank AND c.device = q.device AND c.queue = q.queue AND c.place = q.place
    LEFT JOIN trained AS t ON c.rank = t.rank
    LEFT JOIN chain_links AS i
        ON c.rank = i.rank AND c.device = i.device AND c.queue = i.queue AND c.place = i.place
    LEFT JOIN chain_links AS o
        ON c.rank = o.rank AND c.device = o.device AND c.queue = o.queue AND c.place = o.place - 1
),

-- by aggregates: DuckDB's windows take a hundred times as long over many small chains
largest AS (
    SELECT
        rank,
        chain_id,
        arg_max(place, (device_time_ns, -place)) AS longest_place,
        arg_max(place, (outer_bytes, -place)) AS widest_place
    FROM linked
    GROUP BY rank, chain_id
)

SELECT
    l.rank,
    l.chain_id,
    l.device,
    l.queue,
    l.place,
    l.op_id,
    l.op_name,
    l.family,
    l.launches,
    l.event_ids,
    l.device_time_ns,
    l.bytes,
    l.bytes_saved,
    l.sure_bytes,
    l.bytes_saved + if(l.place <> m.widest_place, l.outer_bytes, 0) AS most_bytes,
    l.continues,
    l.place <> m.longest_place AS disappears
FROM linked AS l
INNER JOIN largest AS m ON l.rank = m.rank AND l.chain_id = m.chain_id
