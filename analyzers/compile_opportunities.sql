-- +++
-- title = "Eager ops a compiler would fuse: {op_text}"
-- question = "Which runs of eager ops would become one kernel under torch.compile?"
-- severity = "warning"
-- needs = ["work", "shapes", "cost"]
-- message = """
-- {occurrences:count} runs of up to {longest_run:count} eager ops[[ at {line_range}]] ({op_text}) \
-- take {device_time_ns:ns}. They write and read back {bytes_saved:bytes} of intermediates, of \
-- {bytes:bytes} moved in all; fused, {launches_saved:count} of {launches:count} launches go as \
-- well[[, and with them {idle_between_ns:ns} in which the device stands still between the \
-- kernels]]. [[In their range {graph_breaks} would split the graph.]]"""
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
-- [columns]
-- bytes_saved = "Intermediates that one op writes and the next reads: both counted (bytes)."
-- launches_saved = "Ops less runs: launches that go when each run becomes one kernel."
-- severity = "warning or info, by the highest saving."
-- rank = "Distributed rank."
-- source_file = "File of the first op; NULL without stacks."
-- source_line = "First line of the run."
-- last_line = "Last line; NULL where the run spans several files or functions."
-- line_range = "Both as text; NULL without stacks."
-- source_function = "Function of the first op."
-- module = "Module of the first op of the first run."
-- anonymous_chain = "Ops and shapes, which stand for the lines where none are known."
-- op_text = "Ops of the run with the most device time, in order, shortened."
-- longest_run = "Most ops of one run."
-- occurrences = "How often such a run happened: once a layer, once a step."
-- steps = "Steps it happened in; NULL where the trace has no steps."
-- launches = "Launches of all runs."
-- device_time_ns = "Device time of all runs (ns)."
-- bytes = "Bytes they move (bytes)."
-- peak_bytes_per_s = "Bandwidth of the chip; NULL where the chip is unknown."
-- idle_between_ns = "Idle time of the device between kernels of one run (ns); NULL if none."
-- graph_breaks = "Calls in the host's range of the run that split a graph; NULL if none."
-- ended_by = "What ended the run with the most device time (column `breaks` of `chains`)."
-- saving_low_ns = "Reads of intermediates alone, at the chip's bandwidth; 0 if unknown (ns)."
-- saving_high_ns = "Time of the bytes that go (see saving_basis), plus idle_between_ns (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- figures = "modelled when judged against another chip than the one it ran on."
-- confidence = "medium where lines are known, else low: links are inferred from shapes."
-- fix = "The change to make."
-- chain_ids = "Rows of the view `chains` with the most device time; at most twenty."
-- event_ids = "The units of work."
-- start_ns = "When the first of them ran."
-- +++
-- Each eager op reads its inputs from memory and writes its result back, and costs a launch. When
-- the next op on the queue reads just that result, a compiler keeps it in registers.
--
-- A trace does not say which tensor an op reads. A link is inferred: the ops run one after the
-- other on one queue, and the second takes an input of the shape and dtype that the first made.
-- The same op twice in a row is no link (a loop over equal tensors looks like that), and neither is
-- an op outside `aten`, which a compiler cannot look into.
--
-- That a whole run becomes one kernel is an expectation: a reduction over another dimension or a
-- graph break splits it. The lower saving counts only reads, since a result that a residual or
-- the backward needs later is still written. Compiling costs time in the first step, and again
-- for new shapes.
--
-- Next: compile the function named, with fullgraph=True while trying. `hbm_bound_eager_ops` shows
-- the lines that no run explains.
WITH chain_ops AS (
    SELECT
        rank,
        device,
        queue,
        chain_id,
        phase,
        breaks,
        unnest(op_ids) AS op_id,
        unnest(op_names) AS op_name,
        unnest(families) AS op_family,
        generate_subscripts(op_ids, 1) AS place
    FROM chains
    WHERE bytes_saved > 0
),

