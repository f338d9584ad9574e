-- +++
-- title = "The first steps are counted in: {say_steps}"
-- question = "Does the recorded window contain the program's warm-up?"
-- severity = "info"
-- needs = ["steps_to_compare", "measured"]
-- message = """
-- The first {slow_steps:count} of {steps:count step} take {first_ns:ns} on average, the others \
-- {median_ns:ns} (median): {extra_ns:ns} of warm-up are {share:share} of the window, and of every \
-- figure drawn from it.[[ {compile_ns:ns} of that is compilation.]][[ {allocation_ns:ns} is \
-- taking memory.]][[ Most of it is {line_name} at {say_line}.]]"""
-- advice = """
-- Record later: neuron-explorer run --wait 2, or \
-- profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=5)) with profiler.step(); or \
-- do a step or two before the block."""
-- key = ["rank"]
-- proof = """
-- SELECT *
-- FROM steps
-- WHERE rank = {rank}
-- ORDER BY start_ns"""
-- reference = "https://docs.pytorch.org/docs/stable/profiler.html"
--
-- [params.min_ratio]
-- default = 2
-- doc = "A step at the beginning is warm-up from this many medians of the later half on."
--
-- [params.min_share]
-- default = 0.1
-- doc = "Warm-up of less of the time of all steps is left out (0 to 1)."
--
-- [params.warning_share]
-- default = 0.5
-- doc = "From this share on it is a warning, else info."
--
-- [columns]
-- slow_steps = "Steps at the beginning that are slow, half of all at most."
-- steps = "Steps of the trace."
-- first_ns = "Their mean duration (ns)."
-- median_ns = "Median duration of the later half of the steps (ns)."
-- extra_ns = "Time of the slow ones above that (ns)."
-- share = "extra_ns over the time of all steps."
-- compile_ns = "Compilation in them beyond that of a later step; NULL where none was (ns)."
-- allocation_ns = "Calls that take memory of the device in them; NULL where none was (ns)."
-- say_steps = "Their numbers, as text."
-- line_name = "What runs longest at the line; NULL without lines."
-- say_line = "The line, as text; NULL without lines."
-- rank = "Distributed rank."
-- source_file = "File of the line with most of the difference; NULL without lines."
-- source_line = "That line."
-- severity = "warning or info, by share."
-- saving_low_ns = "NULL: it is paid once, not in each step."
-- saving_high_ns = "NULL: it is paid once, not in each step."
-- saving_basis = "Why no saving is stated."
-- confidence = "high: measured."
-- event_ids = "The slow steps."
-- start_ns = "When the first of them began."
-- +++
-- The first step loads kernels, tunes algorithms, compiles, and takes memory. That is paid once in
-- a run of hours, but it is a large part of a window of a few steps, so shares and means mislead.
--
-- A window that begins later than step 0 has that behind it: what is slow there is `outlier_steps`.
--
-- Next: `SELECT step, duration_ns, compile_ns FROM steps`.
WITH limits AS (
    SELECT $min_ratio AS min_ratio
),

numbered AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY rank ORDER BY start_ns ASC, step ASC) AS place,
        count(*) OVER (PARTITION BY rank) AS steps,
        min(step) OVER (PARTITION BY rank) AS first_step
    FROM steps
),

later AS (
    SELECT
        rank,
        median(duration_ns) AS median_ns,
        max(duration_ns) AS longest_ns,
        median(compile_ns) AS compile_ns
    FROM numbered
    WHERE place > steps // 2
    GROUP BY rank
),

