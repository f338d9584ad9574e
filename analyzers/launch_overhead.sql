-- +++
-- title = "Kernels cheaper than their launches: {place}"
-- question = "Where does the device wait for launches of kernels that are soon over?"
-- severity = "warning"
-- needs = ["hardware", "runtime", "measured"]
-- acts_on = "gaps"
-- message = """
-- {launches:count launch}[[ (steps: {steps:count})]] of kernels of {mean_kernel_ns:ns} on \
-- average: the calls alone take the host {launch_ns:ns}, the kernels {device_time_ns:ns}. The \
-- device stood still {idle_ns:ns} waiting for them ({idle_share:share} of its span)."""
-- advice = """
-- Launch less often: torch.compile(mode="reduce-overhead") or a CUDA graph around this code, the \
-- foreach or fused form of a loop over tensors, or a larger batch."""
-- key = ["rank", "device", "source_file", "source_line", "place"]
-- proof = """
-- SELECT work.*, launches.duration_ns AS launch_ns, launches.delay_ns
-- FROM work
-- INNER JOIN launches ON work.rank = launches.rank AND work.launch_id = launches.event_id
-- WHERE work.rank = {rank} AND work.device = {device} AND work.kind = 'kernel'
--     AND launches.work_count = 1
--     AND work.source_file IS NOT DISTINCT FROM {source_file}
--     AND work.source_line IS NOT DISTINCT FROM {source_line}
--     AND ({source_line} IS NOT NULL
--         OR {place} IN (work.module, coalesce(work.op_name, work.name)))
-- ORDER BY work.start_ns"""
-- reference = "https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html"
--
-- [params.max_kernel_ns]
-- default = 10_000
-- doc = "Kernels count as tiny up to this mean duration: about what a launch costs the host (ns)."
--
-- [params.min_cost_ratio]
-- default = 0.5
-- doc = "Least host time in launch calls over device time of the kernels."
--
-- [params.max_gap_ns]
-- default = 100_000
-- doc = "Longer gaps have another cause than a launch (see device_idle) and do not count (ns)."
--
-- [params.min_launches]
-- default = 20
-- doc = "Places with fewer such launches are left out."
--
-- [params.min_idle_share]
-- default = 0.05
-- doc = "Places that leave the device idle for less than this share of its span are left out."
--
-- [columns]
-- launches = "Launches of one kernel each at this place."
-- idle_ns = "Idle time of the device that such a kernel ended, launched after it began (ns)."
-- severity = "info below a tenth of the span, else warning."
-- rank = "Distributed rank."
-- device = "Device that waits."
-- source_file = "File of the line that launches; NULL without stacks."
-- source_line = "That line."
-- module = "Module of the first of them."
-- place = "The line's op with the longest kernel; without lines the module, or else the op."
-- steps = "Steps they happen in; NULL where the trace has no steps."
-- mean_kernel_ns = "Mean device time of a kernel (ns)."
-- launch_ns = "Host time in the launch calls alone (ns)."
-- device_time_ns = "Device time of the kernels (ns)."
-- idle_share = "idle_ns over the span of the device."
-- saving_low_ns = "Part of the idle time that the launch calls themselves fill (ns)."
-- saving_high_ns = "idle_ns."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "low where the capture recorded Python frames, which slow every launch."
-- event_ids = "The kernels."
-- start_ns = "When the first of them ran."
-- +++
-- Launching a kernel costs the host some microseconds in the runtime, and more in Python and the
-- dispatcher. When the kernel is over sooner, the device waits for the host, and a faster device
-- would not help.
--
-- Only gaps that a late launch ended count, and only short ones. It misleads where the profiler
-- slows the host: with stacks recorded a launch costs several times what it costs without.
--
-- Next: `compile_opportunities` names runs that become one kernel; `device_idle` shows all idle
-- time.
WITH short_gaps AS (
    SELECT *
    FROM gaps
    WHERE duration_ns <= $max_gap_ns
),

single AS (
    SELECT
        w.rank,
        w.device,
        w.event_id,
        w.source_file,
        w.source_line,
        w.module,
        w.step,
        w.start_ns,
        w.duration_ns,
        l.duration_ns AS launch_ns,
        coalesce(w.op_name, w.name) AS op_name,
        CASE
            WHEN l.start_ns > g.start_ns THEN g.duration_ns
            ELSE 0
        END AS gap_ns
    FROM work AS w
    INNER JOIN launches AS l ON w.rank = l.rank AND w.launch_id = l.event_id
    LEFT JOIN short_gaps AS g
        ON w.rank = g.rank AND w.device = g.device AND w.event_id = g.after_event_id
    WHERE w.kind = 'kernel' AND l.work_count = 1 AND l.duration_ns IS NOT NULL
),

places AS (
    SELECT
        rank,
        device,
        source_file,
        source_line,
        arg_min(module, (start_ns, event_id)) AS module,
        CASE
            WHEN source_line IS NULL THEN coalesce(module, op_name)
        END AS unplaced,
        count(*) AS launches,
        nullif(count(DISTINCT step), 0) AS steps,
        sum(launch_ns)::BIGINT AS launch_ns,
        sum(duration_ns)::BIGINT AS device_time_ns,
        sum(gap_ns)::BIGINT AS idle_ns,
        sum(least(gap_ns, launch_ns))::BIGINT AS idle_in_calls_ns,
        list(event_id ORDER BY event_id ASC) AS event_ids,
        min(start_ns) AS start_ns,
        arg_max(op_name, (duration_ns, event_id)) AS longest_op
    FROM single
    GROUP BY rank, device, source_file, source_line, unplaced
),

device_spans AS (
    SELECT
        rank,
        device,
        span_ns,
        $min_idle_share * span_ns AS least_ns
    FROM devices
),

tiny AS (
    SELECT *
    FROM places
    WHERE
        launches >= $min_launches
        AND device_time_ns <= $max_kernel_ns * launches
        AND launch_ns >= $min_cost_ratio * device_time_ns
),

slowed AS (
    SELECT DISTINCT rank
    FROM events
    WHERE layer = 'python'
)

SELECT
    p.launches,
    p.idle_ns,
    p.rank,
    p.device,
    p.source_file,
    p.source_line,
    p.module,
    p.steps,
    p.launch_ns,
    p.device_time_ns,
    p.idle_in_calls_ns AS saving_low_ns,
    p.idle_ns AS saving_high_ns,
    'idle time that these launches ended: low the part spent in the launch calls, high all of it'
        AS saving_basis,
    p.event_ids,
    p.start_ns,
    CASE WHEN p.idle_ns >= 0.1 * d.span_ns THEN 'warning' ELSE 'info' END AS severity,
    coalesce(p.unplaced, p.longest_op) AS place,
    p.device_time_ns // p.launches AS mean_kernel_ns,
    round(p.idle_ns / d.span_ns, 4) AS idle_share,
    CASE WHEN s.rank IS NULL THEN 'medium' ELSE 'low' END AS confidence
FROM tiny AS p
INNER JOIN device_spans AS d ON p.rank = d.rank AND p.device = d.device
LEFT JOIN slowed AS s ON p.rank = s.rank
WHERE p.idle_ns >= d.least_ns
ORDER BY p.idle_ns DESC, p.start_ns ASC
