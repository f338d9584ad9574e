-- +++
-- title = "A loop takes a tensor apart: {steps_of_loop:count time} {index_name} of {shape}"
-- question = "Which lines index one tensor again and again in a Python loop?"
-- severity = "warning"
-- likely = 0.75
-- needs = ["work", "shapes", "measured"]
-- message = """
-- Loops: {loops:count}, the longest of {steps_of_loop:count turn}. They index a tensor of \
-- {shape} and run {ops_each} small ops on each part ({op_names}): {device_time_ns:ns} of work, \
-- {host_ns:ns} on the host."""
-- advice = """
-- Compute on the whole tensor at once: broadcasting, a batched op (torch.bmm, torch.where, \
-- gather, cumsum), torch.vmap, or unfold; where a turn needs the one before, compile the loop."""
-- key = ["rank", "source_file", "source_line", "anonymous_loop"]
-- proof = """
-- SELECT *
-- FROM op_calls
-- WHERE rank = {rank} AND source_line IS NOT DISTINCT FROM {source_line}
--     AND name = {index_op}
-- ORDER BY start_ns"""
-- reference = "https://docs.pytorch.org/docs/stable/generated/torch.vmap.html"
--
-- [params.min_turns]
-- default = 16
-- doc = "Loops with fewer turns are left out."
--
-- [params.max_ops]
-- default = 24
-- doc = "Most op calls in one turn; more is no small body."
--
-- [params.max_call_ns]
-- default = 200_000
-- doc = "Loops whose units of work take longer on average have enough to do in each (ns)."
--
-- [params.max_gap_ns]
-- default = 100_000
-- doc = "Longer gaps between two nodes of a backward are not the engine's (ns)."
--
-- [params.min_share]
-- default = 0.005
-- doc = "Lines whose loops take less of the recorded time are left out (0 to 1)."
--
-- [params.warning_share]
-- default = 0.05
-- doc = "From this share on a line is a warning, else info."
--
-- [columns]
-- steps_of_loop = "Turns of the longest loop."
-- turns = "Turns of all loops."
-- loops = "Loops at this line."
-- ops_each = "Ops that do work in one turn, on average."
-- index_op = "Op that indexes: select, index or slice."
-- index_name = "The same without its namespace."
-- shape = "Shape of the tensor that is indexed."
-- op_names = "Ops that do work in the loop, most frequent first, at most three."
-- rank = "Distributed rank."
-- source_file = "File of the line that indexes; NULL without stacks."
-- source_line = "That line."
-- module = "Module of the first."
-- anonymous_loop = "Op and shape; they stand for the line where none is known."
-- steps = "Steps they ran in; NULL where the trace has no steps."
-- device_time_ns = "Work of the loops (ns)."
-- host_ns = "Host time from the first to the last turn (ns)."
-- taken_ns = "That, or the work where it is more, and the backward of these ops (ns)."
-- share = "The longer of both over the recorded time."
-- severity = "warning or info, by that share."
-- saving_low_ns = "Half of it for all turns but one, of the work that sets the pace (ns)."
-- saving_high_ns = "All turns but one, of the host's time where it is late, else of the work (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "medium: whether a turn needs the result of the one before is not recorded."
-- event_ids = "Units of work of the loops."
-- start_ns = "When the first of them ran."
-- +++
-- `for i in range(n): y[i] = f(x[i])` launches the same small ops n times. One op on the whole
-- tensor moves the same bytes in one launch.
-- A loop counts when one line takes parts of one tensor at different places, with few op calls in
-- between. It misleads for recurrences, where each turn needs the one before, and where the turns
-- have much to do.
--
-- Next: `SELECT name, input_values, source_line FROM op_calls WHERE name = 'aten::select'`.
WITH indexed AS (
    SELECT
        rank,
        pid,
        tid,
        place,
        name,
        source_file,
        source_line,
        step,
        module,
        input_values,
        input_shapes ->> '$[0]' AS shape,
        if(source_line IS NULL, name || ' ' || input_shapes, NULL) AS anonymous_loop,
        lag(place) OVER alike AS before_place
    FROM op_calls
    WHERE
        name IN ('aten::select', 'aten::index', 'aten::slice', 'aten::index_select')
        AND NOT by_autograd
        AND phase IS DISTINCT FROM 'backward' AND phase IS DISTINCT FROM 'optimizer'
        AND NOT coalesce(compiled, FALSE) AND input_shapes IS NOT NULL
    WINDOW alike AS (
        PARTITION BY rank, pid, tid, name, source_file, source_line, input_shapes, step
        ORDER BY place ASC
    )
),

