-- +++
-- doc = """Pairs of eager ops, one right after the other on a queue, of which the second takes what
-- the first made: fused into one kernel, the tensor between them stays in registers."""
-- key = ["rank", "device", "queue", "place"]
-- materialize = true
--
-- [columns]
-- rank = "Distributed rank."
-- device = "Device."
-- queue = "Queue."
-- place = "Position of the consumer in `queue_ops`; the producer is one before."
-- producer_id = "Op that makes the tensor."
-- producer = "Its name."
-- consumer_id = "Op that takes it."
-- consumer = "Its name."
-- via = "shape: shape and dtype match; pad: both are parts of one padding op."
-- written_bytes = "Bytes that the producer would not write; NULL where unknown (bytes)."
-- overwritten_bytes = "Part of them that nobody can read: the consumer writes over it (bytes)."
-- read_back_bytes = "Bytes that the consumer would not read; NULL where unknown (bytes)."
-- +++
-- A trace does not say which tensor an op read, only its shape and dtype, so a link is inferred.
-- The same op twice in a row is none: a loop over equal tensors looks like that. Neither is an op
-- outside `aten`, which a compiler cannot look into, or one that reads nothing (a fill).
-- A padding op fills its whole result and then copies its input over most of it: nothing is read
-- back, and what the copy writes was filled for nothing.
-- What the producer wrote may be needed again by the backward pass or a residual, so only bytes
-- that are overwritten or read back are sure to go.
WITH described AS (
    SELECT
        rank,
        device,
        queue,
        place,
        op_id,
        op_name,
        family,
        step,
        input_shapes,
        input_dtypes,
        read_bytes,
        write_bytes,
        fusable AND starts_with(op_name, 'aten::') AS fits,
        nullif(regexp_extract(output_shapes, '^\[(\[[0-9,]+\])', 1), '') AS made,
        regexp_extract(
            input_dtypes, '"(double|float|c10::\w+|long int|int|bool|(?:un)?signed char)"', 1
        ) AS dtype
    FROM queue_ops
),

pad_parts AS (
    SELECT
        e.rank,
        e.event_id AS op_id,
        p.event_id AS pad_id
    FROM events AS e
    INNER JOIN events AS p ON e.rank = p.rank AND e.parent_id = p.event_id
    WHERE
        p.name = 'aten::constant_pad_nd' AND p.layer = 'framework'
        AND e.name IN ('aten::fill_', 'aten::copy_') AND e.layer = 'framework'
),

parts AS (
    SELECT
        d.*,
        p.pad_id
    FROM described AS d
    LEFT JOIN pad_parts AS p ON d.rank = p.rank AND d.op_id = p.op_id
),

pairs AS (
    SELECT
        rank,
        device,
        queue,
        place,
        lag(op_id) OVER on_queue AS producer_id,
        lag(op_name) OVER on_queue AS producer,
        op_id AS consumer_id,
        op_name AS consumer,
        lag(pad_id) OVER on_queue AS producer_pad_id,
        pad_id,
        lag(write_bytes) OVER on_queue AS made_bytes,
        read_bytes,
        write_bytes,
        fits AND lag(fits) OVER on_queue AS both_fit,
        op_name <> lag(op_name) OVER on_queue AS differ,
        coalesce(step, -1) = coalesce(lag(step) OVER on_queue, -1) AS in_one_step,
        contains(input_shapes, lag(made) OVER on_queue) AS shape_fits,
        contains(input_dtypes, '"' || lag(dtype) OVER on_queue || '"') AS dtype_fits,
        coalesce(lag(family) OVER on_queue, '') AS producer_family
    FROM parts
    WINDOW on_queue AS (PARTITION BY rank, device, queue ORDER BY place ASC)
)

SELECT
    rank,
    device,
    queue,
    place,
    producer_id,
    producer,
    consumer_id,
    consumer,
    'shape' AS via,
    made_bytes AS written_bytes,
    0::BIGINT AS overwritten_bytes,
    if(made_bytes IS NULL OR read_bytes IS NULL, NULL, least(made_bytes, read_bytes))
        AS read_back_bytes
FROM pairs
WHERE
    both_fit AND differ AND in_one_step AND shape_fits AND coalesce(read_bytes, 1) > 0
    AND (dtype_fits OR producer_family IN ('cast', 'copy'))
    AND coalesce(pad_id <> producer_pad_id, TRUE)
UNION ALL
SELECT
    rank,
    device,
    queue,
    place,
    producer_id,
    producer,
    consumer_id,
    consumer,
    'pad' AS via,
    if(made_bytes IS NULL OR write_bytes IS NULL, NULL, least(made_bytes, write_bytes))
        AS written_bytes,
    if(made_bytes IS NULL OR write_bytes IS NULL, NULL, least(made_bytes, write_bytes))
        AS overwritten_bytes,
    0::BIGINT AS read_back_bytes
FROM pairs
WHERE both_fit AND in_one_step AND pad_id = producer_pad_id
