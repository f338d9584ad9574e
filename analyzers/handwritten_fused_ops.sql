-- +++
-- title = "{calls_each:count op} spell out {say_pattern}: {say_one}"
-- question = "Which lines spell out what one op does: attention, a norm, softmax, GELU, a loss?"
-- severity = "warning"
-- needs = ["work", "shapes", "measured"]
-- message = """
-- {runs:count time}[[ in {steps:count step}]], {calls_each:count op} in a row[[ at \
-- {line_range}]] compute {say_pattern} of {shape}: {forward_ns:ns}[[, and {backward_ns:ns} in the \
-- backward]], {share:share} of the recorded time."""
-- advice = "{fix}"
-- key = ["rank", "device", "source_file", "source_line", "pattern", "anonymous_run"]
-- proof = """
-- SELECT *
-- FROM op_patterns
-- WHERE rank = {rank} AND pattern = {pattern} AND shape = {shape}
-- ORDER BY first_place"""
-- reference = "https://docs.pytorch.org/docs/stable/nn.functional.html"
--
-- [params.min_share]
-- default = 0.005
-- doc = "Places with less of the recorded time are left out (0 to 1)."
--
-- [params.warning_share]
-- default = 0.05
-- doc = "From this share on a place is a warning where PyTorch has an op for it, else info."
--
-- [params.host_share]
-- default = 0.25
-- doc = "Part of what one op seems to spare that goes on a CPU: attention, GELU (0 to 1)."
--
-- [columns]
-- pattern = "What is written out: see `op_patterns`."
-- runs = "How often."
-- calls_each = "Ops that do work in the longest of these runs."
-- calls = "Ops that do work in all of them."
-- shape = "Shape of the largest; for attention that of the scores."
-- rank = "Distributed rank."
-- device = "Device that ran them."
-- source_file = "File of the line of the first op; NULL without stacks."
-- source_line = "That line."
-- last_line = "Last line of the run, where all lie in one file."
-- line_range = "Both, where they differ."
-- module = "Module of the first."
-- anonymous_run = "Pattern and inputs; they stand for the line where none is known."
-- steps = "Steps they ran in; NULL where the trace has no steps."
-- forward_ns = "Work of these ops (ns)."
-- backward_ns = "Work of the backward of these ops; NULL where none ran (ns)."
-- host_ns = "Host time of these ops and their backward (ns)."
-- device_time_ns = "Forward and backward work together (ns)."
-- share = "The same over the recorded time."
-- severity = "warning or info, by that share."
-- saving_low_ns = "What one op surely spares of the work that sets the pace (ns)."
-- saving_high_ns = "What it may spare of all work, or of the host's time (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "high where the line is known."
-- say_pattern = "The pattern, in words."
-- say_one = "What could stand there."
-- fix = "The change to make."
-- event_ids = "Units of work of the forward and the backward."
-- start_ns = "When the first of them ran."
-- +++
-- Written out, each op reads its input from memory and writes its result back, and is launched on
-- its own; the fused op reads once and writes once. Attention written out also stores a score for
-- each pair of tokens, several times. The same holds in the backward.
--
-- A run counts when its ops follow each other in this order and their shapes fit. It misleads where
-- the code needs what the fused op does not return: attention weights, an unusual mask or bias, a
-- norm in another dtype. RMSNorm is left out on a CPU, where torch runs the same ops for it.
--
-- Next: `SELECT * FROM op_patterns`, and `compile_opportunities` for what no op covers.
WITH runs AS (
    SELECT
        p.rank,
        p.pid,
        p.tid,
        p.pattern,
        p.first_place,
        p.shape,
        p.inputs,
        min(c.start_ns) AS start_ns,
        arg_max(c.device, c.work_ns) AS device,
        arg_min(c.step, c.place) AS step,
        arg_min(c.module, c.place) AS module,
        arg_min(c.module_class, c.place) AS module_class,
        arg_min(c.source_file, c.place) AS source_file,
        arg_min(c.source_line, c.place) AS source_line,
        if(count(DISTINCT c.source_file) = 1, max(c.source_line), NULL) AS last_line,
        count(*) AS calls,
        sum(c.work_ns) AS forward_ns,
        sum(c.backward_ns) AS backward_ns,
        sum(c.duration_ns + coalesce(c.backward_host_ns, 0)) AS host_ns,
        sum(c.paced_ns + coalesce(c.backward_paced_ns, 0)) AS paced_ns,
        max(c.work_ns) AS longest_ns,
        sum(c.work_ns) FILTER (WHERE c.family = 'matmul') AS product_ns,
        flatten(list(list_concat(c.work_ids, c.backward_ids))) AS event_ids
    FROM op_patterns AS p
    INNER JOIN op_calls AS c
        ON
            p.rank = c.rank AND p.pid IS NOT DISTINCT FROM c.pid
            AND p.tid IS NOT DISTINCT FROM c.tid
            AND c.place BETWEEN p.first_place AND p.last_place
    WHERE c.work_ns IS NOT NULL AND (c.device <> 'cpu' OR c.family IS DISTINCT FROM 'view')
    GROUP BY p.rank, p.pid, p.tid, p.pattern, p.first_place, p.shape, p.inputs
),

