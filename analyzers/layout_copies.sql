-- +++
-- title = "Copies that only change the layout: {op_names}"
-- question = "Which lines copy a tensor only to lay it out differently?"
-- severity = "warning"
-- likely = 0.75
-- needs = ["work", "strides", "measured"]
-- acts_on = "device"
-- message = """
-- {copies:count copy} of tensors that are {layouts}[[, such as {shape} with strides \
-- {strides}]]: {device_time_ns:ns}[[ for {bytes:bytes}]], same values and dtype, other layout."""
-- advice = "{fix}"
-- key = ["rank", "device", "source_file", "source_line", "anonymous_op"]
-- proof = """
-- SELECT *
-- FROM work
-- WHERE rank = {rank} AND list_contains({event_ids}, event_id)
-- ORDER BY duration_ns DESC"""
-- reference = "https://docs.pytorch.org/docs/stable/tensor_view.html"
--
-- [params.min_share]
-- default = 0.005
-- doc = "Lines with less of the device's work time are left out (0 to 1)."
--
-- [params.warning_share]
-- default = 0.05
-- doc = "From this share of it on a line is a warning, else info."
--
-- [columns]
-- copies = "Units of work that copy at this line."
-- bytes = "Bytes they read and write; NULL where one is unknown (bytes)."
-- op_names = "Op that asked for the copy: contiguous, clone, reshape, copy_."
-- layouts = "transposed, sliced, or dense with another order wanted."
-- shape = "Shape of the largest."
-- strides = "Its strides before the copy."
-- rank = "Distributed rank."
-- device = "Device of the copies."
-- source_file = "File of the line; NULL without stacks."
-- source_line = "That line."
-- module = "Module of the longest."
-- anonymous_op = "Op and shape; they stand for the line where none is known."
-- steps = "Steps they ran in; NULL where the trace has no steps."
-- device_time_ns = "Duration of the copies (ns)."
-- share = "The same over the work time of the device."
-- severity = "warning or info, by that share."
-- needless_ns = "Copies of a transposed matrix that a matmul reads next, with any strides (ns)."
-- saving_low_ns = "needless_ns: other ops that read a result may be slower on strided memory (ns)."
-- saving_high_ns = "All of the copies (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "high where the line is known."
-- fix = "The change to make."
-- event_ids = "The copies."
-- start_ns = "When the first of them ran."
-- +++
-- `x.transpose(1, 2).contiguous()`, `permute(...).reshape(...)` and `.to(memory_format=...)` read
-- and write every byte and compute nothing. A copy counts when source and destination have the same
-- shape and dtype, other strides, and the source is either not contiguous or copied on request
-- (clone, contiguous, reshape). Expanded tensors (stride 0) and copies into a slice of a larger
-- one, such as a key-value cache, do not count: they do other work.
--
-- A matrix that is turned around on request and next read by a matmul of its shape and strides need
-- not be: BLAS takes either order of the last two dimensions (transa, transb of its gemm). That the
-- matmul reads this copy, and nothing else does, is inferred: no trace says what memory an op has.
--
-- Where the line calls an op that lays out its own input (a matmul of a transposed view, an
-- attention), the copy is the op's.
--
-- Next: `SELECT * FROM ops WHERE name = 'aten::copy_' AND source_line = ...`.
WITH copied AS (
    SELECT
        w.rank,
        w.device,
        w.event_id,
        w.step,
        w.module,
        w.source_file,
        w.source_line,
        w.start_ns,
        w.duration_ns,
        w.bytes,
        o.parent_id,
        o.name,
        o.tid,
        o.input_shapes ->> '$[0]' AS shape_text,
        o.input_strides ->> '$[0]' AS target_text,
        try_cast(o.input_shapes ->> '$[0]' AS BIGINT[]) AS target_shape,
        try_cast(o.input_shapes ->> '$[1]' AS BIGINT[]) AS shape,
        try_cast(o.input_strides ->> '$[0]' AS BIGINT[]) AS target_strides,
        try_cast(o.input_strides ->> '$[1]' AS BIGINT[]) AS strides
    FROM work AS w
    INNER JOIN ops AS o ON w.rank = o.rank AND w.op_id = o.event_id
    WHERE
        o.name = 'aten::copy_' AND NOT coalesce(w.over_link, FALSE)
        AND NOT coalesce(w.compiled, FALSE)
        AND o.input_dtypes ->> '$[0]' = o.input_dtypes ->> '$[1]'
),

