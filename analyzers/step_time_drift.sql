-- +++
-- title = "Steps get slower and slower"
-- question = "Do the training steps take longer and longer?"
-- severity = "info"
-- needs = ["steps_to_compare", "measured"]
-- message = """
-- Over {steps:count step} a step grows by {growth_ns:ns}, {growth_share:share} of its \
-- {median_ns:ns} ({rising_share:share} of all pairs of steps rise).[[ {say_why}.]][[ Most of it \
-- ({line_growth_ns:ns} a step) is {line_name} at {say_line}.]]"""
-- advice = "{fix}"
-- key = ["rank"]
-- proof = """
-- SELECT *
-- FROM steps
-- WHERE rank = {rank}
-- ORDER BY start_ns"""
-- reference = "https://docs.pytorch.org/docs/stable/notes/faq.html"
--
-- [params.min_steps]
-- default = 8
-- doc = "Fewer steps after the first show no trend."
--
-- [params.min_growth]
-- default = 0.1
-- doc = "Less growth over the whole trace, as a share of the median step, is left out (0 to 1)."
--
-- [params.min_rising]
-- default = 0.8
-- doc = "Least share of all pairs of steps of which the later one is slower (0 to 1)."
--
-- [params.warning_growth]
-- default = 0.25
-- doc = "From this growth on it is a warning, else info."
--
-- [columns]
-- growth_ns = "Median slope of all pairs of steps, times the steps (ns)."
-- growth_share = "The same over the median step."
-- rising_share = "Pairs of steps of which the later one is slower."
-- median_ns = "Median duration of a step (ns)."
-- steps = "Steps compared: all but the first."
-- cause = "work, input, memory or unknown."
-- say_why = "What grows along, as text; NULL if nothing was seen."
-- line_growth_ns = "What the line takes in the last third more than in the first, a step (ns)."
-- line_name = "What runs longest there; NULL without lines."
-- say_line = "That line, as text; NULL without lines."
-- rank = "Distributed rank."
-- source_file = "File of the line that grows most; NULL without lines."
-- source_line = "That line."
-- severity = "warning or info, by growth_share."
-- saving_low_ns = "0: the data may grow (ns)."
-- saving_high_ns = "Time above the median of the first third of the steps (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "high where cause and line are known."
-- fix = "The change to make."
-- event_ids = "The steps."
-- start_ns = "When the first of them began."
-- +++
-- A step that grows steadily does more each time: a loss summed up with its graph, a list of
-- tensors that nobody empties, a sequence that gets longer, hooks or callbacks registered again and
-- again.
--
-- Slope and agreement are of all pairs of steps, so a single slow step moves neither.
--
-- It misleads where the data are sorted by length.
--
-- Next: `SELECT step, duration_ns, work_events, work_ns, input_wait_ns FROM steps`.
WITH numbered AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY rank ORDER BY start_ns ASC, step ASC) AS place,
        count(*) OVER (PARTITION BY rank) AS all_steps
    FROM steps
),

compared AS (
    SELECT
        *,
        all_steps - 1 AS steps,
        ntile(3) OVER (PARTITION BY rank ORDER BY place ASC) AS third
    FROM numbered
    WHERE place > 1 AND all_steps > $min_steps
),

