-- +++
-- doc = """Runs of two or more eager ops on one queue that a compiler would fuse into one kernel:
-- each op takes what the one before it made (see `chain_links`)."""
-- key = ["rank", "chain_id"]
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
-- first_place = "Position of the first op in `queue_ops`; the others follow it."
-- start_ns = "Start of the first unit (ns)."
-- end_ns = "End of the last unit (ns)."
-- device_time_ns = "Sum of the durations (ns)."
-- bytes = "Bytes that its ops move; NULL where one is unknown (bytes)."
-- bytes_saved = "Bytes of the tensors between them, written and read back (bytes)."
-- source_file = "File of the first op's line."
-- source_line = "Line of the first op."
-- source_function = "Function of that line."
-- first_line = "Smallest line of the chain, where all lie in one file."
-- last_line = "Largest line of the chain, where all lie in one file."
-- in_one_function = "Whether all its lines lie in one function."
-- module = "Module of the first op."
-- compiled = "Always false: work of compiled regions is in no chain."
-- breaks = "What ended it: family of the next op, or `host copy`, `compiled`, `other data`, ..."
-- next_op = "Op that came next on the queue."
-- +++
-- The bytes saved are an upper bound: a tensor that the backward pass needs is still written.
-- They never exceed the chain's bytes less its first reads and its last writes.
-- Where lines come from Python frames alone they are first lines of functions: two lines are then
-- two functions, even of one name.
WITH exact_lines AS (
    SELECT DISTINCT rank
    FROM events
    WHERE source_via IN ('line', 'call')
),

neighbours AS (
    SELECT
        *,
        lead(place) OVER on_queue AS next_place,
        lead(op_id) OVER on_queue AS next_id,
        lead(op_name) OVER on_queue AS next_op,
        lead(family) OVER on_queue AS next_family,
        lead(fusable) OVER on_queue AS next_fusable,
        lead(compiled) OVER on_queue AS next_compiled,
        lead(copies_out) OVER on_queue AS next_copies_out,
        lead(step) OVER on_queue AS next_step
    FROM queue_ops
    WINDOW on_queue AS (PARTITION BY rank, device, queue ORDER BY place ASC)
),

linked AS (
    SELECT
        n.*,
        l.consumer_id IS NOT NULL AS continues,
        l.written_bytes + l.read_back_bytes AS saved_bytes,
        CASE
            WHEN n.next_place IS NULL THEN 'end of queue'
            WHEN n.next_compiled THEN 'compiled'
            WHEN n.next_id IS NULL THEN 'no op'
            WHEN n.next_copies_out THEN 'host copy'
            WHEN NOT n.next_fusable THEN coalesce(n.next_family, 'unknown family')
            WHEN (n.next_step IS DISTINCT FROM n.step) THEN 'end of step'
            WHEN NOT starts_with(n.next_op, 'aten::') THEN 'op outside aten'
            WHEN n.next_op = n.op_name THEN 'same op again'
            ELSE 'other data'
        END AS breaks
    FROM neighbours AS n
    LEFT JOIN chain_links AS l
        ON n.rank = l.rank AND n.device = l.device AND n.queue = l.queue AND n.place = l.place
),

numbered AS (
    SELECT
        *,
        sum(coalesce(NOT continues, FALSE)::BIGINT) OVER (
            PARTITION BY rank, device, queue ORDER BY place ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        )::BIGINT AS run
    FROM linked
    QUALIFY continues OR lead(continues) OVER (
        PARTITION BY rank, device, queue ORDER BY place ASC
    )
),

grouped AS (
    SELECT
        rank,
        device,
        queue,
        run,
        arg_min(step, place) AS step,
        arg_min(phase, place) AS phase,
        count(*) AS ops,
        sum(launches)::BIGINT AS launches,
        list(op_name ORDER BY place ASC) AS op_names,
        list(family ORDER BY place ASC) AS families,
        flatten(list(event_ids ORDER BY place ASC)) AS event_ids,
        list(op_id ORDER BY place ASC) AS op_ids,
        min(place) AS first_place,
        min(start_ns) AS start_ns,
        max(end_ns) AS end_ns,
        sum(device_time_ns)::BIGINT AS device_time_ns,
        if(bool_or(bytes IS NULL), NULL, sum(bytes))::BIGINT AS bytes,
        sum(saved_bytes)::BIGINT AS bytes_saved,
        arg_min(source_file, place) AS source_file,
        arg_min(source_line, place) AS source_line,
        arg_min(source_function, place) AS source_function,
        if(count(DISTINCT source_file) = 1, min(source_line), NULL) AS first_line,
        if(count(DISTINCT source_file) = 1, max(source_line), NULL) AS last_line,
        count(DISTINCT concat_ws(' ', source_file, source_function)) <= 1 AS one_name,
        count(DISTINCT source_line) <= 1 AS one_line,
        arg_min(module, place) AS module,
        arg_max_null(breaks, place) AS breaks,
        arg_max_null(next_op, place) AS next_op
    FROM numbered
    GROUP BY rank, device, queue, run
)

SELECT
    g.rank,
    g.device,
    g.queue,
    row_number() OVER (
        PARTITION BY g.rank ORDER BY g.device ASC, g.queue ASC, g.run ASC
    ) AS chain_id,
    g.step,
    g.phase,
    g.ops,
    g.launches,
    g.op_names,
    g.families,
    g.event_ids[1] AS first_event_id,
    g.event_ids[-1] AS last_event_id,
    g.event_ids,
    g.op_ids,
    g.first_place,
    g.start_ns,
    g.end_ns,
    g.device_time_ns,
    g.bytes,
    g.bytes_saved,
    g.source_file,
    g.source_line,
    g.source_function,
    g.first_line,
    g.last_line,
    g.one_name AND (g.one_line OR e.rank IS NOT NULL) AS in_one_function,
    g.module,
    FALSE AS compiled,
    g.breaks,
    g.next_op
FROM grouped AS g
LEFT JOIN exact_lines AS e ON g.rank = e.rank
ORDER BY g.rank ASC, chain_id ASC
