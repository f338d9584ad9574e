-- +++
-- title = "The optimizer updates its {tensors:count tensor} one by one: {optimizer}"
-- question = "Which optimizer step runs small ops for every parameter?"
-- severity = "warning"
-- needs = ["framework", "work", "measured"]
-- acts_on = "stretch"
-- message = """
-- {optimizer}: {ops_per_step:count op} a step, {kinds:count kind} ({op_names}), up to \
-- {tensors:count time} each. {calls:count call} took {host_ns:ns} on the host and \
-- {device_time_ns:ns} of work.[[ The device stood still {idle_ns:ns} before it.]]"""
-- advice = "{fix}"
-- key = ["rank", "device", "source_file", "source_line", "optimizer"]
-- proof = """
-- SELECT *
-- FROM work
-- WHERE rank = {rank} AND list_contains({event_ids}, event_id)
-- ORDER BY start_ns"""
-- reference = "https://docs.pytorch.org/docs/stable/optim.html"
--
-- [params.min_tensors]
-- default = 16
-- doc = "An op must run this often in one call of step(), once a tensor."
--
-- [params.min_share]
-- default = 0.01
-- doc = "Optimizers with less of the device's span (busy time on a CPU) are left out (0 to 1)."
--
-- [params.warning_share]
-- default = 0.05
-- doc = "From this share on it is a warning, else info."
--
-- [columns]
-- tensors = "How often the most frequent op but copies and fills ran in one call: its tensors."
-- ops_per_step = "Units of work in one call, rounded down."
-- kinds = "Different ops among them."
-- op_names = "Their names, most frequent first, at most three."
-- calls = "Calls of step()."
-- units = "Units of work in all of them."
-- host_ns = "Time from the first to the last op of each call, or that of its annotation (ns)."
-- device_time_ns = "Duration of the units of work (ns)."
-- idle_ns = "How long the device had nothing to do before them; NULL on a CPU (ns)."
-- floor_ns = "Bytes of the op that moves most, over the bandwidth: one pass; NULL if unknown."
-- optimizer = "Class of the optimizer, or `optimizer` where no annotation names it."
-- rank = "Distributed rank."
-- device = "Device of the work."
-- source_file = "File of the line that called step(); NULL without stacks."
-- source_line = "That line."
-- severity = "warning or info, by time over the span."
-- saving_low_ns = "Idle time in launch calls, for all but one tensor; CPU: host_ns less work (ns)."
-- saving_high_ns = "Work, and idle time or host time, above one pass over the bytes (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "high where the line and the optimizer are known."
-- fix = "The change to make."
-- event_ids = "The units of work."
-- start_ns = "When the first of them ran."
-- +++
-- A single-tensor optimizer runs every formula of its update once per parameter: a model of 300
-- tensors launches thousands of kernels a step. `foreach=True` runs each formula once for all of
-- them, `fused=True` the whole update in one kernel, which also reads and writes each tensor once.
--
-- Ops inside a `_foreach_` or `_fused_` op do not count, and neither does `zero_grad`. On a CPU a
-- foreach op still loops, so only `fused=True` helps there. `capturable`, `differentiable` or a
-- tensor as learning rate can make PyTorch fall back to single tensors.
--
-- Next: `SELECT op_name, count(*) FROM work WHERE phase = 'optimizer' GROUP BY 1`.
WITH marked AS (
    SELECT
        rank,
        event_id,
        pid,
        tid,
        kind,
        name,
        start_ns,
        end_ns,
        source_file,
        source_line,
        kind = 'annotation' AND starts_with(name, 'Optimizer.step#') AS is_call,
        kind = 'annotation' AND starts_with(name, 'Optimizer.zero_grad#') AS is_zero,
        kind = 'op' AND regexp_matches(name, '_foreach_|_fused_') AS is_joint
    FROM events
    WHERE
        layer = 'framework' AND kind IN ('op', 'annotation') AND phase = 'optimizer'
        AND start_ns IS NOT NULL AND end_ns IS NOT NULL
),

