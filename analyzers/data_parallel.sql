-- +++
-- title = "nn.DataParallel copies the model in every step"
-- question = "Does the program use nn.DataParallel, and what does it cost?"
-- severity = "warning"
-- needs = ["data_parallel", "measured"]
-- message = """
-- nn.DataParallel spreads {forwards:count forward} over several devices from one process[[ \
-- (steps: {steps:count})]]: {copy_ns:ns} of the host go into copying the model, scattering, \
-- gathering and adding up gradients, {host_share:share} of {span_ns:ns}.[[ Copies between devices \
-- take {device_time_ns:ns}.]]"""
-- advice = """
-- Use DistributedDataParallel with one process a device (torchrun --nproc-per-node=N, \
-- init_process_group("nccl")): the model is copied once, and gradients are added up while the \
-- backward runs."""
-- key = ["rank", "source_file", "source_line"]
-- proof = """
-- SELECT *
-- FROM events
-- WHERE rank = {rank} AND list_contains({event_ids}, event_id)
-- ORDER BY start_ns"""
-- reference = "https://docs.pytorch.org/docs/stable/notes/cuda.html"
--
-- [columns]
-- forwards = "Calls of DataParallel.forward."
-- copy_ns = "Host time in Broadcast, Scatter, Gather, ReduceAddCoalesced, backward included (ns)."
-- host_share = "copy_ns over span_ns."
-- span_ns = "From the first to the last such forward and its parts (ns)."
-- device_time_ns = "Copies between devices; NULL where none were recorded (ns)."
-- rank = "Distributed rank."
-- source_file = "File of the line that calls the model; NULL without stacks."
-- source_line = "That line."
-- steps = "Steps it happens in; NULL where the trace has no steps."
-- saving_low_ns = "0: the devices may be busy all the same (ns)."
-- saving_high_ns = "copy_ns (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "high: PyTorch names it."
-- event_ids = "The forwards and their parts."
-- start_ns = "When the first of them began."
-- +++
-- DataParallel copies all parameters to every device in each forward, runs the replicas in threads
-- of one Python process (which hold each other up), and gathers outputs on the first device.
--
-- On a single device it only calls the module, which costs nothing: that is no finding.
--
-- Next: `SELECT device, busy_ns, idle_ns FROM devices`: the first one is usually the busiest.
WITH parts AS (
    SELECT
        rank,
        event_id,
        name,
        step,
        source_file,
        source_line,
        start_ns,
        end_ns,
        duration_ns,
        name = 'DataParallel.forward' AS is_forward
    FROM events
    WHERE
        layer = 'framework' AND kind IN ('op', 'annotation', 'autograd')
        AND duration_ns IS NOT NULL
        AND (
            name = 'DataParallel.forward'
            OR regexp_full_match(name, '(Broadcast|Scatter|Gather|ReduceAddCoalesced)(Backward)?')
        )
),

-- a Broadcast inside the backward of another one counts once
outer_parts AS (
    SELECT
        *,
        coalesce(
            max(if(is_forward, NULL, end_ns)) OVER (
                PARTITION BY rank, is_forward
                ORDER BY start_ns ASC, end_ns DESC, event_id ASC
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ), start_ns
        ) AS reached_ns
    FROM parts
),

forwards AS (
    SELECT
        rank,
        count(*) AS forwards,
        nullif(count(DISTINCT step), 0) AS steps,
        arg_min({ 'file': source_file, 'line': source_line }, start_ns) AS place,
        list(event_id ORDER BY event_id ASC) AS event_ids,
        min(start_ns) AS start_ns,
        max(end_ns) AS end_ns
    FROM parts
    WHERE is_forward
    GROUP BY rank
),

copying AS (
    SELECT
        rank,
        sum(greatest(0, end_ns - greatest(start_ns, reached_ns)))::BIGINT AS copy_ns,
        list(event_id ORDER BY event_id ASC) AS event_ids,
        max(end_ns) AS end_ns
    FROM outer_parts
    WHERE NOT is_forward
    GROUP BY rank
),

between_devices AS (
    SELECT
        rank,
        sum(duration_ns)::BIGINT AS device_time_ns
    FROM work
    WHERE kind = 'memcpy' AND regexp_matches(name, '(?i)ptop|peer')
    GROUP BY rank
)

SELECT
    f.forwards,
    f.steps,
    f.rank,
    f.place.file AS source_file,
    f.place.line AS source_line,
    c.copy_ns,
    f.start_ns,
    greatest(f.end_ns, c.end_ns) - f.start_ns AS span_ns,
    round(c.copy_ns / (greatest(f.end_ns, c.end_ns) - f.start_ns), 4) AS host_share,
    b.device_time_ns,
    list_concat(f.event_ids, c.event_ids) AS event_ids,
    0::BIGINT AS saving_low_ns,
    c.copy_ns AS saving_high_ns,
    'high: none of it happens in the step; low: the devices work meanwhile' AS saving_basis,
    'high' AS confidence
FROM forwards AS f
-- without any of its parts there is one device, and nothing is copied
INNER JOIN copying AS c ON f.rank = c.rank
LEFT JOIN between_devices AS b ON f.rank = b.rank
ORDER BY c.copy_ns DESC, f.rank ASC
