-- +++
-- title = "Changing shapes: compiled again {recompilations:count} times"
-- question = "Which lines compile again because shapes change?"
-- severity = "warning"
-- needs = ["compiler"]
-- message = """
-- {recompilations:count} recompilations from changing shapes[[ (steps: {steps:count})]], first of \
-- {first_name}: {first_shapes}. {say_others}"""
-- advice = """
-- Keep the shapes fixed: pad or bucket the batch and the sequence, drop the last incomplete batch \
-- (drop_last=True), and pass numbers that change each step as tensors."""
-- key = ["rank", "source_file", "source_line", "place"]
-- proof = """
-- SELECT *
-- FROM compilations
-- WHERE rank = {rank} AND kind = 'recompile' AND list_contains({event_ids}, event_id)
-- ORDER BY start_ns"""
-- reference = "https://docs.pytorch.org/docs/stable/torch.compiler_dynamic_shapes.html"
--
-- [columns]
-- recompilations = "How often something was compiled again at this line."
-- programs = "Different programs among them, in a dry run; NULL for torch.compile."
-- first_name = "What was compiled again first."
-- first_shapes = "Shapes before and after, or the guard that failed."
-- shapes = "All different ones, at most ten."
-- rank = "Distributed rank."
-- source_file = "File of the line that calls the outermost module there; else of its own line."
-- source_line = "That line."
-- place = "Own line of the first, where the line above is unknown."
-- steps = "Steps they happen in; NULL where the trace has no steps."
-- figures = "measured; modelled in a dry run."
-- confidence = "high: each is recorded."
-- say_others = "Where else, as text."
-- event_ids = "The recompilations."
-- start_ns = "When the first of them happened."
-- +++
-- A program of a static compiler is made for its shapes. Another batch size or sequence length is
-- another program: seconds to minutes on a chip the first time, and again for every new shape.
--
-- Each recompilation counts at the line that calls the outermost module around it, for that is
-- where the shape comes in: one batch of another size compiles every op of a model again. Only
-- shapes count here; torch.compile also recompiles for other guards, which `compilations` lists.
--
-- Next: `SELECT * FROM compilations WHERE kind = 'recompile'`.
WITH again AS (
    SELECT c.*
    FROM compilations AS c
    WHERE
        c.kind = 'recompile'
        AND regexp_matches(
            c.reason, ' -> |size mismatch|stride mismatch|rank mismatch|shape|dynamic'
        )
),

-- the outermost call of a module around each
called AS (
    SELECT
        a.rank,
        a.event_id,
        arg_min(m.source_file, (m.start_ns, m.event_id)) AS source_file,
        arg_min(m.source_line, (m.start_ns, m.event_id)) AS source_line
    FROM again AS a
    INNER JOIN events AS e ON a.rank = e.rank AND a.event_id = e.event_id
    INNER JOIN events AS m
        ON
            e.rank = m.rank AND e.pid = m.pid AND e.tid = m.tid
            AND e.start_ns >= m.start_ns AND e.start_ns < m.end_ns
    WHERE m.layer = 'framework' AND m.kind = 'module' AND m.source_line IS NOT NULL
    GROUP BY a.rank, a.event_id
),

placed AS (
    SELECT
        a.rank,
        a.event_id,
        a.name,
        a.reason,
        a.start_ns,
        a.step,
        e.attributes ->> '$.program' AS program,
        concat_ws(':', a.source_file, a.source_line) AS own_place,
        coalesce(c.source_file, a.user_file, a.source_file) AS source_file,
        CASE
            WHEN c.source_file IS NOT NULL THEN c.source_line
            WHEN a.user_file IS NOT NULL THEN a.user_line
            ELSE a.source_line
        END AS source_line
    FROM again AS a
    INNER JOIN events AS e ON a.rank = e.rank AND a.event_id = e.event_id
    LEFT JOIN called AS c ON a.rank = c.rank AND a.event_id = c.event_id
)

SELECT
    count(*) AS recompilations,
    nullif(count(DISTINCT concat(name, program)) FILTER (WHERE program IS NOT NULL), 0) AS programs,
    arg_min(name, (start_ns, event_id)) AS first_name,
    arg_min(reason, (start_ns, event_id)) AS first_shapes,
    list(DISTINCT reason ORDER BY reason ASC)[:10] AS shapes,
    rank,
    source_file,
    source_line,
    if(source_line IS NULL, name, NULL) AS place,
    nullif(count(DISTINCT step), 0) AS steps,
    if(count(program) > 0, 'modelled', 'measured') AS figures,
    'high' AS confidence,
    if(
        count(DISTINCT own_place) > 1,
        'They lie on ' || count(DISTINCT own_place) || ' lines inside.', ''
    ) AS say_others,
    list(event_id ORDER BY event_id ASC) AS event_ids,
    min(start_ns) AS start_ns
FROM placed
GROUP BY rank, source_file, source_line, if(source_line IS NULL, name, NULL)
ORDER BY recompilations DESC, start_ns ASC
