-- +++
-- title = "Device idle: {cause_text}"
-- question = "Why does the device stand still while the program runs?"
-- severity = "warning"
-- needs = ["hardware", "measured"]
-- acts_on = "gaps"
-- message = """
-- {device} stands still {device_idle_share:share} of its {span_ns:ns}; for {idle_ns:ns} of that \
-- {cause_text} (gaps: {gaps:count}, longest {longest_ns:ns}[[, spread over {spread_lines:count} \
-- lines]]; {top_share:share} of it {say_top}). [[The thread that launches next ran {busy_op} for \
-- {busy_ns:ns} of it. ]][[{caveat}]]"""
-- advice = "{fix}"
-- key = ["rank", "device", "cause"]
-- proof = """
-- SELECT gaps.*, work.op_name, work.name, work.source_file, work.source_line
-- FROM gaps
-- INNER JOIN work ON gaps.rank = work.rank AND gaps.after_event_id = work.event_id
-- WHERE gaps.rank = {rank} AND gaps.device = {device} AND gaps.after_event_id IN {longest_ids}
-- ORDER BY gaps.duration_ns DESC"""
-- reference = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
--
-- [params.min_gap_ns]
-- default = 2_000
-- doc = "Shorter gaps are the device's own turnaround between two kernels (ns)."
--
-- [params.stall_ns]
-- default = 10_000_000
-- doc = "A late launch is a stall from this gap on: no launch is that slow by itself (ns)."
--
-- [params.min_busy_ns]
-- default = 1_000_000
-- doc = "Ops that keep the launching thread this long in a gap are named (ns)."
--
-- [params.min_idle_share]
-- default = 0.05
-- doc = "Devices that idle less than this share of their span are left out (0 to 1)."
--
-- [params.min_cause_share]
-- default = 0.02
-- doc = "Causes with less idle time than this share of the span are left out (0 to 1)."
--
-- [columns]
-- idle_ns = "Idle time of this cause (ns)."
-- device_idle_share = "Idle over span of the device, whatever the cause."
-- severity = "info below a tenth of the span, else warning."
-- rank = "Distributed rank."
-- device = "Device that idles."
-- cause = "input, allocation, gc, compile, sync, host, stall, launch, queued or unknown."
-- cause_text = "The cause in words."
-- source_file = "File of the line with most of the idle time; NULL where no line has half of it."
-- source_line = "That line."
-- spread_lines = "Lines that share it where no line has half of it; else NULL."
-- top_where = "before: the op is what the device waited for; at: it is what the host was in."
-- top_line = "The line with the most idle time, as text; NULL without lines."
-- top_op = "The op, call or event with the most idle time there."
-- top_module = "Class of the module there; NULL where unknown."
-- top_ns = "Idle time at that line (ns)."
-- top_share = "Its share of the idle time of this cause."
-- busy_op = "Op that ran on the launching thread in a tenth of that time or more; NULL if none."
-- busy_ns = "Time of it in those gaps (ns)."
-- gaps = "Gaps of this cause."
-- longest_ns = "The longest of them (ns)."
-- longest_ids = "Work that ended the longest gaps; at most twenty."
-- span_ns = "First to last work on the device (ns)."
-- saving_low_ns = "0: work that is moved off the gap may only make the next gap longer."
-- saving_high_ns = "The idle time of this cause (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- caveat = "What about the capture itself lengthens host time; NULL if nothing."
-- confidence = "low where the capture slows the host or the cause is not seen."
-- say_top = "Line, module and op with the most idle time."
-- fix = "The change to make."
-- event_ids = "The work that ended each gap."
-- start_ns = "When the longest gap began."
-- +++
-- A gap is a stretch in which no queue of the device worked. Its cause, in order of proof: the
-- host waited for input, memory, the garbage collector or the compiler for half of it or more; a
-- synchronising call held the host when the device ran dry, and for at least half as long as the
-- gap, so without it the next launch had come in time; the work that ends the gap was launched
-- only during the gap (the host is the bottleneck, or stalls); its launch call was still running
-- when the gap began; or it had been launched before (the device started it late: launch latency,
-- or it waited for another queue or rank).
--
-- Idle time is an upper bound of the gain: a host that stops waiting in one place may wait in the
-- next. A profiler that records Python stacks makes the host slower than it is in production:
-- capture once more without them before you act on cause `host`.
--
-- Next: `host_syncs` and `launch_overhead` name more lines.
WITH idle_devices AS (
    SELECT
        rank,
        device,
        idle_ns,
        span_ns,
        $min_cause_share * span_ns AS least_ns
    FROM devices
    WHERE idle_ns >= $min_idle_share * span_ns
),

