-- +++
-- title = "{say_title}: {shape} {source_dtype} to {target_dtype}"
-- question = "Which lines cast the same tensor again and again?"
-- severity = "info"
-- likely = 0.75
-- needs = ["work", "shapes", "modules", "measured"]
-- acts_on = "device"
-- message = """
-- {say_what}: {casts:count cast} {say_where}, {device_time_ns:ns}[[ for {bytes:bytes}]]; \
-- {repeats:count} of them repeat one of the same module, shape and dtype."""
-- advice = "{fix}"
-- key = ["rank", "device", "source_file", "source_line", "place", "what", "target_dtype"]
-- proof = """
-- SELECT *
-- FROM work
-- WHERE rank = {rank} AND list_contains({event_ids}, event_id)
-- ORDER BY start_ns"""
-- reference = "https://docs.pytorch.org/docs/stable/amp.html"
--
-- [params.min_repeats]
-- default = 2
-- doc = "Casts of one module, shape and dtype at a line in one step, from which on they repeat."
--
-- [params.min_share]
-- default = 0.005
-- doc = "Lines whose repeats take less of the device's work time are left out (0 to 1)."
--
-- [params.warning_share]
-- default = 0.05
-- doc = "From this share on a line that casts weights is a warning, else info."
--
-- [columns]
-- casts = "Casts at this line."
-- repeats = "Those after the first of the same module, shape and dtypes."
-- what = "weights: operand of a layer, cast by autocast; or tensors of one shape."
-- source_dtype = "Dtype before."
-- target_dtype = "Dtype after."
-- shape = "Shape of the largest."
-- bytes = "Bytes that the repeats move; NULL where one is unknown (bytes)."
-- rank = "Distributed rank."
-- device = "Device of the casts."
-- source_file = "File of the line; NULL without stacks."
-- source_line = "That line."
-- module = "Module of the longest."
-- place = "Module and shape; they stand for the line where none is known."
-- steps = "Steps they ran in; NULL where the trace has no steps."
-- device_time_ns = "Duration of all these casts (ns)."
-- taken_ns = "The same; on a CPU with what makes the new tensor (ns)."
-- severity = "warning or info, by share; info unless they are weights."
-- saving_low_ns = "Duration of the repeats of weights; else NULL: it may not be one tensor (ns)."
-- saving_high_ns = """Of weights all of taken_ns, since those kept narrow need no cast; else
-- that of the repeats (ns)."""
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "medium for weights, low for tensors of one shape."
-- say_title = "What repeats."
-- say_what = "The same, in a sentence."
-- say_where = "Steps, as text."
-- fix = "The change to make."
-- event_ids = "The casts."
-- start_ns = "When the first of them ran."
-- +++
-- Autocast casts the fp32 weights of a layer when it first meets them inside the context, and again
-- in each context: once a step, and once for every micro-batch that opens its own. A cast counts as
-- one of a weight when it runs inside a linear, convolution or matmul op and has the shape of that
-- op's weight or bias. Weights count over the whole trace, other tensors only within a step, where
-- the same module casts the same shape at the same line more than once.
--
-- No trace says that two casts read the same memory, so shape, dtype, module and line stand for it:
-- a loop over different tensors of one shape looks the same. Backward and recomputed casts do not
-- count.
--
-- Next: `SELECT * FROM ops WHERE name = 'aten::_to_copy' AND source_line = ...`.
WITH cast_ops AS (
    SELECT
        w.rank,
        w.device,
        w.event_id,
        w.step,
        w.source_file,
        w.source_line,
        w.start_ns,
        w.duration_ns,
        w.bytes,
        w.module,
        o.parent_id,
        o.input_shapes ->> '$[1]' AS shape,
        o.input_dtypes ->> '$[1]' AS source_dtype,
        o.input_dtypes ->> '$[0]' AS target_dtype
    FROM work AS w
    INNER JOIN ops AS o ON w.rank = o.rank AND w.op_id = o.event_id
    INNER JOIN events AS e
        ON w.rank = e.rank AND w.op_id = e.event_id AND e.layer = 'framework'
    WHERE
        o.name = 'aten::copy_' AND NOT coalesce(w.over_link, FALSE)
        AND NOT coalesce(w.compiled, FALSE) AND NOT coalesce(e.recomputed, FALSE)
        AND w.phase IS DISTINCT FROM 'backward' AND w.phase IS DISTINCT FROM 'optimizer'
        AND o.input_dtypes ->> '$[1]' <> o.input_dtypes ->> '$[0]'
        AND o.input_shapes ->> '$[1]' <> '[]' AND w.module IS NOT NULL
),

