-- +++
-- title = "Made on the CPU, then copied to the device: {op_names}"
-- question = "Which lines create a tensor on the CPU only to copy it to the device?"
-- severity = "info"
-- needs = ["hardware", "runtime", "framework", "shapes", "measured"]
-- message = """
-- {copies:count time}[[ in {steps:count step}]], {op_names} made a tensor of {shape} on the CPU \
-- and the next call copied it to {device}: {host_ns:ns} on the host, {device_time_ns:ns} on the \
-- link."""
-- advice = """
-- Create it where it is used: torch.{op}(..., device=x.device), or torch.{op}_like(x) where it \
-- has the shape of another tensor; what never changes is a registered buffer, made once."""
-- key = ["rank", "device", "source_file", "source_line", "anonymous_op"]
-- proof = """
-- SELECT *
-- FROM work
-- WHERE rank = {rank} AND list_contains({event_ids}, event_id)
-- ORDER BY start_ns"""
-- reference = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
--
-- [params.min_share]
-- default = 0.001
-- doc = "Lines that take less of the recorded time on the host are left out (0 to 1)."
--
-- [params.warning_share]
-- default = 0.03
-- doc = "From this share on a line is a warning, else info."
--
-- [columns]
-- copies = "Tensors made and copied."
-- op_names = "Ops that made them, at most three."
-- op = "That of the longest copy, without its namespace."
-- shape = "Shape of the largest copy."
-- host_ns = "Host time of the ops and of the copies' calls (ns)."
-- device_time_ns = "Duration of the copies on the device (ns)."
-- share = "Host time over the recorded time."
-- rank = "Distributed rank."
-- device = "Device they are copied to."
-- source_file = "File of the line that makes them; NULL without stacks."
-- source_line = "That line."
-- module = "Module of the first."
-- anonymous_op = "Op and shapes; they stand for the line where none is known."
-- steps = "Steps they ran in; NULL where the trace has no steps."
-- severity = "warning or info, by that share."
-- saving_low_ns = "The copies, as far as they set the pace (ns)."
-- saving_high_ns = "The longer of both: host time, copies (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "high where the line is known."
-- event_ids = "The copies."
-- start_ns = "When the first of them ran."
-- +++
-- `torch.zeros(n).cuda()` fills memory of the host, then waits while pageable memory is copied over
-- the link. `torch.zeros(n, device="cuda")` is one small kernel.
-- A pair counts when an op that makes a tensor (zeros, ones, full, arange, rand, eye, ...) launches
-- nothing and the next call but views copies a tensor of the same shape to the device. Tensors from
-- Python numbers (torch.tensor) are copied either way and do not count.
--
-- Next: `blocking_copies` for all other copies to the device.
WITH working AS (
    SELECT
        *,
        output_shapes ->> '$[0]' AS made_shape,
        coalesce(input_shapes ->> if(name = 'aten::copy_', '$[1]', '$[0]'), '') AS read_shape
    FROM op_calls
    WHERE
        coalesce(family IS DISTINCT FROM 'view', TRUE)
        OR regexp_matches(name, '^aten::(empty|new_empty)(_like)?$')
),

pairs AS (
    SELECT
        *,
        lead(event_id) OVER thread AS copy_id,
        lead(name) OVER thread AS copy_name,
        lead(read_shape) OVER thread AS copy_shape,
        lead(works) OVER thread AS copy_works,
        lead(work_ids) OVER thread AS copy_work_ids,
        lead(work_ns) OVER thread AS copy_work_ns,
        lead(paced_ns) OVER thread AS copy_paced_ns,
        lead(duration_ns) OVER thread AS copy_host_ns,
        lead(device) OVER thread AS copy_device
    FROM working
    WINDOW thread AS (PARTITION BY rank, pid, tid ORDER BY place ASC)
),

made AS (
    SELECT
        p.rank,
        p.event_id,
        p.name,
        p.step,
        p.module,
        p.source_file,
        p.source_line,
        p.start_ns,
        p.made_shape,
        p.copy_work_ids,
        p.copy_work_ns,
        p.copy_paced_ns,
        p.copy_device,
        p.duration_ns + p.copy_host_ns AS host_ns,
        if(p.source_line IS NULL, p.name || ' ' || p.made_shape, NULL) AS anonymous_op
    FROM pairs AS p
    INNER JOIN copies AS c ON p.rank = c.rank AND p.copy_work_ids[1] = c.event_id
    WHERE
        p.works = 0 AND p.copy_works = 1 AND p.made_shape = p.copy_shape
        AND regexp_matches(
            p.name,
            '^aten::(new_)?(zeros|ones|full|empty|arange|linspace|eye|rand|randn|randint|randperm'
            || '|tril|triu|one_hot)(_like)?$'
        )
        AND p.copy_name IN ('aten::to', 'aten::_to_copy', 'aten::copy_', 'aten::cuda')
        AND c.direction = 'to the device'
),

places AS (
    SELECT
        rank,
        copy_device AS device,
        source_file,
        source_line,
        anonymous_op,
        count(*) AS copies,
        nullif(count(DISTINCT step), 0) AS steps,
        list_sort(list(DISTINCT name)) AS names,
        arg_max(name, (copy_work_ns, event_id)) AS name,
        arg_max(made_shape, (copy_work_ns, event_id)) AS shape,
        sum(host_ns)::BIGINT AS host_ns,
        sum(copy_work_ns)::BIGINT AS device_time_ns,
        sum(copy_paced_ns)::BIGINT AS paced_ns,
        arg_min(module, start_ns) AS module,
        list_sort(flatten(list(copy_work_ids))) AS event_ids,
        min(start_ns) AS start_ns
    FROM made
    GROUP BY ALL
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
    p.copies,
    p.shape,
    p.host_ns,
    p.device_time_ns,
    p.rank,
    p.device,
    p.source_file,
    p.source_line,
    p.module,
    p.anonymous_op,
    p.steps,
    p.event_ids,
    p.start_ns,
    p.paced_ns AS saving_low_ns,
    greatest(p.host_ns, p.device_time_ns) AS saving_high_ns,
    'low: the copies that set the pace; high: the host''s time for op and copy, or the copies'
        AS saving_basis,
    round(p.host_ns / s.span_ns, 4) AS share,
    regexp_replace(p.name, '^aten::(new_)?|_like$', '', 'g') AS op,
    replace(array_to_string(p.names[1:3], ', '), 'aten::', '')
    || CASE WHEN len(p.names) > 3 THEN ', ...' ELSE '' END AS op_names,
    CASE WHEN p.host_ns >= s.warning_ns THEN 'warning' ELSE 'info' END AS severity,
    CASE WHEN p.source_line IS NULL THEN 'medium' ELSE 'high' END AS confidence
FROM places AS p
INNER JOIN recorded_spans AS s ON p.rank = s.rank
WHERE greatest(p.host_ns, p.device_time_ns) >= s.least_ns
ORDER BY saving_high_ns DESC, p.start_ns ASC
