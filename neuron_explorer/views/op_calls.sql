-- +++
-- doc = """Ops that the model's code, or the autograd engine, calls itself: those that run inside
-- no other op, in order on their thread. All work of the ops inside them is theirs."""
-- key = ["rank", "event_id"]
-- materialize = true
--
-- [columns]
-- event_id = "Event of the op; unique within a rank."
-- rank = "Distributed rank."
-- pid = "Process id."
-- tid = "Thread id."
-- place = "Its position among the calls of its thread, from 1."
-- name = "Name of the op: `aten::matmul`."
-- start_ns = "Start on the host (ns)."
-- end_ns = "End on the host (ns)."
-- duration_ns = "Duration on the host, compilations left out (ns)."
-- step = "Number of the training step."
-- phase = "forward, backward, optimizer, input or other."
-- module = "Module path or instance."
-- module_class = "Class of that module."
-- source_file = "File of the model line."
-- source_line = "Line of the model."
-- source_function = "Function of that line."
-- family = "Family of its cost: elementwise, matmul, view, ..."
-- input_shapes = "JSON list of input shapes."
-- input_dtypes = "JSON list of input dtypes."
-- input_values = "JSON list of scalar arguments."
-- output_shapes = "JSON list of output shapes."
-- compiled = "Whether it ran inside a compiled region."
-- recomputed = "Whether it ran again inside a backward."
-- by_autograd = "Whether a node of the autograd engine calls it."
-- device = "Device of most of its work; NULL where it caused none."
-- works = "Units of work of it and of the ops inside it."
-- work_ns = "Sum of their durations, on a CPU the call's own; NULL where none (ns)."
-- paced_ns = "Part of it that sets the pace: see `work_pace` (ns)."
-- work_ids = "They, in order of id; NULL where none."
-- backward_host_ns = "Host time of the backward's calls whose forward it is; NULL where none (ns)."
-- backward_ns = "Work of these calls (ns)."
-- backward_paced_ns = "Part of it that sets the pace (ns)."
-- backward_ids = "Units of that work, in order of id; NULL where none."
-- +++
-- On a CPU a call counts with all its time: the leaves inside it miss what it computes itself.
WITH framework AS (
    SELECT
        event_id,
        rank,
        pid,
        tid,
        start_ns,
        end_ns,
        forward_id,
        max(end_ns) OVER (
            PARTITION BY rank, pid, tid ORDER BY start_ns ASC, end_ns DESC, event_id ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
    FROM events
    WHERE
        layer = 'framework' AND kind = 'op' AND phase IS DISTINCT FROM 'compile'
        AND start_ns IS NOT NULL AND end_ns IS NOT NULL
),

placed AS (
    SELECT
        *,
        coalesce(start_ns >= reached_ns, TRUE) AS is_call,
        -- not count(*) FILTER: DuckDB walks each row's whole frame for that
        sum(coalesce(start_ns >= reached_ns, TRUE)::BIGINT) OVER (
            PARTITION BY rank, pid, tid ORDER BY start_ns ASC, end_ns DESC, event_id ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        )::BIGINT AS place
    FROM framework
),

calls AS (
    SELECT
        rank,
        pid,
        tid,
        place,
        event_id
    FROM placed
    WHERE is_call
),

owners AS (
    SELECT
        p.rank,
        p.event_id,
        p.forward_id,
        c.event_id AS call_id
    FROM placed AS p
    INNER JOIN calls AS c
        ON
            p.rank = c.rank AND p.place = c.place
            AND p.pid IS NOT DISTINCT FROM c.pid AND p.tid IS NOT DISTINCT FROM c.tid
),

worked AS (
    SELECT
        o.rank,
        o.call_id,
        arg_max(w.device, w.duration_ns) AS device,
        count(*) AS works,
        sum(w.duration_ns)::BIGINT AS work_ns,
        coalesce(sum(w.duration_ns) FILTER (WHERE p.pace = 'device'), 0)::BIGINT AS paced_ns,
        list_sort(list(w.event_id)) AS work_ids
    FROM owners AS o
    INNER JOIN work AS w ON o.rank = w.rank AND o.event_id = w.op_id
    INNER JOIN work_pace AS p ON w.rank = p.rank AND w.event_id = p.event_id
    GROUP BY o.rank, o.call_id
),

timed AS (
    SELECT
        e.rank,
        e.event_id,
        e.pid,
        e.tid,
        e.name,
        e.start_ns,
        e.end_ns,
        e.step,
        e.phase,
        e.module,
        e.module_class,
        e.source_file,
        e.source_line,
        e.source_function,
        e.family,
        e.input_shapes,
        e.input_dtypes,
        e.input_values,
        e.output_shapes,
        e.compiled,
        e.recomputed,
        e.forward_id,
        c.place,
        w.device,
        w.work_ids,
        e.duration_ns - coalesce(e.compile_ns, 0) AS duration_ns,
        p.event_id IS NOT NULL AS by_autograd,
        coalesce(w.works, 0) AS works,
        if(w.device = 'cpu', e.duration_ns - coalesce(e.compile_ns, 0), w.work_ns) AS work_ns,
        if(w.device = 'cpu', e.duration_ns - coalesce(e.compile_ns, 0), w.paced_ns) AS paced_ns
    FROM calls AS c
    INNER JOIN events AS e
        ON
            c.rank = e.rank AND c.event_id = e.event_id
            AND e.layer = 'framework' AND e.kind = 'op'
    LEFT JOIN events AS p
        ON
            e.rank = p.rank AND e.parent_id = p.event_id
            AND p.layer = 'framework' AND p.kind = 'autograd'
    LEFT JOIN worked AS w ON c.rank = w.rank AND c.event_id = w.call_id
),

backward AS (
    SELECT
        t.rank,
        f.call_id,
        sum(t.duration_ns)::BIGINT AS backward_host_ns,
        sum(t.work_ns)::BIGINT AS backward_ns,
        sum(t.paced_ns)::BIGINT AS backward_paced_ns,
        list_sort(flatten(list(t.work_ids))) AS backward_ids
    FROM timed AS t
    INNER JOIN owners AS f ON t.rank = f.rank AND t.forward_id = f.event_id
    WHERE t.work_ns IS NOT NULL
    GROUP BY t.rank, f.call_id
)

SELECT
    t.event_id,
    t.rank,
    t.pid,
    t.tid,
    t.place,
    t.name,
    t.start_ns,
    t.end_ns,
    t.duration_ns,
    t.step,
    t.phase,
    t.module,
    t.module_class,
    t.source_file,
    t.source_line,
    t.source_function,
    t.family,
    t.input_shapes,
    t.input_dtypes,
    t.input_values,
    t.output_shapes,
    t.compiled,
    t.recomputed,
    t.by_autograd,
    t.device,
    t.works,
    t.work_ns,
    t.paced_ns,
    t.work_ids,
    b.backward_host_ns,
    b.backward_ns,
    b.backward_paced_ns,
    b.backward_ids
FROM timed AS t
LEFT JOIN backward AS b ON t.rank = b.rank AND t.event_id = b.call_id
