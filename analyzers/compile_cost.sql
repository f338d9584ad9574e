-- +++
-- title = "Compiling {name} takes part of the measured time"
-- question = "How much of the recorded time went into torch.compile?"
-- severity = "info"
-- needs = ["compile_times", "measured"]
-- message = """
-- {compilations:count compilation} of {name}[[ in {steps:count step}]]: {compile_ns:ns}, \
-- {compile_share:share} of the recorded time[[, of which {inductor_ns:ns} in Inductor]][[; {cold} \
-- without a warm cache]].{say_again}"""
-- advice = "{fix}"
-- key = ["rank", "source_file", "source_line", "name"]
-- proof = """
-- SELECT *
-- FROM compilations
-- WHERE rank = {rank} AND list_contains({event_ids}, event_id)
-- ORDER BY start_ns"""
-- reference = "https://docs.pytorch.org/tutorials/recipes/torch_compile_caching_tutorial.html"
--
-- [params.min_share]
-- default = 0.05
-- doc = "Functions that compile for less of the recorded time are left out (0 to 1)."
--
-- [columns]
-- name = "Function that was compiled."
-- compilations = "Its compilations in the window."
-- again = "Those after its first."
-- compile_ns = "Their time (ns)."
-- compile_share = "The same over the recorded time."
-- inductor_ns = "Part of it in Inductor; NULL where unknown (ns)."
-- cold = "Compilations that found no warm cache; NULL where unknown."
-- steps = "Steps they happened in; NULL where the trace has no steps."
-- later_steps = "Steps after the first recorded one in which something still compiled."
-- rank = "Distributed rank."
-- source_file = "File of the function."
-- source_line = "Its first line."
-- severity = "warning where it still compiles after the first recorded step, else info."
-- saving_low_ns = "0: code that changes is compiled again (ns)."
-- saving_high_ns = "compile_ns: all of it before the window, or from a cache (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "high: each compilation is recorded."
-- say_again = "What it means that it compiled again."
-- fix = "The change to make."
-- event_ids = "The compilations."
-- start_ns = "When the first of them began."
-- +++
-- Compiling pays back over the calls that follow. Within this recording it is lost time, and it
-- makes the steps it falls into useless as a measure of speed: warm up first, then record.
--
-- A function that compiles again and again has a guard that keeps failing: `recompilations` lists
-- changing shapes, `compilations` every reason.
--
-- Next: `SELECT name, graph_id, step, duration_ns, cache FROM compilations WHERE kind = 'compile'`.
WITH recorded AS (
    SELECT
        rank,
        max(end_ns) - min(start_ns) AS span_ns,
        $min_share * (max(end_ns) - min(start_ns)) AS least_ns
    FROM events
    WHERE layer IN ('framework', 'hardware', 'runtime', 'host') AND end_ns IS NOT NULL
    GROUP BY rank
),

first_steps AS (
    SELECT
        rank,
        min(step) AS step
    FROM steps
    GROUP BY rank
),

compiled AS (
    SELECT
        c.rank,
        c.event_id,
        c.source_file,
        c.source_line,
        c.name,
        c.duration_ns,
        c.inductor_ns,
        c.cache,
        c.step,
        c.start_ns,
        c.step > f.step AS is_late
    FROM compilations AS c
    LEFT JOIN first_steps AS f ON c.rank = f.rank
    WHERE c.kind = 'compile' AND c.in_window AND c.duration_ns IS NOT NULL
),

functions AS (
    SELECT
        rank,
        source_file,
        source_line,
        name,
        count(*) AS compilations,
        sum(duration_ns)::BIGINT AS compile_ns,
        sum(inductor_ns)::BIGINT AS inductor_ns,
        nullif(count(*) FILTER (WHERE cache = 'cold'), 0) AS cold,
        nullif(count(DISTINCT step), 0) AS steps,
        count(DISTINCT step) FILTER (WHERE is_late) AS later_steps,
        list(event_id ORDER BY event_id ASC) AS event_ids,
        min(start_ns) AS start_ns
    FROM compiled
    GROUP BY ALL
)

SELECT
    f.name,
    f.compilations,
    f.compile_ns,
    f.inductor_ns,
    f.cold,
    f.steps,
    f.later_steps,
    f.rank,
    f.source_file,
    f.source_line,
    f.event_ids,
    f.start_ns,
    0::BIGINT AS saving_low_ns,
    f.compile_ns AS saving_high_ns,
    'high: all of it happens before the window, or comes from a cache' AS saving_basis,
    'high' AS confidence,
    f.compilations - 1 AS again,
    round(f.compile_ns / r.span_ns, 4) AS compile_share,
    CASE WHEN f.later_steps > 0 THEN 'warning' ELSE 'info' END AS severity,
    CASE
        WHEN f.later_steps > 0
            THEN ' It still compiled after the first step, in ' || f.later_steps || ' more.'
        ELSE ''
    END AS say_again,
    CASE
        WHEN f.later_steps > 0
            THEN
                'Find the guard that fails (compilations, TORCH_LOGS=recompiles) and keep it'
                || ' constant: fixed shapes or mark_dynamic, no changing Python numbers.'
        ELSE
            'Run two or three steps before the recording starts (schedule(wait=, warmup=)), keep'
            || ' the compile cache between runs (TORCHINDUCTOR_CACHE_DIR), and compile one repeated'
            || ' block instead of the whole model.'
    END AS fix
FROM functions AS f
INNER JOIN recorded AS r ON f.rank = r.rank
WHERE f.compile_ns >= r.least_ns
ORDER BY f.compile_ns DESC, f.start_ns ASC
