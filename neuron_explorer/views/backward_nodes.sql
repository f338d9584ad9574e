-- +++
-- doc = """The nodes of autograd's graph as the backward ran them, each with the op of the forward
-- that made it."""
-- key = ["rank", "event_id"]
-- materialize = true
--
-- [columns]
-- rank = "Distributed rank."
-- event_id = "Event of the node."
-- forward_id = "The op of the forward; NULL where the trace does not tell."
-- forward_tid = "Thread of that op."
-- forward_start_ns = "When it began (ns)."
-- forward_file = "File of its model line."
-- forward_line = "That line."
-- duration_ns = "Time of the node on the host; NULL where it is unknown (ns)."
-- gap_ns = "What the engine took between the node before on this thread and this one (ns)."
-- +++
-- The first node of a thread has no gap before it: 0. A long gap is no work of the engine's.
SELECT
    n.rank,
    n.event_id,
    n.forward_id,
    f.tid AS forward_tid,
    f.start_ns AS forward_start_ns,
    f.source_file AS forward_file,
    f.source_line AS forward_line,
    n.duration_ns,
    n.gap_ns
FROM (
    SELECT
        rank,
        event_id,
        forward_id,
        duration_ns,
        greatest(
            0,
            start_ns - lag(end_ns, 1, start_ns) OVER (
                PARTITION BY rank, pid, tid ORDER BY start_ns ASC
            )
        ) AS gap_ns
    FROM events
    WHERE kind = 'autograd' AND starts_with(name, 'autograd::engine::evaluate_function')
) AS n
LEFT JOIN events AS f ON n.rank = f.rank AND n.forward_id = f.event_id