ops_at_work AS (
    SELECT
        c.rank,
        c.chain_id,
        c.device,
        c.phase,
        c.breaks,
        c.op_id,
        c.op_name,
        c.op_family,
        c.place,
        count(*) AS launches,
        sum(w.duration_ns) AS device_time_ns,
        sum(w.read_bytes) AS read_bytes,
        sum(w.write_bytes) AS write_bytes,
        sum(w.bytes) AS bytes,
        min(w.start_ns) AS start_ns,
        list(w.event_id ORDER BY w.start_ns ASC, w.event_id ASC) AS event_ids,
        any_value(w.step) AS step,
        any_value(w.module) AS module,
        any_value(w.source_file) AS source_file,
        any_value(w.source_line) AS source_line,
        any_value(w.source_function) AS source_function,
        any_value(w.input_shapes) AS input_shapes
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
        *,
        count(*) FILTER (WHERE NOT continues) OVER chain AS run,
        CASE WHEN continues THEN least(received_bytes, read_bytes) ELSE 0 END AS reads_saved,
        CASE WHEN lead(continues) OVER chain THEN write_bytes ELSE 0 END AS writes_saved
    FROM linked
    WINDOW chain AS (PARTITION BY rank, chain_id ORDER BY place ASC)
),

timed AS (
    SELECT
        s.*,
        r.peak_bytes_per_s,
        r.modelled,
        o.start_ns AS host_start_ns,
        CASE WHEN s.continues THEN g.duration_ns END AS idle_before_ns,
        -- a launch that goes takes all its time along; an op that stays is faster only by its bytes
        CASE
            WHEN
                r.bound = 'memory'
                OR s.op_family IN (
                    'elementwise', 'activation', 'copy', 'cast', 'fill', 'random', 'pad', 'rope'
                )
                THEN s.device_time_ns * ((s.reads_saved + s.writes_saved) / s.bytes)
            ELSE
                coalesce((s.reads_saved + s.writes_saved) * 1e9 / r.peak_bytes_per_s, 0)
        END AS high_ns,
        s.reads_saved * least(
            s.device_time_ns / s.bytes, coalesce(1e9 / r.peak_bytes_per_s, 0)
        ) AS low_ns
    FROM saved AS s
    INNER JOIN roofline AS r ON s.rank = r.rank AND s.event_ids[1] = r.event_id
    LEFT JOIN ops AS o ON s.rank = o.rank AND s.op_id = o.event_id
    LEFT JOIN gaps AS g
        ON s.rank = g.rank AND s.device = g.device AND s.event_ids[1] = g.after_event_id
    WHERE s.reads_saved + s.writes_saved > 0
),

runs AS (
    SELECT
        rank,
        chain_id,
        run,
        arg_min(phase, place) AS phase,
        arg_max(breaks, place) AS ended_by,
        arg_min(source_file, place) AS source_file,
        arg_min(source_line, place) AS source_line,
        arg_min(source_function, place) AS source_function,
        arg_min(module, place) AS module,
        arg_min(input_shapes, place) AS input_shapes,
        min(source_file) = max(source_file) AND min(source_function) = max(source_function)
            AS in_one_function,
        min(source_line) AS first_line,
        max(source_line) AS last_line,
        min(step) AS step,
        list(op_name ORDER BY place ASC) AS op_names,
        flatten(list(event_ids ORDER BY place ASC)) AS event_ids,
        count(*) AS ops,
        sum(launches) AS launches,
        sum(device_time_ns) AS device_time_ns,
        sum(bytes) AS bytes,
        sum(reads_saved + writes_saved) AS bytes_saved,
        sum(idle_before_ns) AS idle_between_ns,
        sum(low_ns) AS low_ns,
        sum(high_ns) AS high_ns,
        max(peak_bytes_per_s) AS peak_bytes_per_s,
        bool_or(modelled) AS modelled,
        min(start_ns) AS start_ns,
        min(host_start_ns) AS host_start_ns,
        max(host_start_ns) AS host_end_ns
    FROM timed
    GROUP BY rank, chain_id, run
),

