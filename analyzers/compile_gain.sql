-- +++
-- title = "The {say_phase} as one program instead of {programs:count}"
-- question = "What would compiling the eager programs of a dry run buy?"
-- severity = "warning"
-- needs = ["modelled"]
-- message = """
-- The {say_phase} is {programs:count} eager programs {per}, modelled {eager_ns:ns}; as one \
-- program it would take {one_low_ns:ns} to {one_high_ns:ns}: one launch instead of \
-- {programs:count} ({launches_ns:ns}), and at best {outside_bytes:bytes} through HBM instead of \
-- {bytes:bytes}."""
-- advice = "{fix}"
-- key = ["rank", "device", "phase"]
-- proof = """
-- SELECT *
-- FROM modelled_work
-- WHERE rank = {rank} AND device = {device} AND kind = 'kernel' AND graph_id IS NULL
--     AND phase IS NOT DISTINCT FROM nullif({phase}, 'capture')
--     AND (step IS NOT NULL OR {steps} IS NULL)
-- ORDER BY modelled_start_ns"""
-- reference = "https://awsdocs-neuron.readthedocs-hosted.com/en/latest/"
--
-- [params.min_programs]
-- default = 2
-- doc = "A phase with fewer eager programs a step than this is left out."
--
-- [columns]
-- programs = "Eager programs, a step where there are steps."
-- eager_ns = "Their modelled time, a step where there are steps (ns)."
-- one_low_ns = "As one program, when only what crosses its border goes through HBM (ns)."
-- one_high_ns = "As one program, when every intermediate still goes through HBM (ns)."
-- launches_ns = "What the launches cost, a step (ns)."
-- bytes = "Bytes that the eager programs move, a step (bytes)."
-- outside_bytes = "Bytes of tensors from outside and of results that are used outside, a step."
-- rank = "Distributed rank."
-- device = "Device that is modelled."
-- phase = "forward, backward, optimizer, input or other; capture where it is unknown."
-- per = "a step, or in all."
-- steps = "Steps counted; NULL where the trace has none."
-- breaks = "Copies to the host between its programs: each one splits the program, a step."
-- saving_low_ns = "eager_ns minus one_high_ns, over all steps (ns)."
-- saving_high_ns = "eager_ns minus one_low_ns, over all steps (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- figures = "Always modelled."
-- confidence = "low where copies split it."
-- say_phase = "The phase, as text."
-- fix = "The change to make."
-- event_ids = "The programs, at most 1000."
-- +++
-- An eager op is a program of its own: it is launched, reads its inputs from HBM and writes its
-- result back. A compiled graph is launched once and keeps what it can on the chip. High assumes
-- that all intermediates stay there, low that none does; the truth lies between, near high while
-- the largest intermediates fit the chip's memory.
--
-- It misleads where a graph cannot be whole: reads of values on the host, CPU fallbacks and
-- changing shapes split it. The optimizer is only compiled where the step is; a foreach or fused
-- form saves most of its launches too.
--
-- Next: run it with torch.compile(..., backend="neuron") in the dry run; `dry_run_summary` then
-- says what the graphs take.
WITH stepped AS (
    SELECT
        rank,
        bool_or(step IS NOT NULL) AS has_steps
    FROM modelled_work
    GROUP BY rank
),

programs AS (
    SELECT
        w.*,
        coalesce(w.phase, 'capture') AS unit_phase,
        coalesce(w.step, -1) AS unit_step
    FROM modelled_work AS w
    INNER JOIN stepped AS s ON w.rank = s.rank
    WHERE
        w.kind = 'kernel' AND w.graph_id IS NULL
        AND (w.step IS NOT NULL OR NOT s.has_steps)
),

units AS (
    SELECT
        rank,
        device,
        unit_phase,
        unit_step,
        count(*) AS programs,
        sum(modelled_duration_ns) AS eager_ns,
        sum(launch_cost_ns) AS launches_ns,
        max(launch_cost_ns) AS launch_ns,
        sum(memory_floor_ns) AS memory_ns,
        sum(compute_floor_ns) AS compute_ns,
        sum(greatest(memory_floor_ns, compute_floor_ns)) AS work_ns,
        sum(bytes) AS bytes,
        min(modelled_start_ns) AS start_ns,
        max(modelled_end_ns) AS end_ns,
        list(event_id ORDER BY event_id ASC) AS event_ids
    FROM programs
    GROUP BY rank, device, unit_phase, unit_step
    HAVING count(*) >= $min_programs
),

-- one row a storage that a piece of work reads or writes
touched AS (
    SELECT
        a.rank,
        a.event_id,
        a.modelled_start_ns,
        a.access[1] AS storage,
        a.access[2] AS nbytes,
        a.reads,
        p.unit_phase,
        p.unit_step
    FROM (
        SELECT
            rank,
            event_id,
            modelled_start_ns,
            TRUE AS reads,
            unnest(from_json(reads, '[["BIGINT"]]')) AS access
        FROM modelled_work
        UNION ALL
        SELECT
            rank,
            event_id,
            modelled_start_ns,
            FALSE AS reads,
            unnest(from_json(writes, '[["BIGINT"]]')) AS access
        FROM modelled_work
    ) AS a
    LEFT JOIN programs AS p ON a.rank = p.rank AND a.event_id = p.event_id
),

