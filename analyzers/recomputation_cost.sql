-- +++
-- title = "Recomputation in the backward: {say_top}"
-- question = "What does activation checkpointing cost, and what memory does it buy?"
-- severity = "info"
-- likely = 0.75
-- needs = ["recomputation", "work", "measured"]
-- acts_on = "device"
-- message = """
-- Checkpointing runs {work_events:count unit} of work of the forward again[[ (steps: \
-- {steps:count})]]: {device_time_ns:ns}, {share:share} of the work on {device}; most of it at \
-- {say_top}.[[ It holds {bought_bytes:bytes} less from the forward to the backward.]][[ The peak \
-- is {memory_share:share} of the memory.]]"""
-- advice = "{fix}"
-- key = ["rank", "device"]
-- proof = """
-- SELECT *
-- FROM work
-- WHERE rank = {rank} AND list_contains({event_ids}, event_id)
-- ORDER BY duration_ns DESC"""
-- reference = "https://docs.pytorch.org/docs/stable/checkpoint.html"
--
-- [params.min_share]
-- default = 0.02
-- doc = "Devices that recompute for less of their busy time are left out (0 to 1)."
--
-- [params.warning_share]
-- default = 0.1
-- doc = "From this share on, with memory to spare, it is a warning, else info."
--
-- [params.spare_share]
-- default = 0.6
-- doc = "Up to this peak over the device's memory there is memory to spare (0 to 1)."
--
-- [params.sure_share]
-- default = 0.8
-- doc = "Part of the time that goes at least: what is kept must be written and read (0 to 1)."
--
-- [columns]
-- device_time_ns = "Time of the recomputed work (ns)."
-- share = "The same over all work of the device."
-- bought_bytes = "What a step's recomputation takes and keeps; NULL without allocations (bytes)."
-- memory_share = "Most memory in use over the device's memory; NULL where one is unknown."
-- work_events = "Units of recomputed work."
-- steps = "Steps they happen in; NULL where the trace has no steps."
-- rank = "Distributed rank."
-- device = "Device that recomputes."
-- source_file = "File of the line that recomputes longest; NULL without lines."
-- source_line = "That line."
-- module = "Module that recomputes longest; NULL where unknown."
-- severity = "warning or info, by share and memory_share."
-- saving_low_ns = "sure_share of it; 0 where little memory is left (ns)."
-- saving_high_ns = "device_time_ns, or around_ns where that is more (ns)."
-- around_ns = "Time from the call before each to the one behind; NULL but on a CPU (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "high: the work runs inside the backward of the checkpoint."
-- say_top = "Line or module that recomputes longest, as text."
-- fix = "The change to make."
-- event_ids = "The recomputed work."
-- start_ns = "When the first of it ran."
-- +++
-- Checkpointing frees the activations of a block and computes them again in the backward: about a
-- third more arithmetic for every block. It pays where memory is short; elsewhere it is lost time.
--
-- bought_bytes is what the recomputation of the costliest step takes and does not free itself: what
-- the forward would otherwise have kept.
--
-- Next: `peak_memory`; `SELECT module, sum(duration_ns) FROM events WHERE recomputed GROUP BY 1`.
WITH again AS (
    SELECT
        w.rank,
        w.device,
        w.event_id,
        w.step,
        w.start_ns,
        w.duration_ns,
        w.source_file,
        w.source_line,
        w.module,
        coalesce(
            array_to_string(string_split(w.source_file, '/')[-2:], '/') || ':' || w.source_line,
            w.module, w.op_name, w.name
        ) AS spot
    FROM work AS w
    INNER JOIN events AS e ON w.rank = e.rank AND w.event_id = e.event_id
    WHERE e.recomputed
),

spots AS (
    SELECT
        rank,
        device,
        spot,
        any_value(source_file) AS source_file,
        any_value(source_line) AS source_line,
        arg_max(module, (duration_ns, event_id)) AS module,
        sum(duration_ns) AS spot_ns
    FROM again
    GROUP BY rank, device, spot
),

-- from the end of the call before to the begin of the one behind: in between the host prepares each
-- recomputation in Python
calls AS (
    SELECT
        rank,
        device,
        recomputed,
        end_ns - coalesce(lag(end_ns) OVER in_order, start_ns) AS until_end_ns,
        if(lead(recomputed) OVER in_order, 0, coalesce(lead(start_ns) OVER in_order - end_ns, 0))
            AS behind_ns
    FROM op_calls
    WINDOW in_order AS (PARTITION BY rank, pid, tid ORDER BY place ASC)
),

