-- +++
-- title = "The same op on {tensors:count small tensor}, one by one: {op_names}"
-- question = "Which lines run the same op over many small tensors?"
-- severity = "warning"
-- needs = ["work", "shapes", "measured"]
-- message = """
-- {runs:count time}, {op_names} run up to {tensors:count time} in a row on tensors of \
-- {mean_bytes:bytes} on average: {device_time_ns:ns} of work, {host_ns:ns} on the host."""
-- advice = """
-- Pass the list to one op: torch._foreach_{op}(tensors, ...) or its like (clip_grad_norm_, \
-- foreach=True), torch.stack or cat them first, or keep them as views of one flat buffer."""
-- key = ["rank", "device", "source_file", "source_line", "anonymous_run"]
-- proof = """
-- SELECT *
-- FROM work
-- WHERE rank = {rank} AND list_contains({event_ids}, event_id)
-- ORDER BY start_ns"""
-- reference = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
--
-- [params.min_tensors]
-- default = 16
-- doc = "Runs with fewer tensors are left out."
--
-- [params.max_spacing]
-- default = 6
-- doc = "Most op calls from one tensor to the next."
--
-- [params.max_tensor_bytes]
-- default = 1_048_576
-- doc = "Tensors larger than this on average are work enough for an op (bytes)."
--
-- [params.max_gap_ns]
-- default = 100_000
-- doc = "Longer gaps between two nodes of a backward are not the engine's (ns)."
--
-- [params.min_share]
-- default = 0.005
-- doc = "Lines whose runs take less of the recorded time are left out (0 to 1)."
--
-- [params.warning_share]
-- default = 0.05
-- doc = "From this share on a line is a warning, else info."
--
-- [columns]
-- tensors = "Tensors of the longest run."
-- runs = "Runs at this line."
-- calls = "Calls in all of them."
-- op_names = "The op, and others of the same loop, at most three."
-- op = "The op without its namespace."
-- mean_bytes = "Mean size of what it makes, 4 bytes an element (bytes)."
-- rank = "Distributed rank."
-- device = "Device of the work."
-- source_file = "File of the line; NULL without stacks."
-- source_line = "That line."
-- module = "Module of the first."
-- anonymous_run = "The op; it stands for the line where none is known."
-- steps = "Steps they ran in; NULL where the trace has no steps."
-- device_time_ns = "Work of the loops (ns)."
-- host_ns = "Host time from the first to the last call of each run (ns)."
-- taken_ns = "That, or the work where it is more, and the backward of these ops (ns)."
-- share = "The longer of both over the recorded time."
-- severity = "warning or info, by that share."
-- saving_low_ns = "Idle time inside launch calls; on a CPU half the time between the ops (ns)."
-- saving_high_ns = "All but one call, of the host's time where it is late, else of the work (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "high where the line is known."
-- event_ids = "Units of work of the runs."
-- start_ns = "When the first of them ran."
-- +++
-- Norms of all gradients, an average of all weights, a sum of many losses: each call costs the
-- host some microseconds and the device a launch, whatever the size of the tensor.
--
-- A run counts when one line calls the same op many times with few other calls in between. The
-- optimizer has an analyzer of its own (`single_tensor_optimizer`), a loop that indexes one tensor
-- too (`for_loop_indexing`). Layers of a model are far apart and do not count.
--
-- Next: `SELECT name, source_line, count(*) FROM op_calls GROUP BY ALL ORDER BY 3 DESC`.
WITH calls AS (
    SELECT
        *,
        -- the product of no sizes is NULL in DuckDB; a scalar has one element
        CASE
            WHEN output_shapes ->> '$[0]' = '[]' THEN 1
            ELSE list_product(try_cast(output_shapes ->> '$[0]' AS BIGINT[]))
        END * 4 AS bytes,
        if(source_line IS NULL, name, NULL) AS anonymous_run
    FROM op_calls
    WHERE
        work_ns IS NOT NULL AND NOT coalesce(compiled, FALSE)
        AND NOT by_autograd
        AND phase IS DISTINCT FROM 'backward' AND phase IS DISTINCT FROM 'optimizer'
        AND coalesce(family NOT IN ('view', 'fill', 'matmul', 'convolution', 'attention'), TRUE)
        -- DDP copies its buffers like this on its own
        AND module_class IS DISTINCT FROM 'DistributedDataParallel'
        AND NOT contains(name, '_foreach_') AND NOT contains(name, '_fused_')
),

spaced AS (
    SELECT
        *,
        place - lag(place) OVER (
            PARTITION BY rank, pid, tid, name, source_file, source_line, step ORDER BY place ASC
        ) AS spacing
    FROM calls
),

numbered AS (
    SELECT
        *,
        sum(coalesce(spacing > $max_spacing, TRUE)::BIGINT) OVER (
            PARTITION BY rank, pid, tid, name, source_file, source_line, step ORDER BY place ASC
        ) AS run
    FROM spaced
),

