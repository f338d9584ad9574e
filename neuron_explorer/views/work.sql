-- +++
-- doc = """Units of hardware execution: kernels, copies, memsets, collectives, engine and DMA work.
-- A rank without any hardware row shows its leaf framework ops instead, on device `cpu`. Rows whose
-- start or duration is unknown stay in `events` and are in no total. Hardware work that only a
-- compilation caused (it tries out kernels) has the phase `compile`; such ops are none."""
-- key = ["rank", "event_id"]
-- materialize = true
--
-- [columns]
-- event_id = "Event of this unit; unique within a rank."
-- rank = "Distributed rank."
-- device = "Device that ran it: `cuda:0`, `cpu`."
-- queue = "Hardware queue, or thread on the CPU: `stream 7`, `thread 12`."
-- kind = "kernel, memcpy, memset, collective, engine, dma, or op on the CPU."
-- name = "Name as recorded."
-- start_ns = "Start, Unix epoch (ns)."
-- duration_ns = "Duration, repaired where it had to be (ns)."
-- end_ns = "Start plus duration (ns)."
-- launch_id = "Runtime call that launched it."
-- op_id = "Innermost framework op that caused it; on the CPU the op itself."
-- step = "Number of the training step it belongs to."
-- phase = "forward, backward, optimizer, input, other or compile."
-- module = "Module path or instance that caused it."
-- module_class = "Class of that module."
-- source_file = "File of the model line that caused it."
-- source_line = "Line of the model that caused it."
-- source_function = "Function of that line."
-- user_file = "File of the user's own line that caused it."
-- user_line = "The user's own line that caused it."
-- source_via = "How the line was found: line, call, function, forward, compiled, launch."
-- family = "Family of its cost: elementwise, matmul, norm, copy, ..."
-- op_name = "Name of the op that caused it."
-- input_shapes = "JSON list of that op's input shapes."
-- input_dtypes = "JSON list of that op's input dtypes."
-- output_shapes = "JSON list of that op's output shapes."
-- flops = "Its floating-point operations (flop)."
-- read_bytes = "Bytes it must read from memory (bytes)."
-- write_bytes = "Bytes it must write to memory (bytes)."
-- bytes = "Read plus written bytes; NULL where either is unknown (bytes)."
-- cost_via = "How the cost is known: formula, meta, compiler, counter, reported."
-- cost_note = "Why the cost is NULL, or what was assumed."
-- over_link = "Whether it copies over a link (host, peer) and not within the device's memory."
-- compiled = "Whether it ran inside a compiled region."
-- +++
-- Costs are already split over the kernels of an op when the trace is written, so they add up.
-- A leaf op is one that does not contain the next op begun on its thread. Views do not count, and
-- neither does what moves or fills inside an op that computes and has none that computes inside:
-- a product lays out its bias, a multiplication casts its scalar, a sum clears its result, and
-- then does its own work.
WITH hardware AS (
    SELECT e.*
    FROM events AS e
    WHERE e.layer = 'hardware' AND e.start_ns IS NOT NULL AND e.duration_ns IS NOT NULL
),

device_ranks AS (
    SELECT DISTINCT rank
    FROM events
    WHERE layer = 'hardware'
),

cpu_ranks AS (
    SELECT DISTINCT e.rank
    FROM events AS e
    ANTI JOIN device_ranks AS d ON e.rank = d.rank
),

timed AS (
    SELECT
        e.*,
        coalesce(e.family NOT IN ('copy', 'cast', 'fill'), FALSE)
        AND coalesce(e.read_bytes + e.write_bytes, 1) > 0 AS computes
    FROM events AS e
    SEMI JOIN cpu_ranks AS r ON e.rank = r.rank
    WHERE
        e.layer = 'framework' AND e.kind = 'op' AND e.family IS DISTINCT FROM 'view'
        AND e.start_ns IS NOT NULL AND e.duration_ns IS NOT NULL
        AND e.phase IS DISTINCT FROM 'compile'
),

marked AS (
    SELECT
        *,
        computes AND NOT coalesce(
            lead(start_ns) OVER alike < end_ns AND lead(end_ns) OVER alike <= end_ns, FALSE
        ) AS is_innermost
    FROM timed
    WINDOW alike AS (
        PARTITION BY rank, pid, tid, computes ORDER BY start_ns ASC, end_ns DESC, event_id ASC
    )
),

around AS (
    SELECT
        *,
        max(if(is_innermost, end_ns, NULL)) OVER (
            PARTITION BY rank, pid, tid ORDER BY start_ns ASC, end_ns DESC, event_id ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS computed_end_ns
    FROM marked
),

cpu_ops AS (
    SELECT
        * EXCLUDE (computes, is_innermost, computed_end_ns),
        lead(start_ns) OVER thread AS next_start_ns,
        lead(end_ns) OVER thread AS next_end_ns
    FROM around
    WHERE
        NOT coalesce(NOT computes AND start_ns < computed_end_ns, FALSE)
    WINDOW thread AS (
        PARTITION BY rank, pid, tid ORDER BY start_ns ASC, end_ns DESC, event_id ASC
    )
),

units AS (
    SELECT
        * EXCLUDE (device, queue, op_id),
        device,
        queue,
        op_id
    FROM hardware
    UNION ALL BY NAME
    SELECT
        * EXCLUDE (device, queue, op_id, next_start_ns, next_end_ns, duration_ns, end_ns),
        duration_ns - coalesce(compile_ns, 0) AS duration_ns,
        end_ns - coalesce(compile_ns, 0) AS end_ns,
        'cpu' AS device,
        'thread ' || coalesce(tid::VARCHAR, tid_raw, '?') AS queue,
        event_id AS op_id
    FROM cpu_ops
    WHERE NOT coalesce(next_start_ns < end_ns AND next_end_ns <= end_ns, FALSE)
)

SELECT
    u.event_id,
    u.rank,
    u.device,
    u.queue,
    u.kind,
    u.name,
    u.start_ns,
    u.duration_ns,
    u.end_ns,
    u.launch_id,
    u.op_id,
    u.step,
    u.phase,
    u.module,
    u.module_class,
    u.source_file,
    u.source_line,
    u.source_function,
    u.user_file,
    u.user_line,
    u.source_via,
    coalesce(u.family, o.family) AS family,
    o.name AS op_name,
    coalesce(u.input_shapes, o.input_shapes) AS input_shapes,
    coalesce(u.input_dtypes, o.input_dtypes) AS input_dtypes,
    coalesce(u.output_shapes, o.output_shapes) AS output_shapes,
    u.flops,
    u.read_bytes,
    u.write_bytes,
    u.read_bytes + u.write_bytes AS bytes,
    u.cost_via,
    coalesce(u.cost_note, o.cost_note) AS cost_note,
    u.kind = 'memcpy'
    AND (
        regexp_matches(u.name, '(?i)ptop|peer')
        OR NOT regexp_matches(u.name, '(?i)dtod|device ?to ?device|device *-> *device')
    ) AS over_link,
    u.compiled
FROM units AS u
LEFT JOIN events AS o ON u.rank = o.rank AND u.op_id = o.event_id AND o.layer = 'framework'
