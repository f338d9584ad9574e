-- +++
-- title = "Python's garbage collector stops the program"
-- question = "How long does Python's garbage collector stop the steps?"
-- severity = "warning"
-- likely = 0.75
-- needs = ["collector", "measured"]
-- message = """
-- {pauses:count collection}, {full_pauses:count} of them full ones, stopped Python for \
-- {pause_ns:ns}, {pause_share:share} of {say_span}; the longest took {longest_ns:ns}.[[ The \
-- device stood still during {idle_ns:ns} of it.]]"""
-- advice = "{fix}"
-- key = ["rank"]
-- proof = """
-- SELECT *
-- FROM events
-- WHERE rank = {rank} AND list_contains({event_ids}, event_id)
-- ORDER BY duration_ns DESC"""
-- reference = "https://docs.python.org/3/library/gc.html"
--
-- [params.min_share]
-- default = 0.01
-- doc = "Pauses of less of the steps (of the trace without steps) are left out (0 to 1)."
--
-- [params.warning_share]
-- default = 0.05
-- doc = "From this share on it is a warning, else info."
--
-- [params.one_line_share]
-- default = 0.9
-- doc = "A line that holds this share of the pauses' time is named: it may call gc.collect()."
--
-- [columns]
-- pauses = "Collections inside the span."
-- full_pauses = "Those of generation 2, which look at every object."
-- pause_ns = "Time they took (ns)."
-- pause_share = "pause_ns over span_ns."
-- span_ns = "Duration of all steps; without steps from first to last event (ns)."
-- longest_ns = "The longest (ns)."
-- idle_ns = "Part of pause_ns in which no device worked; NULL without a device (ns)."
-- rank = "Distributed rank."
-- source_file = "File of the line in which nearly all of that time passed; NULL if spread."
-- source_line = "That line."
-- steps = "Steps in the trace; NULL where it has none."
-- severity = "warning or info, by the time that could be won over the span."
-- saving_low_ns = "one_line_share of the time at its one line; 0 if spread (ns)."
-- saving_high_ns = "idle_ns with a device, else pause_ns (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "high: each collection is recorded."
-- say_span = "What the share is of."
-- fix = "The change to make."
-- event_ids = "The collections."
-- start_ns = "When the first of them began."
-- +++
-- A full collection looks at every Python object of the process: with a large model, a tokenizer
-- and a data set in memory that takes tens to hundreds of milliseconds, at a moment nobody chose.
-- In a distributed job every rank waits for the one that collects.
--
-- Pauses are spread over lines that merely allocate; where one line holds nearly all of them, it
-- probably calls gc.collect() itself.
--
-- Next: `SELECT name, step, source_line, duration_ns FROM events WHERE kind = 'gc'`.
WITH pauses AS (
    SELECT *
    FROM host_stops
    WHERE kind = 'gc'
),

paused AS (
    SELECT
        rank,
        any_value(steps) AS steps,
        any_value(span_ns) AS span_ns,
        count(*) AS pauses,
        count(*) FILTER (WHERE contains(name, '2')) AS full_pauses,
        sum(stop_ns)::BIGINT AS pause_ns,
        max(stop_ns) AS longest_ns,
        sum(idle_ns)::BIGINT AS idle_ns,
        list(event_id ORDER BY event_id ASC) AS event_ids,
        min(start_ns) AS start_ns
    FROM pauses
    GROUP BY rank
),

judged AS (
    SELECT
        *,
        coalesce(idle_ns, pause_ns) AS saving_high_ns,
        $min_share * span_ns AS least_ns,
        $warning_share * span_ns AS warning_ns,
        $one_line_share AS sure_share,
        $one_line_share * pause_ns AS one_line_ns
    FROM paused
),

of_line AS (
    SELECT
        rank,
        source_file,
        source_line,
        count(*) AS pauses,
        sum(stop_ns) AS line_ns
    FROM pauses
    WHERE source_line IS NOT NULL
    GROUP BY ALL
)

SELECT
    p.pauses,
    p.full_pauses,
    p.pause_ns,
    p.span_ns,
    p.longest_ns,
    p.idle_ns,
    p.rank,
    l.source_file,
    l.source_line,
    p.steps,
    p.event_ids,
    p.start_ns,
    -- least() passes over a NULL
    if(l.line_ns IS NULL, 0, round(least(p.sure_share * l.line_ns, p.saving_high_ns)))::BIGINT
        AS saving_low_ns,
    p.saving_high_ns,
    'low: what the one line that asks for them spends, less what Python collects by itself, or'
    || ' nothing if they are spread; high: no collection inside the steps' AS saving_basis,
    'high' AS confidence,
    round(p.pause_ns / p.span_ns, 4) AS pause_share,
    CASE
        WHEN p.saving_high_ns >= p.warning_ns THEN 'warning'
        ELSE 'info'
    END AS severity,
    CASE WHEN p.steps IS NULL THEN 'the trace' ELSE p.steps || ' steps' END AS say_span,
    CASE
        WHEN l.rank IS NOT NULL
            THEN
                'Take gc.collect() out of the loop if this line calls it; else call gc.collect()'
                || ' and gc.freeze() once after set-up, and gc.disable() around the steps with one'
                || ' gc.collect() every few hundred.'
        ELSE
            'Call gc.collect() and gc.freeze() once after set-up, so that later collections skip'
            || ' the model; or gc.disable() around the steps with one gc.collect() every few'
            || ' hundred, on all ranks in the same step.'
    END AS fix
FROM judged AS p
LEFT JOIN of_line AS l
    ON p.rank = l.rank AND l.pauses > 1 AND p.one_line_ns <= l.line_ns
WHERE p.pause_ns >= p.least_ns
ORDER BY p.saving_high_ns DESC, p.start_ns ASC
