-- +++
-- title = "Eager ops a compiler would fuse: {op_text}"
-- question = "Which runs of eager ops would become one kernel under torch.compile?"
-- severity = "warning"
-- needs = ["measured", "work", "shapes", "cost"]
-- acts_on = "device"
-- message = """
-- In {say_runs} of up to {longest_run:count eager op}[[ at {line_range}]] \
-- ({device_time_ns:ns}), {bytes_saved:bytes}[[ of {bytes:bytes}]] could be spared: \
-- {say_waste}. Fused, {launches_saved:count} of {launches:count} {say_launches} go as well[[, and \
-- with them {idle_between_ns:ns} {say_idle}]]. [[{say_slowed}]] [[In their range {graph_breaks} \
-- would split the graph.]]"""
-- advice = "{fix}"
-- key = ["rank", "source_file", "source_line", "last_line", "anonymous_chain"]
-- proof = """
-- SELECT *
-- FROM chains
-- WHERE rank = {rank} AND chain_id IN {chain_ids}
-- ORDER BY chain_id"""
-- reference = "https://docs.pytorch.org/docs/stable/torch.compiler.html"
--
-- [params.min_share]
-- default = 0.002
-- doc = "Places with less of the device time outside collectives than this are left out (0 to 1)."
--
-- [params.warning_share]
-- default = 0.02
-- doc = "From this share of that time as highest saving on it is a warning, else info (0 to 1)."
--
-- [params.max_gap_ns]
-- default = 100_000
-- doc = "Longer gaps have another cause than two launches (see device_idle) and do not count (ns)."
--
-- [params.kernel_share]
-- default = 0.6
-- doc = "Least speed of a fused kernel over that of the eager ops, for the low saving (0 to 1)."
--
-- [params.compiled_call_ns]
-- default = 20_000
-- doc = "What a compiled function costs a CPU more than one op: guards and wrapper (ns a call)."
--
-- [params.compiled_autograd_ns]
-- default = 115_000
-- doc = "The same where it takes part in a backward, which is a call of its own (ns a call)."
--
-- [columns]
-- bytes_saved = "Bytes written to be read back or overwritten by the next op: both counted."
-- launches_saved = "Ops less runs: launches that go when each run becomes one kernel."
-- severity = "warning or info, by the highest saving; on a CPU by the lowest."
-- rank = "Distributed rank."
-- source_file = "File of the first op; NULL without stacks."
-- source_line = "First line of the run."
-- last_line = "Last line; NULL where the run spans several files or functions."
-- line_range = "Both as text; NULL without stacks."
-- source_function = "Function of the first op."
-- module = "Module of the first op of the first run."
-- anonymous_chain = "Ops, which stand for the lines where none are known."
-- op_text = "Ops of the run with the most device time, in order, shortened."
-- longest_run = "Most ops of one run."
-- occurrences = "How often such a run happened: once a layer, once a step."
-- steps = "Steps it happened in; NULL where the trace has no steps."
-- launches = "Launches of all runs."
-- device_time_ns = "Device time of all runs (ns)."
-- bytes = "Bytes they move; NULL where one is unknown (bytes)."
-- peak_bytes_per_s = "Bandwidth of the chip; NULL where the chip is unknown."
-- idle_between_ns = "Idle time between kernels of one run (ns); NULL if next to none."
-- graph_breaks = "Calls in the host's range of the run that split a graph; NULL if none."
-- ended_by = "What ended the run with the most device time (column `breaks` of `chains`)."
-- saving_low_ns = "kernel_share of the bytes sure to go, see saving_basis; 0 if unknown (ns)."
-- saving_high_ns = "Time of the bytes that go (see saving_basis), plus idle_between_ns (ns)."
-- host_saving_low_ns = "Launch calls that go: what a step bound by its host gains (ns)."
-- host_saving_high_ns = "Time of the host from each op that goes to the next of its run (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- figures = "modelled when judged against another chip than the one it ran on."
-- confidence = "medium; low without lines, or where most of it is idle time of a slow capture."
-- say_runs = "Occurrences, as text."
-- say_waste = "What the bytes saved are."
-- say_launches = "What a unit of work is called."
-- say_idle = "Where the idle time lies."
-- say_slowed = "What about the capture lengthens it; NULL if nothing."
-- fix = "The change to make."
-- chain_ids = "Rows of the view `chains` with the most device time; at most twenty."
-- event_ids = "The units of work."
-- start_ns = "When the first of them ran."
-- +++
-- Each eager op reads its inputs from memory and writes its result back, and costs a launch. When
-- the next op on the queue reads just that result, a compiler keeps it in registers.
--
-- A trace does not say which tensor an op reads: `chain_links` says how a link is inferred, and
-- which pairs are none.
--
-- That a whole run becomes one kernel is an expectation: a reduction over another dimension or a
-- graph break splits it. Where the trace has a backward the lower saving counts only reads, since
-- a result that the backward needs is still written. On a CPU a run with a softmax or a norm may
-- gain nothing: PyTorch's own kernels of those are hard to beat, and a compiled call costs it some
-- 20 us (235 us with its backward) of guards and wrappers, whatever it computes. Compiling costs
-- time in the first step, and again for new shapes.
--
-- Next: compile the function named, with fullgraph=True while trying. `hbm_bound_eager_ops` shows
-- the lines that no run explains.
WITH short_gaps AS (
    SELECT *
    FROM gaps
    WHERE duration_ns <= $max_gap_ns
),

