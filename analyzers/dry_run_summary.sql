-- +++
-- title = "On {chip}, {mode}: {submissions:count} programs {per}"
-- question = "What would the chip of this dry run do with the program?"
-- severity = "info"
-- needs = ["modelled"]
-- message = """
-- On {chip}, {mode}: {submissions:count} NEFF submissions {per}, modelled {modelled_ns:ns} of \
-- which {memory_share:share} HBM-bound, {launch_share:share} launch-bound, {compute_share:share} \
-- compute-bound[[, of {graphs:count} graphs]][[, {fallbacks:count} CPU fallbacks in all]]\
-- [[, {recompilations:count} recompilations in all]]. {say_rest}"""
-- advice = "{fix}"
-- key = ["rank", "device", "mode"]
-- proof = """
-- SELECT *
-- FROM modelled_work
-- WHERE rank = {rank} AND device = {device} AND kind = 'kernel'
--     AND (graph_id IS NOT NULL) = ({mode} = 'compiled')
--     AND (step IS NOT NULL OR {steps} IS NULL)
-- ORDER BY modelled_duration_ns DESC"""
-- reference = "https://awsdocs-neuron.readthedocs-hosted.com/en/latest/"
--
-- [columns]
-- submissions = "Programs submitted, a step where there are steps."
-- modelled_ns = "Their modelled time, a step where there are steps (ns)."
-- memory_share = "Part of that time in programs that mostly wait for HBM (0 to 1)."
-- launch_share = "Part in programs that mostly wait for their launch (0 to 1)."
-- compute_share = "Part in programs that mostly compute (0 to 1)."
-- launch_cost_share = "Part of that time that all launches cost together (0 to 1)."
-- graphs = "Different compiled graphs; NULL for eager programs."
-- fallbacks = "Ops that ran on the CPU, in the whole trace; NULL where none did."
-- recompilations = "Programs built again for other shapes, in the whole trace; or NULL."
-- rank = "Distributed rank."
-- device = "Device that is modelled."
-- chip = "Name of the chip."
-- mode = "eager or compiled."
-- per = "a step, or in all."
-- steps = "Steps counted; NULL where the trace has none."
-- bytes = "Bytes that the programs move through HBM, a step where there are steps (bytes)."
-- figures = "Always modelled."
-- say_rest = "What the time consists of, as text."
-- fix = "The change to make."
-- event_ids = "The longest programs, at most 100."
-- +++
-- A dry run computes on this machine and says what each program would take on the chip: its
-- launch, and the larger of its bytes over the HBM bandwidth that programs achieve and its FLOPs
-- over the engine's. Eager mode submits a program (NEFF) for each op, and each reads its inputs
-- from HBM and writes its result back; a compiled graph pays for one launch, its inputs and its
-- outputs.
--
-- It misleads where the constants do: docs/dry-run.md says what each rests on and how far off the
-- model was where there are public measurements. The host's own time (Python, dispatch) is not
-- modelled, but for a fixed cost a submission.
--
-- Next: `compile_gain` says what one program instead of many would save; `cpu_fallbacks` and
-- `recompilations` say what stands in the way.
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
        if(w.graph_id IS NULL, 'eager', 'compiled') AS mode
    FROM modelled_work AS w
    INNER JOIN stepped AS s ON w.rank = s.rank
    WHERE w.kind = 'kernel' AND (w.step IS NOT NULL OR NOT s.has_steps)
),

summed AS (
    SELECT
        rank,
        device,
        mode,
        count(*) AS programs,
        count(DISTINCT step) AS numbered,
        count(DISTINCT name) AS names,
        greatest(sum(modelled_duration_ns), 1) AS time_ns,
        coalesce(sum(modelled_duration_ns) FILTER (WHERE bound = 'memory'), 0) AS memory_ns,
        coalesce(sum(modelled_duration_ns) FILTER (WHERE bound = 'launch'), 0) AS launch_ns,
        coalesce(sum(modelled_duration_ns) FILTER (WHERE bound = 'compute'), 0) AS compute_ns,
        coalesce(sum(launch_cost_ns), 0) AS launches_ns,
        sum(bytes) AS moved,
        list(event_id ORDER BY modelled_duration_ns DESC, event_id ASC)[:100] AS event_ids
    FROM programs
    GROUP BY rank, device, mode
),

counted AS (
    SELECT
        rank,
        sum(fallbacks)::BIGINT AS fallbacks,
        sum(recompilations)::BIGINT AS recompilations
    FROM modelled_steps
    GROUP BY rank
),

-- counts of the whole trace stand at one of the two rows
told AS (
    SELECT
        s.*,
        row_number() OVER (PARTITION BY s.rank ORDER BY s.mode DESC) = 1 AS first
    FROM summed AS s
)

SELECT
    t.rank,
    t.device,
    t.mode,
    t.event_ids,
    'modelled' AS figures,
    round(t.programs / greatest(t.numbered, 1))::BIGINT AS submissions,
    round(t.time_ns / greatest(t.numbered, 1))::BIGINT AS modelled_ns,
    round(t.memory_ns / t.time_ns, 4) AS memory_share,
    round(t.launch_ns / t.time_ns, 4) AS launch_share,
    round(t.compute_ns / t.time_ns, 4) AS compute_share,
    round(t.launches_ns / t.time_ns, 4) AS launch_cost_share,
    if(t.mode = 'compiled', t.names, NULL) AS graphs,
    if(t.first, nullif(c.fallbacks, 0), NULL) AS fallbacks,
    if(t.first, nullif(c.recompilations, 0), NULL) AS recompilations,
    coalesce(nullif(regexp_extract(t.device, '\((.+), dry run\)$', 1), ''), t.device) AS chip,
    if(t.numbered > 0, 'a step', 'in all') AS per,
    nullif(t.numbered, 0) AS steps,
    round(t.moved / greatest(t.numbered, 1))::BIGINT AS bytes,
    'The launches alone are ' || round(100 * t.launches_ns / t.time_ns)::BIGINT || ' % of it.'
        AS say_rest,
    CASE
        WHEN t.mode = 'eager'
            THEN
                'Compile the enclosing module, torch.compile(module, backend="neuron", '
                || 'fullgraph=True, dynamic=False); a transformer block is usually the right '
                || 'piece. First take out graph breaks (print, .item(), CPU fallbacks) and fix '
                || 'the shapes.'
        WHEN t.launch_ns >= greatest(t.memory_ns, t.compute_ns)
            THEN
                'Launches dominate even so: compile larger pieces, or a larger batch at once.'
        WHEN t.memory_ns >= t.compute_ns
            THEN
                'Narrower tensors (bf16, casts once a step) move fewer bytes; on the chip, look '
                || 'for spills and small DMAs before writing an NKI kernel.'
        ELSE 'The matrix engine is the limit: bf16 or fp8, and fewer FLOPs.'
    END AS fix
FROM told AS t
LEFT JOIN counted AS c ON t.rank = c.rank
ORDER BY t.time_ns DESC, t.rank ASC, t.mode ASC