-- of very long traces some steps are enough: pairs grow by the square
sampled AS (
    SELECT *
    FROM compared
    WHERE place % (1 + all_steps // 600) = 0
),

slopes AS (
    SELECT
        a.rank,
        median((b.duration_ns - a.duration_ns) / (b.place - a.place)) AS slope_ns,
        avg((b.duration_ns > a.duration_ns)::BIGINT) AS rising_share
    FROM sampled AS a
    INNER JOIN sampled AS b ON a.rank = b.rank AND a.place < b.place
    GROUP BY a.rank
),

firsts AS (
    SELECT
        rank,
        any_value(steps) AS steps,
        median(duration_ns) AS median_ns,
        median(duration_ns) FILTER (WHERE third = 1) AS first_ns,
        avg(work_events) FILTER (WHERE third = 1) AS first_work,
        avg(work_events) FILTER (WHERE third = 3) AS last_work,
        avg(input_wait_ns) FILTER (WHERE third = 1) AS first_wait_ns,
        avg(input_wait_ns) FILTER (WHERE third = 3) AS last_wait_ns,
        min(start_ns) AS start_ns,
        max(end_ns) AS end_ns
    FROM compared
    GROUP BY rank
),

above AS (
    SELECT
        c.rank,
        sum(greatest(0, c.duration_ns - f.first_ns))::BIGINT AS above_ns
    FROM compared AS c
    INNER JOIN firsts AS f ON c.rank = f.rank
    GROUP BY c.rank
),

memory AS (
    SELECT
        e.rank,
        sum(e.alloc_bytes)::BIGINT AS kept_bytes
    FROM events AS e
    INNER JOIN firsts AS f
        ON e.rank = f.rank AND e.start_ns >= f.start_ns AND e.start_ns < f.end_ns
    WHERE e.layer = 'memory'
    GROUP BY e.rank
),

line_growth AS (
    SELECT
        s.rank,
        s.source_file,
        s.source_line,
        arg_max(s.name, (s.host_ns, s.step)) AS name,
        sum(s.host_ns) FILTER (WHERE c.third = 3) / max(n.last_steps)
        - coalesce(sum(s.host_ns) FILTER (WHERE c.third = 1), 0) / max(n.first_steps)
            AS growth_ns
    FROM step_lines AS s
    INNER JOIN compared AS c ON s.rank = c.rank AND s.step = c.step
    INNER JOIN (
        SELECT
            rank,
            count(*) FILTER (WHERE third = 1) AS first_steps,
            count(*) FILTER (WHERE third = 3) AS last_steps
        FROM compared
        GROUP BY rank
    ) AS n ON s.rank = n.rank
    GROUP BY s.rank, s.source_file, s.source_line
),

lines_most AS (
    SELECT
        rank,
        arg_max(
            { 'file': source_file, 'line': source_line, 'name': name, 'ns': growth_ns },
            (growth_ns, source_file, source_line)
        ) AS top
    FROM line_growth
    WHERE growth_ns > 0
    GROUP BY rank
),

ids AS (
    SELECT
        rank,
        list_sort(flatten(list(event_ids))) AS event_ids
    FROM compared
    GROUP BY rank
),

judged AS (
    SELECT
        f.*,
        p.slope_ns,
        p.rising_share,
        p.slope_ns * (f.steps - 1) AS growth_ns,
        b.above_ns,
        m.kept_bytes,
        t.top,
        i.event_ids,
        CASE
            WHEN f.last_work >= 1.05 * f.first_work THEN 'work'
            WHEN f.last_wait_ns - f.first_wait_ns >= 0.3 * p.slope_ns * f.steps THEN 'input'
            WHEN m.kept_bytes > 1_000_000 THEN 'memory'
            ELSE 'unknown'
        END AS cause
    FROM firsts AS f
    INNER JOIN slopes AS p ON f.rank = p.rank
    INNER JOIN above AS b ON f.rank = b.rank
    INNER JOIN ids AS i ON f.rank = i.rank
    LEFT JOIN memory AS m ON f.rank = m.rank
    LEFT JOIN lines_most AS t ON f.rank = t.rank
)

SELECT
    steps,
    cause,
    rank,
    top.file AS source_file,
    top.line AS source_line,
    top.name AS line_name,
    round(top.ns)::BIGINT AS line_growth_ns,
    array_to_string(string_split(top.file, '/')[-2:], '/') || ':' || top.line AS say_line,
    event_ids,
    start_ns,
    round(growth_ns)::BIGINT AS growth_ns,
    round(growth_ns / median_ns, 4) AS growth_share,
    round(rising_share, 4) AS rising_share,
    round(median_ns)::BIGINT AS median_ns,
    0::BIGINT AS saving_low_ns,
    above_ns AS saving_high_ns,
    'high: every step as fast as in the first third; low: the data ask for it' AS saving_basis,
    CASE WHEN cause <> 'unknown' AND top.line IS NOT NULL THEN 'high' ELSE 'medium' END
        AS confidence,
    CASE WHEN growth_ns >= $warning_growth * median_ns THEN 'warning' ELSE 'info' END AS severity,
    CASE cause
        WHEN 'work'
            THEN
                'A step runs ' || round(first_work)::BIGINT || ' units of work at first and '
                || round(last_work)::BIGINT || ' at the end'
        WHEN 'input' THEN 'The loader takes longer and longer'
        WHEN 'memory'
            THEN printf('%.1f', kept_bytes / 1e6) || ' MB more are held at the end than at first'
    END AS say_why,
    CASE cause
        WHEN 'input'
            THEN
                'Look at what the data set keeps between samples (open files, lists that grow,'
                || ' sorting), and load with workers.'
        ELSE
            'Find what is kept from step to step: losses and metrics kept with their graph (use'
            || ' .item() now and then, or .detach()), lists of tensors, hooks registered in the'
            || ' loop, caches without a limit.'
    END AS fix
FROM judged
WHERE
    growth_ns >= $min_growth * median_ns
    -- and more than three standard deviations above what steps in any order would show (Kendall)
    AND rising_share >= greatest(
        $min_rising, 0.5 + 1.5 * sqrt(2 * (2 * steps + 5) / (9 * steps * (steps - 1)))
    )
ORDER BY above_ns DESC, rank ASC
