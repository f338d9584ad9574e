-- +++
-- title = "Shapes change from step to step: {shapes:count} in {steps:count step}"
-- question = "Where do shapes change over the steps, so that a static-shape device recompiles?"
-- severity = "info"
-- needs = ["framework", "shapes", "steps"]
-- message = """
-- {op_name} is the first op whose input changes: {shapes:count different shape} in \
-- {steps:count step}, such as {examples}. {calls:count op call} at {lines:count place} take \
-- changing shapes."""
-- advice = "{fix}"
-- key = ["rank", "source_file", "source_line", "anonymous_op"]
-- proof = """
-- SELECT step, input_shapes, count(*) AS calls
-- FROM op_calls
-- WHERE rank = {rank} AND name = {op_name}
--     AND source_line IS NOT DISTINCT FROM {source_line}
-- GROUP BY ALL
-- ORDER BY step"""
-- reference = "https://docs.pytorch.org/docs/stable/torch.compiler_dynamic_shapes.html"
--
-- [params.min_shapes]
-- default = 3
-- doc = "Fewer different shapes over the steps do not count: the last batch may be smaller."
--
-- [columns]
-- shapes = "Different inputs of the op over the steps."
-- steps = "Steps in which it ran."
-- examples = "Some of these inputs, at most three."
-- op_name = "First op of a step whose input changes."
-- calls = "Ops of the model whose inputs change, by name and place."
-- lines = "Places they are called at: lines, else modules, else names."
-- compiled_calls = "Op calls in compiled regions, with changing shapes or not."
-- rank = "Distributed rank."
-- source_file = "File of the line of the first op; NULL without stacks."
-- source_line = "That line."
-- module = "Module of the first op."
-- anonymous_op = "Op; it stands for the line where none is known."
-- device_time_ns = "Work of the ops whose inputs change (ns)."
-- saving_low_ns = "NULL: eager ops on this device take any shape (ns)."
-- saving_high_ns = "NULL (ns)."
-- saving_basis = "Why nothing follows from the numbers."
-- confidence = "high where the line is known."
-- fix = "The change to make."
-- event_ids = "The calls of the first op."
-- start_ns = "When the first of them ran."
-- +++
-- Eager ops on a CPU or GPU take any shape. torch.compile, CUDA graphs and devices with static
-- shapes (Neuron, TPU) build one program for each: every new length compiles again, for seconds to
-- minutes. Caching allocators also fragment where sizes never repeat.
-- The forward of each step is compared: an op counts when its inputs over the steps have at least
-- three different shapes, whatever happens within one step. Once one input has changed, all that
-- read it change too: the first in a step is the cause.
--
-- Next: `recompilations` for what torch.compile did about it.
WITH called AS (
    SELECT
        rank,
        step,
        place,
        name,
        source_file,
        source_line,
        module,
        input_shapes,
        start_ns,
        event_id,
        work_ns,
        coalesce(compiled, FALSE) AS compiled,
        if(source_line IS NULL, name, NULL) AS anonymous_op
    FROM op_calls
    WHERE
        step IS NOT NULL AND input_shapes IS NOT NULL AND works > 0
        AND (phase IS NULL OR phase IN ('forward', 'other'))
        AND regexp_matches(input_shapes, '[1-9]')
        -- where modules are known, what no module calls prepares the data
        AND (module IS NOT NULL OR rank NOT IN (SELECT m.rank FROM modules AS m))
        AND coalesce(family NOT IN ('view', 'fill', 'copy', 'cast'), TRUE)
),

stepped AS (
    SELECT
        rank,
        step,
        name,
        source_file,
        source_line,
        module,
        anonymous_op,
        list(input_shapes ORDER BY place ASC) AS signature,
        min(start_ns) AS start_ns,
        min(place) AS first_place,
        list(event_id) AS event_ids,
        sum(work_ns) AS work_ns,
        count(*) FILTER (WHERE compiled) AS compiled_calls
    FROM called
    GROUP BY ALL
),

kinds AS (
    SELECT
        rank,
        name,
        source_file,
        source_line,
        module,
        anonymous_op,
        count(*) AS steps,
        list(signature[1] ORDER BY step ASC) AS inputs,
        min(first_place) AS first_place,
        min(start_ns) AS start_ns,
        list_sort(flatten(list(event_ids))) AS event_ids,
        sum(work_ns) AS work_ns,
        sum(compiled_calls) AS compiled_calls
    FROM stepped
    GROUP BY ALL
    HAVING count(DISTINCT signature) >= $min_shapes
),

firsts AS (
    SELECT
        *,
        count(*) OVER (PARTITION BY rank) AS calls,
        sum(work_ns) OVER (PARTITION BY rank) AS device_time_ns,
        sum(compiled_calls) OVER (PARTITION BY rank) AS all_compiled_calls
    FROM kinds
    QUALIFY row_number() OVER (PARTITION BY rank ORDER BY first_place ASC, start_ns ASC) = 1
),

places AS (
    SELECT
        rank,
        count(DISTINCT coalesce(source_file || ':' || source_line, module, name)) AS lines
    FROM kinds
    GROUP BY rank
)

SELECT
    f.steps,
    f.calls,
    p.lines,
    f.rank,
    f.source_file,
    f.source_line,
    f.module,
    f.anonymous_op,
    f.event_ids,
    f.start_ns,
    f.name AS op_name,
    f.all_compiled_calls::BIGINT AS compiled_calls,
    f.device_time_ns::BIGINT AS device_time_ns,
    len(list_distinct(f.inputs)) AS shapes,
    array_to_string(list_sort(list_distinct(f.inputs))[1:3], ' and ') AS examples,
    NULL::BIGINT AS saving_low_ns,
    NULL::BIGINT AS saving_high_ns,
    'unknown: eager ops take any shape; a compiler would build a program for each' AS saving_basis,
    CASE WHEN f.source_line IS NULL THEN 'medium' ELSE 'high' END AS confidence,
    'Pad the batch to a few fixed lengths (buckets, a power of two) in the collate function and'
    || ' mask the rest; for a decoder use a static cache. For torch.compile alone, mark the'
    || ' dimension with torch._dynamo.mark_dynamic.' AS fix
FROM firsts AS f
INNER JOIN places AS p ON f.rank = p.rank
ORDER BY f.start_ns ASC