runs AS (
    SELECT
        rank,
        device,
        pid,
        tid,
        name,
        source_file,
        source_line,
        anonymous_run,
        step,
        run,
        count(*) AS tensors,
        sum(bytes) AS bytes,
        min(place) AS first_place,
        min(place) - $max_spacing AS search_place,
        max(place) AS last_place,
        sum(work_ns) AS work_ns,
        sum(paced_ns) AS paced_ns,
        -- what autograd runs for these calls goes with them
        coalesce(sum(backward_ns), 0) AS backward_ns,
        coalesce(sum(backward_host_ns), 0) AS backward_host_ns,
        max(end_ns) - min(start_ns) AS host_ns,
        flatten(list(work_ids)) AS event_ids,
        arg_min(module, place) AS module,
        max(end_ns) AS end_ns,
        min(start_ns) AS start_ns
    FROM numbered
    GROUP BY ALL
    HAVING
        count(*) >= $min_tensors AND avg(bytes) <= $max_tensor_bytes
        -- calls of as many modules are layers in a row, each of which needs the one before
        AND 2 * count(DISTINCT module) <= count(*)
),

-- parts of one tensor, taken out one after the other
indexed AS (
    SELECT
        r.rank,
        r.pid,
        r.tid,
        r.first_place,
        r.name
    FROM runs AS r
    INNER JOIN op_calls AS c
        ON
            r.rank = c.rank AND r.pid IS NOT DISTINCT FROM c.pid
            AND r.tid IS NOT DISTINCT FROM c.tid
            AND c.place BETWEEN r.search_place AND r.last_place
    WHERE c.name IN ('aten::select', 'aten::slice', 'aten::index', 'aten::index_select')
    GROUP BY r.rank, r.pid, r.tid, r.first_place, r.name, r.tensors
    HAVING 2 * count(DISTINCT c.input_values) >= r.tensors
),

kept AS (
    SELECT r.*
    FROM runs AS r
    ANTI JOIN indexed AS i
        ON
            r.rank = i.rank AND r.pid IS NOT DISTINCT FROM i.pid
            AND r.tid IS NOT DISTINCT FROM i.tid AND r.first_place = i.first_place
),

-- several ops of one loop share its line, or without lines its places
lines AS (
    SELECT
        *,
        coalesce(
            max(last_place) OVER (
                PARTITION BY rank, pid, tid, anonymous_run IS NULL
                ORDER BY first_place ASC, last_place DESC
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) < first_place,
            TRUE
        ) AS begins
    FROM kept
),

grouped AS (
    SELECT
        *,
        sum(coalesce(begins, FALSE)::BIGINT) OVER (
            PARTITION BY rank, pid, tid, anonymous_run IS NULL
            ORDER BY first_place ASC, last_place DESC
        ) AS loop
    FROM lines
),

loops AS (
    SELECT
        rank,
        device,
        pid,
        tid,
        source_file,
        source_line,
        loop,
        arg_min(anonymous_run, first_place) AS anonymous_run,
        arg_min(step, first_place) AS step,
        max(tensors) AS tensors,
        sum(tensors) AS calls,
        sum(bytes) AS bytes,
        sum(work_ns) AS work_ns,
        sum(paced_ns) AS paced_ns,
        sum(backward_ns) AS backward_ns,
        sum(backward_host_ns) AS backward_host_ns,
        max(host_ns) AS host_ns,
        flatten(list(event_ids)) AS event_ids,
        arg_max(name, (work_ns, name)) AS name,
        list(DISTINCT name) AS names,
        arg_min(module, first_place) AS module,
        max(end_ns) AS end_ns,
        min(start_ns) AS start_ns
    FROM grouped
    GROUP BY rank, device, pid, tid, source_file, source_line, loop
),

-- a node of the backward takes from the end of the one before to its own: the engine's time too
nodes AS (
    SELECT
        l.rank,
        l.pid,
        l.tid,
        l.source_file,
        l.source_line,
        l.loop,
        sum(n.node_ns) AS nodes_ns
    FROM (
        SELECT
            *,
            duration_ns + least($max_gap_ns, gap_ns) AS node_ns,
            coalesce(forward_tid, -1) AS thread,
            coalesce(forward_file, '') AS file,
            coalesce(forward_line, -1) AS line
        FROM backward_nodes
        WHERE forward_start_ns IS NOT NULL
    ) AS n
    ASOF INNER JOIN loops AS l
        ON
            n.rank = l.rank AND n.thread = coalesce(l.tid, -1)
            AND n.file = coalesce(l.source_file, '') AND n.line = coalesce(l.source_line, -1)
            AND n.forward_start_ns >= l.start_ns
    WHERE n.forward_start_ns <= l.end_ns
    GROUP BY ALL
),

