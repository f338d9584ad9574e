-- +++
-- doc = """Ops in the order in which their work ran on a queue: what `chain_links` and `chains`
-- compare. Work without an op stands for itself; one with work on two queues has two rows."""
-- key = ["rank", "device", "queue", "place"]
-- materialize = true
--
-- [columns]
-- rank = "Distributed rank."
-- device = "Device."
-- queue = "Queue."
-- place = "Position on its queue, from 1."
-- op_id = "Framework op; NULL for work that no op is known for."
-- op_name = "Its name."
-- family = "Family of its cost."
-- launches = "Units of work that it launched on this queue."
-- event_ids = "They, in order."
-- device_time_ns = "Sum of their durations (ns)."
-- start_ns = "Start of the first (ns)."
-- end_ns = "End of the last (ns)."
-- read_bytes = "Bytes that they read; NULL where one is unknown (bytes)."
-- write_bytes = "Bytes that they write; NULL where one is unknown (bytes)."
-- bytes = "Both; NULL where one is unknown (bytes)."
-- input_shapes = "JSON list of the op's input shapes."
-- input_dtypes = "JSON list of the op's input dtypes."
-- output_shapes = "JSON list of the op's output shapes."
-- fusable = "Whether a compiler fuses such an op: eager, its family allows it, no host copy."
-- copies_out = "Whether it copies over a link to the host or a peer."
-- compiled = "Whether it ran inside a compiled region."
-- step = "Number of the training step."
-- phase = "forward, backward, optimizer, input or other."
-- module = "Module that caused it."
-- source_file = "File of the model line."
-- source_line = "Line of the model."
-- source_function = "Function of that line."
-- +++
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
        -- a convolution clears its result first: it is no fill
        arg_max(family, (duration_ns, event_id)) AS family,
        any_value(input_shapes) AS input_shapes,
        any_value(output_shapes) AS output_shapes,
        any_value(input_dtypes) AS input_dtypes,
        bool_or(coalesce(compiled, FALSE)) AS compiled,
        bool_or(over_link) AS copies_out,
        any_value(step) AS step,
        any_value(phase) AS phase,
        any_value(module) AS module,
        any_value(source_file) AS source_file,
        any_value(source_line) AS source_line,
        any_value(source_function) AS source_function
    FROM work
    GROUP BY rank, device, queue, unit
)

SELECT
    rank,
    device,
    queue,
    row_number() OVER (
        PARTITION BY rank, device, queue ORDER BY start_ns ASC, unit ASC
    ) AS place,
    op_id,
    op_name,
    family,
    launches,
    event_ids,
    device_time_ns,
    start_ns,
    end_ns,
    read_bytes,
    write_bytes,
    read_bytes + write_bytes AS bytes,
    input_shapes,
    input_dtypes,
    output_shapes,
    op_id IS NOT NULL AND NOT compiled AND NOT copies_out
    AND coalesce(
        family IN (
            'elementwise', 'reduction', 'softmax', 'norm', 'copy', 'cast', 'cat', 'pad', 'fill',
            'random', 'loss', 'activation', 'rope'
        ),
        FALSE
    ) AS fusable,
    copies_out,
    compiled,
    step,
    phase,
    module,
    source_file,
    source_line,
    source_function
FROM units
