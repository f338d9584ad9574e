-- +++
-- title = "Python alone runs for {gap_share:share} of the time: {place}"
-- question = "Which functions keep Python busy between ops while the device has nothing to do?"
-- severity = "info"
-- needs = ["framework", "measured"]
-- acts_on = "gaps"
-- message = """
-- {gaps:count time}[[ in {steps:count step}]], {gap_ns:ns} in all, nothing but Python ran \
-- before an op of {place}: no op, no runtime call, no work on a device. The longest stretch took \
-- {longest_ns:ns}, before {op_name}[[ at line {longest_line}]].[[ {caveat}]]"""
-- advice = """
-- Look at what this function does between its ops: lists, dicts and strings built each step, \
-- logging, metrics, tokenising, copies through numpy. Do it once, every N steps or in a worker, \
-- or as tensor ops; py-spy shows the lines."""
-- key = ["rank", "source_file", "source_line", "place"]
-- proof = """
-- SELECT *
-- FROM ops
-- WHERE rank = {rank} AND list_contains({event_ids}, event_id)
-- ORDER BY start_ns"""
-- reference = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
--
-- [params.min_gap_ns]
-- default = 100_000
-- doc = "Shorter stretches are what any op call costs in Python (ns)."
--
-- [params.min_gap_ops]
-- default = 60
-- doc = "The same in times of the op_ns of `recorder_costs`, which grows where the host is slow."
--
-- [params.min_first_gap_ns]
-- default = 1_000_000
-- doc = "The same for the first of a step: the recorder opens it, in 0.1 to 1 ms measured (ns)."
--
-- [params.min_gaps]
-- default = 3
-- doc = "What happens less often is set-up, not part of a loop."
--
-- [params.min_share]
-- default = 0.05
-- doc = """Functions that take less of the recorded time, set-up not counted, are left out: a
-- recording adds as much (0 to 1)."""
--
-- [params.warning_share]
-- default = 0.1
-- doc = "A function that takes this share of most steps is a warning, else info."
--
-- [params.most_of_usual]
-- default = 3
-- doc = "What a step has beyond so many times the usual step's is set-up, and no step's saving."
--
-- [params.recorded_line_ns]
-- default = 1_000
-- doc = "What recording one line costs Python: 0.6 to 0.75 us measured on Python 3.11 (ns)."
--
-- [columns]
-- gap_ns = "Time in these stretches (ns)."
-- gap_share = "The same over the recorded time."
-- gaps = "Stretches."
-- longest_ns = "The longest (ns)."
-- longest_line = "Line of the op that ended it; NULL without stacks."
-- op_name = "That op."
-- place = "Function; without lines the module, or else the op."
-- rank = "Distributed rank."
-- source_file = "File of the function; NULL without stacks."
-- source_line = "Line before whose ops Python took longest."
-- module = "Module of the longest."
-- steps = "Steps they are in; NULL where the trace has no steps."
-- severity = "warning or info, by share of most steps without what the recording may have cost."
-- saving_low_ns = "0: what Python computes may be needed (ns)."
-- saving_high_ns = "gap_ns without set-up (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "low where Python frames or lines were recorded, which slows Python itself."
-- caveat = "The same, in a sentence."
-- event_ids = "Ops that ended the stretches."
-- start_ns = "When the first of these ops ran."
-- +++
-- Every nanosecond in which no op, autograd node, runtime call, input wait, collector pause or
-- compilation ran on any thread, and no unit of work on any device, is Python's (or that of code it
-- calls outside torch, such as numpy). Stretches between two steps are the profiler's and do not
-- count; short ones at the begin of a step are, too.
-- It misleads where the profiler slows Python: recorded frames and lines make each stretch longer.
--
-- Next: `device_idle` for all that keeps a device waiting; `input_wait` for loaders.
WITH covered AS (
    SELECT
        rank,
        event_id,
        step,
        start_ns,
        end_ns,
        layer = 'framework' AND kind = 'op' AS is_op
    FROM events
    WHERE
        start_ns IS NOT NULL AND end_ns IS NOT NULL
        AND (
            layer IN ('runtime', 'hardware', 'compiler')
            OR (layer = 'framework' AND kind IN ('op', 'autograd'))
            OR (layer = 'host' AND kind IN ('gc', 'input_wait', 'collective', 'sync'))
        )
),

