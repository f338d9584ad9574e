-- +++
-- title = "Some steps take much longer: {cause_text}"
-- question = "Which steps are far slower than the others, and what was different in them?"
-- severity = "info"
-- needs = ["steps_to_compare", "measured"]
-- message = """
-- {slow_steps:count} of {steps:count step} ({say_steps}) take {mean_ns:ns} on average, where \
-- {median_ns:ns} is the median: {extra_ns:ns} more, {share:share} of all steps.[[ {cause_ns:ns} \
-- of that is {cause_text}.]][[ Most of the difference is {line_name} at {say_line}.]]"""
-- advice = "{fix}"
-- key = ["rank", "cause"]
-- proof = """
-- SELECT *
-- FROM steps
-- WHERE rank = {rank} AND list_contains({step_numbers}, step)
-- ORDER BY start_ns"""
-- reference = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
--
-- [params.min_ratio]
-- default = 1.5
-- doc = "A step of this many medians is an outlier."
--
-- [params.min_deviations]
-- default = 5
-- doc = "And it is this many median absolute deviations above the median."
--
-- [params.min_share]
-- default = 0.02
-- doc = "Outliers that cost less of the time of all steps are left out (0 to 1)."
--
-- [params.min_share_unknown]
-- default = 0.1
-- doc = "The same where the cause is not seen: a busy machine does that too (0 to 1)."
--
-- [params.warning_share]
-- default = 0.05
-- doc = "From this share on, with a known cause, it is a warning, else info."
--
-- [params.min_cause_share]
-- default = 0.4
-- doc = "Least share of the extra time that the cause must explain (0 to 1)."
--
-- [columns]
-- slow_steps = "Outliers of this cause; those that begin the program do not count."
-- steps = "Steps compared."
-- mean_ns = "Mean duration of the outliers (ns)."
-- median_ns = "Median duration of all steps (ns)."
-- extra_ns = "Their time above the median (ns)."
-- share = "extra_ns over the time of all steps."
-- cause = "gc, compile, input, communication, allocation, device, ops, sync or unknown."
-- cause_text = "The cause in words."
-- cause_ns = "How much more of it the outliers have than a usual step; NULL for unknown (ns)."
-- step_numbers = "Numbers of the outliers."
-- say_steps = "The first of them, as text."
-- line_name = "What runs longest at the line; NULL without lines."
-- say_line = "The line, as text; NULL without lines."
-- rank = "Distributed rank."
-- source_file = "File of the line with most of the difference; NULL without lines."
-- source_line = "That line."
-- severity = "warning or info, by share and cause."
-- saving_low_ns = "0: what happens there may be needed (ns)."
-- saving_high_ns = "extra_ns (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "high where cause and line are known; low where the cause is not."
-- fix = "The change to make."
-- event_ids = "The steps."
-- start_ns = "When the first of them began."
-- +++
-- Most steps of a training run are alike. One that is not pays for something of its own: Python's
-- collector, a compilation for a new shape, the first batch of an epoch, a checkpoint, a validation
-- round inside the step, memory that has to be given back.
--
-- Each cause is what the step has more of than the median step. What begins with step 0 is
-- `warm_up_counted`. Other programs on the machine make outliers too, and those have no cause here.
--
-- Next: `SELECT step, duration_ns, compile_ns, input_wait_ns, work_ns FROM steps`.
WITH limits AS (
    SELECT
        $min_ratio AS min_ratio,
        $min_deviations AS min_deviations
),

medians AS (
    SELECT
        rank,
        count(*) AS all_steps,
        median(duration_ns) AS median_ns,
        mad(duration_ns) AS deviation_ns
    FROM steps
    GROUP BY rank
),

marked AS (
    SELECT
        s.*,
        m.median_ns,
        m.all_steps,
        s.duration_ns >= limits.min_ratio * m.median_ns
        AND s.duration_ns >= m.median_ns + limits.min_deviations * m.deviation_ns AS slow
    FROM steps AS s
    INNER JOIN medians AS m ON s.rank = m.rank
    CROSS JOIN limits
    WHERE m.all_steps >= 4
),

