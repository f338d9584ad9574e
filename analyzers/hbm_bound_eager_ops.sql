-- +++
-- title = "{say_title}: {op_names}"
-- question = "Which source lines run eager ops on the memory side of the roofline?"
-- severity = "warning"
-- needs = ["measured", "work", "cost", "chip"]
-- acts_on = "device"
-- message = """
-- {op_names}[[ on {input_shapes}]]: {bytes:bytes} in {device_time_ns:ns} by {say_count}, \
-- {roof_share:share} of the memory roof of {chip} ({peak_bytes_per_s:rate}{say_roof}). \
-- {say_judgement} [[{avoidable_bytes:bytes} could be spared: {chained_events:count} of them could \
-- share a kernel with a neighbour.]]"""
-- advice = "{fix}"
-- key = ["rank", "source_file", "source_line", "anonymous_op", "tier"]
-- proof = """
-- SELECT roofline.*
-- FROM roofline
-- INNER JOIN work USING (rank, event_id)
-- WHERE roofline.rank = {rank}
--     AND CASE
--         WHEN {tier} = 'at the roof' THEN roofline.bound = 'memory'
--         ELSE roofline.bound = 'overhead' AND roofline.side = 'memory'
--             AND coalesce(roofline.family, 'other')
--                 NOT IN ('matmul', 'convolution', 'attention')
--     END
--     AND NOT coalesce(work.compiled, FALSE)
--     AND coalesce(roofline.family, 'other') NOT IN ('view', 'triton', 'collective')
--     AND roofline.source_file IS NOT DISTINCT FROM {source_file}
--     AND roofline.source_line IS NOT DISTINCT FROM {source_line}
--     AND ({anonymous_op} IS NULL OR {anonymous_op} IN (
--         coalesce(roofline.op_name, roofline.name),
--         concat_ws(' ', coalesce(roofline.op_name, roofline.name), work.input_shapes)))
-- ORDER BY roofline.device_time_ns DESC"""
-- reference = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
--
-- [params.min_share]
-- default = 0.002
-- doc = "Lines with less of the device time outside collectives than this are left out (0 to 1)."
--
-- [params.min_share_below]
-- default = 0.02
-- doc = "The same for lines whose ops stay far below the roof (0 to 1)."
--
-- [params.warning_share]
-- default = 0.05
-- doc = "From this share of that time on a line is a warning, below it is info (0 to 1)."
--
-- [params.warning_saving_share]
-- default = 0.01
-- doc = "A warning also saves this share of that time: at most, on a CPU at least (0 to 1)."
--
-- [columns]
-- roof_share = "memory_floor_ns over device_time_ns: how close to the roof; above 1 = cached."
-- bytes = "Bytes they must read and write, from shapes and dtypes."
-- tier = "at the roof: bytes explain the time; below the roof: memory side, but they do not."
-- severity = "warning or info, by share of the time and saving; info below the roof."
-- rank = "Distributed rank."
-- source_file = "File of the line that called the ops; NULL without stacks."
-- source_line = "That line."
-- module = "Module of the longest of them."
-- anonymous_op = "Op and its shapes; they stand for the line where none is known."
-- input_shapes = "Shapes of the op; NULL where the line is known, and below the roof."
-- op_names = "Ops of the line, most time first; at most three, then `...`."
-- family = "Family of the op with the most time."
-- events = "Memory-bound units of work at this line."
-- mean_ns = "Mean duration of one (ns)."
-- intensity = "Their arithmetic over their bytes (flop/byte)."
-- ridge = "Intensity at which the chip's two floors are equal (flop/byte)."
-- steps = "Steps they ran in; NULL where the trace has no steps."
-- device_time_ns = "Their device time (ns)."
-- memory_floor_ns = "Time those bytes take at the chip's bandwidth (ns)."
-- peak_bytes_per_s = "Bandwidth of the chip."
-- chip = "The chip judged against."
-- chained_events = "Those that a fusable neighbour feeds or reads."
-- avoidable_bytes = "Their part of the intermediate bytes a fused kernel would not move."
-- saving_low_ns = "Intermediates that no backward can need, at peak bandwidth (ns)."
-- saving_high_ns = "At the roof the avoidable part of the time, else see saving_basis (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- say_roof = "Whose roof it is, where the work did not run there."
-- figures = "modelled when judged against another chip than the one it ran on."
-- confidence = "high where the line is known and the bytes explain the time."
-- say_title = "What they are."
-- say_count = "Units of work, as text."
-- say_judgement = "What sets their time."
-- fix = "The change to make."
-- event_ids = "The units of work."
-- start_ns = "When the first of them ran."
-- +++
-- An eager op reads its inputs from device memory and writes its result back, even when the next op
-- reads it at once. Ops listed here spend their time on that traffic: faster arithmetic changes
-- nothing, fewer bytes do. Fuse the line with its neighbours (torch.compile, or one op that does
-- the whole job), or make its tensors narrower.
--
-- Ops whose intensity lies on the memory side of the ridge but which stay far below the roof are
-- listed apart: small tensors, where start-up and latency take the time and only fewer kernels
-- help, and kernels that use the memory badly. Matrix work far below both roofs is not listed, and
-- neither is a CPU's, whose op times hold dispatch as well.
--
-- The saving counts only intermediates whose producer and consumer run one after the other on one
-- queue (inferred as `compile_opportunities` says); where there are none it is unknown, not zero.
-- It is device time: a step that waits for its host gains less. A roof share above 100 % means that
-- the tensors stay in the last-level cache, so the bytes never reached memory.
--
-- Next: `compile_opportunities` shows the whole runs.
WITH judged AS (
    SELECT
        *,
        CASE
            WHEN bound = 'memory' THEN 'at the roof'
            WHEN
                bound = 'overhead' AND side = 'memory' AND device <> 'cpu'
                AND coalesce(family, 'other') NOT IN ('matmul', 'convolution', 'attention')
                THEN 'below the roof'
        END AS tier
    FROM roofline
),