numbered AS (
    SELECT
        *,
        sum(coalesce(place - before_place > $max_ops, TRUE)::BIGINT) OVER (
            PARTITION BY rank, pid, tid, name, source_file, source_line, anonymous_loop, shape, step
            ORDER BY place ASC
        ) AS run
    FROM indexed
),

loops AS (
    SELECT
        rank,
        pid,
        tid,
        name,
        source_file,
        source_line,
        anonymous_loop,
        shape,
        step,
        run,
        count(DISTINCT input_values) AS turns,
        min(place) AS first_place,
        max(place) AS index_place,
        -- the last turn is as long as the others
        max(place) + (max(place) - min(place)) // (count(*) - 1) - 1 AS last_place,
        arg_min(module, place) AS module
    FROM numbered
    GROUP BY ALL
    HAVING count(*) > 1 AND count(DISTINCT input_values) >= $min_turns
),

-- two lines of one loop: the first stands for it
outer_loops AS (
    SELECT l.*
    FROM loops AS l
    ANTI JOIN loops AS o
        ON
            l.rank = o.rank AND l.pid IS NOT DISTINCT FROM o.pid
            AND l.tid IS NOT DISTINCT FROM o.tid
            AND l.first_place > o.first_place AND l.first_place <= o.index_place
),

bodies AS (
    SELECT
        l.rank,
        l.pid,
        l.tid,
        l.name AS index_op,
        l.source_file,
        l.source_line,
        l.anonymous_loop,
        l.shape,
        l.step,
        l.module,
        l.turns,
        l.first_place,
        count(c.work_ns) FILTER (WHERE c.family IS DISTINCT FROM 'view') AS calls,
        -- without a device the host computes: its time is all there is
        coalesce(bool_and(c.device = 'cpu'), FALSE) AS on_host,
        sum(c.work_ns) AS work_ns,
        sum(c.paced_ns) AS paced_ns,
        -- what autograd runs for these calls goes with them
        coalesce(sum(c.backward_ns), 0) AS backward_ns,
        coalesce(sum(c.backward_paced_ns), 0) AS backward_paced_ns,
        coalesce(sum(c.backward_host_ns), 0) AS backward_host_ns,
        max(c.end_ns) - min(c.start_ns) AS host_ns,
        sum(c.works) AS works,
        flatten(list(c.work_ids)) AS event_ids,
        list(c.name) FILTER (WHERE c.family IS DISTINCT FROM 'view') AS names,
        max(c.end_ns) AS end_ns,
        min(c.start_ns) AS start_ns
    FROM outer_loops AS l
    INNER JOIN op_calls AS c
        ON
            l.rank = c.rank AND l.pid IS NOT DISTINCT FROM c.pid
            AND l.tid IS NOT DISTINCT FROM c.tid
            AND c.place BETWEEN l.first_place AND l.last_place
            AND l.step IS NOT DISTINCT FROM c.step
    GROUP BY ALL
),

