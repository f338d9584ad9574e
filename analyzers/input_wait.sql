-- +++
-- title = "The program waits for its input: {loader}"
-- question = "Which lines wait for a DataLoader?"
-- severity = "warning"
-- likely = 0.75
-- needs = ["input_waits", "measured"]
-- message = """
-- {waits:count read} of {loader} took {wait_ns:ns}, {wait_share:share} of {say_span}; the \
-- longest took {longest_ns:ns}.[[ The device stood still during {idle_ns:ns} of it.]]"""
-- advice = "{fix}"
-- key = ["rank", "source_file", "source_line", "loader"]
-- proof = """
-- SELECT *
-- FROM events
-- WHERE rank = {rank} AND list_contains({event_ids}, event_id)
-- ORDER BY duration_ns DESC"""
-- reference = "https://docs.pytorch.org/docs/stable/data.html"
--
-- [params.min_share]
-- default = 0.02
-- doc = "Lines that wait for less of the steps (of the trace without steps) are left out (0 to 1)."
--
-- [params.warning_share]
-- default = 0.1
-- doc = "From this share on it is a warning, else info."
--
-- [params.recorded_line_ns]
-- default = 1_000
-- doc = "What recording one line costs Python: 0.6 to 0.75 us measured on Python 3.11 (ns)."
--
-- [columns]
-- waits = "Reads of the loader inside the span."
-- wait_ns = "Time in them; what a loader reads from another one counts once (ns)."
-- wait_share = "wait_ns over span_ns."
-- span_ns = "Duration of all steps; without steps from first to last event (ns)."
-- longest_ns = "The longest read (ns)."
-- idle_ns = "Part of wait_ns in which no device worked; NULL without a device (ns)."
-- recorder_ns = "Most that recording lines took of it; NULL where none were recorded (ns)."
-- loader = "Iterator that was read, as PyTorch names it."
-- rank = "Distributed rank."
-- source_file = "File of the loop; NULL without stacks."
-- source_line = "Its line."
-- steps = "Steps in the trace; NULL where it has none."
-- severity = "warning or info, by the time that could be won over the span."
-- saving_low_ns = "What two workers would hide, less recorder_ns; 0 where it has workers (ns)."
-- saving_high_ns = "idle_ns with a device, else wait_ns (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "high where the line is known."
-- say_span = "What the share is of."
-- fix = "The change to make."
-- event_ids = "The reads."
-- start_ns = "When the first of them began."
-- +++
-- Without workers the DataLoader reads, decodes and collates each batch in the training loop itself
-- while the device stands still. With workers the loop only waits when they are slower than a step.
--
-- The first read of an epoch waits for its workers to start (persistent_workers=True spares that).
-- A profiler slows Python down, so reads that are pure Python look longer than they are: the low
-- saving leaves out all that recording lines may have cost.
--
-- Next: `SELECT step, input_wait_ns, duration_ns FROM steps`.
WITH reads AS (
    SELECT
        *,
        regexp_replace(name, '^enumerate\(DataLoader\)#|\.__next__$', '', 'g') AS loader
    FROM host_stops
    WHERE kind = 'input_wait'
),

places AS (
    SELECT
        r.rank,
        r.source_file,
        r.source_line,
        r.loader,
        any_value(r.steps) AS steps,
        any_value(r.span_ns) AS span_ns,
        count(*) AS waits,
        sum(r.stop_ns)::BIGINT AS wait_ns,
        max(r.stop_ns) AS longest_ns,
        sum(r.idle_ns)::BIGINT AS idle_ns,
        list(r.event_id ORDER BY r.event_id ASC) AS event_ids,
        min(r.start_ns) AS start_ns
    FROM reads AS r
    GROUP BY ALL
),

recorded AS (
    SELECT
        rank,
        sum(try_cast(value ->> '$.lines.marks' AS BIGINT)) * $recorded_line_ns AS recorder_ns
    FROM trace_metadata
    WHERE key = 'capture'
    GROUP BY rank
),

judged AS (
    SELECT
        p.*,
        -- least() would pass over an unknown
        if(r.recorder_ns IS NULL, NULL, least(r.recorder_ns, p.wait_ns))::BIGINT AS recorder_ns
    FROM places AS p
    LEFT JOIN recorded AS r ON p.rank = r.rank
)

SELECT
    p.waits,
    p.wait_ns,
    p.span_ns,
    p.longest_ns,
    p.idle_ns,
    p.recorder_ns,
    p.loader,
    p.rank,
    p.source_file,
    p.source_line,
    p.steps,
    p.event_ids,
    p.start_ns,
    CASE
        WHEN contains(p.loader, 'MultiProcessing') THEN 0
        ELSE
            greatest(
                0,
                least(
                    coalesce(p.idle_ns, p.wait_ns),
                    p.wait_ns - greatest(0, p.wait_ns // 2 - (p.span_ns - p.wait_ns))
                ) - coalesce(p.recorder_ns, 0)
            )
    END::BIGINT AS saving_low_ns,
    coalesce(p.idle_ns, p.wait_ns) AS saving_high_ns,
    round(p.wait_ns / p.span_ns, 4) AS wait_share,
    CASE
        WHEN contains(p.loader, 'MultiProcessing')
            THEN 'low: more workers may not help; high: every batch is ready when it is asked for'
        ELSE
            'low: two workers load beside the step, less all that recording lines may have cost;'
            || ' high: every batch is ready when it is asked for'
    END AS saving_basis,
    CASE
        WHEN coalesce(p.idle_ns, p.wait_ns) >= $warning_share * p.span_ns THEN 'warning'
        ELSE 'info'
    END AS severity,
    CASE WHEN p.source_line IS NULL THEN 'medium' ELSE 'high' END AS confidence,
    CASE WHEN p.steps IS NULL THEN 'the trace' ELSE p.steps || ' steps' END AS say_span,
    CASE
        WHEN contains(p.loader, 'MultiProcessing')
            THEN
                'The workers are slower than the step: raise num_workers or prefetch_factor, set'
                || ' persistent_workers=True, and move decoding and augmentation out of __getitem__'
                || ' (cache them, or do them for a whole batch on the device).'
        ELSE
            'Load in the background: DataLoader(num_workers=4, pin_memory=True,'
            || ' persistent_workers=True), and keep a small data set in memory as tensors.'
    END AS fix
FROM judged AS p
WHERE p.wait_ns >= $min_share * p.span_ns
ORDER BY saving_high_ns DESC, p.start_ns ASC
