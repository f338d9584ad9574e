-- +++
-- title = "Changing shapes: compiled again {recompilations:count time}"
-- question = "Which lines compile again because shapes change?"
-- severity = "warning"
-- needs = ["compiler"]
-- message = """
-- {recompilations:count recompilation} from changing {say_what}[[ (steps: {steps:count})]], \
-- first of {first_name}: {first_shapes}. {say_others}"""
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
-- say_what = "batch size where only first dimensions change, else shapes; as text."
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
    if(coalesce(bool_and(batch_only), FALSE), 'batch size', 'shapes') AS say_what,
    if(
        count(DISTINCT own_place) > 1,
        'They lie on ' || count(DISTINCT own_place) || ' lines inside.', ''
    ) AS say_others,
    list(event_id ORDER BY event_id ASC) AS event_ids,
    min(start_ns) AS start_ns
FROM shape_recompilations
GROUP BY rank, source_file, source_line, if(source_line IS NULL, name, NULL)
ORDER BY recompilations DESC, start_ns ASC