-- parts of the run that go: what is left is a pass or so, or the products of attention
gained AS (
    SELECT
        *,
        if(source_line IS NULL, concat_ws(' ', pattern, inputs), NULL) AS anonymous_run,
        forward_ns + coalesce(backward_ns, 0) AS taken_ns,
        CASE
            WHEN forward_ns = 0 THEN 0
            WHEN pattern = 'attention'
                THEN
                    if(device = 'cpu', $host_share, 1)
                    * (1 - coalesce(product_ns, 0) / forward_ns)
            -- four ops inside torch's own: 1 - y, mul_, log_sigmoid, sub_
            WHEN pattern = 'binary_cross_entropy'
                THEN greatest(0, 1 - 4 / calls - longest_ns / forward_ns)
            ELSE
                if(device = 'cpu' AND pattern = 'gelu', $host_share, 1)
                * greatest(0, 1 - 1.5 * longest_ns / forward_ns)
        END AS low_part,
        CASE
            WHEN forward_ns = 0 THEN 0
            WHEN pattern = 'attention' THEN 1 - 0.5 * coalesce(product_ns, 0) / forward_ns
            WHEN pattern = 'binary_cross_entropy' THEN greatest(0, 1 - 2 / calls)
            ELSE 1 - 0.5 / calls
        END AS high_part
    FROM runs
    WHERE pattern <> 'rms_norm' OR device <> 'cpu'
),

places AS (
    SELECT
        rank,
        device,
        source_file,
        source_line,
        pattern,
        anonymous_run,
        count(*) AS runs,
        max(calls) AS calls_each,
        sum(calls)::BIGINT AS calls,
        nullif(count(DISTINCT step), 0) AS steps,
        max(last_line) AS last_line,
        arg_max(shape, (taken_ns, first_place)) AS shape,
        arg_min(module, start_ns) AS module,
        bool_and(coalesce(module_class = 'MultiheadAttention', FALSE)) AS of_torch,
        sum(forward_ns)::BIGINT AS forward_ns,
        sum(backward_ns)::BIGINT AS backward_ns,
        sum(host_ns)::BIGINT AS host_ns,
        sum(taken_ns)::BIGINT AS device_time_ns,
        round(sum(low_part * paced_ns))::BIGINT AS low_ns,
        round(sum(high_part * taken_ns))::BIGINT AS high_ns,
        -- fewer launches shorten a step that the host holds up
        round(
            sum(if(paced_ns < taken_ns, (1 - 1 / calls) * host_ns, 0))
        )::BIGINT AS host_gain_ns,
        list_sort(flatten(list(event_ids))) AS event_ids,
        min(start_ns) AS start_ns
    FROM gained
    GROUP BY ALL
),

recorded_spans AS (
    SELECT
        rank,
        span_ns,
        $min_share * span_ns AS least_ns,
        $warning_share * span_ns AS warning_ns
    FROM rank_spans
)

