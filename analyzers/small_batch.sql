-- +++
-- title = "Too few rows for the chip: {place} multiplies {rows:count} at a time"
-- question = "Which matmuls mostly read their weight because the batch is small?"
-- severity = "info"
-- needs = ["work", "shapes", "cost", "chip", "measured"]
-- acts_on = "device"
-- message = """
-- {matmuls:count matmul} with {rows:count row} (batch times sequence) take {device_time_ns:ns}, \
-- {work_share:share} of the work on {device}: they read their weight ({weight_bytes:bytes} at \
-- most) and compute little with it. {chip} is as fast up to about {ridge_rows:count row} in \
-- {dtype}."""
-- advice = """
-- Put more samples into each call: a larger batch (or batched requests in serving; several \
-- tokens at once by speculative decoding), or gradient accumulation turned into batch size. Where \
-- the batch cannot grow, read fewer bytes: a narrower dtype or quantised weights."""
-- key = ["rank", "device", "source_file", "source_line", "place", "dtype"]
-- proof = """
-- SELECT *
-- FROM roofline
-- WHERE rank = {rank} AND list_contains({event_ids}, event_id)
-- ORDER BY device_time_ns DESC"""
-- reference = "https://docs.nvidia.com/deeplearning/performance/"
--
-- [params.min_share]
-- default = 0.03
-- doc = "Places with less of the device's work are left out (0 to 1)."
--
-- [params.warning_share]
-- default = 0.15
-- doc = "From this share of the work on it is a warning, else info."
--
-- [params.max_of_ridge]
-- default = 0.5
-- doc = "Only matmuls with less than this share of the rows of the ridge count (0 to 1)."
--
-- [columns]
-- matmuls = "Matmuls at this place that are bound by reading their weight."
-- rows = "Their median rows: batch times sequence."
-- ridge_rows = "Rows at which arithmetic takes as long as memory on this chip, median."
-- weight_bytes = "The largest weight among them (bytes)."
-- work_share = "Their time over all work of the device."
-- dtype = "Dtype whose peak counts."
-- chip = "Chip it is judged by."
-- place = "Module of the longest of them; else the op."
-- rank = "Distributed rank."
-- device = "Device."
-- source_file = "File of the line; NULL without stacks."
-- source_line = "That line."
-- module = "Module of the first of them; NULL where unknown."
-- device_time_ns = "Their duration (ns)."
-- severity = "warning or info, by work_share."
-- saving_low_ns = "0: the batch may be given (ns)."
-- saving_high_ns = "What their weights alone cost beyond the arithmetic (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- figures = "modelled where the chip is another one than the trace's."
-- confidence = "medium: latency may forbid a larger batch."
-- event_ids = "The matmuls."
-- start_ns = "When the first of them ran."
-- +++
-- A linear layer reads its weight once, however many rows it is applied to. Below the ridge point
-- more rows are free: the step takes as long, so each sample costs less.
--
-- It compares sizes with the chip's dense peak, so the true turn comes somewhat earlier. One token
-- a request, as when text is generated, is always here.
--
-- Next: `SELECT op_name, intensity, ridge, share_of_floor FROM roofline WHERE family = 'matmul'`.
WITH limits AS (
    SELECT
        $warning_share AS warning_share,
        $min_share AS min_share
),

shaped AS (
    SELECT
        r.rank,
        r.device,
        r.event_id,
        r.op_name,
        r.dtype,
        r.chip,
        r.modelled,
        r.ridge,
        r.module,
        r.source_file,
        r.source_line,
        r.device_time_ns,
        r.memory_floor_ns,
        r.compute_floor_ns,
        w.start_ns,
        try_cast(w.input_shapes AS BIGINT[][]) AS shapes,
        CASE
            WHEN r.dtype = 'fp64' THEN 8
            WHEN r.dtype IN ('fp32', 'tf32') THEN 4
            WHEN r.dtype IN ('fp16', 'bf16') THEN 2
            WHEN r.dtype IN ('fp8', 'int8') THEN 1
        END AS element_bytes
    FROM roofline AS r
    INNER JOIN work AS w ON r.rank = w.rank AND r.event_id = w.event_id
    LEFT JOIN events AS o
        ON w.rank = o.rank AND w.op_id = o.event_id AND o.layer = 'framework'
    LEFT JOIN ops AS p ON o.rank = p.rank AND o.parent_id = p.event_id
    WHERE
        -- a contraction of data with data has no weights that more rows would share
        p.name IS DISTINCT FROM 'aten::tensordot' AND p.name IS DISTINCT FROM 'aten::einsum'
        AND r.family = 'matmul' AND r.bound = 'memory'
        AND r.op_name IN ('aten::mm', 'aten::addmm', 'aten::linear', 'aten::mkldnn_linear')
),