placed AS (
    SELECT
        *,
        max(end_ns) FILTER (WHERE is_zero OR is_joint) OVER before AS left_out_until_ns,
        max(end_ns) FILTER (WHERE is_call) OVER before AS call_until_ns,
        arg_max(event_id, start_ns) FILTER (WHERE is_call) OVER before AS last_call_id
    FROM marked
    WINDOW before AS (
        PARTITION BY rank, pid, tid ORDER BY start_ns ASC, end_ns DESC, event_id ASC
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),

single AS (
    SELECT
        p.rank,
        p.event_id,
        p.start_ns AS op_start_ns,
        p.end_ns AS op_end_ns,
        p.source_file,
        p.source_line,
        if(p.start_ns < p.call_until_ns, p.last_call_id, NULL) AS call_id
    FROM placed AS p
    WHERE
        p.kind = 'op' AND NOT p.is_joint
        AND p.start_ns >= coalesce(p.left_out_until_ns, p.start_ns)
),

units AS (
    SELECT
        w.rank,
        w.device,
        w.event_id,
        w.op_name,
        coalesce(w.family, 'other') NOT IN ('copy', 'cast', 'fill') AS is_update,
        w.start_ns,
        w.duration_ns,
        s.op_start_ns,
        s.op_end_ns,
        r.memory_floor_ns,
        coalesce(c.source_file, s.source_file) AS source_file,
        if(c.source_file IS NULL, s.source_line, c.source_line) AS source_line,
        coalesce(s.call_id, -1 - coalesce(w.step, 0)) AS call_id,
        c.end_ns - c.start_ns AS call_ns,
        if(w.device = 'cpu', NULL, t.idle_before_ns) AS idle_ns,
        if(
            w.device = 'cpu', NULL, least(t.idle_before_ns, coalesce(l.duration_ns, 0))
        ) AS in_calls_ns,
        coalesce(replace(c.name, 'Optimizer.step#', ''), 'optimizer') AS optimizer
    FROM single AS s
    INNER JOIN work AS w ON s.rank = w.rank AND s.event_id = w.op_id
    LEFT JOIN roofline AS r ON w.rank = r.rank AND w.event_id = r.event_id
    LEFT JOIN timeline AS t ON w.rank = t.rank AND w.event_id = t.event_id
    LEFT JOIN launches AS l ON w.rank = l.rank AND w.launch_id = l.event_id
    LEFT JOIN placed AS c ON s.rank = c.rank AND s.call_id = c.event_id
),

of_op AS (
    SELECT
        rank,
        device,
        source_file,
        source_line,
        optimizer,
        call_id,
        op_name,
        is_update,
        count(*) AS units,
        sum(memory_floor_ns) AS floor_ns
    FROM units
    GROUP BY ALL
),

kinds AS (
    SELECT
        rank,
        device,
        source_file,
        source_line,
        optimizer,
        op_name,
        max(units) FILTER (WHERE is_update) AS most_updates,
        max(units) AS most,
        sum(floor_ns) AS floor_ns
    FROM of_op
    GROUP BY ALL
),

named AS (
    SELECT
        rank,
        device,
        source_file,
        source_line,
        optimizer,
        count(*) AS kinds,
        max(most_updates) AS tensors,
        coalesce(max(most_updates) >= $min_tensors, FALSE) AS is_many,
        max(floor_ns)::BIGINT AS floor_ns,
        list(op_name ORDER BY most DESC, op_name ASC) AS op_names
    FROM kinds
    GROUP BY ALL
),

calls AS (
    SELECT
        rank,
        device,
        source_file,
        source_line,
        optimizer,
        call_id,
        count(*) AS units,
        coalesce(max(call_ns), max(op_end_ns) - min(op_start_ns)) AS host_ns,
        sum(duration_ns) AS device_time_ns,
        sum(idle_ns) AS idle_ns,
        sum(in_calls_ns) AS in_calls_ns,
        list(event_id) AS event_ids,
        min(start_ns) AS start_ns
    FROM units
    GROUP BY ALL
),

steps_of AS (
    SELECT
        rank,
        device,
        source_file,
        source_line,
        optimizer,
        count(*) AS calls,
        sum(units)::BIGINT AS units,
        sum(host_ns)::BIGINT AS host_ns,
        sum(device_time_ns)::BIGINT AS device_time_ns,
        sum(idle_ns)::BIGINT AS idle_ns,
        sum(in_calls_ns)::BIGINT AS in_calls_ns,
        list_sort(flatten(list(event_ids))) AS event_ids,
        min(start_ns) AS start_ns
    FROM calls
    GROUP BY ALL
),

judged AS (
    SELECT
        s.*,
        n.kinds,
        n.tensors,
        n.floor_ns,
        n.op_names,
        if(d.device = 'cpu', d.busy_ns, d.span_ns) AS span_ns,
        if(s.device = 'cpu', greatest(s.host_ns, s.device_time_ns), s.device_time_ns + s.idle_ns)
            AS taken_ns
    FROM steps_of AS s
    INNER JOIN named AS n
        ON
            s.rank = n.rank AND s.device = n.device AND s.optimizer = n.optimizer
            AND s.source_file IS NOT DISTINCT FROM n.source_file
            AND s.source_line IS NOT DISTINCT FROM n.source_line
    INNER JOIN devices AS d ON s.rank = d.rank AND s.device = d.device
    WHERE n.is_many
)

SELECT
    j.tensors,
    j.kinds,
    j.calls,
    j.units,
    j.host_ns,
    j.device_time_ns,
    j.idle_ns,
    j.floor_ns,
    j.optimizer,
    j.rank,
    j.device,
    j.source_file,
    j.source_line,
    j.event_ids,
    j.start_ns,
    j.units // j.calls AS ops_per_step,
    replace(array_to_string(j.op_names[1:3], ', '), 'aten::', '')
    || CASE WHEN j.kinds > 3 THEN ', ...' ELSE '' END AS op_names,
    CASE WHEN j.taken_ns >= $warning_share * j.span_ns THEN 'warning' ELSE 'info' END AS severity,
    CASE
        WHEN j.device = 'cpu'
            THEN least(
                greatest(0, j.host_ns - j.device_time_ns),
                greatest(0, j.taken_ns - coalesce(j.floor_ns, 0))
            )
        ELSE coalesce(round(j.in_calls_ns * (1 - 1 / j.tensors)), 0)
    END::BIGINT AS saving_low_ns,
    greatest(0, j.taken_ns - coalesce(j.floor_ns, 0)) AS saving_high_ns,
    CASE
        WHEN j.device = 'cpu'
            THEN
                'low: the time of step() between its ops; high: all of it above one pass over the'
                || ' bytes of its largest op'
        ELSE
            'low: idle time of the device inside launch calls, for all but one tensor; high: work'
            || ' and idle time above one pass over the bytes of its largest op'
    END AS saving_basis,
    CASE
        WHEN j.source_line IS NOT NULL AND j.optimizer <> 'optimizer' THEN 'high' ELSE 'medium'
    END AS confidence,
    CASE
        WHEN j.device = 'cpu'
            THEN
                'Build the optimizer with fused=True (Adam, AdamW, SGD and Adagrad have it on a'
                || ' CPU); foreach=True gains nothing there.'
        ELSE
            'Build the optimizer with fused=True, or foreach=True where it has no fused form;'
            || ' for an optimizer of your own, use the torch._foreach_ ops.'
    END AS fix
FROM judged AS j
WHERE j.taken_ns >= $min_share * j.span_ns
ORDER BY saving_high_ns DESC, j.start_ns ASC
