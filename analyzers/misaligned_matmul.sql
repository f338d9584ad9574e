-- +++
-- title = "Matrix product whose {dims} no multiple of {multiple}: {inputs}"
-- question = "Which half-precision products have sizes that tensor cores cannot load whole?"
-- severity = "info"
-- acts_on = "device"
-- needs = ["hardware", "work", "shapes", "measured"]
-- message = """
-- {calls:count product} of {inputs} in {dtype}: {dims} no multiple of {multiple}, so rows do not \
-- start on 16 bytes. They take {device_time_ns:ns}[[ and reach {reached:share} of the roof]]\
-- [[; products of aligned sizes here reach {aligned_share:share}]]."""
-- advice = """
-- Pad the dimension to a multiple of {multiple} (64 is better still): vocabulary, hidden size, \
-- number of classes or heads times size; drop the padded logits behind the product."""
-- key = ["rank", "source_file", "source_line", "inputs", "dtype"]
-- proof = """
-- SELECT *
-- FROM work
-- WHERE rank = {rank} AND list_contains({event_ids}, event_id)
-- ORDER BY duration_ns DESC"""
-- reference = """https://docs.nvidia.com/deeplearning/performance/\
-- dl-performance-matrix-multiplication/"""
--
-- [params.min_share]
-- default = 0.01
-- doc = "Lines with less of the recorded time are left out (0 to 1)."
--
-- [params.warning_share]
-- default = 0.05
-- doc = "From this share in upper savings on a line is a warning, else info."
--
-- [columns]
-- dims = "Which dimensions are not aligned, with their sizes."
-- multiple = "What they should be a multiple of: 8 elements of 2 bytes, 16 of 1."
-- inputs = "Shapes of both factors."
-- dtype = "Their dtype."
-- calls = "Units of work."
-- kernel = "Kernel of the longest."
-- rank = "Distributed rank."
-- source_file = "File of the line; NULL without stacks."
-- source_line = "That line."
-- module = "Module of the longest."
-- steps = "Steps they ran in; NULL where the trace has no steps."
-- device_time_ns = "Their device time (ns)."
-- floor_ns = "Least time their arithmetic and bytes take on this chip; NULL if unknown (ns)."
-- reached = "Floor over device time."
-- aligned_share = "The same for all aligned products of this dtype, summed; NULL without any."
-- severity = "warning or info, by the upper saving."
-- saving_low_ns = "0: some sizes are limited by something else (ns)."
-- saving_high_ns = "They reach the share of the roof that aligned ones do; NULL if unknown (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "medium: newer libraries pad some sizes themselves."
-- event_ids = "The units of work."
-- start_ns = "When the first of them ran."
-- +++
-- NVIDIA's tensor cores load 16 bytes at a time: with K and N in multiples of 8 (fp16, bf16) or 16
-- (int8) every row starts on such a boundary. Other sizes fall back to narrower loads or to kernels
-- without tensor cores. GPT-2's vocabulary of 50257 is the usual case.
-- The rule is NVIDIA's: other vendors' devices are not judged. M, the number of tokens, counts only
-- where it is a row length: in products of the backward, whose sizes follow from the forward.
--
-- Next: `SELECT name, input_shapes, share_of_floor FROM roofline INNER JOIN work USING (event_id)`.
WITH products AS (
    SELECT
        w.rank,
        w.event_id,
        w.name,
        w.step,
        w.module,
        w.source_file,
        w.source_line,
        w.start_ns,
        w.duration_ns,
        r.floor_ns,
        replace(
            w.input_dtypes ->> if(w.op_name IN ('aten::addmm', 'aten::baddbmm'), '$[1]', '$[0]'),
            'c10::', ''
        ) AS dtype,
        try_cast(
            w.input_shapes ->> if(w.op_name IN ('aten::addmm', 'aten::baddbmm'), '$[1]', '$[0]')
            AS BIGINT[]
        ) AS a,
        try_cast(
            w.input_shapes ->> if(w.op_name IN ('aten::addmm', 'aten::baddbmm'), '$[2]', '$[1]')
            AS BIGINT[]
        ) AS b
    FROM work AS w
    LEFT JOIN roofline AS r ON w.rank = r.rank AND w.event_id = r.event_id
    WHERE
        w.op_name IN ('aten::mm', 'aten::addmm', 'aten::bmm', 'aten::baddbmm', 'aten::_int_mm')
        AND starts_with(w.device, 'cuda') AND w.kind = 'kernel'
        AND NOT coalesce(w.compiled, FALSE)
),