begun AS (
    SELECT
        n.*,
        l.median_ns,
        l.compile_ns AS later_compile_ns,
        bool_and(
            n.duration_ns >= limits.min_ratio * l.median_ns AND n.duration_ns > l.longest_ns
        ) OVER (
            PARTITION BY n.rank ORDER BY n.place ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS slow
    FROM numbered AS n
    INNER JOIN later AS l ON n.rank = l.rank
    CROSS JOIN limits
    WHERE n.steps >= 4 AND n.first_step = 0
),

totals AS (
    SELECT
        rank,
        any_value(steps) AS steps,
        any_value(median_ns) AS median_ns,
        sum(duration_ns) AS all_ns,
        count(*) FILTER (WHERE slow) AS slow_steps,
        avg(duration_ns) FILTER (WHERE slow) AS first_ns,
        sum(duration_ns - median_ns) FILTER (WHERE slow) AS extra_ns,
        sum(greatest(0, compile_ns - later_compile_ns)) FILTER (WHERE slow) AS compile_ns,
        list(step ORDER BY place ASC) FILTER (WHERE slow) AS step_numbers,
        min(start_ns) AS start_ns,
        max(end_ns) FILTER (WHERE slow) AS end_ns
    FROM begun
    GROUP BY rank
),

taking AS (
    SELECT
        e.rank,
        sum(e.duration_ns)::BIGINT AS allocation_ns
    FROM events AS e
    INNER JOIN totals AS t
        ON e.rank = t.rank AND e.start_ns >= t.start_ns AND e.start_ns < t.end_ns
    WHERE e.layer = 'runtime' AND e.kind = 'allocation' AND e.duration_ns IS NOT NULL
    GROUP BY e.rank
),

lines_more AS (
    SELECT
        s.rank,
        s.source_file,
        s.source_line,
        arg_max(s.name, (s.host_ns, s.step)) AS name,
        sum(s.host_ns) FILTER (WHERE b.slow)
        - coalesce(sum(s.host_ns) FILTER (WHERE NOT b.slow), 0)
        * any_value(t.slow_steps) / any_value(t.steps - t.slow_steps) AS more_ns
    FROM step_lines AS s
    INNER JOIN begun AS b ON s.rank = b.rank AND s.step = b.step
    INNER JOIN totals AS t ON s.rank = t.rank AND t.slow_steps > 0
    GROUP BY s.rank, s.source_file, s.source_line
),

lines_most AS (
    SELECT
        rank,
        arg_max(
            { 'file': source_file, 'line': source_line, 'name': name, 'ns': more_ns },
            (more_ns, source_file, source_line)
        ) AS top
    FROM lines_more
    WHERE more_ns > 0
    GROUP BY rank
),

ids AS (
    SELECT
        rank,
        list_sort(flatten(list(event_ids))) AS event_ids
    FROM begun
    WHERE slow
    GROUP BY rank
),

judged AS (
    SELECT
        t.*,
        g.allocation_ns,
        i.event_ids,
        -- a line that explains little of it is not the place
        if(m.top.ns >= 0.2 * t.extra_ns, m.top, NULL) AS top
    FROM totals AS t
    INNER JOIN ids AS i ON t.rank = i.rank
    LEFT JOIN taking AS g ON t.rank = g.rank
    LEFT JOIN lines_most AS m ON t.rank = m.rank
)

SELECT
    slow_steps,
    steps,
    allocation_ns,
    rank,
    top.file AS source_file,
    top.line AS source_line,
    top.name AS line_name,
    array_to_string(string_split(top.file, '/')[-2:], '/') || ':' || top.line AS say_line,
    event_ids,
    start_ns,
    round(first_ns)::BIGINT AS first_ns,
    round(median_ns)::BIGINT AS median_ns,
    round(extra_ns)::BIGINT AS extra_ns,
    round(extra_ns / all_ns, 4) AS share,
    nullif(round(compile_ns), 0)::BIGINT AS compile_ns,
    'step ' || array_to_string(step_numbers[1:5], ', ') AS say_steps,
    NULL::BIGINT AS saving_low_ns,
    NULL::BIGINT AS saving_high_ns,
    'none: it is paid once, not in each step' AS saving_basis,
    'high' AS confidence,
    CASE WHEN extra_ns >= $warning_share * all_ns THEN 'warning' ELSE 'info' END AS severity
FROM judged
WHERE slow_steps <= steps // 2 AND extra_ns >= $min_share * all_ns
ORDER BY extra_ns DESC, rank ASC
