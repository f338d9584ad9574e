-- +++
-- title = "Memory-bound eager ops: {op_names}"
-- question = "Which source lines run eager ops whose time is set by memory traffic?"
-- severity = "warning"
-- needs = ["work", "cost", "chip"]
-- message = """
-- {events:count} launches of {op_names}[[ on {input_shapes}]] move {bytes:bytes} in \
-- {device_time_ns:ns}: {roof_share:share} of the memory roof of {chip} ({peak_bytes_per_s:rate}). \
-- Memory traffic sets their time, not arithmetic. \
-- [[{avoidable_bytes:bytes} of it is intermediate results that {chained_events:count} of them \
-- only pass to a neighbour.]]"""
-- advice = "{fix}"
-- key = ["rank", "source_file", "source_line", "anonymous_op"]
-- proof = """
-- SELECT roofline.*
-- FROM roofline
-- INNER JOIN work USING (rank, event_id)
-- WHERE roofline.rank = {rank} AND roofline.bound = 'memory'
--     AND NOT coalesce(work.compiled, FALSE)
--     AND coalesce(roofline.family, 'other') NOT IN ('view', 'triton', 'collective')
--     AND roofline.source_file IS NOT DISTINCT FROM {source_file}
--     AND roofline.source_line IS NOT DISTINCT FROM {source_line}
--     AND ({anonymous_op} IS NULL OR {anonymous_op} = concat_ws(
--         ' ', coalesce(roofline.op_name, roofline.name), work.input_shapes))
-- ORDER BY roofline.device_time_ns DESC"""
-- reference = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
--
-- [params.min_share]
-- default = 0.002
-- doc = "Lines with less of the device time outside collectives than this are left out (0 to 1)."
--
-- [params.warning_share]
-- default = 0.05
-- doc = "From this share of that time on a line is a warning, below it is info (0 to 1)."
--
-- [columns]
-- roof_share = "memory_floor_ns over device_time_ns: how close to the roof; above 1 = cached."
-- bytes = "Bytes they must read and write, from shapes and dtypes."
-- severity = "warning or info, by share of the device time."
-- rank = "Distributed rank."
-- source_file = "File of the line that called the ops; NULL without stacks."
-- source_line = "That line."
-- module = "Module of the longest of them."
-- anonymous_op = "Op and its shapes, which stand for the line where no line is known."
-- input_shapes = "Shapes of the op; NULL where the line is known."
-- op_names = "Ops of the line, most time first; at most three."
-- family = "Family of the op with the most time."
-- events = "Memory-bound units of work at this line."
-- steps = "Steps they ran in; NULL where the trace has no steps."
-- device_time_ns = "Their device time (ns)."
-- memory_floor_ns = "Time those bytes take at the chip's bandwidth (ns)."
-- peak_bytes_per_s = "Bandwidth of the chip."
-- chip = "The chip judged against."
-- chained_events = "Those that a fusable neighbour feeds or reads."
-- avoidable_bytes = "Their part of the intermediate bytes a fused kernel would not move."
-- saving_low_ns = "Reads of intermediates alone, at peak bandwidth (ns)."
-- saving_high_ns = "The avoidable part of the measured time (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- figures = "modelled when judged against another chip than the one it ran on."
-- confidence = "high where the line is known and the bytes explain the time."
-- fix = "The change to make."
-- event_ids = "The units of work."
-- start_ns = "When the first of them ran."
-- +++
-- An eager op reads its inputs from device memory and writes its result back, even when the next op
-- reads it at once. Ops listed here spend their time on that traffic: faster arithmetic changes
-- nothing, fewer bytes do. Fuse the line with its neighbours (torch.compile, or one op that does
-- the whole job), or make its tensors narrower.
--
-- The saving counts only intermediates whose producer and consumer run one after the other on one
-- queue (inferred as `compile_opportunities` says); where there are none it is unknown, not zero.
-- It is device time: a step that waits for its host gains less. A roof share above 100 % means that
-- the tensors stay in the last-level cache, so the bytes never reached memory.
--
-- Next: `compile_opportunities` shows the whole runs.
WITH chain_ops AS (
    SELECT
        rank,
        device,
        queue,
        chain_id,
        unnest(op_ids) AS op_id,
        unnest(op_names) AS op_name,
        generate_subscripts(op_ids, 1) AS place
    FROM chains
    WHERE bytes_saved > 0
),

ops_at_work AS (
    SELECT
        c.rank,
        c.chain_id,
        c.op_id,
        c.op_name,
        c.place,
        sum(w.read_bytes) AS read_bytes,
        sum(w.write_bytes) AS write_bytes,
        sum(w.bytes) AS bytes
    FROM chain_ops AS c
    INNER JOIN work AS w
        ON c.rank = w.rank AND c.device = w.device AND c.queue = w.queue AND c.op_id = w.op_id
    GROUP BY ALL
),

