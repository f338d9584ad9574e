-- +++
-- title = "Tensor work on the CPU inside the loop of a device: {op_names}"
-- question = "Which lines compute on CPU tensors while an accelerator runs the model?"
-- severity = "warning"
-- needs = ["hardware", "runtime", "framework", "shapes", "measured"]
-- message = """
-- {op_names}[[ on {shape}]] ran on the CPU {calls:count time}[[ in {steps:count step}]]: \
-- {host_ns:ns}, in which no work was launched from this thread; the device stood still for \
-- {idle_ns:ns} of its time."""
-- advice = """
-- Create or move these tensors to the device once, before the loop, and compute there; what must \
-- stay on the CPU (metrics, augmentation) belongs in DataLoader workers or behind the step."""
-- key = ["rank", "source_file", "source_line", "anonymous_op"]
-- proof = """
-- SELECT *
-- FROM op_calls
-- WHERE rank = {rank} AND list_contains({event_ids}, event_id)
-- ORDER BY start_ns"""
-- reference = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
--
-- [params.min_share]
-- default = 0.01
-- doc = "Lines with less of the recorded time are left out (0 to 1)."
--
-- [params.warning_share]
-- default = 0.05
-- doc = "From this share on a line is a warning, else info."
--
-- [params.min_linked]
-- default = 0.9
-- doc = "Share of launches with a known op below which ops without work cannot be told (0 to 1)."
--
-- [columns]
-- calls = "Op calls that computed on the CPU."
-- host_ns = "Their time (ns)."
-- share = "The same over the recorded time."
-- idle_ns = "Idle time of the rank's busiest device in all (ns)."
-- op_names = "Their names, longest first, at most three."
-- shape = "Shape of the longest."
-- rank = "Distributed rank."
-- source_file = "File of the line; NULL without stacks."
-- source_line = "That line."
-- module = "Module of the longest."
-- anonymous_op = "Op and shapes; they stand for the line where none is known."
-- steps = "Steps they ran in; NULL where the trace has no steps."
-- severity = "warning or info, by share."
-- saving_low_ns = "0: the device may hide it (ns)."
-- saving_high_ns = "The smaller of both: time on the CPU, idle time of the device (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "high where the line is known."
-- event_ids = "The op calls."
-- start_ns = "When the first of them ran."
-- +++
-- An op whose inputs lie on the CPU computes there, launches nothing and makes the device wait for
-- what depends on it. It counts when it computes (products, elementwise ops, reductions, norms,
-- sorting), launches nothing, and the trace has its neighbours' launches.
-- Ops of a DataLoader that runs in the main process belong to `input_wait`; ops replayed in a CUDA
-- graph appear without launches only while they are captured.
--
-- Next: `SELECT name, input_shapes, duration_ns FROM op_calls WHERE works = 0 ORDER BY 3 DESC`.
WITH linked AS (
    SELECT
        rank,
        count(op_id) >= $min_linked * count(*) AS is_linked
    FROM events
    WHERE layer = 'runtime' AND kind = 'launch'
    GROUP BY rank
),

callers AS (
    SELECT
        e.rank,
        e.pid,
        e.tid,
        e.start_ns
    FROM events AS e
    SEMI JOIN (
        SELECT
            rank,
            op_id
        FROM events
        WHERE layer = 'runtime' AND op_id IS NOT NULL
    ) AS r ON e.rank = r.rank AND e.event_id = r.op_id
    WHERE e.layer = 'framework' AND e.kind = 'op' AND e.phase IS DISTINCT FROM 'compile'
),

on_host AS (
    SELECT
        c.*,
        c.input_shapes ->> '$[0]' AS shape,
        if(c.source_line IS NULL, concat_ws(' ', c.name, c.input_shapes), NULL) AS anonymous_op
    FROM op_calls AS c
    INNER JOIN linked AS l ON c.rank = l.rank
    WHERE
        c.works = 0 AND l.is_linked AND NOT coalesce(c.compiled, FALSE)
        AND (c.phase IS NULL OR c.phase NOT IN ('input', 'compile'))
        AND c.family IN (
            'elementwise', 'matmul', 'reduction', 'norm', 'softmax', 'convolution', 'attention',
            'random', 'sort', 'scan', 'pooling', 'loss', 'gather', 'scatter', 'embedding', 'cat'
        )
        AND list_product(try_cast(c.input_shapes ->> '$[0]' AS BIGINT[])) > 1
),

-- a call whose inner ops called the runtime worked on the device, whatever came of it
quiet AS (
    SELECT h.*
    FROM on_host AS h
    ASOF LEFT JOIN callers AS o
        ON
            h.rank = o.rank AND h.pid = o.pid AND h.tid = o.tid AND h.end_ns >= o.start_ns
    WHERE o.start_ns IS NULL OR o.start_ns < h.start_ns
),

by_op AS (
    SELECT
        rank,
        source_file,
        source_line,
        anonymous_op,
        name,
        sum(duration_ns) AS name_ns
    FROM quiet
    GROUP BY ALL
),

named AS (
    SELECT
        rank,
        source_file,
        source_line,
        anonymous_op,
        list(name ORDER BY name_ns DESC, name ASC) AS names
    FROM by_op
    GROUP BY ALL
),

places AS (
    SELECT
        rank,
        source_file,
        source_line,
        anonymous_op,
        count(*) AS calls,
        nullif(count(DISTINCT step), 0) AS steps,
        sum(duration_ns)::BIGINT AS host_ns,
        arg_max(shape, (duration_ns, event_id)) AS shape,
        arg_max(module, (duration_ns, event_id)) AS module,
        list(event_id ORDER BY event_id ASC) AS event_ids,
        min(start_ns) AS start_ns
    FROM quiet
    GROUP BY ALL
),

idle AS (
    SELECT
        rank,
        arg_max(idle_ns, busy_ns) AS idle_ns
    FROM devices
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
    p.calls,
    p.host_ns,
    i.idle_ns,
    p.shape,
    p.rank,
    p.source_file,
    p.source_line,
    p.module,
    p.anonymous_op,
    p.steps,
    p.event_ids,
    p.start_ns,
    0::BIGINT AS saving_low_ns,
    least(p.host_ns, i.idle_ns) AS saving_high_ns,
    'high: the time on the CPU, at most the idle time of the device; low: the device hides it'
        AS saving_basis,
    round(p.host_ns / s.span_ns, 4) AS share,
    replace(array_to_string(n.names[1:3], ', '), 'aten::', '')
    || CASE WHEN len(n.names) > 3 THEN ', ...' ELSE '' END AS op_names,
    CASE WHEN p.host_ns >= s.warning_ns THEN 'warning' ELSE 'info' END AS severity,
    CASE WHEN p.source_line IS NULL THEN 'medium' ELSE 'high' END AS confidence
FROM places AS p
INNER JOIN named AS n
    ON
        p.rank = n.rank AND p.source_file IS NOT DISTINCT FROM n.source_file
        AND p.source_line IS NOT DISTINCT FROM n.source_line
        AND p.anonymous_op IS NOT DISTINCT FROM n.anonymous_op
INNER JOIN idle AS i ON p.rank = i.rank
INNER JOIN recorded_spans AS s ON p.rank = s.rank
WHERE p.host_ns >= s.least_ns
ORDER BY saving_high_ns DESC, p.start_ns ASC