inside AS (
    SELECT
        rank,
        unit_phase,
        unit_step,
        storage,
        max(nbytes) AS nbytes,
        -- a program that reads and writes a storage reads it first
        arg_min(reads, (modelled_start_ns, event_id, NOT reads)) AS comes_from_outside,
        bool_or(NOT reads) AS is_written,
        max((modelled_start_ns, event_id)) FILTER (WHERE NOT reads) AS last_write
    FROM touched
    WHERE unit_phase IS NOT NULL
    GROUP BY rank, unit_phase, unit_step, storage
),

used AS (
    SELECT DISTINCT
        i.rank,
        i.unit_phase,
        i.unit_step,
        i.storage
    FROM inside AS i
    INNER JOIN touched AS t ON i.rank = t.rank AND i.storage = t.storage
    WHERE
        t.reads AND i.is_written AND (t.modelled_start_ns, t.event_id) > i.last_write
        AND (t.unit_phase, t.unit_step) IS DISTINCT FROM (i.unit_phase, i.unit_step)
),

borders AS (
    SELECT
        i.rank,
        i.unit_phase,
        i.unit_step,
        sum(
            if(i.comes_from_outside, i.nbytes, 0)
            + if(
                i.is_written AND (i.comes_from_outside OR u.storage IS NOT NULL), i.nbytes, 0
            )
        ) AS outside_bytes
    FROM inside AS i
    LEFT JOIN used AS u
        ON
            i.rank = u.rank AND i.unit_phase = u.unit_phase AND i.unit_step = u.unit_step
            AND i.storage = u.storage
    GROUP BY i.rank, i.unit_phase, i.unit_step
),

split AS (
    SELECT
        u.rank,
        u.device,
        u.unit_phase,
        u.unit_step,
        count(*) AS breaks
    FROM units AS u
    INNER JOIN modelled_work AS c
        ON
            u.rank = c.rank
            AND u.start_ns < c.modelled_start_ns AND u.end_ns > c.modelled_start_ns
    WHERE
        c.kind = 'memcpy' AND c.reads <> '[]'
        AND c.phase IS NOT DISTINCT FROM nullif(u.unit_phase, 'capture')
    GROUP BY u.rank, u.device, u.unit_phase, u.unit_step
),

judged AS (
    SELECT
        u.*,
        -- an embedding reads some rows of its table: never more than the programs moved
        least(b.outside_bytes, u.bytes) AS outside_bytes,
        least(
            u.eager_ns,
            u.launch_ns + greatest(
                u.compute_ns,
                u.memory_ns * least(b.outside_bytes, u.bytes) / greatest(u.bytes, 1)
            )
        ) AS one_low_ns,
        u.launch_ns + u.work_ns AS one_high_ns,
        coalesce(s.breaks, 0) AS breaks
    FROM units AS u
    LEFT JOIN borders AS b
        ON u.rank = b.rank AND u.unit_phase = b.unit_phase AND u.unit_step = b.unit_step
    LEFT JOIN split AS s
        ON
            u.rank = s.rank AND u.device = s.device AND u.unit_phase = s.unit_phase
            AND u.unit_step = s.unit_step
)

SELECT
    round(avg(programs))::BIGINT AS programs,
    round(avg(eager_ns))::BIGINT AS eager_ns,
    round(avg(one_low_ns))::BIGINT AS one_low_ns,
    round(avg(one_high_ns))::BIGINT AS one_high_ns,
    round(avg(launches_ns))::BIGINT AS launches_ns,
    round(avg(bytes))::BIGINT AS bytes,
    round(avg(outside_bytes))::BIGINT AS outside_bytes,
    rank,
    device,
    unit_phase AS phase,
    if(max(unit_step) >= 0, 'a step', 'in all') AS per,
    nullif(count(*) FILTER (WHERE unit_step >= 0), 0) AS steps,
    round(avg(breaks))::BIGINT AS breaks,
    round(sum(eager_ns - one_high_ns))::BIGINT AS saving_low_ns,
    round(sum(eager_ns - one_low_ns))::BIGINT AS saving_high_ns,
    'modelled: low all launches but one, high also all bytes that stay inside' AS saving_basis,
    'modelled' AS figures,
    if(sum(breaks) > 0, 'low', 'medium') AS confidence,
    CASE unit_phase
        WHEN 'other' THEN 'rest of the step'
        WHEN 'capture' THEN 'whole capture'
        ELSE unit_phase
    END AS say_phase,
    CASE
        WHEN unit_phase = 'other'
            THEN
                'Loss, clipping and zeroing outside of all modules: put them into a function that '
                || 'is compiled with the model, or use their foreach forms.'
        WHEN unit_phase = 'optimizer'
            THEN
                'Use the foreach or fused form of the optimizer, or compile the step: '
                || 'torch.compile(optimizer.step, backend="neuron").'
        ELSE
            'Compile the enclosing module: torch.compile(module, backend="neuron", fullgraph=True, '
            || 'dynamic=False)'
            || if(
                sum(breaks) > 0,
                '. Reads of values on the host and CPU fallbacks split it: take them out first.',
                '.'
            )
    END AS fix,
    flatten(list(event_ids ORDER BY unit_step ASC))[:1000] AS event_ids
FROM judged
GROUP BY rank, device, unit_phase
ORDER BY saving_high_ns DESC, rank ASC, phase ASC
