-- +++
-- doc = """How long each unit of work would take at least on its chip, and what holds it back.
-- memory: moving its bytes is the larger floor and explains its time; compute: its arithmetic does;
-- overhead: neither explains much; communication: a collective; copy: a transfer over the link to
-- the host or a peer, which has no floor here; unknown: cost or chip are not known. What only a
-- compilation caused is left out."""
-- key = ["rank", "event_id"]
-- materialize = true
--
-- [columns]
-- event_id = "Unit of work."
-- rank = "Distributed rank."
-- device = "Device that ran it."
-- queue = "Queue that ran it."
-- name = "Name of the kernel."
-- op_id = "Op that caused it."
-- op_name = "Name of that op."
-- family = "Family of its cost."
-- dtype = "Dtype whose peak counts: fp64, fp32, tf32, fp16, bf16, fp8, int8."
-- device_time_ns = "Its duration (ns)."
-- flops = "Floating-point operations (flop)."
-- bytes = "Bytes it must move; NULL where unknown (bytes)."
-- intensity = "flops over bytes (flop/byte)."
-- ridge = "Intensity at which both floors are equal on this chip (flop/byte)."
-- side = "memory below the ridge, compute above it, however far from the roof; NULL if unknown."
-- memory_floor_ns = "bytes over the bandwidth (ns)."
-- compute_floor_ns = "flops over the peak (ns)."
-- floor_ns = "The larger of the two (ns)."
-- share_of_floor = "Floor over duration: 1 is the roof. Above 1 caches or less arithmetic helped."
-- bound = "memory, compute, overhead, communication, copy or unknown."
-- peak_flops = "Peak used (flop/s)."
-- peak_bytes_per_s = "Bandwidth used (bytes/s)."
-- chip = "Chip it is judged by."
-- modelled = "Whether that is another chip than it ran on."
-- compiled = "Whether it ran inside a compiled region."
-- phase = "forward, backward, optimizer, input or other."
-- module = "Module that caused it."
-- source_file = "File of the model line."
-- source_line = "Line of the model."
-- step = "Number of the training step."
-- +++
-- Matrix units count only for matmul, convolution and attention; all else computes in fp32
-- (fp64 on fp64 inputs) on the vector units. fp32 matrix work is held to the fp32 peak unless the
-- kernel's name says TF32, or it ran faster than fp32 can: then TF32 is the only way.
-- The peaks are per device as the trace counts devices.
WITH judged AS (
    SELECT
        w.*,
        d.chip,
        d.modelled,
        d.bandwidth_bytes_per_s,
        d.peak_flops AS peaks,
        w.kind = 'collective'
        OR (w.name ILIKE '%ccl%' AND regexp_matches(w.name, '(?i)nccl|rccl|hccl|oneccl'))
            AS is_collective,
        coalesce(w.family IN ('matmul', 'convolution', 'attention'), FALSE) AS on_matrix_units,
        regexp_extract(
            w.input_dtypes,
            '"(double|float|c10::Half|c10::BFloat16|c10::Float8\w*|fp64|fp32|fp16|bf16|fp8\w*'
            || '|signed char|unsigned char|float16|bfloat16|float32|float64|float8\w*|Half'
            || '|BFloat16|Float|Double)"',
            1
        ) AS torch_dtype
    FROM work AS w
    LEFT JOIN device_chips AS d ON w.rank = d.rank AND w.device = d.device
    WHERE w.phase IS DISTINCT FROM 'compile'
),

typed AS (
    SELECT
        *,
        CASE
            WHEN torch_dtype IN ('double', 'Double', 'float64', 'fp64') THEN 'fp64'
            WHEN NOT on_matrix_units THEN 'fp32'
            WHEN torch_dtype IN ('float', 'Float', 'float32', 'fp32')
                THEN
                    if(
                        peaks['tf32'] IS NOT NULL
                        AND (
                            regexp_matches(name, '(?i)tf32|s1688|tensorop_s[0-9]')
                            OR flops * 1e9 / peaks['fp32'] > duration_ns
                        ),
                        'tf32', 'fp32'
                    )
            WHEN torch_dtype IN ('c10::Half', 'Half', 'float16', 'fp16') THEN 'fp16'
            WHEN torch_dtype IN ('c10::BFloat16', 'BFloat16', 'bfloat16', 'bf16') THEN 'bf16'
            WHEN starts_with(lower(replace(torch_dtype, 'c10::', '')), 'f') THEN 'fp8'
            WHEN torch_dtype IN ('signed char', 'unsigned char') THEN 'int8'
        END AS dtype
    FROM judged
),

floors AS (
    SELECT
        *,
        peaks[dtype] AS peak,
        if(
            over_link OR is_collective, NULL, bytes * 1e9 / bandwidth_bytes_per_s
        ) AS memory_floor,
        if(over_link OR is_collective, NULL, flops * 1e9 / peaks[dtype]) AS compute_floor,
        greatest(memory_floor, compute_floor) AS floor
    FROM typed
)

SELECT
    f.event_id,
    f.rank,
    f.device,
    f.queue,
    f.name,
    f.op_id,
    f.op_name,
    f.family,
    f.dtype,
    f.duration_ns AS device_time_ns,
    f.flops,
    f.bytes,
    f.flops / nullif(f.bytes, 0) AS intensity,
    f.peak / f.bandwidth_bytes_per_s AS ridge,
    CASE
        WHEN f.on_matrix_units AND f.compute_floor IS NULL THEN NULL
        WHEN f.compute_floor > f.memory_floor THEN 'compute'
        WHEN f.memory_floor > 0 THEN 'memory'
    END AS side,
    round(f.memory_floor)::BIGINT AS memory_floor_ns,
    round(f.compute_floor)::BIGINT AS compute_floor_ns,
    round(f.floor)::BIGINT AS floor_ns,
    f.floor / nullif(f.duration_ns, 0) AS share_of_floor,
    CASE
        WHEN f.is_collective THEN 'communication'
        WHEN f.over_link THEN 'copy'
        WHEN f.memory_floor IS NULL THEN 'unknown'
        WHEN f.on_matrix_units AND f.compute_floor IS NULL THEN 'unknown'
        WHEN f.floor < s.value * f.duration_ns THEN 'overhead'
        WHEN f.compute_floor > f.memory_floor THEN 'compute'
        ELSE 'memory'
    END AS bound,
    f.peak AS peak_flops,
    f.bandwidth_bytes_per_s AS peak_bytes_per_s,
    f.chip,
    f.modelled,
    f.compiled,
    f.phase,
    f.module,
    f.source_file,
    f.source_line,
    f.step
FROM floors AS f
INNER JOIN thresholds AS s ON s.name = 'bound_share'