long_gaps AS (
    SELECT
        *,
        duration_ns >= $stall_ns AS is_stall
    FROM gaps
    WHERE duration_ns >= $min_gap_ns
),

ended AS (
    SELECT
        g.rank,
        g.device,
        g.start_ns,
        g.end_ns,
        g.duration_ns,
        g.is_stall,
        g.after_event_id,
        w.source_file,
        w.source_line,
        w.module_class,
        l.pid,
        l.tid,
        l.start_ns AS launch_start_ns,
        l.start_ns + l.duration_ns AS launch_end_ns,
        { 'file': w.source_file, 'line': w.source_line, 'op': l.name } AS launch_place,
        coalesce(w.op_name, w.name) AS op_name
    FROM long_gaps AS g
    INNER JOIN work AS w ON g.rank = w.rank AND g.after_event_id = w.event_id
    LEFT JOIN launches AS l ON w.rank = l.rank AND w.launch_id = l.event_id
),

blockers AS (
    SELECT
        rank,
        start_ns,
        end_ns,
        { 'file': source_file, 'line': source_line, 'op': name } AS place,
        CASE
            WHEN layer = 'runtime' THEN 'allocation'
            WHEN layer = 'compiler' THEN 'compile'
            WHEN kind = 'gc' THEN 'gc'
            ELSE 'input'
        END AS cause
    FROM events
    WHERE
        duration_ns >= $min_gap_ns
        AND (
            (layer = 'host' AND kind IN ('input_wait', 'gc'))
            OR (layer = 'runtime' AND kind = 'allocation')
            OR (layer = 'compiler' AND kind = 'compile')
        )
),

blocked AS (
    SELECT
        e.rank,
        e.device,
        e.start_ns,
        b.cause,
        arg_max(b.place, (b.end_ns - b.start_ns, b.start_ns)) AS place,
        sum(least(e.end_ns, b.end_ns) - greatest(e.start_ns, b.start_ns)) AS overlap_ns
    FROM ended AS e
    INNER JOIN blockers AS b
        ON e.rank = b.rank AND e.end_ns > b.start_ns AND e.start_ns < b.end_ns
    GROUP BY ALL
),

main_blocker AS (
    SELECT
        rank,
        device,
        start_ns,
        arg_max(cause, (overlap_ns, cause)) AS cause,
        arg_max(place, (overlap_ns, cause)) AS place,
        max(overlap_ns) AS overlap_ns
    FROM blocked
    GROUP BY ALL
),

host_waits AS (
    SELECT
        *,
        start_ns + duration_ns AS end_ns
    FROM syncs
    WHERE duration_ns IS NOT NULL
),

drained AS (
    SELECT
        e.*,
        -- without the wait the next launch had come that much earlier
        s.start_ns < e.start_ns AND s.end_ns >= e.start_ns AND s.wait_ns * 2 >= e.duration_ns
            AS drained,
        { 'file': s.source_file, 'line': s.source_line, 'op': coalesce(s.op_name, s.name) }
            AS sync_place
    FROM ended AS e
    ASOF LEFT JOIN host_waits AS s
        ON e.rank = s.rank AND e.end_ns >= s.end_ns
),

causes AS (
    SELECT
        d.*,
        m.place AS blocker_place,
        CASE
            WHEN m.overlap_ns * 2 >= d.duration_ns THEN m.cause
            WHEN d.drained THEN 'sync'
            WHEN d.launch_start_ns IS NULL THEN 'unknown'
            WHEN d.launch_start_ns > d.start_ns AND d.is_stall THEN 'stall'
            WHEN d.launch_start_ns > d.start_ns THEN 'host'
            WHEN d.launch_end_ns > d.start_ns THEN 'launch'
            ELSE 'queued'
        END AS cause
    FROM drained AS d
    LEFT JOIN main_blocker AS m
        ON d.rank = m.rank AND d.device = m.device AND d.start_ns = m.start_ns
),

placed AS (
    SELECT
        rank,
        device,
        cause,
        start_ns,
        duration_ns,
        after_event_id,
        CASE
            WHEN cause = 'sync' THEN sync_place
            WHEN cause = 'launch' THEN launch_place
            WHEN cause IN ('input', 'allocation', 'gc', 'compile') THEN blocker_place
            ELSE { 'file': source_file, 'line': source_line, 'op': op_name }
        END AS place,
        CASE WHEN cause IN ('host', 'stall', 'queued', 'unknown', 'launch') THEN module_class END
            AS module_class,
        -- without a line the op stands for it
        coalesce(place['file'] || ':' || place['line'], place['op']) AS spot
    FROM causes
),