bound AS (
    SELECT
        r.rank,
        r.event_id,
        r.tier,
        t.value AS tiny_ns,
        b.value AS tiny_bytes,
        r.flops,
        r.ridge,
        r.source_file,
        r.source_line,
        w.module,
        w.step,
        CASE WHEN r.source_line IS NULL AND r.tier = 'at the roof' THEN w.input_shapes END
            AS shapes,
        w.start_ns,
        r.family,
        r.device_time_ns,
        r.bytes,
        r.memory_floor_ns,
        r.peak_bytes_per_s,
        r.chip,
        r.modelled,
        -- an optimizer's state must be written, whoever reads it next
        if(
            w.phase = 'optimizer' AND regexp_matches(r.op_name, '::(addcmul|addcdiv|lerp)_$'),
            greatest(0, c.bytes_saved - coalesce(o.written_bytes, 0)), c.bytes_saved
        ) / c.bytes AS avoidable_part,
        -- on a CPU PyTorch's own kernels of those are hard to beat
        if(
            r.device = 'cpu' AND r.family IN ('softmax', 'norm', 'loss'), 0,
            least(avoidable_part, c.sure_bytes / c.bytes)
        ) AS sure_part,
        CASE
            WHEN r.tier = 'at the roof' THEN r.device_time_ns * avoidable_part
            WHEN c.disappears AND r.device_time_ns <= t.value THEN r.device_time_ns
            ELSE r.memory_floor_ns * avoidable_part
        END AS high_ns,
        CASE
            WHEN w.kind = 'memset' AND NOT regexp_matches(r.op_name, 'zero|fill')
                THEN 'memset in ' || r.op_name
            ELSE coalesce(r.op_name, r.name)
        END AS op_name,
        CASE WHEN regexp_matches(w.input_dtypes, '"(float|double)"') THEN r.device_time_ns END
            AS wide_ns,
        CASE
            WHEN r.source_line IS NULL
                THEN concat_ws(' ', coalesce(r.op_name, r.name), shapes)
        END AS anonymous_op
    FROM judged AS r
    INNER JOIN work AS w ON r.rank = w.rank AND r.event_id = w.event_id
    INNER JOIN thresholds AS t ON t.name = 'tiny_kernel_ns'
    INNER JOIN thresholds AS b ON b.name = 'tiny_kernel_bytes'
    LEFT JOIN chain_ops AS c
        ON
            r.rank = c.rank AND r.device = c.device AND r.queue = c.queue AND r.op_id = c.op_id
            AND c.bytes_saved > 0
    LEFT JOIN chain_links AS o
        ON
            c.rank = o.rank AND c.device = o.device AND c.queue = o.queue
            AND c.op_id = o.producer_id
    WHERE
        r.tier IS NOT NULL
        AND NOT coalesce(w.compiled, FALSE)
        AND coalesce(r.family, 'other') NOT IN ('view', 'triton', 'collective')
),

ops_of_lines AS (
    SELECT
        rank,
        source_file,
        source_line,
        anonymous_op,
        tier,
        op_name,
        max(family) AS op_family,
        sum(device_time_ns) AS op_ns
    FROM bound
    GROUP BY ALL
),

named AS (
    SELECT
        rank,
        source_file,
        source_line,
        anonymous_op,
        tier,
        list(op_name ORDER BY op_ns DESC, op_name ASC) AS op_names,
        arg_max(op_family, (op_ns, op_name)) AS main_family
    FROM ops_of_lines
    GROUP BY ALL
),

