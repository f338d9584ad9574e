-- +++
-- title = "{say_title}: {sync_call}"
-- question = "Which lines make the host wait for the device in the middle of a step?"
-- severity = "warning"
-- needs = ["waits", "measured"]
-- message = """
-- [[{sync_call} stops the host for {wait_ns:ns}, {wait_share:share} of the device's span \
-- ({say_calls}).]] [[Behind {bubbles:count} of them nothing was queued: the device stood still \
-- for {bubble_ns:ns}.]] [[{say_port}]]"""
-- advice = "{fix}"
-- key = ["rank", "source_file", "source_line", "op_name", "sync_call"]
-- proof = """
-- SELECT *
-- FROM syncs
-- WHERE rank = {rank} AND name = {runtime_name}
--     AND op_name IS NOT DISTINCT FROM {op_name}
--     AND source_file IS NOT DISTINCT FROM {source_file}
--     AND source_line IS NOT DISTINCT FROM {source_line}
-- ORDER BY duration_ns DESC"""
-- reference = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
--
-- [params.min_share]
-- default = 0.005
-- doc = "Calls that win back less than this share of the device's span are left out (0 to 1)."
--
-- [params.warning_share]
-- default = 0.03
-- doc = "From this share of the span in recoverable idle time on it is a warning, else info."
--
-- [columns]
-- syncs = "Calls in the middle of a step."
-- wait_ns = "Time the host stood in them; NULL without a device (ns)."
-- severity = "warning or info, by the idle time that could be won back; info without a device."
-- rank = "Distributed rank."
-- source_file = "File of the line that synchronises; NULL without stacks."
-- source_line = "That line."
-- op_name = "Op that synchronises; NULL for a call outside any op."
-- runtime_name = "Runtime call in which the host waits; without a device the op."
-- sync_call = "What to look for at the line: the op, or else the runtime call."
-- steps = "Steps they happen in; NULL where the trace has no steps."
-- longest_ns = "The longest wait (ns)."
-- wait_share = "wait_ns over the span of the device."
-- bubbles = "Calls after which the device had nothing to do; NULL if none."
-- bubble_ns = "Idle time of the device around their ends (ns); NULL if none."
-- saving_low_ns = "0: a later call of the same step may wait instead; NULL without a device."
-- saving_high_ns = "Per call the smaller of its wait and the idle time around its end (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "high where the line is known and the device stood still, or there is none."
-- say_title = "What happens at the line."
-- say_calls = "Calls and steps, as text."
-- say_port = "What it would do on an accelerator; NULL where one was used."
-- fix = "The change to make."
-- event_ids = "The calls."
-- start_ns = "When the first of them began."
-- +++
-- While the host waits for the device it cannot queue more work. When it returns, the device has
-- run dry and stands still until the next launch arrives. One wait at the end of a step (reading
-- the loss) is normal and is not counted; waits after which the same step launches more kernels
-- are.
--
-- The wait itself is no loss while the device is busy: what can be won is the idle time behind it,
-- and no more than the host would be ahead without the wait. A host that is the bottleneck anyway
-- gains less.
--
-- Without a device nothing waits. Lines that read a value back are listed all the same, since on an
-- accelerator the host would wait there; what that would cost is unknown.
--
-- Next: `device_idle` shows how much of the idle time has this cause.
WITH last_kernels AS (
    SELECT
        l.rank,
        l.step,
        max(l.start_ns) AS last_launch_ns
    FROM launches AS l
    INNER JOIN work AS w ON l.rank = w.rank AND l.event_id = w.launch_id
    WHERE w.kind = 'kernel'
    GROUP BY ALL
),

inner_syncs AS (
    SELECT
        s.rank,
        s.event_id,
        s.name,
        s.op_name,
        s.step,
        s.source_file,
        s.source_line,
        s.start_ns,
        s.start_ns + s.duration_ns AS end_ns,
        coalesce(s.wait_ns, s.duration_ns) AS wait_ns
    FROM syncs AS s
    INNER JOIN last_kernels AS k ON s.rank = k.rank AND s.step IS NOT DISTINCT FROM k.step
    WHERE s.via <> 'cpu' AND s.duration_ns IS NOT NULL AND s.start_ns < k.last_launch_ns
),

bubbles AS (
    SELECT
        s.rank,
        s.event_id,
        g.duration_ns AS bubble_ns,
        least(g.duration_ns, s.wait_ns) AS gain_ns
    FROM inner_syncs AS s
    ASOF INNER JOIN gaps AS g ON s.rank = g.rank AND s.end_ns <= g.end_ns
    WHERE g.start_ns <= s.end_ns AND s.wait_ns > 0
    QUALIFY row_number() OVER (
        PARTITION BY g.rank, g.device, g.start_ns ORDER BY s.wait_ns DESC, s.event_id ASC
    ) = 1
),

calls AS (
    SELECT
        s.rank,
        s.source_file,
        s.source_line,
        s.op_name,
        s.name AS runtime_name,
        count(*) AS syncs,
        nullif(count(DISTINCT s.step), 0) AS steps,
        sum(s.wait_ns)::BIGINT AS wait_ns,
        max(s.wait_ns) AS longest_ns,
        nullif(count(b.event_id), 0) AS bubbles,
        sum(b.bubble_ns)::BIGINT AS bubble_ns,
        coalesce(sum(b.gain_ns), 0)::BIGINT AS gain_ns,
        list(s.event_id ORDER BY s.event_id ASC) AS event_ids,
        min(s.start_ns) AS start_ns
    FROM inner_syncs AS s
    LEFT JOIN bubbles AS b ON s.rank = b.rank AND s.event_id = b.event_id
    GROUP BY ALL
),