reached AS (
    SELECT
        *,
        max(end_ns) OVER (
            PARTITION BY rank ORDER BY start_ns ASC, end_ns DESC, event_id ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
    FROM covered
),

-- the first stretch of a step begins with the step: what lies before is the profiler's
begun AS (
    SELECT
        r.rank,
        r.event_id,
        r.start_ns,
        coalesce(r.reached_ns IS NULL OR s.start_ns >= r.reached_ns, FALSE) AS is_first,
        if(is_first, s.start_ns, r.reached_ns) AS from_ns,
        coalesce(h.op_ns, 0) AS op_ns
    FROM reached AS r
    LEFT JOIN steps AS s ON r.rank = s.rank AND r.step = s.step
    LEFT JOIN recorder_costs AS h ON r.rank = h.rank
    WHERE r.is_op
),

waited AS (
    SELECT
        *,
        start_ns - from_ns AS gap_ns
    FROM begun
    WHERE
        start_ns - from_ns >= $min_gap_ops * op_ns
        AND start_ns - from_ns >= if(is_first, $min_first_gap_ns, $min_gap_ns)
),

stretches AS (
    SELECT
        e.rank,
        e.event_id,
        e.name,
        e.step,
        e.module,
        e.source_file,
        e.source_line,
        e.start_ns,
        w.gap_ns,
        coalesce(e.source_function, e.module, e.name) AS place
    FROM waited AS w
    INNER JOIN events AS e
        ON w.rank = e.rank AND w.event_id = e.event_id AND e.layer = 'framework'
),

by_line AS (
    SELECT
        rank,
        source_file,
        source_line,
        place,
        sum(gap_ns) AS line_ns
    FROM stretches
    GROUP BY ALL
),

top_lines AS (
    SELECT
        rank,
        source_file,
        place,
        arg_max(source_line, (line_ns, source_line)) AS source_line
    FROM by_line
    GROUP BY ALL
),

places AS (
    SELECT
        rank,
        source_file,
        place,
        count(*) AS gaps,
        nullif(count(DISTINCT step), 0) AS steps,
        sum(gap_ns)::BIGINT AS gap_ns,
        max(gap_ns) AS longest_ns,
        arg_max(source_line, gap_ns) AS longest_line,
        arg_max(name, gap_ns) AS op_name,
        arg_max(module, gap_ns) AS module,
        list(event_id ORDER BY event_id ASC) AS event_ids,
        min(start_ns) AS start_ns
    FROM stretches
    GROUP BY ALL
    HAVING count(*) >= $min_gaps
),

-- one stretch that another process or a page fault made long is no habit of the program
by_step AS (
    SELECT
        rank,
        source_file,
        place,
        step,
        sum(gap_ns) AS step_ns
    FROM stretches
    GROUP BY ALL
),

-- a process group, a model or a cache that one step builds is paid once
recurring AS (
    SELECT
        rank,
        source_file,
        place,
        sum(if(step IS NULL, step_ns, least(step_ns, $most_of_usual * median_ns)))::BIGINT
            AS recurring_ns
    FROM (
        SELECT
            *,
            quantile_disc(step_ns, 0.5) FILTER (WHERE step IS NOT NULL) OVER (
                PARTITION BY rank, source_file, place
            ) AS median_ns
        FROM by_step
    ) AS by_usual
    GROUP BY ALL
),

usual AS (
    SELECT
        s.rank,
        s.source_file,
        s.place,
        CASE
            WHEN any_value(r.steps) IS NULL THEN sum(s.step_ns)
            -- the lower median; steps without such a stretch come last
            ELSE
                any_value(r.steps) * coalesce(
                    list_extract(
                        list_reverse_sort(list(s.step_ns) FILTER (WHERE s.step IS NOT NULL)),
                        any_value(r.steps) // 2 + 1
                    ),
                    0
                )
        END AS usual_ns
    FROM by_step AS s
    INNER JOIN rank_spans AS r ON s.rank = r.rank
    GROUP BY s.rank, s.source_file, s.place
),

slowed AS (
    SELECT
        rank,
        bool_or(how = 'frames') AS by_frames,
        sum(recorder_ns) AS recorder_ns,
        $warning_share * sum(recorder_ns) AS recorder_warning_ns
    FROM (
        SELECT DISTINCT
            rank,
            'frames' AS how,
            NULL::DOUBLE AS recorder_ns
        FROM events
        WHERE layer = 'python'
        UNION ALL
        SELECT
            rank,
            'lines' AS how,
            try_cast(value ->> '$.lines.marks' AS BIGINT) * $recorded_line_ns AS recorder_ns
        FROM trace_metadata
        WHERE key = 'capture' AND try_cast(value ->> '$.lines.marks' AS BIGINT) > 0
    ) AS recorded
    GROUP BY rank
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
    p.gap_ns,
    p.gaps,
    p.longest_ns,
    p.longest_line,
    p.op_name,
    p.place,
    p.rank,
    p.source_file,
    t.source_line,
    p.module,
    p.steps,
    CASE
        WHEN s.by_frames THEN 'Python frames were recorded, which makes these stretches longer.'
        WHEN s.recorder_ns > r.least_ns
            THEN
                'Lines were recorded, which made these stretches longer by up to '
                || printf('%.1f', least(s.recorder_ns, p.gap_ns) / 1e6) || ' ms.'
    END AS caveat,
    p.event_ids,
    p.start_ns,
    0::BIGINT AS saving_low_ns,
    c.recurring_ns AS saving_high_ns,
    'high: all of these stretches but set-up; low: nothing, for what Python computes may be needed'
        AS saving_basis,
    round(p.gap_ns / r.span_ns, 4) AS gap_share,
    CASE
        WHEN
            least(u.usual_ns, p.gap_ns) - coalesce(s.recorder_ns, 0)
            >= r.warning_ns - coalesce(s.recorder_warning_ns, 0)
            AND NOT coalesce(s.by_frames, FALSE)
            THEN 'warning'
        ELSE 'info'
    END AS severity,
    CASE WHEN s.rank IS NULL THEN 'medium' ELSE 'low' END AS confidence
FROM places AS p
INNER JOIN top_lines AS t
    ON
        p.rank = t.rank AND p.place = t.place
        AND p.source_file IS NOT DISTINCT FROM t.source_file
INNER JOIN usual AS u
    ON
        p.rank = u.rank AND p.place = u.place
        AND p.source_file IS NOT DISTINCT FROM u.source_file
INNER JOIN recurring AS c
    ON
        p.rank = c.rank AND p.place = c.place
        AND p.source_file IS NOT DISTINCT FROM c.source_file
INNER JOIN recorded_spans AS r ON p.rank = r.rank
LEFT JOIN slowed AS s ON p.rank = s.rank
WHERE c.recurring_ns >= r.least_ns
ORDER BY p.gap_ns DESC, p.start_ns ASC