-- what only moves its tensors takes as long a byte in the fused kernel as it did here; the
-- arithmetic of the others stays
moving AS (
    SELECT
        *,
        family IN ('elementwise', 'copy', 'cast', 'fill', 'pad', 'cat')
        AND NOT regexp_matches(op_name, 'tanh|exp|erf|pow|log|sin|cos|sigmoid|sqrt') AS moves,
        coalesce(family IN ('softmax', 'norm'), FALSE) AS has_kernel
    FROM chain_ops
    WHERE bytes > 0
),

speeds AS (
    SELECT
        rank,
        chain_id,
        op_id,
        moves,
        bool_or(has_kernel) OVER of_chain AS has_own_kernel,
        sum(device_time_ns) FILTER (WHERE moves) OVER of_chain
        / nullif(sum(bytes) FILTER (WHERE moves) OVER of_chain, 0) AS ns_per_byte
    FROM moving
    WINDOW of_chain AS (PARTITION BY rank, chain_id)
),

calls_of_ops AS (
    SELECT
        rank,
        op_id,
        sum(duration_ns) AS call_ns
    FROM launches
    GROUP BY rank, op_id
),

timed AS (
    SELECT
        m.rank,
        m.chain_id,
        r.peak_bytes_per_s,
        r.modelled,
        o.start_ns AS host_start_ns,
        if(m.disappears, k.call_ns, 0) AS host_low_ns,
        if(
            m.disappears,
            coalesce(
                lead(o.start_ns) OVER (PARTITION BY m.rank, m.chain_id ORDER BY m.place ASC)
                - o.start_ns,
                o.duration_ns
            ),
            0
        ) AS host_high_ns,
        CASE WHEN m.continues THEN g.duration_ns END AS idle_before_ns,
        m.bytes_saved > m.sure_bytes OR m.continues AND m.sure_bytes > 0 AS passes_on,
        CASE
            -- the fused kernel takes the time of one op, and latency is all that a tiny one takes
            WHEN
                r.bound = 'overhead' AND m.disappears AND m.device_time_ns <= t.value * m.launches
                THEN m.device_time_ns
            -- a launch that goes takes its time along; an op that stays is faster by its bytes
            WHEN
                r.bound = 'memory'
                OR m.family IN (
                    'elementwise', 'activation', 'copy', 'cast', 'fill', 'random', 'pad', 'rope',
                    'cat', 'reduction'
                )
                THEN
                    least(
                        m.device_time_ns * (m.most_bytes / m.bytes),
                        coalesce(m.most_bytes * v.ns_per_byte, m.device_time_ns)
                    )
            ELSE coalesce(m.bytes_saved * 1e9 / r.peak_bytes_per_s, 0)
        END AS high_ns,
        m.sure_bytes * least(
            m.device_time_ns / m.bytes,
            if(
                r.device = 'cpu' AND v.moves,
                m.device_time_ns / m.bytes,
                coalesce(1e9 / r.peak_bytes_per_s, 0)
            )
        ) * if(r.device = 'cpu' AND v.has_own_kernel, 0, 1) AS low_ns
    FROM chain_ops AS m
    INNER JOIN roofline AS r ON m.rank = r.rank AND m.event_ids[1] = r.event_id
    INNER JOIN thresholds AS t ON t.name = 'tiny_kernel_ns'
    INNER JOIN speeds AS v
        ON m.rank = v.rank AND m.chain_id = v.chain_id AND m.op_id = v.op_id
    LEFT JOIN ops AS o ON m.rank = o.rank AND m.op_id = o.event_id
    LEFT JOIN calls_of_ops AS k ON m.rank = k.rank AND m.op_id = k.op_id
    LEFT JOIN short_gaps AS g
        ON m.rank = g.rank AND m.device = g.device AND m.event_ids[1] = g.after_event_id
    WHERE m.bytes > 0
),

