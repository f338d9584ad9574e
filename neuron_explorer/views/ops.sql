-- +++
-- doc = """Framework operators, with their own time, their time on the device and their cost.
-- What ran only for a compilation is left out; of an op around one, its time is."""
-- key = ["rank", "event_id"]
--
-- [columns]
-- event_id = "Event of this op; unique within a rank."
-- rank = "Distributed rank."
-- layer = "Always framework."
-- kind = "Always op."
-- name = "Name of the op: `aten::mm`."
-- pid = "Process id."
-- tid = "Thread id."
-- start_ns = "Start on the host, Unix epoch (ns)."
-- duration_ns = "Duration on the host, inner ops included, compilations in it left out (ns)."
-- self_ns = "Part of it in which nothing begun later ran on the thread (ns)."
-- end_ns = "End on the host (ns)."
-- compile_ns = "Time in it to compile, which no duration here has; NULL where none was (ns)."
-- device_time_ns = "Sum of the durations of the work it caused itself; NULL where none (ns)."
-- kernels = "Units of work it caused itself."
-- step = "Number of the training step."
-- phase = "forward, backward, optimizer, input or other."
-- module = "Module path or instance."
-- module_class = "Class of that module."
-- source_file = "File of the model line."
-- source_line = "Line of the model."
-- source_function = "Function of that line."
-- source_via = "How the line was found."
-- family = "Family of its cost."
-- input_shapes = "JSON list of input shapes."
-- input_dtypes = "JSON list of input dtypes."
-- input_strides = "JSON list of input strides."
-- input_values = "JSON list of scalar arguments."
-- output_shapes = "JSON list of output shapes."
-- flops = "Floating-point operations (flop)."
-- read_bytes = "Bytes it must read (bytes)."
-- write_bytes = "Bytes it must write (bytes)."
-- bytes = "Read plus written bytes; NULL where either is unknown (bytes)."
-- cost_via = "How the cost is known."
-- cost_note = "Why it is not, or what was assumed."
-- parent_id = "Innermost event that encloses it on its thread."
-- forward_id = "Forward op of this backward op."
-- sequence = "Autograd sequence number."
-- compiled = "Whether it ran inside a compiled region."
-- graph_id = "Compiled frame and its recompilation count: `2/0`."
-- sources = "Every line that a compiled kernel comes from."
-- +++
WITH caused AS (
    SELECT
        rank,
        op_id,
        count(*) AS kernels,
        sum(duration_ns)::BIGINT AS device_time_ns
    FROM work
    GROUP BY rank, op_id
)

SELECT
    e.event_id,
    e.rank,
    e.layer,
    e.kind,
    e.name,
    e.pid,
    e.tid,
    e.start_ns,
    e.duration_ns - coalesce(e.compile_ns, 0) AS duration_ns,
    e.self_ns,
    e.end_ns,
    e.compile_ns,
    c.device_time_ns,
    coalesce(c.kernels, 0) AS kernels,
    e.step,
    e.phase,
    e.module,
    e.module_class,
    e.source_file,
    e.source_line,
    e.source_function,
    e.source_via,
    e.family,
    e.input_shapes,
    e.input_dtypes,
    e.input_strides,
    e.input_values,
    e.output_shapes,
    e.flops,
    e.read_bytes,
    e.write_bytes,
    e.read_bytes + e.write_bytes AS bytes,
    e.cost_via,
    e.cost_note,
    e.parent_id,
    e.forward_id,
    e.sequence,
    e.compiled,
    e.graph_id,
    e.sources
FROM events AS e
LEFT JOIN caused AS c ON e.rank = c.rank AND e.event_id = c.op_id
WHERE e.layer = 'framework' AND e.kind = 'op' AND e.phase IS DISTINCT FROM 'compile'
