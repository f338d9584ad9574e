-- +++
-- title = "Kernels shorter than their launch: {place}"
-- question = "Which lines run many kernels that are over sooner than one more launch takes?"
-- severity = "info"
-- needs = ["hardware", "runtime", "measured"]
-- acts_on = "stretch"
-- message = """
-- {kernels:count kernel}[[ (steps: {steps:count})]] of {mean_kernel_ns:ns} on average, where a \
-- launch call takes {launch_ns:ns}: {device_time_ns:ns} of the device, {span_share:share} of its \
-- span[[, and {turnaround_ns:ns} between them]]."""
-- advice = """
-- Do it in fewer kernels: torch.compile around this code, the foreach or fused form of a loop \
-- over tensors, one batched op for many small ones, or a larger batch."""
-- key = ["rank", "device", "source_file", "source_line", "place"]
-- proof = """
-- SELECT *
-- FROM work
-- WHERE rank = {rank} AND list_contains({event_ids}, event_id)
-- ORDER BY start_ns"""
-- reference = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
--
-- [params.max_kernel_ns]
-- default = 10_000
-- doc = "A kernel of more is never tiny, however slow this host launches (ns)."
--
-- [params.min_kernels]
-- default = 100
-- doc = "Places with fewer tiny kernels are left out."
--
-- [params.min_share]
-- default = 0.01
-- doc = "Places whose tiny kernels take less of the device's span are left out (0 to 1)."
--
-- [params.warning_share]
-- default = 0.1
-- doc = "From this share of the span on it is a warning, else info."
--
-- [params.max_gap_ns]
-- default = 2_000
-- doc = "Up to this long a gap is the device's own turnaround between two kernels (ns)."
--
-- [columns]
-- kernels = "Kernels at this place that are shorter than launch_ns and max_kernel_ns."
-- device_time_ns = "Their duration (ns)."
-- span_share = "The same over the span of the device."
-- severity = "warning or info, by span_share."
-- rank = "Distributed rank."
-- device = "Device that ran them."
-- source_file = "File of the line that launches; NULL without stacks."
-- source_line = "That line."
-- module = "Module of the first of them."
-- place = "The line's op with the longest of them; without lines the module, or else the op."
-- steps = "Steps they happen in; NULL where the trace has no steps."
-- mean_kernel_ns = "Mean duration (ns)."
-- launch_ns = "Median duration of a launch call of the rank (ns)."
-- turnaround_ns = "Gaps of at most max_gap_ns that they ended; NULL where none (ns)."
-- saving_low_ns = "0: nothing says that they can become fewer (ns)."
-- saving_high_ns = "device_time_ns and turnaround_ns (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "low: start-up of a kernel and its work cannot be told apart."
-- event_ids = "The kernels."
-- start_ns = "When the first of them ran."
-- +++
-- A kernel has a start-up of its own of some microseconds in which it computes next to nothing.
-- Work cut into kernels shorter than a launch call pays that again and again on the device, and
-- the host cannot keep ahead of it: `launch_overhead` says how long the device waited for that.
--
-- It misleads where the small kernels stand between large ones and hide behind other queues.
--
-- Next: `SELECT name, count(*), median(duration_ns) FROM work WHERE kind = 'kernel' GROUP BY 1`.
WITH limits AS (
    SELECT
        $max_gap_ns AS max_gap_ns,
        $max_kernel_ns AS max_kernel_ns,
        $warning_share AS warning_share,
        $min_kernels AS min_kernels,
        $min_share AS min_share
),

typical AS (
    SELECT
        rank,
        median(duration_ns)::BIGINT AS launch_ns
    FROM launches
    WHERE kind = 'launch' AND work_count = 1 AND duration_ns IS NOT NULL
    GROUP BY rank
),

tiny AS (
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
        y.launch_ns,
        coalesce(w.op_name, w.name) AS op_name,
        if(t.idle_before_ns <= limits.max_gap_ns, t.idle_before_ns, 0) AS turnaround_ns
    FROM work AS w
    INNER JOIN launches AS l ON w.rank = l.rank AND w.launch_id = l.event_id
    INNER JOIN typical AS y ON w.rank = y.rank AND w.duration_ns < y.launch_ns
    INNER JOIN timeline AS t ON w.rank = t.rank AND w.event_id = t.event_id
    CROSS JOIN limits
    WHERE
        w.kind = 'kernel' AND w.duration_ns < limits.max_kernel_ns AND l.work_count = 1
        AND w.phase IS DISTINCT FROM 'compile'
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
        arg_max(op_name, (duration_ns, event_id)) AS main_op,
        any_value(launch_ns) AS launch_ns,
        count(*) AS kernels,
        nullif(count(DISTINCT step), 0) AS steps,
        sum(duration_ns)::BIGINT AS device_time_ns,
        nullif(sum(turnaround_ns), 0)::BIGINT AS turnaround_ns,
        list(event_id ORDER BY event_id ASC) AS event_ids,
        min(start_ns) AS start_ns
    FROM tiny
    GROUP BY rank, device, source_file, source_line, unplaced
)

SELECT
    p.kernels,
    p.rank,
    p.device,
    p.source_file,
    p.source_line,
    p.module,
    p.steps,
    p.launch_ns,
    p.turnaround_ns,
    p.device_time_ns,
    0::BIGINT AS saving_low_ns,
    p.device_time_ns + coalesce(p.turnaround_ns, 0) AS saving_high_ns,
    'high: they become part of other kernels; low: they cannot' AS saving_basis,
    'low' AS confidence,
    p.event_ids,
    p.start_ns,
    p.device_time_ns // p.kernels AS mean_kernel_ns,
    round(p.device_time_ns / d.span_ns, 4) AS span_share,
    CASE
        WHEN p.device_time_ns >= limits.warning_share * d.span_ns THEN 'warning' ELSE 'info'
    END AS severity,
    coalesce(p.unplaced, p.main_op) AS place
FROM places AS p
INNER JOIN devices AS d ON p.rank = d.rank AND p.device = d.device
CROSS JOIN limits
WHERE p.kernels >= limits.min_kernels AND p.device_time_ns >= limits.min_share * d.span_ns
ORDER BY p.device_time_ns DESC, p.start_ns ASC
