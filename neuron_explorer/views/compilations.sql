-- +++
-- doc = """What torch.compile did: compilations, graph breaks, recompilations, cache look-ups; and
-- programs that a device built for itself, as eager mode on Neuron does for each op. A
-- recording by `profile()` has all of it since the process began to listen, so some rows are older
-- than the window; an imported trace has only compilations and guard checks, without the rest."""
-- key = ["rank", "event_id"]
-- materialize = true
--
-- [columns]
-- event_id = "Event."
-- rank = "Distributed rank."
-- kind = "compile, graph_break, recompile or cache_lookup."
-- name = "Function that was compiled; cache that was asked."
-- unit = "What a device's own program is made of: op, group or graph; NULL for torch.compile's."
-- graph_id = "Compiled frame and its recompilation count: `2/0`."
-- start_ns = "Start (ns)."
-- duration_ns = "Duration; NULL for what only has a time (ns)."
-- in_window = "Whether it began while the profiler recorded."
-- reason = "Why a graph broke, guard that failed, answer of a cache, why compiling failed."
-- forward = "Whether it compiled a forward (and maybe its backward), or a backward alone."
-- cache = "warm: all graphs came from Inductor's cache; cold: at least one did not."
-- cache_key = "Key that a cache was asked for."
-- backend_ns = "Part of the duration in the back end: AOTAutograd and all below (ns)."
-- inductor_ns = "Part of it in Inductor (ns)."
-- code_gen_ns = "Part of that to write, compile and load the code (ns)."
-- kernel_compile_ns = "Part of it that waited for compilers of kernels (ns)."
-- pre_grad_passes_ns = "Part in passes over the graph before autograd (ns)."
-- joint_passes_ns = "Part in passes over the joint graph (ns)."
-- post_grad_passes_ns = "Part in passes over the forward and backward graph (ns)."
-- before_restart_ns = "Part that was thrown away when the analysis began again (ns)."
-- gc_ns = "Part in Python's garbage collector (ns)."
-- guards = "Guards that later calls check."
-- graph_ops = "Operators in the traced graph."
-- step = "Number of the training step."
-- source_file = "File of the compiled function or of the break."
-- source_line = "First line of the function, or line of the break."
-- user_file = "File of the user's own line on the way to it."
-- user_line = "That line."
-- stack = "Frames on the way to it, outermost first."
-- +++
WITH windows AS (
    SELECT
        rank,
        min(start_ns) AS start_ns
    FROM events
    WHERE layer <> 'meta' AND (layer <> 'compiler' OR kind = 'stage')
    GROUP BY rank
)

SELECT
    e.event_id,
    e.rank,
    e.kind,
    e.name,
    e.attributes ->> '$.unit' AS unit,
    e.graph_id,
    e.start_ns,
    e.duration_ns,
    coalesce(e.start_ns >= w.start_ns, FALSE) AS in_window,
    e.reason,
    try_cast(e.attributes ->> '$.forward' AS BOOLEAN) AS forward,
    e.attributes ->> '$.cache' AS cache,
    e.attributes ->> '$.key' AS cache_key,
    try_cast(e.attributes ->> '$.backend_ns' AS BIGINT) AS backend_ns,
    try_cast(e.attributes ->> '$.inductor_ns' AS BIGINT) AS inductor_ns,
    try_cast(e.attributes ->> '$.code_gen_ns' AS BIGINT) AS code_gen_ns,
    try_cast(e.attributes ->> '$.kernel_compile_ns' AS BIGINT) AS kernel_compile_ns,
    try_cast(e.attributes ->> '$.pre_grad_passes_ns' AS BIGINT) AS pre_grad_passes_ns,
    try_cast(e.attributes ->> '$.joint_passes_ns' AS BIGINT) AS joint_passes_ns,
    try_cast(e.attributes ->> '$.post_grad_passes_ns' AS BIGINT) AS post_grad_passes_ns,
    try_cast(e.attributes ->> '$.before_restart_ns' AS BIGINT) AS before_restart_ns,
    try_cast(e.attributes ->> '$.gc_ns' AS BIGINT) AS gc_ns,
    try_cast(e.attributes ->> '$.guards' AS BIGINT) AS guards,
    try_cast(e.attributes ->> '$.graph_ops' AS BIGINT) AS graph_ops,
    e.step,
    e.source_file,
    e.source_line,
    e.user_file,
    e.user_line,
    e.stack
FROM events AS e
LEFT JOIN windows AS w ON e.rank = w.rank
WHERE e.layer = 'compiler' AND e.kind <> 'stage'
ORDER BY e.rank ASC, e.start_ns ASC, e.event_id ASC
