-- +++
-- title = "The bias of this convolution is undone by the batch norm behind it"
-- question = "Which convolutions add a bias that a batch norm takes off again?"
-- severity = "info"
-- needs = ["framework", "shapes", "measured"]
-- message = """
-- {calls:count convolution} with a bias of {channels:count channel} are followed directly by a \
-- batch norm, which subtracts the mean of each channel.[[ The bias alone took {bias_ns:ns}.]]"""
-- advice = """
-- Build the convolution with bias=False: the batch norm has a bias of its own. For inference, \
-- fold the norm into the convolution (torch.nn.utils.fuse_conv_bn_eval)."""
-- key = ["rank", "source_file", "source_line", "place"]
-- proof = """
-- SELECT *
-- FROM ops
-- WHERE rank = {rank} AND list_contains({event_ids}, event_id)
-- ORDER BY start_ns"""
-- reference = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
--
-- [params.min_calls]
-- default = 1
-- doc = "Lines with fewer such convolutions are left out."
--
-- [columns]
-- calls = "Convolutions of this kind at this line."
-- channels = "Channels of the largest."
-- bias_ns = "Device time (host time on a CPU) of adds of the bias in them; NULL where inside."
-- rank = "Distributed rank."
-- source_file = "File of the line that called the convolution; NULL without stacks."
-- source_line = "That line."
-- module = "Module of the first."
-- place = "Shapes; they stand for the line where none is known."
-- steps = "Steps they ran in; NULL where the trace has no steps."
-- saving_low_ns = "bias_ns: these adds are gone (ns)."
-- saving_high_ns = "Twice that: the backward sums the gradient of the bias (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "high where the line and the output's shape are known."
-- event_ids = "The convolutions."
-- start_ns = "When the first of them ran."
-- +++
-- A batch norm in training subtracts the mean of each channel, so a constant added to the channel
-- before it changes nothing: the add, its gradient and its optimizer state are work for no effect.
--
-- A pair counts when the batch norm is the next op on the thread that is not called by another op
-- (its own counter of batches aside) and reads as many channels as the bias has. A convolution
-- whose output something else reads as well needs its bias.
--
-- Next: `SELECT name, input_shapes, module FROM ops WHERE name = 'aten::conv2d'`.
WITH normalised AS (
    SELECT DISTINCT rank
    FROM ops
    WHERE regexp_matches(name, '^aten::(batch_norm|native_batch_norm|cudnn_batch_norm)$')
),

outer_ops AS (
    SELECT
        o.rank,
        o.event_id,
        o.pid,
        o.tid,
        o.name,
        o.start_ns,
        o.end_ns,
        o.step,
        o.module,
        o.source_file,
        o.source_line,
        o.input_shapes,
        o.output_shapes
    FROM ops AS o
    SEMI JOIN normalised AS n ON o.rank = n.rank
    ANTI JOIN ops AS p ON o.rank = p.rank AND o.parent_id = p.event_id
    WHERE
        o.phase IS DISTINCT FROM 'backward' AND coalesce(o.input_shapes ->> '$[0]', '') <> '[]'
),

pairs AS (
    SELECT
        *,
        lead(name) OVER thread AS next_name,
        lead(input_shapes) OVER thread AS next_shapes
    FROM outer_ops
    WINDOW thread AS (PARTITION BY rank, pid, tid ORDER BY start_ns ASC, event_id ASC)
),

biased AS (
    SELECT
        *,
        try_cast(input_shapes ->> '$[2][0]' AS BIGINT) AS channels,
        output_shapes ->> '$[0]' AS output_shape,
        if(source_line IS NULL, input_shapes, NULL) AS place
    FROM pairs
    WHERE
        regexp_matches(name, '^aten::(conv[123]d|convolution)$')
        AND regexp_matches(next_name, '^aten::(batch_norm|native_batch_norm|cudnn_batch_norm)$')
        AND try_cast(input_shapes ->> '$[2][0]' AS BIGINT) IS NOT NULL
        AND next_shapes ->> '$[0][1]' = input_shapes ->> '$[2][0]'
        AND coalesce(output_shapes ->> '$[0]' = next_shapes ->> '$[0]', TRUE)
),

-- cuDNN and its like add the bias in an op of its own
adds AS (
    SELECT
        b.rank,
        b.event_id,
        sum(coalesce(w.duration_ns, 0)) AS bias_ns
    FROM biased AS b
    INNER JOIN ops AS a
        ON
            b.rank = a.rank AND b.pid = a.pid AND b.tid = a.tid
            AND b.start_ns <= a.start_ns AND b.end_ns >= a.end_ns
    INNER JOIN work AS w ON a.rank = w.rank AND a.event_id = w.op_id
    WHERE a.name = 'aten::add_'
    GROUP BY b.rank, b.event_id
),

places AS (
    SELECT
        b.rank,
        b.source_file,
        b.source_line,
        b.place,
        count(*) AS calls,
        max(b.channels) AS channels,
        nullif(count(DISTINCT b.step), 0) AS steps,
        arg_min(b.module, (b.start_ns, b.event_id)) AS module,
        sum(a.bias_ns)::BIGINT AS bias_ns,
        bool_and(b.output_shape IS NOT NULL) AS is_sure,
        list(b.event_id ORDER BY b.event_id ASC) AS event_ids,
        min(b.start_ns) AS start_ns
    FROM biased AS b
    LEFT JOIN adds AS a ON b.rank = a.rank AND b.event_id = a.event_id
    GROUP BY ALL
)

SELECT
    calls,
    channels,
    bias_ns,
    rank,
    source_file,
    source_line,
    module,
    place,
    steps,
    event_ids,
    start_ns,
    bias_ns AS saving_low_ns,
    2 * bias_ns AS saving_high_ns,
    CASE
        WHEN bias_ns IS NULL THEN 'unknown: the convolution adds the bias itself'
        ELSE
            'low: the adds of the bias; high: as much again to sum its gradient in the backward'
    END AS saving_basis,
    CASE WHEN source_line IS NOT NULL AND is_sure THEN 'high' ELSE 'medium' END AS confidence
FROM places
WHERE calls >= $min_calls
ORDER BY bias_ns DESC NULLS LAST, calls DESC, start_ns ASC