lines_of_ops AS (
    SELECT
        rank,
        source_file,
        source_line,
        anonymous_op,
        tier,
        arg_max(module, (device_time_ns, event_id)) AS module,
        any_value(shapes) AS input_shapes,
        count(*) AS events,
        nullif(count(DISTINCT step), 0) AS steps,
        sum(device_time_ns)::BIGINT AS device_time_ns,
        sum(bytes)::BIGINT AS bytes,
        sum(memory_floor_ns)::BIGINT AS memory_floor_ns,
        max(peak_bytes_per_s)::BIGINT AS peak_bytes_per_s,
        max(chip) AS chip,
        bool_or(modelled) AS modelled,
        count(avoidable_part) AS chained_events,
        sum(bytes * avoidable_part)::BIGINT AS avoidable_bytes,
        sum(least(memory_floor_ns, device_time_ns) * sure_part)::BIGINT AS saving_low_ns,
        sum(high_ns) FILTER (WHERE avoidable_part IS NOT NULL)::BIGINT AS saving_high_ns,
        sum(coalesce(flops, 0)) / sum(bytes) AS intensity,
        sum(device_time_ns) <= max(tiny_ns) * count(*) OR sum(bytes) <= max(tiny_bytes) * count(*)
            AS is_small,
        max(ridge) AS ridge,
        list(event_id ORDER BY event_id ASC) AS event_ids,
        sum(wide_ns) AS wide_ns,
        min(start_ns) AS start_ns
    FROM bound
    GROUP BY ALL
),

limits AS (
    SELECT
        rank,
        $min_share * sum(device_time_ns) AS least_ns,
        $min_share_below * sum(device_time_ns) AS least_below_ns,
        $warning_share * sum(device_time_ns) AS warning_ns,
        $warning_saving_share * sum(device_time_ns) AS worth_ns
    FROM roofline
    WHERE bound <> 'communication'
    GROUP BY rank
)