late AS (
    SELECT
        l.rank,
        l.source_file,
        l.source_line,
        l.loop,
        l.pid,
        l.tid,
        sum(least(t.idle_before_ns, coalesce(c.duration_ns, 0))) AS in_calls_ns
    FROM (
        SELECT
            * EXCLUDE (event_ids),
            unnest(event_ids) AS event_id
        FROM loops
        WHERE device <> 'cpu'
    ) AS l
    INNER JOIN timeline AS t ON l.rank = t.rank AND l.event_id = t.event_id
    INNER JOIN work AS w ON t.rank = w.rank AND t.event_id = w.event_id
    LEFT JOIN launches AS c ON w.rank = c.rank AND w.launch_id = c.event_id
    GROUP BY ALL
),

places AS (
    SELECT
        l.rank,
        l.device,
        l.source_file,
        l.source_line,
        l.anonymous_run,
        max(l.tensors) AS tensors,
        count(*) AS runs,
        sum(l.calls)::BIGINT AS calls,
        sum(l.bytes) AS bytes,
        nullif(count(DISTINCT l.step), 0) AS steps,
        sum(l.work_ns)::BIGINT AS device_time_ns,
        sum(l.host_ns)::BIGINT AS host_ns,
        sum(
            greatest(l.host_ns, l.work_ns)
            + greatest(l.backward_host_ns, l.backward_ns, coalesce(n.nodes_ns, 0))
        )::BIGINT AS taken_ns,
        round(
            sum(
                if(
                    l.device = 'cpu',
                    greatest(0, l.host_ns - l.work_ns) / 2, coalesce(i.in_calls_ns, 0)
                ) * (1 - 1 / l.tensors)
            )
        )::BIGINT AS saving_low_ns,
        round(
            sum(
                CASE
                    WHEN l.device = 'cpu' OR l.paced_ns < l.work_ns
                        THEN
                            greatest(l.host_ns, l.work_ns)
                            + greatest(
                                l.backward_host_ns, l.backward_ns, coalesce(n.nodes_ns, 0)
                            )
                    ELSE l.work_ns + l.backward_ns
                END * (1 - 1 / l.tensors)
            )
        )::BIGINT AS high_ns,
        list_sort(flatten(list(l.event_ids))) AS event_ids,
        arg_max(l.name, (l.work_ns, l.name)) AS name,
        list_sort(list_distinct(flatten(list(l.names)))) AS names,
        arg_min(l.module, l.start_ns) AS module,
        min(l.start_ns) AS start_ns
    FROM loops AS l
    LEFT JOIN late AS i
        ON
            l.rank = i.rank AND l.pid IS NOT DISTINCT FROM i.pid
            AND l.tid IS NOT DISTINCT FROM i.tid AND l.loop = i.loop
            AND l.source_file IS NOT DISTINCT FROM i.source_file
            AND l.source_line IS NOT DISTINCT FROM i.source_line
    LEFT JOIN nodes AS n
        ON
            l.rank = n.rank AND l.pid IS NOT DISTINCT FROM n.pid
            AND l.tid IS NOT DISTINCT FROM n.tid AND l.loop = n.loop
            AND l.source_file IS NOT DISTINCT FROM n.source_file
            AND l.source_line IS NOT DISTINCT FROM n.source_line
    GROUP BY ALL
),

recorded_spans AS (
    SELECT
        rank,
        span_ns,
        $min_share * span_ns AS least_ns,
        $warning_share * span_ns AS warning_ns
    FROM rank_spans
),

judged AS (
    SELECT
        p.*,
        round(greatest(p.device_time_ns, p.host_ns) / r.span_ns, 4) AS share,
        r.least_ns,
        r.warning_ns
    FROM places AS p
    INNER JOIN recorded_spans AS r ON p.rank = r.rank
)

SELECT
    tensors,
    runs,
    calls,
    rank,
    device,
    source_file,
    source_line,
    module,
    anonymous_run,
    steps,
    device_time_ns,
    host_ns,
    taken_ns,
    share,
    saving_low_ns,
    event_ids,
    start_ns,
    regexp_replace(name, '^.*::_?|_$', '', 'g') AS op,
    round(bytes / calls)::BIGINT AS mean_bytes,
    greatest(saving_low_ns, high_ns) AS saving_high_ns,
    replace(array_to_string(names[1:3], ', '), 'aten::', '')
    || CASE WHEN len(names) > 3 THEN ', ...' ELSE '' END AS op_names,
    CASE WHEN greatest(device_time_ns, host_ns) >= warning_ns THEN 'warning' ELSE 'info' END
        AS severity,
    CASE
        WHEN device = 'cpu'
            THEN
                'low: foreach ops, which loop on a CPU: half the time between the ops, which the'
                || ' capture lengthens; high: one flat tensor: all but one of the calls'
        ELSE
            'low: idle time of the device inside launch calls, for all but one tensor; high: all'
            || ' but one of the calls, of the host''s time where it is late'
    END AS saving_basis,
    CASE WHEN source_line IS NULL THEN 'medium' ELSE 'high' END AS confidence
FROM judged
WHERE greatest(device_time_ns, host_ns) >= least_ns
ORDER BY saving_high_ns DESC, start_ns ASC