-- strides of dimensions of size 1 mean nothing
measured AS (
    SELECT
        *,
        list_transform(
            list_filter(list_zip(shape, strides), LAMBDA d: d[1] <> 1), LAMBDA d: d[2]
        ) AS steps_from,
        list_transform(
            list_filter(list_zip(shape, target_strides), LAMBDA d: d[1] <> 1), LAMBDA d: d[2]
        ) AS steps_to,
        list_filter(shape, LAMBDA d: d <> 1) AS sizes
    FROM copied
    WHERE shape = target_shape AND len(shape) = len(strides) AND len(shape) = len(target_strides)
),

judged AS (
    SELECT
        *,
        list_transform(
            range(1, len(sizes) + 1),
            LAMBDA i: coalesce(list_product(sizes[i + 1:])::BIGINT, 1)
        ) AS dense
    FROM measured
    WHERE
        len(sizes) > 0 AND steps_from <> steps_to
        AND NOT list_contains(steps_from, 0) AND NOT list_contains(steps_to, 0)
),

asked AS (
    SELECT
        j.*,
        coalesce(g.name, p.name, j.name) AS outer_name,
        coalesce(p.name IN ('aten::clone', 'aten::contiguous', 'aten::_to_copy'), FALSE)
            AS on_request,
        CASE
            WHEN j.steps_from <> list_reverse_sort(j.steps_from) THEN 'transposed'
            WHEN j.steps_from <> j.dense THEN 'sliced'
            ELSE 'dense with another order wanted'
        END AS layout,
        CASE WHEN j.source_line IS NULL THEN 'aten::copy_ ' || j.shape::VARCHAR END
            AS anonymous_op,
        -- and its backward, which turns the gradients around
        coalesce(
            regexp_matches(
                r.name,
                '^aten::(lstm|gru|rnn_tanh|rnn_relu|mkldnn_rnn_layer_backward|_cudnn_rnn_backward'
                || '|miopen_rnn_backward)$'
            ),
            FALSE
        ) AS by_recurrence
    FROM judged AS j
    LEFT JOIN ops AS p
        ON j.rank = p.rank AND j.parent_id = p.event_id
    LEFT JOIN ops AS g
        ON
            p.rank = g.rank AND p.parent_id = g.event_id
            AND g.name IN ('aten::contiguous', 'aten::reshape', 'aten::to', 'aten::matmul')
    LEFT JOIN ops AS r
        ON j.rank = r.rank AND coalesce(g.parent_id, p.parent_id) = r.event_id
),

operands AS (
    SELECT
        o.rank,
        o.tid,
        coalesce(o.step, -1) AS step,
        o.start_ns,
        unnest([o.input_shapes ->> '$[0]', o.input_shapes ->> '$[1]', o.input_shapes ->> '$[2]'])
            AS shape,
        unnest([o.input_strides ->> '$[0]', o.input_strides ->> '$[1]', o.input_strides ->> '$[2]'])
            AS strides
    FROM ops AS o
    WHERE o.name IN ('aten::mm', 'aten::addmm', 'aten::bmm', 'aten::baddbmm')
),

asked_by_reader AS (
    SELECT
        a.*,
        coalesce(
            a.on_request AND m.shape IS NOT NULL AND a.strides[-2] = 1
            AND a.strides[-1] >= a.shape[-2]
            AND a.target_strides[-1] = 1,
            FALSE
        ) AS read_either_way
    FROM asked AS a
    ASOF LEFT JOIN operands AS m
        ON
            a.rank = m.rank AND a.tid = m.tid AND coalesce(a.step, -1) = m.step
            AND a.shape_text = m.shape AND a.target_text = m.strides
            AND a.start_ns <= m.start_ns
),

