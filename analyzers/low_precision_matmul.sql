-- +++
-- title = "fp32 matrix work where {chip} has {target}: {op_names}"
-- question = "Which lines multiply in fp32 on a chip that has faster matrix units?"
-- severity = "warning"
-- needs = ["work", "shapes", "cost", "measured", "chip"]
-- acts_on = "device"
-- message = """
-- {op_names}[[ on {input_shapes}]] in fp32: {events:count unit} of work, {device_time_ns:ns}. \
-- {chip} does {target} {peak_ratio}x as fast by {roof}, and they reach {roof_share:share} of \
-- its fp32 roof.[[ Half precision under autocast would spare up to {half_saving_ns:ns}.]]"""
-- advice = "{fix}"
-- key = ["rank", "source_file", "source_line", "anonymous_op"]
-- proof = """
-- SELECT roofline.*
-- FROM roofline
-- WHERE roofline.rank = {rank} AND list_contains({event_ids}, roofline.event_id)
-- ORDER BY roofline.device_time_ns DESC"""
-- reference = "https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html"
--
-- [params.min_share]
-- default = 0.005
-- doc = "Lines that win back less than this share of the device time are left out (0 to 1)."
--
-- [params.warning_share]
-- default = 0.05
-- doc = "From this share of the device time in savings on a line is a warning, else info."
--
-- [params.min_ratio]
-- default = 1.5
-- doc = "The narrower peak must be this many times the fp32 peak."
--
-- [columns]
-- events = "fp32 units of matrix work at this line."
-- target = "Precision compared with: tf32 on CUDA, where the chip has it, else bf16 or fp16."
-- peak_ratio = "Its peak over the fp32 peak."
-- roof = "Where both peaks come from: this machine's calibration, or what is stated of the chip."
-- rank = "Distributed rank."
-- source_file = "File of the line that called the ops; NULL without stacks."
-- source_line = "That line."
-- module = "Module of the longest of them."
-- anonymous_op = "Op and its shapes; they stand for the line where none is known."
-- input_shapes = "Shapes of the op; NULL where the line is known."
-- op_names = "Ops of the line, at most three, then `...`."
-- steps = "Steps they ran in; NULL where the trace has no steps."
-- device_time_ns = "Their device time (ns)."
-- floor_ns = "The least time their fp32 arithmetic and bytes take on this chip (ns)."
-- new_floor_ns = "The same in the precision compared with (ns)."
-- cast_ns = "Reading each input once more and writing its half; 0 for tf32 (ns)."
-- roof_share = "floor_ns over device_time_ns."
-- half_saving_ns = "Upper bound for bf16 or fp16, where tf32 is compared with; else NULL (ns)."
-- chip = "The chip judged against."
-- severity = "warning or info, by the upper saving over the device time."
-- saving_low_ns = "Only the floor shrinks, the rest of the time stays; casts taken off (ns)."
-- saving_high_ns = "The new kernel reaches the same share of its roof (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- figures = "modelled when judged against another chip than the one it ran on."
-- confidence = "high where the kernels are at least half as fast as the fp32 roof."
-- fix = "The change to make."
-- event_ids = "The units of work."
-- start_ns = "When the first of them ran."
-- +++
-- Matrix units multiply TF32, bf16 and fp16 many times as fast as fp32, which most chips compute on
-- their vector units. TF32 keeps the tensors in fp32 and rounds the factors to 10 bits of mantissa:
-- a setting, no other code. Autocast halves the bytes as well and needs casts.
--
-- A kernel counts as fp32 unless its name says TF32 or it ran faster than fp32 can. A line limited
-- by memory wins nothing from TF32 and is not listed for it, and neither are kernels far below both
-- roofs, whose time is overhead. Many CPUs are no faster in bf16, some are slower: a CPU is judged
-- only by peaks calibrated on the machine that recorded the trace. Results change a little:
-- compare the loss, and keep fp32 where a solver or a distance needs it.
--
-- Next: `SELECT * FROM roofline WHERE dtype = 'fp32' AND side = 'compute'`.
WITH wide AS (
    SELECT
        r.rank,
        r.event_id,
        r.family,
        r.device,
        r.source_file,
        r.source_line,
        r.device_time_ns AS time_ns,
        r.memory_floor_ns,
        r.compute_floor_ns,
        r.floor_ns,
        r.peak_bytes_per_s,
        r.chip,
        r.modelled,
        w.read_bytes,
        w.module,
        w.step,
        w.start_ns,
        d.peak_flops['fp32'] AS peak,
        d.peak_flops['bf16'] AS peak_bf16,
        coalesce(d.peak_flops['bf16'], d.peak_flops['fp16']) AS peak_half,
        if(starts_with(r.device, 'cuda'), d.peak_flops['tf32'], NULL) AS peak_tf32,
        coalesce(r.op_name, r.name) AS op_name,
        CASE WHEN r.source_line IS NULL THEN w.input_shapes END AS shapes
    FROM roofline AS r
    INNER JOIN work AS w ON r.rank = w.rank AND r.event_id = w.event_id
    INNER JOIN device_chips AS d ON r.rank = d.rank AND r.device = d.device
    WHERE
        r.dtype = 'fp32' AND r.family IN ('matmul', 'convolution', 'attention')
        AND r.bound IN ('compute', 'memory') AND r.floor_ns > 0 AND r.device_time_ns > 0
        -- such a peak is too low to be one (a busy machine was calibrated)
        AND r.floor_ns < 2 * r.device_time_ns
        -- what this CPU can do says nothing of the one that ran a trace from elsewhere
        AND NOT (r.chip = 'cpu' AND coalesce(r.modelled, FALSE))
),