SELECT
    o.bytes,
    o.rank,
    o.source_file,
    o.source_line,
    o.module,
    o.anonymous_op,
    o.input_shapes,
    n.main_family AS family,
    o.events,
    o.steps,
    o.device_time_ns,
    o.memory_floor_ns,
    o.peak_bytes_per_s,
    o.chip,
    o.chained_events,
    o.avoidable_bytes,
    o.saving_low_ns,
    o.saving_high_ns,
    o.event_ids,
    o.start_ns,
    o.tier,
    o.device_time_ns // o.events AS mean_ns,
    round(o.intensity, 2) AS intensity,
    round(o.ridge, 1) AS ridge,
    round(o.memory_floor_ns / o.device_time_ns, 3) AS roof_share,
    CASE
        WHEN
            o.tier = 'at the roof' AND o.device_time_ns >= b.warning_ns
            -- on a CPU a compiled call costs more than it spares where little is surely saved
            AND if(o.chip = 'cpu', o.saving_low_ns, o.saving_high_ns) >= b.worth_ns
            THEN 'warning'
        ELSE 'info'
    END AS severity,
    CASE
        WHEN o.tier = 'at the roof' THEN 'Memory-bound eager ops'
        WHEN o.is_small
            THEN 'Small memory-bound eager ops'
        ELSE 'Memory-bound eager ops far below the roof'
    END AS say_title,
    format('{:,} ', o.events)
    || CASE WHEN o.chip = 'cpu' THEN 'call' ELSE 'launch' END
    || CASE WHEN o.events = 1 THEN '' WHEN o.chip = 'cpu' THEN 's' ELSE 'es' END AS say_count,
    CASE
        WHEN o.tier = 'below the roof'
            THEN
                'At ' || format('{:.2g}', o.intensity) || ' flop/byte (ridge: '
                || format('{:.3g}', o.ridge) || ') they are on the memory side of the roofline,'
                || ' but far below the roof: '
                || CASE
                    WHEN o.is_small
                        THEN
                            'kernels of ' || format('{:.2g}', o.device_time_ns / o.events / 1000)
                            || ' us are mostly start-up and latency, so fewer kernels help, and'
                            || ' fewer bytes do not.'
                    ELSE
                        'not the number of bytes sets their time, but how they are accessed, how'
                        || ' much runs in parallel, or the implementation.'
                END
        WHEN o.memory_floor_ns > o.device_time_ns
            THEN
                'That is faster than its memory: caches hold part of the tensors, and still the'
                || ' traffic sets their time, not arithmetic.'
        ELSE 'Memory traffic sets their time, not arithmetic.'
    END AS say_judgement,
    replace(array_to_string(n.op_names[1:3], ', '), 'aten::', '')
    || CASE WHEN len(n.op_names) > 3 THEN ', ...' ELSE '' END AS op_names,
    CASE
        WHEN o.saving_high_ns IS NULL
            THEN 'unknown: no neighbour on the queue reads or makes what these ops move'
        WHEN o.tier = 'below the roof'
            THEN
                'low: what no backward can need of intermediates, at the chip''s bandwidth; high:'
                || ' the time of tiny kernels that merge into a longer neighbour, and the bytes of'
                || ' the others (which op reads what is inferred from shapes)'
        ELSE
            'intermediates that a fused kernel would not move: low what no backward can need, at'
            || ' the chip''s bandwidth, high their reads and writes at the speed measured (which op'
            || ' reads what is inferred from shapes)'
    END AS saving_basis,
    CASE WHEN o.modelled THEN 'modelled' ELSE 'measured' END AS figures,
    CASE
        WHEN NOT o.modelled THEN ''
        WHEN o.chip = 'cpu' THEN ' on this machine; modelled: it ran on another'
        ELSE '; modelled: it ran on another chip'
    END AS say_roof,
    CASE
        WHEN o.source_line IS NULL OR o.tier = 'below the roof' THEN 'medium'
        WHEN o.memory_floor_ns BETWEEN 0.4 * o.device_time_ns AND 1.1 * o.device_time_ns
            THEN 'high'
        ELSE 'medium'
    END AS confidence,
    CASE
        WHEN n.main_family = 'optimizer'
            THEN
                'Build the optimizer with fused=True (or foreach=True), or compile its step:'
                || ' each parameter is then read and written once.'
        WHEN starts_with(n.op_names[1], 'memset in ')
            THEN
                'The op clears memory before it works: another layout (channels_last) or'
                || ' algorithm may not need that.'
        WHEN
            o.tier = 'below the roof' AND NOT o.is_small
            AND coalesce(o.saving_high_ns, 0) < 0.2 * o.device_time_ns
            THEN
                'Look at the layout of its inputs first (contiguous, channels_last), then compare'
                || ' with torch.compile on this code or another implementation of the op.'
        WHEN o.tier = 'below the roof' AND o.saving_high_ns IS NOT NULL
            THEN
                'Put torch.compile on the function around this line: these kernels then merge'
                || ' with their neighbours instead of starting one by one.'
        WHEN o.tier = 'below the roof'
            THEN
                'Only fewer and larger kernels help: compile this code together with what'
                || ' surrounds it, or give each call more work.'
        WHEN NOT starts_with(n.op_names[1], 'aten::')
            THEN
                'A kernel of its own already: give it narrower tensors, or fold the op before or'
                || ' after it (a cast, an add, a quantisation) into it.'
        WHEN n.main_family IN ('copy', 'cast')
            THEN
                'Avoid the copy: cast or lay the tensor out once, outside the loop, or let'
                || ' torch.compile fold it into the op that reads the result.'
        WHEN n.main_family IN ('matmul', 'convolution', 'attention')
            THEN
                'It reads more bytes than its arithmetic pays for: use a larger batch, or a'
                || ' narrower dtype for the larger operand.'
        WHEN n.main_family IN ('embedding', 'gather', 'scatter', 'sort', 'scan', 'pooling')
            THEN
                'Use a narrower dtype for the data it moves, or select fewer rows before it.'
        WHEN o.saving_high_ns IS NOT NULL
            THEN
                'Put torch.compile on the function around this line: these ops then fuse with'
                || ' their neighbours and the intermediates stay in registers.'
        WHEN n.main_family IN ('norm', 'softmax', 'loss')
            THEN
                'Use the one op that does the whole job (F.rms_norm, F.layer_norm,'
                || ' F.scaled_dot_product_attention, F.cross_entropy), or a narrower dtype.'
        WHEN o.wide_ns * 2 >= o.device_time_ns
            THEN 'Use a narrower dtype for these tensors: bf16 moves half the bytes of fp32.'
        ELSE
            'Compile it together with the code that makes its inputs and reads its results.'
    END AS fix
FROM lines_of_ops AS o
INNER JOIN named AS n
    ON
        o.rank = n.rank
        AND o.source_file IS NOT DISTINCT FROM n.source_file
        AND o.source_line IS NOT DISTINCT FROM n.source_line
        AND o.anonymous_op IS NOT DISTINCT FROM n.anonymous_op
        AND o.tier = n.tier
INNER JOIN limits AS b ON o.rank = b.rank
WHERE
    o.device_time_ns >= CASE WHEN o.tier = 'at the roof' THEN b.least_ns ELSE b.least_below_ns END
    AND o.device_time_ns > 0
ORDER BY o.saving_high_ns DESC NULLS LAST, o.device_time_ns DESC, o.start_ns ASC