places AS (
    SELECT
        rank,
        device,
        source_file,
        source_line,
        anonymous_op,
        list_sort(list(DISTINCT replace(outer_name, 'aten::', ''))) AS outer_names,
        list_sort(list(DISTINCT layout)) AS layouts,
        count(*) AS copies,
        nullif(count(DISTINCT step), 0) AS steps,
        if(bool_or(bytes IS NULL), NULL, sum(bytes))::BIGINT AS bytes,
        sum(duration_ns)::BIGINT AS device_time_ns,
        coalesce(sum(duration_ns) FILTER (WHERE read_either_way), 0)::BIGINT AS needless_ns,
        bool_and(by_recurrence) AS by_recurrence,
        arg_max(module, (duration_ns, event_id)) AS module,
        arg_max(shape, (duration_ns, event_id))::VARCHAR AS shape,
        arg_max(strides, (duration_ns, event_id))::VARCHAR AS strides,
        list(event_id ORDER BY event_id ASC) AS event_ids,
        min(start_ns) AS start_ns
    FROM asked_by_reader
    WHERE on_request OR (steps_from <> dense AND steps_to = dense)
    GROUP BY ALL
),

totals AS (
    SELECT
        rank,
        device,
        sum(duration_ns) AS total_ns,
        $min_share * sum(duration_ns) AS least_ns,
        $warning_share * sum(duration_ns) AS warning_ns
    FROM work
    WHERE phase IS DISTINCT FROM 'compile'
    GROUP BY rank, device
)

SELECT
    p.copies,
    p.bytes,
    p.shape,
    p.strides,
    p.rank,
    p.device,
    p.source_file,
    p.source_line,
    p.module,
    p.anonymous_op,
    p.steps,
    p.device_time_ns,
    p.event_ids,
    p.start_ns,
    p.needless_ns,
    p.needless_ns AS saving_low_ns,
    p.device_time_ns AS saving_high_ns,
    CASE
        WHEN p.needless_ns > 0
            THEN 'low: what a matmul reads next, for which either order of two dimensions will do'
        ELSE 'low: the next op may be slower on strided memory'
    END || '; high: the copies are gone' AS saving_basis,
    array_to_string(p.outer_names, ', ') AS op_names,
    array_to_string(p.layouts, ' or ') AS layouts,
    round(p.device_time_ns / t.total_ns, 4) AS share,
    CASE
        WHEN p.device_time_ns >= t.warning_ns AND NOT p.by_recurrence THEN 'warning'
        ELSE 'info'
    END AS severity,
    CASE WHEN p.source_line IS NULL THEN 'medium' ELSE 'high' END AS confidence,
    CASE
        WHEN p.by_recurrence
            THEN
                'If the time steps come first anyway, make the layer with batch_first=False: it'
                || ' turns its input and output around else.'
        WHEN p.layouts = ['dense with another order wanted']
            THEN
                'Give the tensor its memory format where it is made (channels_last once, for the'
                || ' model and its input), not in every step.'
        WHEN list_contains(p.outer_names, 'matmul') AND len(p.outer_names) = 1
            THEN
                'Give matmul inputs it need not lay out: the same number of batch dimensions, or'
                || ' an einsum or reshape that keeps the last two dense.'
        WHEN list_contains(p.layouts, 'sliced') AND len(p.layouts) = 1
            THEN
                'Pass the slice on as a view, or split once with torch.split or chunk and let the'
                || ' next op read it strided.'
        ELSE
            'Drop .contiguous() where the next op takes strides (matmul, attention, norms do),'
            || ' produce the tensor in the order it is read, or let torch.compile fold the copy'
            || ' into its reader.'
    END AS fix
FROM places AS p
INNER JOIN totals AS t ON p.rank = t.rank AND p.device = t.device
WHERE p.device_time_ns >= t.least_ns
ORDER BY p.device_time_ns DESC, p.start_ns ASC