last_ops AS (
    SELECT
        rank,
        max(start_ns) AS last_op_ns
    FROM work
    WHERE device = 'cpu'
    GROUP BY rank
),

portable AS (
    SELECT
        s.rank,
        s.source_file,
        s.source_line,
        s.name AS op_name,
        count(*) AS syncs,
        nullif(count(DISTINCT s.step), 0) AS steps,
        list(s.event_id ORDER BY s.event_id ASC) AS event_ids,
        min(s.start_ns) AS start_ns
    FROM syncs AS s
    INNER JOIN last_ops AS k ON s.rank = k.rank
    WHERE s.via = 'cpu'
    GROUP BY s.rank, s.source_file, s.source_line, s.name
    -- one wait at the very end of the program holds nothing up
    HAVING min(s.start_ns) < max(k.last_op_ns)
),

step_counts AS (
    SELECT
        rank,
        count(*) AS steps
    FROM steps
    GROUP BY rank
),

device_spans AS (
    SELECT
        rank,
        max(span_ns) AS span_ns,
        $min_share * max(span_ns) AS least_ns,
        $warning_share * max(span_ns) AS warning_ns
    FROM devices
    GROUP BY rank
),

found AS (
    SELECT
        c.rank,
        c.source_file,
        c.source_line,
        c.op_name,
        c.runtime_name,
        c.syncs,
        c.steps,
        c.wait_ns,
        c.longest_ns,
        c.bubbles,
        c.bubble_ns,
        c.gain_ns,
        c.event_ids,
        c.start_ns,
        CASE WHEN c.gain_ns >= d.warning_ns THEN 'warning' ELSE 'info' END AS severity,
        round(c.wait_ns / d.span_ns, 4) AS wait_share,
        coalesce(c.source_line IS NOT NULL AND c.bubbles IS NOT NULL, FALSE) AS is_sure,
        'The host waits for the device' AS say_title,
        NULL AS say_port
    FROM calls AS c
    INNER JOIN device_spans AS d ON c.rank = d.rank
    WHERE c.gain_ns >= d.least_ns
    UNION ALL BY NAME
    SELECT
        p.rank,
        p.source_file,
        p.source_line,
        p.op_name,
        p.op_name AS runtime_name,
        p.syncs,
        p.steps,
        p.event_ids,
        p.start_ns,
        'info' AS severity,
        p.source_line IS NOT NULL AS is_sure,
        'On an accelerator the host would wait' AS say_title,
        'It costs nothing here, but on an accelerator this line makes the host wait for the device'
        || ' in '
        || CASE
            WHEN p.steps = t.steps THEN 'every step'
            WHEN p.steps IS NOT NULL AND t.steps IS NOT NULL
                THEN p.steps || ' of ' || t.steps || ' steps'
            ELSE 'the middle of its work'
        END
        || ' (calls: ' || format('{:,}', p.syncs)
        || CASE WHEN p.steps IS NULL THEN '' ELSE ', steps: ' || p.steps END || ').' AS say_port
    FROM portable AS p
    LEFT JOIN step_counts AS t ON p.rank = t.rank
)

SELECT
    c.syncs,
    c.wait_ns,
    c.severity,
    c.rank,
    c.source_file,
    c.source_line,
    c.op_name,
    c.runtime_name,
    c.steps,
    c.longest_ns,
    c.wait_share,
    c.bubbles,
    c.bubble_ns,
    c.gain_ns AS saving_high_ns,
    c.event_ids,
    c.start_ns,
    c.say_title,
    c.say_port,
    CASE WHEN c.say_port IS NULL THEN 0::BIGINT END AS saving_low_ns,
    CASE
        WHEN c.say_port IS NULL
            THEN 'idle time of the device around the end of each wait, at most the wait itself'
        ELSE 'unknown: there is no device in this trace'
    END AS saving_basis,
    CASE
        WHEN c.op_name IN ('aten::_local_scalar_dense', 'aten::item') THEN '.item()'
        WHEN c.op_name IS NULL THEN c.runtime_name
        WHEN c.say_port IS NOT NULL THEN replace(c.op_name, 'aten::', '') || '()'
        ELSE c.op_name || ' (' || c.runtime_name || ')'
    END AS sync_call,
    format('calls: {:,}', c.syncs)
    || CASE WHEN c.steps IS NULL THEN '' ELSE ', steps: ' || c.steps END AS say_calls,
    CASE WHEN c.is_sure THEN 'high' ELSE 'medium' END AS confidence,
    CASE
        WHEN regexp_matches(c.op_name, '_local_scalar_dense|::item$|is_nonzero|::equal$')
            THEN
                'Keep the value on the device (no .item(), float(), bool() or print of a tensor'
                || ' in the step): accumulate with torch ops and read it once every N steps.'
        WHEN regexp_matches(c.op_name, 'nonzero|masked_select|unique|repeat_interleave|::index')
            THEN
                'Its output size depends on the data, so the host must wait for it: use'
                || ' torch.where or a mask of fixed size, or pass output_size.'
        WHEN
            regexp_matches(c.op_name, 'copy_|::to$')
            OR regexp_matches(c.runtime_name, '[Mm]emcpy')
            THEN
                'Copy from pinned memory with non_blocking=True (DataLoader(pin_memory=True)), or'
                || ' create the tensor on the device.'
        WHEN c.op_name IS NULL
            THEN
                'Remove torch.cuda.synchronize() or the event wait from the step; time with'
                || ' CUDA events and read them after the loop.'
        ELSE 'Move this op out of the step, or replace it by one that needs no value on the host.'
    END AS fix
FROM found AS c
ORDER BY c.gain_ns DESC NULLS LAST, c.wait_ns DESC, c.start_ns ASC