sized AS (
    SELECT
        * EXCLUDE (a, b),
        a[-1] AS k,
        b[-1] AS n,
        a::VARCHAR || ' x ' || b::VARCHAR AS inputs,
        CASE
            WHEN dtype IN ('Half', 'BFloat16') THEN 8
            WHEN dtype IN ('signed char', 'unsigned char') OR starts_with(dtype, 'Float8') THEN 16
        END AS multiple
    FROM products
    WHERE a IS NOT NULL AND b IS NOT NULL
),

judged AS (
    SELECT
        *,
        concat_ws(
            ' and ',
            CASE WHEN k % multiple > 0 THEN 'K = ' || k END,
            CASE WHEN n % multiple > 0 THEN 'N = ' || n END
        ) AS names,
        k % multiple > 0 OR n % multiple > 0 AS is_misaligned
    FROM sized
    WHERE multiple IS NOT NULL
),

aligned AS (
    SELECT
        rank,
        dtype,
        least(1, sum(floor_ns) / nullif(sum(duration_ns), 0)) AS aligned_share
    FROM judged
    WHERE NOT is_misaligned AND floor_ns IS NOT NULL
    GROUP BY rank, dtype
),

places AS (
    SELECT
        rank,
        source_file,
        source_line,
        inputs,
        dtype,
        names,
        multiple,
        count(*) AS calls,
        nullif(count(DISTINCT step), 0) AS steps,
        sum(duration_ns)::BIGINT AS device_time_ns,
        if(bool_or(floor_ns IS NULL), NULL, sum(floor_ns))::BIGINT AS floor_ns,
        arg_max(module, (duration_ns, event_id)) AS module,
        arg_max(name, (duration_ns, event_id)) AS kernel,
        list(event_id ORDER BY event_id ASC) AS event_ids,
        min(start_ns) AS start_ns
    FROM judged
    WHERE is_misaligned
    GROUP BY ALL
),

recorded_spans AS (
    SELECT
        rank,
        span_ns,
        $min_share * span_ns AS least_ns,
        $warning_share * span_ns AS warning_ns
    FROM rank_spans
),

gained AS (
    SELECT
        p.*,
        a.aligned_share,
        -- greatest() passes over a NULL
        if(
            p.floor_ns / a.aligned_share IS NULL,
            NULL,
            greatest(0, p.device_time_ns - round(p.floor_ns / a.aligned_share))
        )::BIGINT AS saving_high_ns,
        r.least_ns,
        r.warning_ns
    FROM places AS p
    INNER JOIN recorded_spans AS r ON p.rank = r.rank
    LEFT JOIN aligned AS a ON p.rank = a.rank AND p.dtype = a.dtype
)

SELECT
    multiple,
    inputs,
    dtype,
    calls,
    kernel,
    rank,
    source_file,
    source_line,
    module,
    steps,
    device_time_ns,
    floor_ns,
    saving_high_ns,
    event_ids,
    start_ns,
    'medium' AS confidence,
    names || if(contains(names, ' and '), ' are', ' is') AS dims,
    round(floor_ns / device_time_ns, 3) AS reached,
    round(aligned_share, 3) AS aligned_share,
    if(saving_high_ns IS NULL, NULL, 0)::BIGINT AS saving_low_ns,
    CASE WHEN saving_high_ns >= warning_ns THEN 'warning' ELSE 'info' END AS severity,
    CASE
        WHEN saving_high_ns IS NULL
            THEN 'unknown: no roof, or no aligned product of this dtype to compare with'
        ELSE
            'high: the product reaches the share of its roof that aligned products of this trace'
            || ' do; low: nothing'
    END AS saving_basis
FROM gained
WHERE device_time_ns >= least_ns
ORDER BY saving_high_ns DESC NULLS LAST, device_time_ns DESC, start_ns ASC