placed AS (
    SELECT
        c.*,
        coalesce(
            l.name IN (
                'aten::linear', 'aten::addmm', 'aten::matmul', 'aten::mm', 'aten::conv1d',
                'aten::conv2d', 'aten::conv3d', 'aten::convolution'
            )
            AND c.shape IN (l.input_shapes ->> '$[1]', l.input_shapes ->> '$[2]')
            AND c.shape <> l.input_shapes ->> '$[0]',
            FALSE
        ) AS is_weight,
        if(c.device = 'cpu', greatest(c.duration_ns, p.duration_ns), c.duration_ns) AS taken_ns
    FROM cast_ops AS c
    -- copy_ in _to_copy in to in the layer
    INNER JOIN ops AS p
        ON c.rank = p.rank AND c.parent_id = p.event_id AND p.name = 'aten::_to_copy'
    LEFT JOIN ops AS t ON p.rank = t.rank AND p.parent_id = t.event_id
    LEFT JOIN ops AS l
        ON t.rank = l.rank AND if(t.name = 'aten::to', t.parent_id, t.event_id) = l.event_id
),

counted AS (
    SELECT
        *,
        if(is_weight, 'weights', 'tensors') AS what,
        if(source_line IS NULL, concat_ws(' ', module, shape), NULL) AS place,
        row_number() OVER same AS number,
        count(*) OVER (
            PARTITION BY
                rank, device, source_file, source_line, module, shape, source_dtype, target_dtype,
                is_weight, if(is_weight, NULL, step)
        ) AS alike
    FROM placed
    WINDOW same AS (
        PARTITION BY
            rank, device, source_file, source_line, module, shape, source_dtype, target_dtype,
            is_weight, if(is_weight, NULL, step)
        ORDER BY start_ns ASC, event_id ASC
    )
),

places AS (
    SELECT
        rank,
        device,
        source_file,
        source_line,
        place,
        what,
        target_dtype,
        count(*) AS casts,
        count(*) FILTER (WHERE number > 1) AS repeats,
        nullif(count(DISTINCT step), 0) AS steps,
        if(bool_or(bytes IS NULL), NULL, sum(bytes) FILTER (WHERE number > 1))::BIGINT AS bytes,
        sum(duration_ns)::BIGINT AS device_time_ns,
        sum(taken_ns)::BIGINT AS taken_ns,
        sum(duration_ns) FILTER (WHERE number > 1)::BIGINT AS repeats_ns,
        sum(taken_ns) FILTER (WHERE number > 1 OR what = 'weights')::BIGINT AS saving_high_ns,
        arg_max(module, (duration_ns, event_id)) AS module,
        arg_max(shape, (coalesce(bytes, 0), event_id)) AS shape,
        arg_max(source_dtype, (duration_ns, event_id)) AS source_dtype,
        list(event_id ORDER BY event_id ASC) AS event_ids,
        min(start_ns) AS start_ns
    FROM counted
    WHERE alike >= $min_repeats
    GROUP BY ALL
),

totals AS (
    SELECT
        rank,
        device,
        $min_share * sum(duration_ns) AS least_ns,
        $warning_share * sum(duration_ns) AS warning_ns
    FROM work
    WHERE phase IS DISTINCT FROM 'compile'
    GROUP BY rank, device
)

SELECT
    p.casts,
    p.repeats,
    p.what,
    p.source_dtype,
    p.target_dtype,
    p.shape,
    p.bytes,
    p.rank,
    p.device,
    p.source_file,
    p.source_line,
    p.module,
    p.place,
    p.steps,
    p.device_time_ns,
    p.taken_ns,
    p.saving_high_ns,
    p.event_ids,
    p.start_ns,
    if(p.what = 'weights', p.repeats_ns, NULL)::BIGINT AS saving_low_ns,
    CASE
        WHEN p.what = 'weights'
            THEN
                'high: all casts, as of weights that are kept narrow; low: those after the first of'
                || ' each weight'
        ELSE
            'high: the casts after the first of each; that they read the same tensor is inferred'
    END AS saving_basis,
    CASE
        WHEN p.what = 'weights' AND p.saving_high_ns >= t.warning_ns THEN 'warning'
        ELSE 'info'
    END AS severity,
    CASE WHEN p.what = 'weights' THEN 'medium' ELSE 'low' END AS confidence,
    CASE WHEN p.what = 'weights' THEN 'Weights cast again' ELSE 'The same shape cast again' END
        AS say_title,
    CASE
        WHEN p.what = 'weights' THEN 'Autocast casts the weights of a layer again'
        ELSE 'A module casts tensors of one shape several times in a step'
    END AS say_what,
    CASE WHEN p.steps IS NULL THEN 'in all' ELSE 'in ' || p.steps || ' steps' END AS say_where,
    CASE
        WHEN p.what = 'weights'
            THEN
                'Keep the weights in the narrow dtype (model.to(torch.bfloat16), with an optimizer'
                || ' that has fp32 masters), or open torch.autocast once around all micro-batches'
                || ' of a step so that its cache holds.'
        ELSE
            'If it is the same tensor, cast it once and pass the result on; if it is a buffer or'
            || ' a mask, keep it in the dtype it is used in.'
    END AS fix
FROM places AS p
INNER JOIN totals AS t ON p.rank = t.rank AND p.device = t.device
WHERE p.repeats > 0 AND p.saving_high_ns >= t.least_ns
ORDER BY p.saving_high_ns DESC, p.start_ns ASC