split AS (
    SELECT
        r.rank,
        r.chain_id,
        r.run,
        list(DISTINCT coalesce(s.op_name, s.name)) AS calls
    FROM runs AS r
    INNER JOIN syncs AS s
        ON r.rank = s.rank AND r.host_start_ns < s.start_ns AND r.host_end_ns > s.start_ns
    GROUP BY r.rank, r.chain_id, r.run
),

placed AS (
    SELECT
        r.*,
        s.calls,
        CASE WHEN r.in_one_function THEN r.first_line ELSE r.source_line END AS begin_line,
        CASE WHEN r.in_one_function THEN r.last_line END AS end_line,
        CASE
            WHEN r.source_line IS NULL
                THEN concat_ws(' ', array_to_string(r.op_names, ' '), r.input_shapes)
        END AS anonymous_chain
    FROM runs AS r
    LEFT JOIN split AS s ON r.rank = s.rank AND r.chain_id = s.chain_id AND r.run = s.run
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
        arg_max(ended_by, (device_time_ns, -start_ns)) AS ended_by,
        count(*) AS occurrences,
        nullif(count(DISTINCT step), 0) AS steps,
        sum(ops)::BIGINT - count(*) AS launches_saved,
        max(ops) AS longest_run,
        sum(launches)::BIGINT AS launches,
        sum(device_time_ns)::BIGINT AS device_time_ns,
        sum(bytes)::BIGINT AS bytes,
        sum(bytes_saved)::BIGINT AS bytes_saved,
        max(peak_bytes_per_s)::BIGINT AS peak_bytes_per_s,
        sum(idle_between_ns)::BIGINT AS idle_between_ns,
        list_sort(list_distinct(flatten(list(calls) FILTER (WHERE calls IS NOT NULL)))) AS calls,
        sum(low_ns)::BIGINT AS low_ns,
        sum(high_ns + coalesce(idle_between_ns, 0))::BIGINT AS high_ns,
        bool_or(modelled) AS modelled,
        list(chain_id ORDER BY device_time_ns DESC, chain_id ASC)[1:20] AS chain_ids,
        flatten(list(event_ids ORDER BY start_ns ASC)) AS event_ids,
        min(start_ns) AS start_ns
    FROM placed
    GROUP BY rank, source_file, begin_line, end_line, anonymous_chain
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
    g.chain_ids,
    g.event_ids,
    g.start_ns,
    g.longest_run,
    CASE WHEN g.high_ns >= l.warning_ns THEN 'warning' ELSE 'info' END AS severity,
    CASE
        WHEN g.begin_line < g.end_line THEN 'lines ' || g.begin_line || '-' || g.end_line
        WHEN g.begin_line IS NOT NULL THEN 'line ' || g.begin_line
    END AS line_range,
    replace(array_to_string(g.op_names[1:4], ', '), 'aten::', '')
    || CASE WHEN len(g.op_names) > 4 THEN ', ...' ELSE '' END AS op_text,
    array_to_string(g.calls, ', ') AS graph_breaks,
    'intermediates no longer moved: low their reads at the chip''s bandwidth; high their share of'
    || ' the time of pointwise and memory-bound ops, and the idle time between the kernels'
        AS saving_basis,
    CASE WHEN g.modelled THEN 'modelled' ELSE 'measured' END AS figures,
    CASE
        WHEN g.calls IS NOT NULL OR g.begin_line IS NULL THEN 'low' ELSE 'medium'
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
            || 'Put @torch.compile on '
            || coalesce(g.source_function || '(), which holds this line', 'the code of these ops')
            || ', or compile the module that calls it'
            || CASE WHEN g.phase = 'backward' THEN ': its backward is then fused too.' ELSE '.' END
    END AS fix
FROM grouped AS g
INNER JOIN limits AS l ON g.rank = l.rank
WHERE g.device_time_ns >= l.least_ns
ORDER BY g.high_ns DESC, g.device_time_ns DESC, g.start_ns ASC