times AS (
    SELECT
        rank,
        chain_id,
        sum(idle_before_ns) AS idle_between_ns,
        $kernel_share * sum(low_ns) AS low_ns,
        sum(high_ns) AS high_ns,
        sum(host_low_ns) AS host_low_ns,
        sum(least($max_gap_ns, host_high_ns)) AS host_high_ns,
        bool_or(passes_on) AS passes_on,
        max(peak_bytes_per_s) AS peak_bytes_per_s,
        bool_or(modelled) AS modelled,
        min(host_start_ns) AS host_start_ns,
        max(host_start_ns) AS host_end_ns
    FROM timed
    GROUP BY rank, chain_id
),

runs AS (
    SELECT
        c.*,
        t.idle_between_ns,
        t.low_ns,
        t.high_ns,
        t.host_low_ns,
        t.host_high_ns,
        t.passes_on,
        t.peak_bytes_per_s,
        t.modelled,
        t.host_start_ns,
        t.host_end_ns
    FROM chains AS c
    INNER JOIN times AS t ON c.rank = t.rank AND c.chain_id = t.chain_id
    WHERE c.bytes_saved > 0
),

split AS (
    SELECT
        r.rank,
        r.chain_id,
        list(DISTINCT coalesce(s.op_name, s.name)) AS calls
    FROM runs AS r
    INNER JOIN syncs AS s
        ON r.rank = s.rank AND r.host_start_ns < s.start_ns AND r.host_end_ns > s.start_ns
    GROUP BY r.rank, r.chain_id
),

call_costs AS (
    SELECT
        rank,
        if(bool_or(phase = 'backward'), $compiled_autograd_ns, $compiled_call_ns) AS call_ns
    FROM ops
    GROUP BY rank
),

placed AS (
    SELECT
        r.*,
        s.calls,
        r.low_ns - if(r.device = 'cpu', coalesce(k.call_ns, 0), 0) AS sure_ns,
        CASE WHEN r.in_one_function THEN r.first_line ELSE r.source_line END AS begin_line,
        CASE WHEN r.in_one_function THEN r.last_line END AS end_line,
        CASE WHEN r.source_line IS NULL THEN array_to_string(r.op_names, ' ') END
            AS anonymous_chain
    FROM runs AS r
    LEFT JOIN split AS s ON r.rank = s.rank AND r.chain_id = s.chain_id
    LEFT JOIN call_costs AS k ON r.rank = k.rank
),

grouped AS (
    SELECT
        rank,
        source_file,
        begin_line,
        end_line,
        anonymous_chain,
        arg_min(source_function, start_ns) AS source_function,
        arg_min(module, start_ns) AS module,
        arg_min(phase, start_ns) AS phase,
        arg_max(op_names, (device_time_ns, -start_ns)) AS op_names,
        arg_max(breaks, (device_time_ns, -start_ns)) AS ended_by,
        count(*) AS occurrences,
        nullif(count(DISTINCT step), 0) AS steps,
        sum(ops)::BIGINT - count(*) AS launches_saved,
        max(ops) AS longest_run,
        sum(launches)::BIGINT AS launches,
        sum(device_time_ns)::BIGINT AS device_time_ns,
        if(bool_or(bytes IS NULL), NULL, sum(bytes))::BIGINT AS bytes,
        sum(bytes_saved)::BIGINT AS bytes_saved,
        max(peak_bytes_per_s)::BIGINT AS peak_bytes_per_s,
        -- less is the device's own turnaround, and not worth a word
        CASE
            WHEN sum(idle_between_ns) * 50 >= sum(device_time_ns)
                THEN sum(idle_between_ns)::BIGINT
        END AS idle_between_ns,
        list_sort(list_distinct(flatten(list(calls) FILTER (WHERE calls IS NOT NULL)))) AS calls,
        -- one run that another process made long on a CPU says nothing of the others
        greatest(
            0,
            least(
                sum(sure_ns),
                if(bool_or(device = 'cpu'), count(*) * quantile_cont(sure_ns, 0.75), sum(sure_ns))
            )
        )::BIGINT AS low_ns,
        sum(host_low_ns)::BIGINT AS host_low_ns,
        sum(greatest(host_low_ns, host_high_ns))::BIGINT AS host_high_ns,
        sum(high_ns)::BIGINT + coalesce(
            CASE
                WHEN sum(idle_between_ns) * 50 >= sum(device_time_ns) THEN sum(idle_between_ns)
            END::BIGINT, 0
        ) AS high_ns,
        bool_and(in_one_function) AS in_one_function,
        bool_or(passes_on) AS passes_on,
        bool_or(device = 'cpu') AS on_cpu,
        bool_or(modelled) AS modelled,
        list(chain_id ORDER BY device_time_ns DESC, chain_id ASC)[1:20] AS chain_ids,
        flatten(list(event_ids ORDER BY start_ns ASC)) AS event_ids,
        min(start_ns) AS start_ns
    FROM placed
    GROUP BY rank, source_file, begin_line, end_line, anonymous_chain
),

