-- +++
-- doc = """Work of hardware queues that carries modelled times: what a dry run says it would take
-- on the chip. Nothing here is measured, and no other view but `modelled_steps` reads it. Times are
-- on the modelled device's own timeline, which begins at 0 with the dry run."""
-- key = ["rank", "event_id"]
-- materialize = true
--
-- [columns]
-- event_id = "Event of this work; unique within a rank."
-- rank = "Distributed rank."
-- device = "Device that is modelled: `neuron:0 (trn2, dry run)`."
-- queue = "Hardware queue: `compute 0`."
-- queue_kind = "compute, vector, copy_in, copy_out, copy, collective or dma."
-- kind = "kernel for a program; memcpy, collective, ..."
-- name = "Name of the program or copy."
-- op_id = "Innermost framework op that caused it."
-- op_name = "Name of that op."
-- family = "Family of the op's cost: elementwise, matmul, norm, copy, ..."
-- modelled_start_ns = "Start on the modelled timeline (ns)."
-- modelled_duration_ns = "Launch cost plus the larger floor, or the time on a link (ns)."
-- modelled_end_ns = "Start plus duration (ns)."
-- bound = "What takes the most of it: launch, memory, compute or link; NULL where none is said."
-- launch_cost_ns = "Fixed part: launch; of a collective also its hops; a copy's latency (ns)."
-- memory_floor_ns = "Time that its bytes take at the bandwidth programs achieve (ns)."
-- compute_floor_ns = "Time that its FLOPs take at the rate its engine achieves (ns)."
-- link_ns = "Time that its bytes take over the link to the host or a peer (ns)."
-- bytes = "Bytes that the model moves for it (bytes)."
-- flops = "FLOPs that the model counts for it; NULL where no formula knows (flop)."
-- reads = "JSON list of [storage, bytes of that storage] that it reads."
-- writes = "JSON list of [storage, bytes of that storage] that it writes."
-- launch_id = "Runtime call that submitted it."
-- graph_id = "Compiled graph that it is; NULL for an eager program."
-- compiled = "Whether it is a compiled graph, or ran inside a compiled region."
-- step = "Number of the training step it belongs to."
-- phase = "forward, backward, optimizer, input, other or compile."
-- module = "Module path or instance that caused it."
-- module_class = "Class of that module."
-- source_file = "File of the model line that caused it."
-- source_line = "Line of the model that caused it."
-- source_function = "Function of that line."
-- user_file = "File of the user's own line that caused it."
-- user_line = "The user's own line that caused it."
-- +++
SELECT
    e.event_id,
    e.rank,
    e.device,
    e.queue,
    e.queue_kind,
    e.kind,
    e.name,
    e.op_id,
    o.name AS op_name,
    coalesce(e.family, o.family) AS family,
    e.modelled_start_ns,
    e.modelled_duration_ns,
    e.modelled_start_ns + e.modelled_duration_ns AS modelled_end_ns,
    e.attributes ->> '$.modelled_bound' AS bound,
    try_cast(e.attributes ->> '$.modelled_launch_ns' AS BIGINT) AS launch_cost_ns,
    try_cast(e.attributes ->> '$.modelled_memory_ns' AS BIGINT) AS memory_floor_ns,
    try_cast(e.attributes ->> '$.modelled_compute_ns' AS BIGINT) AS compute_floor_ns,
    try_cast(e.attributes ->> '$.modelled_link_ns' AS BIGINT) AS link_ns,
    try_cast(e.attributes ->> '$.modelled_bytes' AS BIGINT) AS bytes,
    try_cast(e.attributes ->> '$.modelled_flops' AS BIGINT) AS flops,
    e.attributes ->> '$.reads' AS reads,
    e.attributes ->> '$.writes' AS writes,
    e.launch_id,
    e.graph_id,
    coalesce(e.compiled, FALSE) OR e.graph_id IS NOT NULL AS compiled,
    e.step,
    e.phase,
    e.module,
    e.module_class,
    e.source_file,
    e.source_line,
    e.source_function,
    e.user_file,
    e.user_line
FROM events AS e
LEFT JOIN events AS o ON e.rank = o.rank AND e.op_id = o.event_id AND o.layer = 'framework'
WHERE e.layer = 'hardware' AND e.modelled_duration_ns IS NOT NULL
