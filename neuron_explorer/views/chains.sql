-- +++
-- doc = """Runs of two or more eager ops on one queue that a compiler would fuse into one kernel:
-- each op is of a fusable family and reads a tensor of the shape and dtype that the one before it
-- made."""
-- materialize = true
--
-- [columns]
-- rank = "Distributed rank."
-- device = "Device."
-- queue = "Queue."
-- chain_id = "Number of the chain within its rank, in order of time on each queue."
-- step = "Number of the training step."
-- phase = "Phase of the first op."
-- ops = "Ops in it."
-- launches = "Units of work that they launched."
-- op_names = "Their names, in order."
-- families = "Their families, in order."
-- first_event_id = "First unit of work."
-- last_event_id = "Last unit of work."
-- event_ids = "Every unit of work, in order."
-- op_ids = "Every op, in order."
-- start_ns = "Start of the first unit (ns)."
-- end_ns = "End of the last unit (ns)."
-- device_time_ns = "Sum of the durations (ns)."
-- bytes = "Bytes that its ops move; NULL where one is unknown (bytes)."
-- bytes_saved = "Bytes of the tensors between them, written and read back (bytes)."
-- source_file = "File of the first op's line."
-- source_line = "Line of the first op."
-- first_line = "Smallest line of the chain, where all lie in one file."
-- last_line = "Largest line of the chain, where all lie in one file."
-- module = "Module of the first op."
-- compiled = "Always false: work of compiled regions is in no chain."
-- breaks = "What ended it: family of the next op, or `host copy`, `compiled`, `other data`, ..."
-- next_op = "Op that came next on the queue."
-- +++
-- A trace does not say which tensor an op read, only its shape and dtype: ops that repeat one
-- another on the same inputs look like a chain too.
-- The bytes saved are an upper bound: a tensor that the backward pass needs is still written.
-- For a link they are what the producer wrote and, at most as much, what the consumer read;
-- so they never exceed the chain's bytes less its first reads and its last writes.
WITH units AS (
    SELECT
        rank,
        device,
        queue,
        coalesce(op_id, -1 - event_id) AS unit,
        min(start_ns) AS start_ns,
        max(end_ns) AS end_ns,
        count(*) AS launches,
        list(event_id ORDER BY start_ns ASC, event_id ASC) AS event_ids,
        sum(duration_ns)::BIGINT AS device_time_ns,
        if(bool_or(read_bytes IS NULL), NULL, sum(read_bytes))::BIGINT AS read_bytes,
        if(bool_or(write_bytes IS NULL), NULL, sum(write_bytes))::BIGINT AS write_bytes,
        any_value(op_id) AS op_id,
        any_value(op_name) AS op_name,
        any_value(family) AS family,
        any_value(input_shapes) AS input_shapes,
        any_value(output_shapes) AS output_shapes,
        any_value(input_dtypes) AS input_dtypes,
        bool_or(coalesce(compiled, FALSE)) AS compiled,
        bool_or(over_link) AS copies_out,
        any_value(step) AS step,
        any_value(phase) AS phase,
        any_value(module) AS module,
        any_value(source_file) AS source_file,
        any_value(source_line) AS source_line
    FROM work
    GROUP BY rank, device, queue, unit
),

described AS (
    SELECT
        *,
        op_id IS NOT NULL AND NOT compiled AND NOT copies_out
        AND coalesce(
            family IN (
                'elementwise', 'reduction', 'softmax', 'norm', 'copy', 'cast', 'cat', 'pad',
                'fill', 'random', 'loss', 'activation', 'rope'
            ),
            FALSE
        ) AS fusable,
        nullif(regexp_extract(output_shapes, '^\[(\[[0-9,]+\])', 1), '') AS made,
        regexp_extract(
            input_dtypes, '"(double|float|c10::\w+|long int|int|bool|(?:un)?signed char)"', 1
        ) AS dtype
    FROM units
),