slowed AS (
    SELECT DISTINCT rank
    FROM events
    WHERE layer = 'python'
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
    g.rank,
    g.source_file,
    g.begin_line AS source_line,
    g.end_line AS last_line,
    g.source_function,
    g.module,
    g.anonymous_chain,
    g.occurrences,
    g.steps,
    g.launches,
    g.launches_saved,
    g.device_time_ns,
    g.bytes,
    g.bytes_saved,
    g.peak_bytes_per_s,
    g.idle_between_ns,
    g.ended_by,
    g.low_ns AS saving_low_ns,
    g.high_ns AS saving_high_ns,
    g.host_low_ns AS host_saving_low_ns,
    g.host_high_ns AS host_saving_high_ns,
    g.chain_ids,
    g.event_ids,
    g.start_ns,
    g.longest_run,
    CASE
        -- on a CPU a compiled call costs more than the eager ones where little is surely saved
        WHEN if(g.on_cpu, g.low_ns, g.high_ns) >= l.warning_ns THEN 'warning'
        ELSE 'info'
    END AS severity,
    CASE
        WHEN g.begin_line IS NOT NULL AND g.end_line IS NULL
            THEN 'line ' || g.begin_line || ' and on'
        WHEN g.begin_line < g.end_line THEN 'lines ' || g.begin_line || '-' || g.end_line
        WHEN g.begin_line IS NOT NULL THEN 'line ' || g.begin_line
    END AS line_range,
    replace(array_to_string(g.op_names[1:4], ', '), 'aten::', '')
    || CASE WHEN len(g.op_names) > 4 THEN ', ...' ELSE '' END AS op_text,
    array_to_string(g.calls, ', ') AS graph_breaks,
    format('{:,} run', g.occurrences) || CASE WHEN g.occurrences = 1 THEN '' ELSE 's' END
        AS say_runs,
    CASE
        WHEN g.passes_on THEN 'intermediates that one op writes and the next reads back'
        ELSE 'fill that the next op writes over'
    END AS say_waste,
    CASE WHEN g.on_cpu THEN 'op calls' ELSE 'launches' END AS say_launches,
    CASE
        WHEN g.on_cpu THEN 'between the ops'
        ELSE 'in which the device stands still between the kernels'
    END AS say_idle,
    CASE
        WHEN p.rank IS NOT NULL AND g.idle_between_ns IS NOT NULL
            THEN 'Without Python frames in the capture that idle time is shorter.'
    END AS say_slowed,
    'bytes no longer moved: low 60 % of those that no other reader can need, at the'
    || ' chip''s bandwidth (on a CPU at the speed measured, less what as many compiled calls cost);'
    || ' high all but one read of an input and'
    || ' one write, as a share of the time of pointwise and memory-bound ops, all of the time of'
    || ' tiny ones but the longest of a run, and the idle time between the kernels' AS saving_basis,
    CASE WHEN g.modelled THEN 'modelled' ELSE 'measured' END AS figures,
    CASE
        WHEN g.calls IS NOT NULL OR g.begin_line IS NULL THEN 'low'
        WHEN p.rank IS NOT NULL AND g.idle_between_ns * 2 > g.high_ns THEN 'low'
        ELSE 'medium'
    END AS confidence,
    CASE
        WHEN g.phase = 'optimizer'
            THEN 'Build the optimizer with fused=True (or foreach=True), or compile its step.'
        ELSE
            CASE
                WHEN g.calls IS NOT NULL
                    THEN 'First move ' || array_to_string(g.calls, ', ') || ' out of these lines. '
                ELSE ''
            END
            || CASE
                WHEN g.begin_line IS NOT NULL AND NOT g.in_one_function
                    THEN
                        'Compile the module that calls all of these ops, which lie in several'
                        || ' functions'
                        || coalesce(
                            ' (the first in ' || regexp_replace(g.module, '_\d+$', '') || ')', ''
                        )
                ELSE
                    'Put @torch.compile on '
                    || coalesce(
                        g.source_function || '(), which holds this line', 'the code of these ops'
                    )
                    || ', or compile the module that calls it'
            END
            || CASE WHEN g.phase = 'backward' THEN ': its backward is then fused too.' ELSE '.' END
    END AS fix
FROM grouped AS g
INNER JOIN limits AS l ON g.rank = l.rank
LEFT JOIN slowed AS p ON g.rank = p.rank
WHERE g.device_time_ns >= l.least_ns
ORDER BY g.high_ns DESC, g.device_time_ns DESC, g.start_ns ASC