-- slow steps from the program's first on are warm-up
led AS (
    SELECT
        *,
        min(step) OVER (PARTITION BY rank) = 0
        AND bool_and(slow) OVER (
            PARTITION BY rank ORDER BY start_ns ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS begins
    FROM marked
),

extents AS (
    SELECT
        rank,
        step,
        start_ns,
        end_ns,
        duration_ns,
        median_ns,
        compile_ns,
        coalesce(input_wait_ns, 0) AS input_ns,
        work_ns,
        work_events,
        slow
    FROM led
    WHERE NOT begins
),

accelerated AS (
    SELECT DISTINCT rank
    FROM devices
    WHERE device <> 'cpu'
),

paused AS (
    SELECT
        x.rank,
        x.step,
        coalesce(sum(e.duration_ns) FILTER (WHERE e.kind = 'gc'), 0) AS gc_ns,
        coalesce(sum(e.duration_ns) FILTER (WHERE e.kind = 'allocation'), 0) AS allocation_ns
    FROM extents AS x
    INNER JOIN events AS e
        ON x.rank = e.rank AND x.start_ns <= e.start_ns AND x.end_ns > e.start_ns
    WHERE
        e.duration_ns IS NOT NULL
        AND (
            (e.layer = 'host' AND e.kind = 'gc') OR (e.layer = 'runtime' AND e.kind = 'allocation')
        )
    GROUP BY x.rank, x.step
),

-- threads communicate at once: the part that no earlier collective covers counts
talks AS (
    SELECT
        rank,
        start_ns + duration_ns AS end_ns,
        greatest(
            start_ns,
            coalesce(
                max(start_ns + duration_ns) OVER (
                    PARTITION BY rank ORDER BY start_ns ASC, duration_ns DESC, event_id ASC
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                ), start_ns
            )
        ) AS start_ns
    FROM collectives
    WHERE duration_ns IS NOT NULL
),

talked AS (
    SELECT
        x.rank,
        x.step,
        sum(least(x.end_ns, t.end_ns) - greatest(x.start_ns, t.start_ns)) AS talk_ns
    FROM extents AS x
    INNER JOIN talks AS t
        ON x.rank = t.rank AND x.start_ns < t.end_ns AND x.end_ns > t.start_ns
    WHERE t.end_ns > t.start_ns
    GROUP BY x.rank, x.step
),

waited AS (
    SELECT
        x.rank,
        x.step,
        sum(w.wait_ns) AS sync_ns
    FROM extents AS x
    INNER JOIN syncs AS w
        ON x.rank = w.rank AND x.start_ns <= w.start_ns AND x.end_ns > w.start_ns
    GROUP BY x.rank, x.step
),

measured AS (
    SELECT
        x.*,
        a.rank IS NOT NULL AS on_device,
        coalesce(p.gc_ns, 0) AS gc_ns,
        coalesce(p.allocation_ns, 0) AS allocation_ns,
        coalesce(k.talk_ns, 0) AS talk_ns,
        coalesce(w.sync_ns, 0) AS sync_ns
    FROM extents AS x
    LEFT JOIN paused AS p ON x.rank = p.rank AND x.step = p.step
    LEFT JOIN talked AS k ON x.rank = k.rank AND x.step = k.step
    LEFT JOIN waited AS w ON x.rank = w.rank AND x.step = w.step
    LEFT JOIN accelerated AS a ON x.rank = a.rank
),

usual AS (
    SELECT
        rank,
        count(*) AS steps,
        sum(duration_ns) AS all_ns,
        median(gc_ns) FILTER (WHERE NOT slow) AS gc_ns,
        median(compile_ns) FILTER (WHERE NOT slow) AS compile_ns,
        median(input_ns) FILTER (WHERE NOT slow) AS input_ns,
        median(talk_ns) FILTER (WHERE NOT slow) AS talk_ns,
        median(allocation_ns) FILTER (WHERE NOT slow) AS allocation_ns,
        median(work_ns) FILTER (WHERE NOT slow) AS work_ns,
        median(work_events) FILTER (WHERE NOT slow) AS work_events,
        median(sync_ns) FILTER (WHERE NOT slow) AS sync_ns
    FROM measured
    GROUP BY rank
),

excess AS (
    SELECT
        m.rank,
        m.step,
        m.start_ns,
        m.duration_ns,
        m.median_ns,
        u.steps,
        u.all_ns,
        m.duration_ns - m.median_ns AS extra_ns,
        [
            { 'cause': 'gc', 'ns': m.gc_ns - u.gc_ns },
            { 'cause': 'compile', 'ns': m.compile_ns - u.compile_ns },
            { 'cause': 'input', 'ns': m.input_ns - u.input_ns },
            { 'cause': 'communication', 'ns': m.talk_ns - u.talk_ns },
            { 'cause': 'allocation', 'ns': m.allocation_ns - u.allocation_ns },
            {
                'cause': if(m.on_device, 'device', 'ops'),
                -- the same ops can be slow for many reasons: only more of them are a cause
                'ns': if(m.on_device OR m.work_events > u.work_events, m.work_ns - u.work_ns, 0)
            },
            { 'cause': 'sync', 'ns': m.sync_ns - u.sync_ns }
        ] AS causes
    FROM measured AS m
    INNER JOIN usual AS u ON m.rank = u.rank
    WHERE m.slow
),

-- the first of the list that explains enough, so a collection inside an op is a collection
caused AS (
    SELECT
        *,
        list_filter(causes, LAMBDA c: c.ns >= $min_cause_share * extra_ns)[1] AS found
    FROM excess
),

summed AS (
    SELECT
        rank,
        coalesce(found.cause, 'unknown') AS cause,
        any_value(steps) AS steps,
        any_value(all_ns) AS all_ns,
        any_value(median_ns) AS median_ns,
        count(*) AS slow_steps,
        avg(duration_ns) AS mean_ns,
        sum(extra_ns) AS extra_ns,
        sum(if(found.ns > extra_ns, extra_ns, found.ns)) AS cause_ns,
        list(step ORDER BY step ASC) AS step_numbers,
        min(start_ns) AS start_ns
    FROM caused
    GROUP BY rank, coalesce(found.cause, 'unknown')
),

usual_lines AS (
    SELECT
        s.rank,
        s.source_file,
        s.source_line,
        sum(s.host_ns) / any_value(n.normal_steps) AS line_ns
    FROM step_lines AS s
    INNER JOIN extents AS x ON s.rank = x.rank AND s.step = x.step
    INNER JOIN (
        SELECT
            rank,
            count(*) AS normal_steps
        FROM extents
        WHERE NOT slow
        GROUP BY rank
    ) AS n ON s.rank = n.rank
    WHERE NOT x.slow
    GROUP BY s.rank, s.source_file, s.source_line
),

lines_more AS (
    SELECT
        c.rank,
        coalesce(c.found.cause, 'unknown') AS cause,
        s.source_file,
        s.source_line,
        arg_max(s.name, (s.host_ns, s.step)) AS name,
        sum(s.host_ns - coalesce(u.line_ns, 0)) AS more_ns
    FROM caused AS c
    INNER JOIN step_lines AS s ON c.rank = s.rank AND c.step = s.step
    LEFT JOIN usual_lines AS u
        ON
            s.rank = u.rank AND s.source_file = u.source_file AND s.source_line = u.source_line
    GROUP BY ALL
),

lines_most AS (
    SELECT
        rank,
        cause,
        arg_max(
            { 'file': source_file, 'line': source_line, 'name': name, 'ns': more_ns },
            (more_ns, source_file, source_line)
        ) AS top
    FROM lines_more
    GROUP BY rank, cause
),

ids AS (
    SELECT
        c.rank,
        coalesce(c.found.cause, 'unknown') AS cause,
        list_sort(flatten(list(s.event_ids))) AS event_ids
    FROM caused AS c
    INNER JOIN steps AS s ON c.rank = s.rank AND c.step = s.step
    GROUP BY ALL
),

judged AS (
    SELECT
        s.*,
        i.event_ids,
        -- a line that explains little of it is not the place
        if(t.top.ns >= 0.3 * s.extra_ns, t.top, NULL) AS top
    FROM summed AS s
    INNER JOIN ids AS i ON s.rank = i.rank AND s.cause = i.cause
    LEFT JOIN lines_most AS t ON s.rank = t.rank AND s.cause = t.cause
)

SELECT
    slow_steps,
    steps,
    cause,
    step_numbers,
    rank,
    top.file AS source_file,
    top.line AS source_line,
    top.name AS line_name,
    array_to_string(string_split(top.file, '/')[-2:], '/') || ':' || top.line AS say_line,
    event_ids,
    start_ns,
    round(mean_ns)::BIGINT AS mean_ns,
    round(median_ns)::BIGINT AS median_ns,
    round(extra_ns)::BIGINT AS extra_ns,
    round(cause_ns)::BIGINT AS cause_ns,
    round(extra_ns / all_ns, 4) AS share,
    0::BIGINT AS saving_low_ns,
    round(extra_ns)::BIGINT AS saving_high_ns,
    'high: these steps become like the others; low: what happens there is needed'
        AS saving_basis,
    CASE
        WHEN cause = 'unknown' THEN 'low'
        WHEN top.line IS NULL THEN 'medium'
        ELSE 'high'
    END AS confidence,
    CASE
        WHEN cause <> 'unknown' AND extra_ns >= $warning_share * all_ns THEN 'warning'
        ELSE 'info'
    END AS severity,
    array_to_string(step_numbers[1:5], ', ') || if(len(step_numbers) > 5, ', ...', '')
        AS say_steps,
    CASE cause
        WHEN 'gc' THEN 'Python''s garbage collector'
        WHEN 'compile' THEN 'compilation'
        WHEN 'input' THEN 'waiting for input'
        WHEN 'communication' THEN 'collectives, most likely waiting for another rank'
        WHEN 'allocation' THEN 'memory of the device taken or given back'
        WHEN 'device' THEN 'more work on the device'
        WHEN 'ops' THEN 'ops that the other steps do not run'
        WHEN 'sync' THEN 'waiting for the device'
        ELSE 'a cause that was not recorded'
    END AS cause_text,
    CASE cause
        WHEN 'gc'
            THEN
                'Call gc.freeze() after set-up, and gc.disable() with a collection of your own'
                || ' between epochs.'
        WHEN 'compile'
            THEN
                'Keep shapes fixed (pad to a few sizes), or mark_dynamic the size that changes;'
                || ' compile before the loop.'
        WHEN 'input'
            THEN
                'Keep workers alive (persistent_workers=True), raise prefetch_factor, and shuffle'
                || ' or load without stopping between epochs.'
        WHEN 'communication'
            THEN
                'Look at the same steps of the other ranks: one of them came late (its input, a'
                || ' collection, a checkpoint). Give all ranks the same amount of work.'
        WHEN 'allocation'
            THEN
                'Run the largest batch first, set'
                || ' PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, and take empty_cache() out'
                || ' of the loop.'
        WHEN 'unknown'
            THEN
                'Look at what the host does there (checkpoints, logging, evaluation), and whether'
                || ' another program shares the machine; record Python lines to see it.'
        ELSE
            'Do what only these steps do (evaluation, logging, checkpoints, longer batches) less'
            || ' often or beside the training: bucket by length, save asynchronously, evaluate in'
            || ' a process of its own.'
    END AS fix
FROM judged
WHERE
    extra_ns >= if(cause = 'unknown', $min_share_unknown, $min_share) * all_ns
ORDER BY extra_ns DESC, rank ASC, cause ASC
