-- +++
-- title = "The program waits for its input: {loader}"
-- question = "Which lines wait for a DataLoader?"
-- severity = "warning"
-- needs = ["input_waits", "measured"]
-- message = """
-- {waits:count} reads of {loader} took {wait_ns:ns}, {wait_share:share} of {say_span}; the \
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
-- [columns]
-- waits = "Reads of the loader inside the span."
-- wait_ns = "Time in them; what a loader reads from another one counts once (ns)."
-- wait_share = "wait_ns over span_ns."
-- span_ns = "Duration of all steps; without steps from first to last event (ns)."
-- longest_ns = "The longest read (ns)."
-- idle_ns = "Part of wait_ns in which no device worked; NULL without a device (ns)."
-- loader = "Iterator that was read, as PyTorch names it."
-- rank = "Distributed rank."
-- source_file = "File of the loop; NULL without stacks."
-- source_line = "Its line."
-- steps = "Steps in the trace; NULL where it has none."
-- severity = "warning or info, by the time that could be won over the span."
-- saving_low_ns = "0: the input may be as slow when loaded beside the step (ns)."
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
-- A profiler slows Python down, so reads that are pure Python look longer than they are.
--
-- Next: `SELECT step, input_wait_ns, duration_ns FROM steps`.
WITH read AS (
    SELECT
        rank,
        event_id,
        name,
        source_file,
        source_line,
        start_ns,
        end_ns,
        max(end_ns) OVER (
            PARTITION BY rank ORDER BY start_ns ASC, end_ns DESC, event_id ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
    FROM events
    WHERE
        layer = 'host' AND kind = 'input_wait'
        AND start_ns IS NOT NULL AND duration_ns IS NOT NULL
),

own AS (
    SELECT
        * EXCLUDE (start_ns),
        greatest(start_ns, coalesce(reached_ns, start_ns)) AS start_ns
    FROM read
    WHERE end_ns > coalesce(reached_ns, start_ns)
),

recorded AS (
    SELECT
        rank,
        min(start_ns) AS start_ns,
        max(end_ns) AS end_ns
    FROM events
    WHERE layer IN ('framework', 'hardware', 'host') AND end_ns IS NOT NULL
    GROUP BY rank
),

stepped AS (
    SELECT
        rank,
        count(*) AS steps,
        sum(duration_ns) AS step_ns,
        min(start_ns) AS start_ns,
        max(end_ns) AS end_ns
    FROM steps
    GROUP BY rank
),

spans AS (
    SELECT
        r.rank,
        s.steps,
        coalesce(s.start_ns, r.start_ns) AS start_ns,
        coalesce(s.end_ns, r.end_ns) AS end_ns,
        coalesce(s.step_ns, r.end_ns - r.start_ns)::BIGINT AS span_ns
    FROM recorded AS r
    LEFT JOIN stepped AS s ON r.rank = s.rank
),

inside AS (
    SELECT
        o.rank,
        o.event_id,
        o.name,
        o.source_file,
        o.source_line,
        s.steps,
        s.span_ns,
        greatest(o.start_ns, s.start_ns) AS start_ns,
        least(o.end_ns, s.end_ns) AS end_ns
    FROM own AS o
    INNER JOIN spans AS s ON o.rank = s.rank AND o.start_ns < s.end_ns AND o.end_ns > s.start_ns
),

accelerated AS (
    SELECT
        rank,
        min(start_ns) AS start_ns,
        max(end_ns) AS end_ns
    FROM timeline
    WHERE device <> 'cpu'
    GROUP BY rank
),

-- what the devices worked during a read
busy AS (
    SELECT
        i.rank,
        i.event_id,
        sum(least(i.end_ns, t.end_ns) - greatest(i.start_ns, t.end_ns - t.rank_busy_ns))
            AS busy_ns
    FROM inside AS i
    INNER JOIN timeline AS t
        ON
            i.rank = t.rank AND i.start_ns < t.end_ns
            AND i.end_ns > t.end_ns - t.rank_busy_ns
    WHERE t.rank_busy_ns > 0 AND t.device <> 'cpu'
    GROUP BY i.rank, i.event_id
),

places AS (
    SELECT
        i.rank,
        i.source_file,
        i.source_line,
        regexp_replace(i.name, '^enumerate\(DataLoader\)#|\.__next__$', '', 'g') AS loader,
        any_value(i.steps) AS steps,
        any_value(i.span_ns) AS span_ns,
        count(*) AS waits,
        sum(i.end_ns - i.start_ns)::BIGINT AS wait_ns,
        max(i.end_ns - i.start_ns) AS longest_ns,
        if(
            bool_or(a.rank IS NOT NULL),
            sum(i.end_ns - i.start_ns - coalesce(b.busy_ns, 0)),
            NULL
        )::BIGINT AS idle_ns,
        list(i.event_id ORDER BY i.event_id ASC) AS event_ids,
        min(i.start_ns) AS start_ns
    FROM inside AS i
    LEFT JOIN busy AS b ON i.rank = b.rank AND i.event_id = b.event_id
    LEFT JOIN accelerated AS a ON i.rank = a.rank
    GROUP BY ALL
)

SELECT
    p.waits,
    p.wait_ns,
    p.span_ns,
    p.longest_ns,
    p.idle_ns,
    p.loader,
    p.rank,
    p.source_file,
    p.source_line,
    p.steps,
    p.event_ids,
    p.start_ns,
    0::BIGINT AS saving_low_ns,
    coalesce(p.idle_ns, p.wait_ns) AS saving_high_ns,
    round(p.wait_ns / p.span_ns, 4) AS wait_share,
    CASE
        WHEN p.idle_ns IS NULL THEN 'high: every batch is ready when the loop asks for it'
        ELSE
            'high: every batch is ready when the loop asks for it, so the device no longer stands'
            || ' still'
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
FROM places AS p
WHERE p.wait_ns >= $min_share * p.span_ns
ORDER BY saving_high_ns DESC, p.start_ns ASC