narrowed AS (
    SELECT
        *,
        CASE
            WHEN peak_tf32 IS NOT NULL THEN 'TF32'
            WHEN peak_bf16 IS NOT NULL THEN 'bf16'
            ELSE 'fp16'
        END AS target,
        coalesce(peak_tf32, peak_half) AS new_peak,
        greatest(
            compute_floor_ns * peak / coalesce(peak_tf32, peak_half),
            memory_floor_ns * if(peak_tf32 IS NULL, 0.5, 1)
        ) AS new_floor_ns,
        greatest(compute_floor_ns * peak / peak_half, memory_floor_ns * 0.5) AS half_floor_ns,
        if(peak_tf32 IS NULL, 1.5 * read_bytes * 1e9 / peak_bytes_per_s, 0) AS cast_ns,
        CASE
            WHEN source_line IS NULL THEN concat_ws(' ', op_name, shapes)
        END AS anonymous_op
    FROM wide
    WHERE coalesce(peak_tf32, peak_half) >= $min_ratio * peak
),

gained AS (
    SELECT
        *,
        greatest(0, least(floor_ns, time_ns) - new_floor_ns - cast_ns) AS low_ns,
        greatest(0, time_ns * (1 - new_floor_ns / floor_ns)) AS high_ns,
        if(
            peak_tf32 IS NULL, NULL, greatest(0, time_ns * (1 - half_floor_ns / floor_ns))
        ) AS half_ns
    FROM narrowed
),

places AS (
    SELECT
        rank,
        source_file,
        source_line,
        anonymous_op,
        target,
        any_value(shapes) AS input_shapes,
        arg_max(module, (time_ns, event_id)) AS module,
        arg_max(family, (time_ns, event_id)) AS family,
        list_sort(list(DISTINCT op_name)) AS op_names,
        count(*) AS events,
        nullif(count(DISTINCT step), 0) AS steps,
        max(new_peak / peak) AS peak_ratio,
        sum(time_ns)::BIGINT AS device_time_ns,
        sum(least(floor_ns, time_ns))::BIGINT AS reached_ns,
        sum(floor_ns)::BIGINT AS floor_ns,
        round(sum(new_floor_ns))::BIGINT AS new_floor_ns,
        round(sum(cast_ns))::BIGINT AS cast_ns,
        round(sum(low_ns))::BIGINT AS saving_low_ns,
        round(sum(high_ns))::BIGINT AS saving_high_ns,
        round(sum(half_ns))::BIGINT AS half_saving_ns,
        max(chip) AS chip,
        bool_or(modelled) AS modelled,
        list(event_id ORDER BY event_id ASC) AS event_ids,
        min(start_ns) AS start_ns
    FROM gained
    GROUP BY ALL
),

totals AS (
    SELECT
        rank,
        $min_share * sum(device_time_ns) AS least_ns,
        $warning_share * sum(device_time_ns) AS warning_ns
    FROM roofline
    WHERE bound <> 'communication'
    GROUP BY rank
)

SELECT
    p.events,
    p.target,
    p.rank,
    p.source_file,
    p.source_line,
    p.module,
    p.anonymous_op,
    p.input_shapes,
    p.steps,
    p.device_time_ns,
    p.floor_ns,
    p.new_floor_ns,
    p.cast_ns,
    p.half_saving_ns,
    p.chip,
    p.saving_low_ns,
    p.saving_high_ns,
    p.event_ids,
    p.start_ns,
    round(p.peak_ratio, 1) AS peak_ratio,
    CASE
        WHEN p.chip = 'cpu' THEN 'the peaks calibrated on this machine'
        ELSE 'the peaks stated of it'
    END AS roof,
    round(p.floor_ns / p.device_time_ns, 3) AS roof_share,
    replace(array_to_string(p.op_names[1:3], ', '), 'aten::', '')
    || CASE WHEN len(p.op_names) > 3 THEN ', ...' ELSE '' END AS op_names,
    CASE WHEN p.saving_high_ns >= t.warning_ns THEN 'warning' ELSE 'info' END
        AS severity,
    CASE
        WHEN p.target = 'TF32'
            THEN
                'low: the fp32 floor shrinks to that of TF32 and what is above it stays; high: the'
                || ' new kernel reaches the same share of its roof'
        ELSE
            'low: the fp32 floor shrinks to that of ' || p.target || ' and casts of the inputs are'
            || ' paid for; high: the new kernel reaches the same share of its roof, without casts'
    END AS saving_basis,
    CASE WHEN p.modelled THEN 'modelled' ELSE 'measured' END AS figures,
    CASE
        WHEN p.source_line IS NOT NULL AND p.reached_ns >= 0.5 * p.device_time_ns THEN 'high'
        ELSE 'medium'
    END AS confidence,
    CASE
        WHEN p.target = 'TF32' AND p.family = 'convolution'
            THEN
                'Let convolutions use TF32 (torch.backends.cudnn.allow_tf32 = True, the default),'
                || ' or run the forward under torch.autocast("cuda", dtype=torch.bfloat16).'
        WHEN p.target = 'TF32'
            THEN
                'Call torch.set_float32_matmul_precision("high") once at the start (TF32), or run'
                || ' the forward under torch.autocast("cuda", dtype=torch.bfloat16).'
        WHEN p.target = 'fp16'
            THEN
                'Run the forward under torch.autocast(device_type, dtype=torch.float16), with a'
                || ' torch.amp.GradScaler where it trains.'
        ELSE
            'Run the forward under torch.autocast(device_type, dtype=torch.bfloat16), or keep the'
            || ' weights in bf16.'
    END AS fix
FROM places AS p
INNER JOIN totals AS t ON p.rank = t.rank
WHERE p.saving_high_ns > 0 AND p.saving_high_ns >= t.least_ns
ORDER BY p.saving_high_ns DESC, p.start_ns ASC