-- what checkpointing adds to the forward: it keeps the state of random numbers, and its inputs
wrapped AS (
    SELECT
        rank,
        sum(self_ns) AS forward_ns
    FROM events
    WHERE layer = 'framework' AND name = 'CheckpointFunction' AND phase = 'forward'
    GROUP BY rank
),

called AS (
    SELECT
        c.rank,
        c.device,
        (
            sum(c.until_end_ns + c.behind_ns) + coalesce(any_value(w.forward_ns), 0)
        )::BIGINT AS around_ns
    FROM calls AS c
    LEFT JOIN wrapped AS w ON c.rank = w.rank
    WHERE c.recomputed AND c.device = 'cpu'
    GROUP BY c.rank, c.device
),

tops AS (
    SELECT
        rank,
        device,
        arg_max(
            { 'file': source_file, 'line': source_line, 'module': module, 'spot': spot },
            (spot_ns, spot)
        ) AS top
    FROM spots
    GROUP BY rank, device
),

summed AS (
    SELECT
        rank,
        device,
        count(*) AS work_events,
        nullif(count(DISTINCT step), 0) AS steps,
        sum(duration_ns)::BIGINT AS device_time_ns,
        list(event_id ORDER BY event_id ASC) AS event_ids,
        min(start_ns) AS start_ns
    FROM again
    GROUP BY rank, device
),

kept_by_step AS (
    SELECT
        rank,
        device,
        step,
        sum(alloc_bytes) AS kept_bytes
    FROM events
    WHERE layer = 'memory' AND recomputed
    GROUP BY rank, device, step
),

kept AS (
    SELECT
        rank,
        device,
        if(max(kept_bytes) > 0, max(kept_bytes), NULL)::BIGINT AS bought_bytes
    FROM kept_by_step
    GROUP BY rank, device
),

used AS (
    SELECT
        rank,
        device,
        max(device_allocated) AS used_bytes
    FROM events
    WHERE layer = 'memory' AND device_allocated IS NOT NULL
    GROUP BY rank, device
),

judged AS (
    SELECT
        s.*,
        t.top,
        k.bought_bytes,
        c.around_ns,
        s.device_time_ns / d.work_ns AS of_work,
        u.used_bytes / z.memory_bytes AS of_memory
    FROM summed AS s
    INNER JOIN tops AS t ON s.rank = t.rank AND s.device = t.device
    INNER JOIN devices AS d ON s.rank = d.rank AND s.device = d.device
    LEFT JOIN kept AS k ON s.rank = k.rank AND s.device = k.device
    LEFT JOIN called AS c ON s.rank = c.rank AND s.device = c.device
    LEFT JOIN used AS u ON s.rank = u.rank AND s.device = u.device
    LEFT JOIN device_memory AS z ON s.rank = z.rank AND s.device = z.device
)

SELECT
    device_time_ns,
    bought_bytes,
    work_events,
    steps,
    rank,
    device,
    top.file AS source_file,
    top.line AS source_line,
    top.module AS module,
    top.spot AS say_top,
    event_ids,
    start_ns,
    CASE
        WHEN of_memory > $spare_share THEN 0
        ELSE round($sure_share * device_time_ns)
    END::BIGINT AS saving_low_ns,
    around_ns,
    if(around_ns > device_time_ns, around_ns, device_time_ns) AS saving_high_ns,
    'low: less what it takes to keep what is recomputed, nothing where little memory is left;'
    || ' high: nothing is recomputed, on a CPU with the Python around it' AS saving_basis,
    'high' AS confidence,
    round(of_work, 4) AS share,
    round(of_memory, 4) AS memory_share,
    CASE
        WHEN of_work >= $warning_share AND of_memory <= $spare_share THEN 'warning'
        ELSE 'info'
    END AS severity,
    CASE
        WHEN of_memory <= $spare_share
            THEN
                'There is memory to spare: take torch.utils.checkpoint (gradient_checkpointing'
                || '_enable) off, or off the blocks that recompute longest.'
        ELSE
            'If memory allows, checkpoint fewer blocks, or only what is cheap to compute again'
            || ' (create_selective_checkpoint_contexts keeps the results of matmuls and'
            || ' attention).'
    END AS fix
FROM judged
WHERE of_work >= $min_share
ORDER BY device_time_ns DESC, rank ASC, device ASC
