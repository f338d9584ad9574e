-- +++
-- title = "Python alone runs for {gap_share:share} of the time: {place}"
-- question = "Which functions keep Python busy between ops while the device has nothing to do?"
-- severity = "info"
-- needs = ["framework", "measured"]
-- message = """
-- {gaps:count} times[[ in {steps:count} steps]], {gap_ns:ns} in all, nothing but Python ran \
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
-- [params.min_gaps]
-- default = 3
-- doc = "What happens less often is set-up, not part of a loop."
--
-- [params.min_share]
-- default = 0.02
-- doc = "Functions with less of the recorded time are left out (0 to 1)."
--
-- [params.warning_share]
-- default = 0.1
-- doc = "From this share on a function is a warning, else info."
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
-- severity = "warning or info, by share."
-- saving_low_ns = "0: what Python computes may be needed (ns)."
-- saving_high_ns = "gap_ns (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "low where Python frames were recorded, which slows Python itself."
-- caveat = "The same, in a sentence."
-- event_ids = "Ops that ended the stretches."
-- start_ns = "When the first of these ops ran."
-- +++
-- Every nanosecond in which no op, autograd node, runtime call, input wait, collector pause or
-- compilation ran on any thread, and no unit of work on any device, is Python's (or that of code it
-- calls outside torch, such as numpy). Stretches between two steps are the profiler's and do not
-- count.
-- It misleads where the profiler slows Python: recorded frames and lines make each stretch longer.
--
-- Next: `device_idle` for all that keeps a device waiting; `input_wait` for loaders.
WITH covered AS (
    SELECT
        e.rank,
        e.event_id,
        e.layer,
        e.kind,
        e.name,
        e.step,
        e.module,
        e.source_file,
        e.source_line,
        e.source_function,
        e.start_ns,
        e.end_ns
    FROM events AS e
    WHERE
        e.start_ns IS NOT NULL AND e.end_ns IS NOT NULL
        AND (
            e.layer IN ('runtime', 'hardware', 'compiler')
            OR (e.layer = 'framework' AND e.kind IN ('op', 'autograd'))
            OR (e.layer = 'host' AND e.kind IN ('gc', 'input_wait', 'collective', 'sync'))
        )
),

placed AS (
    SELECT
        *,
        start_ns - max(end_ns) OVER before AS gap_ns,
        arg_max(step, end_ns) OVER before AS step_before
    FROM covered
    WINDOW before AS (
        PARTITION BY rank ORDER BY start_ns ASC, end_ns DESC, event_id ASC
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),

stretches AS (
    SELECT
        *,
        coalesce(source_function, module, name) AS place
    FROM placed
    WHERE
        layer = 'framework' AND kind = 'op' AND gap_ns >= $min_gap_ns
        AND step IS NOT DISTINCT FROM step_before
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

slowed AS (
    SELECT
        rank,
        'Python frames were recorded, which makes these stretches longer.' AS caveat
    FROM events
    WHERE layer = 'python'
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
    s.caveat,
    p.event_ids,
    p.start_ns,
    0::BIGINT AS saving_low_ns,
    p.gap_ns AS saving_high_ns,
    'high: all of these stretches; low: nothing, for what Python computes may be needed'
        AS saving_basis,
    round(p.gap_ns / r.span_ns, 4) AS gap_share,
    CASE WHEN p.gap_ns >= r.warning_ns AND s.rank IS NULL THEN 'warning' ELSE 'info' END
        AS severity,
    CASE WHEN s.rank IS NULL THEN 'medium' ELSE 'low' END AS confidence
FROM places AS p
INNER JOIN top_lines AS t
    ON
        p.rank = t.rank AND p.place = t.place
        AND p.source_file IS NOT DISTINCT FROM t.source_file
INNER JOIN recorded_spans AS r ON p.rank = r.rank
LEFT JOIN slowed AS s ON p.rank = s.rank
WHERE p.gap_ns >= r.least_ns
ORDER BY p.gap_ns DESC, p.start_ns ASC