linked AS (
    SELECT
        *,
        lag(write_bytes) OVER chain AS received_bytes,
        coalesce(
            op_name <> lag(op_name) OVER chain
            AND starts_with(op_name, 'aten::') AND starts_with(lag(op_name) OVER chain, 'aten::'),
            FALSE
        ) AS continues
    FROM ops_at_work
    WINDOW chain AS (PARTITION BY rank, chain_id ORDER BY place ASC)
),

saved AS (
    SELECT
        rank,
        op_id,
        bytes,
        CASE WHEN continues THEN least(received_bytes, read_bytes) ELSE 0 END AS reads_saved,
        CASE WHEN lead(continues) OVER chain THEN write_bytes ELSE 0 END AS writes_saved
    FROM linked
    WINDOW chain AS (PARTITION BY rank, chain_id ORDER BY place ASC)
),

chained AS (
    SELECT
        rank,
        op_id,
        reads_saved / bytes AS read_part,
        (reads_saved + writes_saved) / bytes AS avoidable_part
    FROM saved
    WHERE reads_saved + writes_saved > 0
),

bound AS (
    SELECT
        r.rank,
        r.event_id,
        r.source_file,
        r.source_line,
        w.module,
        w.step,
        CASE WHEN r.source_line IS NULL THEN w.input_shapes END AS input_shapes,
        w.start_ns,
        r.family,
        r.device_time_ns,
        r.bytes,
        r.memory_floor_ns,
        r.peak_bytes_per_s,
        r.chip,
        r.modelled,
        c.avoidable_part,
        c.read_part,
        coalesce(r.op_name, r.name) AS op_name,
        CASE WHEN regexp_matches(w.input_dtypes, '"(float|double)"') THEN r.device_time_ns END
            AS wide_ns,
        CASE
            WHEN r.source_line IS NULL
                THEN concat_ws(' ', coalesce(r.op_name, r.name), w.input_shapes)
        END AS anonymous_op
    FROM roofline AS r
    INNER JOIN work AS w ON r.rank = w.rank AND r.event_id = w.event_id
    LEFT JOIN chained AS c ON r.rank = c.rank AND r.op_id = c.op_id
    WHERE
        r.bound = 'memory'
        AND NOT coalesce(w.compiled, FALSE)
        AND coalesce(r.family, 'other') NOT IN ('view', 'triton', 'collective')
),

ops_of_lines AS (
    SELECT
        rank,
        source_file,
        source_line,
        anonymous_op,
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
        arg_max(module, (device_time_ns, event_id)) AS module,
        any_value(input_shapes) AS input_shapes,
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
        sum(least(memory_floor_ns, device_time_ns) * read_part)::BIGINT AS saving_low_ns,
        sum(device_time_ns * avoidable_part)::BIGINT AS saving_high_ns,
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
        $warning_share * sum(device_time_ns) AS warning_ns
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
    round(o.memory_floor_ns / o.device_time_ns, 3) AS roof_share,
    CASE
        WHEN o.device_time_ns >= b.warning_ns THEN 'warning' ELSE 'info'
    END AS severity,
    replace(array_to_string(n.op_names[1:3], ', '), 'aten::', '') AS op_names,
    CASE
        WHEN o.saving_high_ns IS NULL
            THEN 'unknown: no neighbour on the queue reads or makes what these ops move'
        ELSE
            'intermediates that a fused kernel would not move: low their reads at the chip''s'
            || ' bandwidth, high their reads and writes at the speed measured'
    END AS saving_basis,
    CASE WHEN o.modelled THEN 'modelled' ELSE 'measured' END AS figures,
    CASE
        WHEN o.source_line IS NULL THEN 'medium'
        WHEN o.memory_floor_ns BETWEEN 0.4 * o.device_time_ns AND 1.1 * o.device_time_ns
            THEN 'high'
        ELSE 'medium'
    END AS confidence,
    CASE
        WHEN NOT starts_with(n.op_names[1], 'aten::')
            THEN
                'A kernel of its own already: give it narrower tensors, or fold the op before or'
                || ' after it (a cast, an add, a quantisation) into it.'
        WHEN n.main_family = 'optimizer'
            THEN
                'Build the optimizer with fused=True (or foreach=True), or compile its step:'
                || ' each parameter is then read and written once.'
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
INNER JOIN limits AS b ON o.rank = b.rank
WHERE o.device_time_ns >= b.least_ns AND o.device_time_ns > 0
ORDER BY o.saving_high_ns DESC NULLS LAST, o.device_time_ns DESC, o.start_ns ASC
