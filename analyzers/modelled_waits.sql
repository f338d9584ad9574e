-- +++
-- title = "The host waits for the device: {say_call}"
-- question = "Which lines of a dry run make the host wait for the chip?"
-- severity = "warning"
-- needs = ["modelled"]
-- message = """
-- {say_call} makes the host wait: {waits:count call}[[ (steps: {steps:count})]], modelled \
-- {wait_ns:ns} in all. What runs next is submitted only after that, and inside torch.compile it \
-- breaks the graph."""
-- advice = """
-- Read values seldom: keep losses and metrics on the device and read them every few steps, move \
-- batches with non_blocking=True, and compare on the device with torch.where."""
-- key = ["rank", "source_file", "source_line", "op_name"]
-- proof = """
-- SELECT *
-- FROM events
-- WHERE rank = {rank} AND list_contains({event_ids}, event_id)"""
-- reference = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
--
-- [params.min_wait_share]
-- default = 0.005
-- doc = "Lines that wait for less than this share of the modelled span are left out (0 to 1)."
--
-- [columns]
-- waits = "Calls in which the modelled host waits at this line."
-- wait_ns = "How long it waits in them (ns)."
-- rank = "Distributed rank."
-- source_file = "File of the line."
-- source_line = "That line."
-- op_name = "Op that waits; NULL for a call of the user's own, such as synchronize()."
-- say_call = "What waits, as text."
-- steps = "Steps they happen in; NULL where the trace has no steps."
-- figures = "Always modelled."
-- confidence = "high: each is recorded."
-- event_ids = "The waits."
-- +++
-- The chip runs behind the host, so that it never lacks work. A value read on the host (`.item()`,
-- `.cpu()`, print, an `if` on a tensor) and a blocking copy wait until all before them is done;
-- the chip then stands still until the host has submitted the next program.
--
-- One wait a step for a loss is often wanted. The waiting is no saving by itself: the device works
-- meanwhile, and what is lost is the time in which nothing is submitted.
--
-- Next: `SELECT * FROM modelled_steps` shows the waiting of each step.
WITH waits AS (
    SELECT
        e.rank,
        e.event_id,
        e.source_file,
        e.source_line,
        e.step,
        e.modelled_duration_ns,
        o.name AS op_name
    FROM events AS e
    LEFT JOIN events AS o ON e.rank = o.rank AND e.op_id = o.event_id
    WHERE
        e.layer = 'runtime' AND e.kind = 'sync' AND e.modelled_duration_ns > 0
        -- what a fallback waits for is the fallback's
        AND NOT EXISTS (
            SELECT 1
            FROM events AS f
            WHERE
                f.rank = e.rank AND f.pid = e.pid AND f.tid = e.tid AND f.layer = 'host'
                AND ends_with(f.name, ' executed via CPU fallback')
                AND f.start_ns <= e.start_ns AND f.end_ns >= e.start_ns
        )
),

recorded_spans AS (
    SELECT
        rank,
        $min_wait_share * sum(span_ns) AS least_ns
    FROM modelled_steps
    GROUP BY rank
),

lines AS (
    SELECT
        rank,
        source_file,
        source_line,
        op_name,
        count(*) AS waits,
        sum(modelled_duration_ns)::BIGINT AS wait_ns,
        nullif(count(DISTINCT step), 0) AS steps,
        list(event_id ORDER BY event_id ASC) AS event_ids
    FROM waits
    GROUP BY rank, source_file, source_line, op_name
)

SELECT
    l.waits,
    l.wait_ns,
    l.rank,
    l.source_file,
    l.source_line,
    l.op_name,
    l.steps,
    l.event_ids,
    'modelled' AS figures,
    'high' AS confidence,
    CASE
        WHEN l.op_name IS NULL THEN 'synchronize()'
        WHEN l.op_name = 'aten::_local_scalar_dense' THEN 'a value read (.item(), float, if)'
        WHEN regexp_matches(l.op_name, '^aten::(copy_|_to_copy|_copy_from|to)$')
            THEN 'a blocking copy'
        ELSE l.op_name
    END AS say_call
FROM lines AS l
INNER JOIN recorded_spans AS s ON l.rank = s.rank
WHERE l.wait_ns >= s.least_ns
ORDER BY l.wait_ns DESC, l.rank ASC, l.event_ids ASC