sized AS (
    SELECT
        *,
        CASE op_name
            WHEN 'aten::mm' THEN shapes[1][1]
            WHEN 'aten::addmm' THEN shapes[2][1]
            -- the product of no sizes is NULL in DuckDB
            ELSE if(len(shapes[1]) = 1, 1, list_product(shapes[1][:-2]))::BIGINT
        END AS m,
        CASE op_name
            WHEN 'aten::mm' THEN shapes[2][2]
            WHEN 'aten::addmm' THEN shapes[3][2]
            ELSE shapes[2][1]
        END AS n,
        CASE op_name
            WHEN 'aten::mm' THEN shapes[1][2]
            WHEN 'aten::addmm' THEN shapes[2][2]
            ELSE shapes[2][2]
        END AS k
    FROM shaped
),

weighted AS (
    SELECT
        *,
        m AS row_count,
        n * k * element_bytes AS weight_bytes,
        -- 2mnk / (bytes of m*k + k*n + m*n) = ridge, solved for m
        if(
            2 * n * k > ridge * element_bytes * (n + k),
            ridge * element_bytes * n * k / (2 * n * k - ridge * element_bytes * (n + k)),
            NULL
        ) AS ridge_rows
    FROM sized
    WHERE m > 0 AND n > 0 AND k > 0
),

small AS (
    SELECT *
    FROM weighted
    WHERE
        row_count < $max_of_ridge * ridge_rows
        -- at least half of what it moves is the weight
        AND n * k >= row_count * (n + k)
),

places AS (
    SELECT
        rank,
        device,
        source_file,
        source_line,
        dtype,
        CASE WHEN source_line IS NULL THEN coalesce(module, op_name) END AS unplaced,
        arg_max(coalesce(module, op_name), (device_time_ns, event_id)) AS main_place,
        any_value(chip) AS chip,
        bool_or(modelled) AS modelled,
        count(*) AS matmuls,
        median(row_count)::BIGINT AS row_count,
        median(ridge_rows)::BIGINT AS ridge_rows,
        max(weight_bytes)::BIGINT AS weight_bytes,
        arg_min(module, (start_ns, event_id)) AS module,
        sum(device_time_ns)::BIGINT AS device_time_ns,
        sum(device_time_ns * greatest(0, 1 - compute_floor_ns / nullif(memory_floor_ns, 0)))
            AS beyond_ns,
        list(event_id ORDER BY event_id ASC) AS event_ids,
        min(start_ns) AS start_ns
    FROM small
    GROUP BY rank, device, source_file, source_line, dtype, unplaced
)

SELECT
    p.matmuls,
    p.row_count AS rows,
    p.ridge_rows,
    p.weight_bytes,
    p.dtype,
    p.chip,
    p.rank,
    p.device,
    p.source_file,
    p.source_line,
    p.module,
    p.device_time_ns,
    p.event_ids,
    p.start_ns,
    coalesce(p.unplaced, p.main_place) AS place,
    0::BIGINT AS saving_low_ns,
    round(p.beyond_ns)::BIGINT AS saving_high_ns,
    'high: as many samples in batches at the ridge; low: the batch cannot grow' AS saving_basis,
    if(p.modelled, 'modelled', 'measured') AS figures,
    'medium' AS confidence,
    round(p.device_time_ns / d.work_ns, 4) AS work_share,
    CASE WHEN p.device_time_ns >= limits.warning_share * d.work_ns THEN 'warning' ELSE 'info' END
        AS severity
FROM places AS p
INNER JOIN devices AS d ON p.rank = d.rank AND p.device = d.device
CROSS JOIN limits
WHERE p.device_time_ns >= limits.min_share * d.work_ns
ORDER BY p.device_time_ns DESC, p.start_ns ASC
