-- +++
-- doc = "What the compiler did: compilations, graph breaks, recompilations, cache look-ups."
--
-- [columns]
-- event_id = "Event."
-- rank = "Distributed rank."
-- kind = "compile, graph_break, recompile or cache_lookup."
-- name = "Name as recorded."
-- start_ns = "Start (ns)."
-- duration_ns = "Duration (ns)."
-- graph_id = "Compiled frame and its recompilation count: `2/0`."
-- reason = "Reason of a graph break or recompilation."
-- step = "Number of the training step."
-- source_file = "File of the model line."
-- source_line = "Line of the model."
-- +++
SELECT
    event_id,
    rank,
    kind,
    name,
    start_ns,
    duration_ns,
    graph_id,
    reason,
    step,
    source_file,
    source_line
FROM events
WHERE layer = 'compiler'
ORDER BY rank ASC, start_ns ASC, event_id ASC