neighbours AS (
    SELECT
        *,
        lag(fusable) OVER on_queue AS last_fusable,
        lag(step) OVER on_queue AS last_step,
        lag(made) OVER on_queue AS received,
        lag(dtype) OVER on_queue AS last_dtype,
        lag(family) OVER on_queue AS last_family,
        lag(write_bytes) OVER on_queue AS received_bytes,
        lead(unit) OVER on_queue AS next_unit,
        lead(compiled) OVER on_queue AS next_compiled,
        lead(copies_out) OVER on_queue AS next_copies_out,
        lead(fusable) OVER on_queue AS next_fusable,
        lead(op_name) OVER on_queue AS next_op,
        lead(family) OVER on_queue AS next_family,
        lead(step) OVER on_queue AS next_step
    FROM described
    WINDOW on_queue AS (PARTITION BY rank, device, queue ORDER BY start_ns ASC, unit ASC)
),

linked AS (
    SELECT
        *,
        CASE
            WHEN next_unit IS NULL THEN 'end of queue'
            WHEN next_compiled THEN 'compiled'
            WHEN next_unit < 0 THEN 'no op'
            WHEN next_copies_out THEN 'host copy'
            WHEN NOT next_fusable THEN coalesce(next_family, 'unknown family')
            WHEN (next_step IS DISTINCT FROM step) THEN 'end of step'
            ELSE 'other data'
        END AS breaks,
        coalesce(
            fusable AND last_fusable
            AND step IS NOT DISTINCT FROM last_step
            AND contains(input_shapes, received)
            AND (dtype = last_dtype OR last_family IN ('cast', 'copy')),
            FALSE
        ) AS continues
    FROM neighbours
),

numbered AS (
    SELECT
        *,
        if(continues, received_bytes + least(received_bytes, read_bytes), NULL) AS saved_bytes,
        sum(if(continues, 0, 1)) OVER (
            PARTITION BY rank, device, queue ORDER BY start_ns ASC, unit ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS run
    FROM linked
    QUALIFY continues OR lead(continues) OVER (
        PARTITION BY rank, device, queue ORDER BY start_ns ASC, unit ASC
    )
),

grouped AS (
    SELECT
        rank,
        device,
        queue,
        run,
        arg_min(step, (start_ns, unit)) AS step,
        arg_min(phase, (start_ns, unit)) AS phase,
        count(*) AS ops,
        sum(launches)::BIGINT AS launches,
        list(op_name ORDER BY start_ns ASC, unit ASC) AS op_names,
        list(family ORDER BY start_ns ASC, unit ASC) AS families,
        flatten(list(event_ids ORDER BY start_ns ASC, unit ASC)) AS event_ids,
        list(op_id ORDER BY start_ns ASC, unit ASC) AS op_ids,
        min(start_ns) AS start_ns,
        max(end_ns) AS end_ns,
        sum(device_time_ns)::BIGINT AS device_time_ns,
        if(
            bool_or(read_bytes + write_bytes IS NULL), NULL, sum(read_bytes + write_bytes)
        )::BIGINT AS bytes,
        sum(saved_bytes)::BIGINT AS bytes_saved,
        arg_min(source_file, (start_ns, unit)) AS source_file,
        arg_min(source_line, (start_ns, unit)) AS source_line,
        if(count(DISTINCT source_file) = 1, min(source_line), NULL) AS first_line,
        if(count(DISTINCT source_file) = 1, max(source_line), NULL) AS last_line,
        arg_min(module, (start_ns, unit)) AS module,
        arg_max_null(breaks, (start_ns, unit)) AS breaks,
        arg_max_null(next_op, (start_ns, unit)) AS next_op
    FROM numbered
    GROUP BY rank, device, queue, run
)

SELECT
    rank,
    device,
    queue,
    row_number() OVER (PARTITION BY rank ORDER BY device ASC, queue ASC, run ASC) AS chain_id,
    step,
    phase,
    ops,
    launches,
    op_names,
    families,
    event_ids[1] AS first_event_id,
    event_ids[-1] AS last_event_id,
    event_ids,
    op_ids,
    start_ns,
    end_ns,
    device_time_ns,
    bytes,
    bytes_saved,
    source_file,
    source_line,
    first_line,
    last_line,
    module,
    FALSE AS compiled,
    breaks,
    next_op
FROM grouped
ORDER BY rank ASC, chain_id ASC
