-- +++
-- title = "zero_grad writes zeros into {tensors:count gradient}"
-- question = "Which zero_grad fills gradients that could be dropped?"
-- severity = "info"
-- likely = 0.75
-- needs = ["framework", "work", "measured"]
-- message = """
-- {calls:count call} of zero_grad(set_to_none=False) fill {tensors:count gradient} each: \
-- {device_time_ns:ns}.[[ Then the backward adds to the zeros: {adds_ns:ns}.]]"""
-- advice = """
-- Call zero_grad() with set_to_none=True, its default: the next backward then stores its \
-- gradients without a fill and an add. Code that reads p.grad must allow None."""
-- key = ["rank", "device", "source_file", "source_line", "optimizer"]
-- proof = """
-- SELECT *
-- FROM work
-- WHERE rank = {rank} AND list_contains({event_ids}, event_id)
-- ORDER BY start_ns"""
-- reference = "https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html"
--
-- [params.min_share]
-- default = 0.001
-- doc = "Calls that fill for less of the recorded time are left out (0 to 1)."
--
-- [params.warning_share]
-- default = 0.03
-- doc = "From this share on, fills and adds together, it is a warning, else info."
--
-- [columns]
-- tensors = "Gradients filled in one call, rounded down."
-- calls = "Calls of zero_grad."
-- fills = "Units of work that fill, in all calls."
-- device_time_ns = "Their time (ns)."
-- adds_ns = "Adds of as many gradients in the backward; NULL where none were seen (ns)."
-- optimizer = "Class of the optimizer."
-- rank = "Distributed rank."
-- device = "Device of the gradients."
-- source_file = "File of the line that called zero_grad; NULL without stacks."
-- source_line = "That line."
-- severity = "warning or info, by fills and adds over the recorded time."
-- saving_low_ns = "The fills, and the third of the adds that a copy would not spare (ns)."
-- saving_high_ns = "Fills and adds, or the host's time for them where it is late (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "high where the line is known."
-- event_ids = "The fills."
-- start_ns = "When the first of them ran."
-- +++
-- A gradient that is None costs nothing to clear, and the first backward that follows hands its
-- result over. A gradient full of zeros is written once for the zeros, then read and written again
-- to add to it. Where several backward passes add up, only the first add goes.
--
-- It also changes the optimizer: parameters without a gradient are skipped, not updated with zeros.
--
-- Next: `SELECT * FROM op_calls WHERE name = 'aten::zero_'`.
WITH zeroed AS (
    SELECT
        rank,
        event_id,
        pid,
        tid,
        start_ns,
        end_ns,
        source_file,
        source_line,
        regexp_extract(name, '#(.*)\.', 1) AS optimizer
    FROM events
    WHERE
        layer = 'framework' AND kind = 'annotation'
        AND starts_with(name, 'Optimizer.zero_grad#') AND end_ns IS NOT NULL
),

fills AS (
    SELECT
        z.rank,
        c.device,
        z.optimizer,
        z.event_id AS call_id,
        c.start_ns,
        c.duration_ns,
        c.work_ns,
        c.paced_ns,
        c.works,
        c.work_ids,
        coalesce(z.source_file, c.source_file) AS source_file,
        if(z.source_file IS NULL, c.source_line, z.source_line) AS source_line,
        CASE
            WHEN c.name = 'aten::_foreach_zero_'
                THEN json_array_length(c.input_shapes -> '$[0]')
            ELSE 1
        END AS tensors
    FROM zeroed AS z
    INNER JOIN op_calls AS c
        ON
            z.rank = c.rank AND z.pid IS NOT DISTINCT FROM c.pid
            AND z.tid IS NOT DISTINCT FROM c.tid
            AND z.start_ns <= c.start_ns AND z.end_ns >= c.end_ns
    WHERE
        c.name IN ('aten::zero_', 'aten::fill_', 'aten::_foreach_zero_') AND c.work_ns IS NOT NULL
),

places AS (
    SELECT
        rank,
        device,
        source_file,
        source_line,
        optimizer,
        count(DISTINCT call_id) AS calls,
        sum(tensors)::BIGINT AS tensors,
        sum(works)::BIGINT AS fills,
        sum(work_ns)::BIGINT AS device_time_ns,
        sum(paced_ns)::BIGINT AS paced_ns,
        sum(duration_ns)::BIGINT AS host_ns,
        list_sort(flatten(list(work_ids))) AS event_ids,
        min(start_ns) AS start_ns
    FROM fills
    GROUP BY ALL
),

-- what the autograd engine adds to gradients that are there
added AS (
    SELECT
        c.rank,
        c.device,
        count(*) AS adds,
        sum(c.work_ns) AS work_ns,
        sum(c.paced_ns) AS paced_ns,
        sum(c.duration_ns) AS host_ns
    FROM op_calls AS c
    INNER JOIN events AS e
        ON c.rank = e.rank AND c.event_id = e.event_id AND e.layer = 'framework'
    INNER JOIN events AS p
        ON e.rank = p.rank AND e.parent_id = p.event_id AND p.layer = 'framework'
    WHERE c.name = 'aten::add_' AND contains(p.name, 'AccumulateGrad')
    GROUP BY c.rank, c.device
),

recorded_spans AS (
    SELECT
        rank,
        span_ns,
        $min_share * span_ns AS least_ns,
        $warning_share * span_ns AS warning_ns
    FROM rank_spans
),

judged AS (
    SELECT
        p.*,
        round(a.work_ns * least(1, p.tensors / a.adds))::BIGINT AS adds_ns,
        coalesce(round(a.paced_ns * least(1, p.tensors / a.adds)), 0)::BIGINT AS adds_paced_ns,
        coalesce(round(a.host_ns * least(1, p.tensors / a.adds)), 0)::BIGINT AS adds_host_ns,
        r.least_ns,
        r.warning_ns
    FROM places AS p
    INNER JOIN recorded_spans AS r ON p.rank = r.rank
    LEFT JOIN added AS a ON p.rank = a.rank AND p.device = a.device
)

SELECT
    calls,
    fills,
    device_time_ns,
    adds_ns,
    optimizer,
    rank,
    device,
    source_file,
    source_line,
    event_ids,
    start_ns,
    tensors // calls AS tensors,
    CASE
        WHEN device_time_ns + coalesce(adds_ns, 0) >= warning_ns THEN 'warning' ELSE 'info'
    END AS severity,
    paced_ns + adds_paced_ns // 3 AS saving_low_ns,
    greatest(
        device_time_ns + coalesce(adds_ns, 0),
        if(paced_ns < device_time_ns, host_ns + adds_host_ns, 0)
    ) AS saving_high_ns,
    'low: the fills, and a third of the adds, as if gradients had to be copied; high: fills and'
    || ' adds, or the time of the host for them where it is late' AS saving_basis,
    CASE WHEN source_line IS NULL THEN 'medium' ELSE 'high' END AS confidence
FROM judged
WHERE device_time_ns >= least_ns
ORDER BY saving_high_ns DESC, start_ns ASC