-- a node of the backward takes from the end of the one before to its own: the engine's time too
nodes AS (
    SELECT
        b.rank,
        b.start_ns,
        coalesce(b.tid, -1) AS thread,
        sum(n.node_ns) AS nodes_ns
    FROM (
        SELECT
            *,
            duration_ns + least($max_gap_ns, gap_ns) AS node_ns,
            coalesce(forward_tid, -1) AS thread
        FROM backward_nodes
        WHERE forward_start_ns IS NOT NULL
    ) AS n
    ASOF INNER JOIN bodies AS b
        ON
            n.rank = b.rank AND n.thread = coalesce(b.tid, -1)
            AND n.forward_start_ns >= b.start_ns
    WHERE n.forward_start_ns <= b.end_ns
    GROUP BY ALL
),

timed AS (
    SELECT
        b.*,
        greatest(b.backward_host_ns, b.backward_ns, coalesce(n.nodes_ns, 0)) AS backward_most_ns
    FROM bodies AS b
    LEFT JOIN nodes AS n
        ON b.rank = n.rank AND coalesce(b.tid, -1) = n.thread AND b.start_ns = n.start_ns
),

places AS (
    SELECT
        rank,
        source_file,
        source_line,
        anonymous_loop,
        arg_max(index_op, (turns, shape)) AS index_op,
        arg_max(shape, (turns, shape)) AS shape,
        max(turns) AS steps_of_loop,
        sum(turns)::BIGINT AS turns,
        count(*) AS loops,
        sum(calls)::BIGINT AS calls,
        nullif(count(DISTINCT step), 0) AS steps,
        arg_min(module, start_ns) AS module,
        sum(work_ns)::BIGINT AS device_time_ns,
        sum(host_ns)::BIGINT AS host_ns,
        sum(greatest(host_ns, work_ns) + backward_most_ns)::BIGINT AS taken_ns,
        round(
            sum(
                if(on_host, host_ns + backward_host_ns, paced_ns + backward_paced_ns)
                * (1 - 1 / turns)
            ) / 2
        )::BIGINT AS saving_low_ns,
        round(
            sum(
                if(
                    on_host OR paced_ns < work_ns,
                    greatest(host_ns, work_ns) + backward_most_ns,
                    work_ns + backward_ns
                ) * (1 - 1 / turns)
            )
        )::BIGINT AS saving_high_ns,
        flatten(list(names)) AS names,
        list_sort(flatten(list(event_ids))) AS event_ids,
        min(start_ns) AS start_ns
    FROM timed
    WHERE calls >= turns
    GROUP BY ALL
    HAVING sum(work_ns) <= $max_call_ns * sum(works)
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
        map_entries(list_histogram(p.names)) AS named,
        r.least_ns,
        r.warning_ns
    FROM places AS p
    INNER JOIN recorded_spans AS r ON p.rank = r.rank
)

SELECT
    steps_of_loop,
    turns,
    loops,
    index_op,
    shape,
    rank,
    source_file,
    source_line,
    module,
    anonymous_loop,
    steps,
    device_time_ns,
    host_ns,
    taken_ns,
    share,
    saving_low_ns,
    saving_high_ns,
    event_ids,
    start_ns,
    'medium' AS confidence,
    round(calls / turns, 1) AS ops_each,
    replace(index_op, 'aten::', '') AS index_name,
    replace(
        array_to_string(
            list_transform(
                list_sort(
                    list_transform(named, LAMBDA n: struct_pack(often := n.value, name := n.key)),
                    'DESC'
                )[1:3],
                LAMBDA n: n.name
            ),
            ', '
        ),
        'aten::',
        ''
    ) AS op_names,
    CASE WHEN greatest(device_time_ns, host_ns) >= warning_ns THEN 'warning' ELSE 'info' END
        AS severity,
    'high: all turns but one, of the host''s time where it is late; low: half of what sets the'
    || ' pace, for one op still moves all bytes' AS saving_basis
FROM judged
WHERE greatest(device_time_ns, host_ns) >= least_ns
ORDER BY saving_high_ns DESC, start_ns ASC