SELECT
    p.pattern,
    p.runs,
    p.calls_each,
    p.calls,
    p.shape,
    p.rank,
    p.device,
    p.source_file,
    p.source_line,
    p.last_line,
    p.module,
    p.anonymous_run,
    p.steps,
    p.forward_ns,
    p.backward_ns,
    p.host_ns,
    p.device_time_ns,
    p.event_ids,
    p.start_ns,
    p.low_ns AS saving_low_ns,
    CASE
        WHEN p.last_line > p.source_line
            THEN
                regexp_extract(p.source_file, '[^/]*$') || ':' || p.source_line || '-'
                || p.last_line
    END AS line_range,
    greatest(p.low_ns, p.high_ns, p.host_gain_ns) AS saving_high_ns,
    CASE
        WHEN p.pattern = 'attention'
            THEN
                'low: all but the two products (on a CPU host_share of it: its kernel has the same'
                || ' exponentials to compute); high: half of the products too, for no score is'
                || ' written or read; where the host is late, its time for all ops but one'
        WHEN p.pattern = 'binary_cross_entropy'
            THEN
                'PyTorch''s own takes four ops: low all but four and the longest, high all but half'
                || ' of the four; where the host is late, its time for all ops but one'
        ELSE
            'low: all but one and a half times the longest op; high: half a mean op is left, since'
            || ' the ops between may move wider tensors; where the host is late, its time for all'
            || ' ops but one'
    END AS saving_basis,
    round(p.device_time_ns / r.span_ns, 4) AS share,
    CASE
        WHEN p.pattern = 'rotary_embedding' THEN 'info'
        WHEN p.device_time_ns >= r.warning_ns THEN 'warning'
        ELSE 'info'
    END AS severity,
    CASE WHEN p.source_line IS NULL THEN 'medium' ELSE 'high' END AS confidence,
    CASE p.pattern
        WHEN 'layer_norm' THEN 'a layer norm'
        WHEN 'rms_norm' THEN 'an RMS norm'
        WHEN 'gelu' THEN 'GELU'
        WHEN 'cross_entropy' THEN 'a loss on softmax'
        WHEN 'log_softmax' THEN 'the logarithm of a softmax'
        WHEN 'binary_cross_entropy' THEN 'a binary cross entropy'
        WHEN 'rotary_embedding' THEN 'a rotary embedding'
        ELSE p.pattern
    END AS say_pattern,
    CASE WHEN p.pattern = 'rotary_embedding' THEN 'one kernel would do' ELSE 'PyTorch has one' END
        AS say_one,
    CASE p.pattern
        WHEN 'attention'
            THEN
                if(
                    p.of_torch,
                    'Call the MultiheadAttention with need_weights=False: only then does it use'
                    || ' F.scaled_dot_product_attention.',
                    'Replace these lines by F.scaled_dot_product_attention(q, k, v,'
                    || ' attn_mask=..., dropout_p=..., is_causal=...); a Hugging Face model takes'
                    || ' attn_implementation="sdpa".'
                )
        WHEN 'layer_norm'
            THEN 'Use nn.LayerNorm or F.layer_norm(x, x.shape[-1:], weight, bias, eps).'
        WHEN 'rms_norm' THEN 'Use nn.RMSNorm or F.rms_norm(x, x.shape[-1:], weight, eps).'
        WHEN 'softmax' THEN 'Use torch.softmax(x, dim=-1); set masked places to -inf before it.'
        WHEN 'gelu'
            THEN 'Use F.gelu(x), with approximate="tanh" where the code takes the tanh form.'
        WHEN 'cross_entropy'
            THEN
                'Use F.cross_entropy(logits, targets), which takes classes or probabilities, or'
                || ' log_softmax where logs alone are needed: one pass, and no log of 0.'
        WHEN 'log_softmax'
            THEN
                'Use F.cross_entropy(logits, targets) where it ends in a loss of classes, else'
                || ' torch.log_softmax(logits, dim=-1).'
        WHEN 'binary_cross_entropy'
            THEN
                'Use F.binary_cross_entropy_with_logits(logits, targets): fewer passes, and no log'
                || ' of 0.'
        ELSE
            'Compile the function that rotates (torch.compile) or use a fused kernel for it, and'
            || ' keep cos and sin in the dtype of the input.'
    END AS fix
FROM places AS p
INNER JOIN recorded_spans AS r ON p.rank = r.rank
WHERE p.device_time_ns >= r.least_ns
ORDER BY saving_high_ns DESC, p.start_ns ASC