ops_of_spots AS (
    SELECT
        rank,
        device,
        cause,
        spot,
        place.op AS op,
        any_value(place.file) AS file,
        any_value(place.line) AS line,
        arg_max(module_class, (duration_ns, after_event_id)) AS module_class,
        sum(duration_ns) AS op_ns
    FROM placed
    GROUP BY ALL
),

spots AS (
    SELECT
        rank,
        device,
        cause,
        spot,
        any_value(file) AS file,
        any_value(line) AS line,
        arg_max(op, (op_ns, op)) AS op,
        count(*) AS ops,
        arg_max(module_class, (op_ns, op)) AS module_class,
        sum(op_ns)::BIGINT AS top_ns
    FROM ops_of_spots
    GROUP BY ALL
),

-- what the launching thread did before a late launch: the innermost op that fills half of the gap
long_ops AS (
    SELECT
        rank,
        pid,
        tid,
        name,
        start_ns,
        end_ns,
        duration_ns
    FROM events
    WHERE
        layer = 'framework' AND kind = 'op' AND phase IS DISTINCT FROM 'compile'
        AND duration_ns * 2 >= $min_busy_ns
),

late_launches AS (
    SELECT *
    FROM causes
    WHERE cause IN ('host', 'stall') AND duration_ns >= $min_busy_ns
),

busy_gaps AS (
    SELECT
        c.rank,
        c.device,
        c.cause,
        c.start_ns,
        arg_min(o.name, (o.duration_ns, o.start_ns)) AS name,
        arg_min(
            least(o.end_ns, c.launch_start_ns) - greatest(o.start_ns, c.start_ns),
            (o.duration_ns, o.start_ns)
        ) AS busy_ns
    FROM late_launches AS c
    INNER JOIN long_ops AS o
        ON
            c.rank = o.rank AND c.pid = o.pid AND c.tid = o.tid
            AND c.launch_start_ns > o.start_ns AND c.start_ns < o.end_ns
    WHERE
        (least(o.end_ns, c.launch_start_ns) - greatest(o.start_ns, c.start_ns)) * 2
        >= c.duration_ns
    GROUP BY ALL
),

busy_ops AS (
    SELECT
        rank,
        device,
        cause,
        name,
        sum(busy_ns)::BIGINT AS busy_ns
    FROM busy_gaps
    GROUP BY ALL
),

busiest AS (
    SELECT
        rank,
        device,
        cause,
        arg_max(name, (busy_ns, name)) AS busy_op,
        max(busy_ns) AS busy_ns
    FROM busy_ops
    GROUP BY ALL
),

tops AS (
    SELECT
        rank,
        device,
        cause,
        arg_max(
            { 'file': file, 'line': line, 'op': op, 'ops': ops, 'module': module_class },
            (top_ns, spot)
        ) AS place,
        count(line) AS lines,
        max(top_ns) AS top_ns
    FROM spots
    GROUP BY ALL
),

summed AS (
    SELECT
        rank,
        device,
        cause,
        count(*) AS gaps,
        sum(duration_ns)::BIGINT AS idle_ns,
        max(duration_ns) AS longest_ns,
        list(after_event_id ORDER BY duration_ns DESC, after_event_id ASC)[1:20] AS longest_ids,
        arg_max(start_ns, (duration_ns, start_ns)) AS start_ns,
        list(after_event_id ORDER BY after_event_id ASC) AS event_ids
    FROM placed
    GROUP BY ALL
),

slowed AS (
    SELECT
        rank,
        'This capture recorded Python frames, which slow the host: the gaps of an ordinary run'
        || ' are shorter.' AS caveat
    FROM events
    WHERE layer = 'python'
    GROUP BY rank
)

