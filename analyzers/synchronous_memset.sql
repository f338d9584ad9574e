-- +++
-- title = "The host waits for a memset: {call}"
-- question = "Which memsets stop the host until the device has written?"
-- severity = "info"
-- needs = ["hardware", "runtime", "measured"]
-- message = """
-- {calls:count call} of {call}[[ on {memory} memory]] return only when the device has written: \
-- the host stands in them for {wait_ns:ns}; the memsets themselves take {device_time_ns:ns}."""
-- advice = """
-- Use the asynchronous form on the current stream (tensor.zero_(), cudaMemsetAsync), or let the \
-- first kernel write the whole buffer so that none is needed."""
-- key = ["rank", "device", "source_file", "source_line", "call"]
-- proof = """
-- SELECT *
-- FROM work
-- WHERE rank = {rank} AND list_contains({event_ids}, event_id)
-- ORDER BY start_ns"""
-- reference = "https://docs.nvidia.com/cuda/cuda-runtime-api/api-sync-behavior.html"
--
-- [params.min_share]
-- default = 0.001
-- doc = "Calls that take less of the recorded time are left out (0 to 1)."
--
-- [params.warning_share]
-- default = 0.03
-- doc = "From this share on it is a warning, else info."
--
-- [columns]
-- calls = "Calls that waited."
-- call = "Runtime call."
-- memory = "Kind of memory, where the device's row names it: pinned, managed, pageable."
-- wait_ns = "Time in these calls (ns)."
-- device_time_ns = "Duration of the memsets (ns)."
-- rank = "Distributed rank."
-- device = "Device of the memsets."
-- source_file = "File of the line; NULL without stacks."
-- source_line = "That line."
-- module = "Module of the longest."
-- steps = "Steps they ran in; NULL where the trace has no steps."
-- severity = "warning or info, by the time in the calls over the recorded time."
-- saving_low_ns = "0: the host may have had nothing else to do (ns)."
-- saving_high_ns = "wait_ns: the calls return at once (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "high: the call returned after the device's row ended."
-- event_ids = "The memsets."
-- start_ns = "When the first of them ran."
-- +++
-- cudaMemset on device memory is asynchronous like a kernel; on pinned or managed memory, and in
-- some drivers, it returns only when it is done. Nothing can be launched meanwhile.
-- A call counts by what it did: it has no Async in its name, and ended after its memset did.
--
-- Next: `SELECT * FROM work WHERE kind = 'memset'`.
WITH waited AS (
    SELECT
        w.rank,
        w.device,
        w.event_id,
        w.start_ns,
        w.duration_ns,
        w.step,
        c.name AS call,
        c.duration_ns AS wait_ns,
        coalesce(c.source_file, w.source_file) AS source_file,
        coalesce(c.source_line, w.source_line) AS source_line,
        w.module,
        lower(nullif(regexp_extract(w.name, '(?i)(pinned|managed|pageable|unified)', 1), ''))
            AS memory
    FROM work AS w
    INNER JOIN events AS c ON w.rank = c.rank AND w.launch_id = c.event_id
    WHERE
        w.kind = 'memset' AND c.layer = 'runtime' AND contains(c.name, 'Memset')
        AND NOT contains(c.name, 'Async') AND c.end_ns >= w.end_ns
),

places AS (
    SELECT
        rank,
        device,
        source_file,
        source_line,
        call,
        count(*) AS calls,
        max(memory) AS memory,
        nullif(count(DISTINCT step), 0) AS steps,
        sum(wait_ns)::BIGINT AS wait_ns,
        sum(duration_ns)::BIGINT AS device_time_ns,
        arg_max(module, (duration_ns, event_id)) AS module,
        list(event_id ORDER BY event_id ASC) AS event_ids,
        min(start_ns) AS start_ns
    FROM waited
    GROUP BY ALL
),

recorded_spans AS (
    SELECT
        rank,
        $min_share * span_ns AS least_ns,
        $warning_share * span_ns AS warning_ns
    FROM rank_spans
)

SELECT
    p.calls,
    p.call,
    p.memory,
    p.wait_ns,
    p.device_time_ns,
    p.rank,
    p.device,
    p.source_file,
    p.source_line,
    p.module,
    p.steps,
    p.event_ids,
    p.start_ns,
    0::BIGINT AS saving_low_ns,
    p.wait_ns AS saving_high_ns,
    'high: the calls return at once; low: the host had nothing else to do' AS saving_basis,
    CASE WHEN p.wait_ns >= s.warning_ns THEN 'warning' ELSE 'info' END AS severity,
    'high' AS confidence
FROM places AS p
INNER JOIN recorded_spans AS s ON p.rank = s.rank
WHERE p.wait_ns >= s.least_ns
ORDER BY p.wait_ns DESC, p.start_ns ASC