SELECT
    s.idle_ns,
    s.rank,
    s.device,
    s.cause,
    CASE WHEN t.top_ns * 2 >= s.idle_ns THEN t.place.file END AS source_file,
    CASE WHEN t.top_ns * 2 >= s.idle_ns THEN t.place.line END AS source_line,
    CASE WHEN t.top_ns * 2 < s.idle_ns THEN nullif(t.lines, 0) END AS spread_lines,
    regexp_extract(t.place.file, '[^/]*$') || ':' || t.place.line AS top_line,
    t.place.op AS top_op,
    t.place.module AS top_module,
    t.top_ns,
    round(t.top_ns / s.idle_ns, 3) AS top_share,
    -- a tenth of the idle time, or it is not what the finding is about
    if(b.busy_ns * 10 >= s.idle_ns, b.busy_op, NULL) AS busy_op,
    if(b.busy_ns * 10 >= s.idle_ns, b.busy_ns, NULL) AS busy_ns,
    s.gaps,
    s.longest_ns,
    s.longest_ids,
    d.span_ns,
    0::BIGINT AS saving_low_ns,
    s.idle_ns AS saving_high_ns,
    'at most the idle time of this cause; nothing where the host has no time to give'
        AS saving_basis,
    s.event_ids,
    s.start_ns,
    round(d.idle_ns / d.span_ns, 3) AS device_idle_share,
    CASE WHEN s.idle_ns >= 0.1 * d.span_ns THEN 'warning' ELSE 'info' END AS severity,
    CASE s.cause
        WHEN 'input' THEN 'the host waits for input data'
        WHEN 'allocation' THEN 'the host allocates device memory from the driver'
        WHEN 'gc' THEN 'the garbage collector of Python runs'
        WHEN 'compile' THEN 'the compiler runs'
        WHEN 'sync' THEN 'the host waited for the device and had nothing queued behind it'
        WHEN 'host' THEN 'the host launches work later than the device could run it'
        WHEN 'stall' THEN 'the host does something else for a long time before it launches again'
        WHEN 'launch' THEN 'the launch call itself takes longer than the device has work'
        WHEN 'queued' THEN 'work that was launched in time started late on the device'
        ELSE 'the trace does not show why'
    END AS cause_text,
    CASE WHEN s.cause IN ('host', 'stall', 'queued', 'unknown') THEN 'before' ELSE 'at' END
        AS top_where,
    CASE
        WHEN t.place.line IS NULL THEN ''
        WHEN t.top_ns * 2 >= s.idle_ns THEN 'at this line'
        ELSE 'at ' || top_line
    END
    || coalesce(' in ' || t.place.module, '')
    || CASE
        WHEN t.place.line IS NULL THEN ''
        WHEN t.place.ops > 1 THEN ', most of that '
        ELSE ', '
    END
    || top_where || ' ' || t.place.op AS say_top,
    CASE WHEN s.cause IN ('host', 'stall', 'sync') THEN p.caveat END AS caveat,
    CASE
        WHEN s.cause IN ('unknown', 'queued') THEN 'low'
        WHEN s.cause IN ('host', 'stall', 'sync') AND p.caveat IS NOT NULL THEN 'low'
        ELSE 'medium'
    END AS confidence,
    CASE s.cause
        WHEN 'input'
            THEN
                'Give the DataLoader more num_workers, persistent_workers=True and'
                || ' pin_memory=True, and copy with non_blocking=True.'
        WHEN 'allocation'
            THEN
                'Warm up before measuring; then keep shapes stable, or set'
                || ' PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: the cache then serves them.'
        WHEN 'gc'
            THEN 'Call gc.freeze() after set-up and collect between steps, not inside them.'
        WHEN 'compile'
            THEN 'Compile in a warm-up step; mark changing sizes with torch._dynamo.mark_dynamic.'
        WHEN 'sync'
            THEN
                'Remove the synchronising call of this line from the step: keep the value on the'
                || ' device, or read it once in many steps.'
        WHEN 'host'
            THEN
                'Give the device more work a launch: torch.compile(mode="reduce-overhead"), CUDA'
                || ' graphs, a larger batch, or less Python in this loop.'
        WHEN 'stall'
            THEN
                'Find what the host does before this op (first call and its set-up, loading,'
                || ' logging, checkpoints): warm up before the capture, or move it off the step.'
        WHEN 'launch'
            THEN
                'A launch call this slow uploads a graph, loads a kernel for the first time, or'
                || ' finds the queue full: warm up, or replay fewer and larger graphs.'
        WHEN 'queued'
            THEN
                'Fewer and larger kernels (torch.compile, CUDA graphs) shrink these gaps; long'
                || ' ones wait for another queue or rank: look at what ran there.'
        ELSE 'Capture with the runtime activity of the device so that launches are recorded.'
    END AS fix
FROM summed AS s
INNER JOIN tops AS t ON s.rank = t.rank AND s.device = t.device AND s.cause = t.cause
INNER JOIN idle_devices AS d ON s.rank = d.rank AND s.device = d.device
LEFT JOIN slowed AS p ON s.rank = p.rank
LEFT JOIN busiest AS b ON s.rank = b.rank AND s.device = b.device AND s.cause = b.cause
WHERE s.idle_ns >= d.least_ns
ORDER BY s.idle_ns DESC, s.rank ASC, s.device ASC, s.cause ASC
