-- +++
-- title = "On {chip}: {say_counts} {per}"
-- question = "What would the chip of this dry run do with the program?"
-- severity = "info"
-- needs = ["modelled"]
-- message = """
-- On {chip}[[, eager: {submissions:count NEFF submission} {per}, modelled {modelled_ns:ns}, \
-- {memory_share:share} of it HBM-bound and {launch_share:share} launch-bound]]\
-- [[, {fallbacks:count CPU fallback} at {say_fallbacks}]]\
-- [[, {recompilations:count recompilation} from changing {say_changes}]]\
-- [[; compiled: {graphs:count graph} in {graph_submissions:count submission} {per}, modelled \
-- {compiled_ns:ns}, because each is launched once and only {compiled_bytes:bytes} go through \
-- HBM: {compiled_share:share} is {say_compiled}]]\
-- [[; the eager programs compiled, estimated: {would_graphs:count graph}, {would_low_ns:ns} to \
-- {would_high_ns:ns} modelled, because {saved_launches:count launch} go and up to \
-- {inside_bytes:bytes} of intermediates stay on the chip, and {remains_share:share} of what \
-- remains is {say_remains}]][[; {collective_ns:ns} of collectives {per}, {exposed_ns:ns} of it \
-- while no program runs]]."""
-- advice = "{fix}"
-- key = ["rank", "device"]
-- proof = """
-- SELECT *
-- FROM modelled_work
-- WHERE rank = {rank} AND device = {device} AND kind = 'kernel'
--     AND (step IS NOT NULL OR {steps} IS NULL)
-- ORDER BY modelled_duration_ns DESC"""
-- reference = "https://awsdocs-neuron.readthedocs-hosted.com/en/latest/"
--
-- [columns]
-- submissions = "Eager programs submitted, a step where there are steps; NULL without any."
-- modelled_ns = "Their modelled time, a step where there are steps (ns)."
-- memory_share = "Part of that time in programs that mostly wait for HBM (0 to 1)."
-- launch_share = "Part in programs that mostly wait for their launch (0 to 1)."
-- compute_share = "Part in programs that mostly compute (0 to 1)."
-- launch_cost_share = "Part of that time that all launches cost together (0 to 1)."
-- fallbacks = "Ops that ran on the CPU, in the whole trace; NULL where none did."
-- recompilations = "Programs and functions compiled again for other shapes, in all; or NULL."
-- graphs = "Different compiled graphs that ran; NULL without any."
-- graph_submissions = "Their submissions, a step where there are steps."
-- compiled_ns = "Their modelled time, a step where there are steps (ns)."
-- compiled_bytes = "Bytes that they move through HBM, a step where there are steps (bytes)."
-- compiled_share = "Part of that time of what bounds most of it (0 to 1)."
-- would_graphs = "Graphs that would do the eager programs' work, a step; NULL where none is less."
-- would_low_ns = "What those would take, when intermediates stay on the chip (ns)."
-- would_high_ns = "What they would take, when none does (ns)."
-- saved_launches = "Launches that they leave out, a step."
-- inside_bytes = "Bytes that at best stay on the chip, a step (bytes)."
-- remains_share = "Part that the largest cost has of what remains, at best (0 to 1)."
-- collective_ns = "Modelled time of collectives, a step; NULL without any (ns)."
-- exposed_ns = "Part of it while no program runs, a step (ns)."
-- rank = "Distributed rank."
-- device = "Device that is modelled."
-- chip = "Name of the chip."
-- per = "a step, or in all."
-- steps = "Steps counted; NULL where the trace has none."
-- bytes = "Bytes that the eager programs move through HBM, a step (bytes)."
-- saving_low_ns = "Eager time minus would_high_ns, over all steps; NULL without (ns)."
-- saving_high_ns = "Eager time minus would_low_ns, over all steps; NULL without (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- figures = "Always modelled."
-- say_counts = "Programs and graphs, as text."
-- say_fallbacks = "Lines that fall back, as text."
-- say_changes = "What changes, and lines, as text."
-- say_compiled = "What bounds most of the graphs' time, as text."
-- say_remains = "What costs most of what remains, as text."
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
-- Next: `compile_gain` says what graphs instead of eager programs would save, by phase and by
-- module; `cpu_fallbacks` and `recompilations` say what stands in the way.
WITH stepped AS (
    SELECT
        rank,
        bool_or(step IS NOT NULL) AS has_steps
    FROM modelled_work
    GROUP BY rank
),

summed AS (
    SELECT
        w.rank,
        w.device,
        w.graph_id IS NOT NULL AS compiled,
        count(*) AS programs,
        count(DISTINCT w.name) AS names,
        greatest(sum(w.modelled_duration_ns), 1) AS time_ns,
        coalesce(sum(w.modelled_duration_ns) FILTER (WHERE w.bound = 'memory'), 0) AS memory_ns,
        coalesce(sum(w.modelled_duration_ns) FILTER (WHERE w.bound = 'launch'), 0) AS launch_ns,
        coalesce(sum(w.modelled_duration_ns) FILTER (WHERE w.bound = 'compute'), 0) AS compute_ns,
        coalesce(sum(w.launch_cost_ns), 0) AS launches_ns,
        sum(w.bytes) AS moved,
        list(w.event_id ORDER BY w.modelled_duration_ns DESC, w.event_id ASC)[:100] AS event_ids
    FROM modelled_work AS w
    INNER JOIN stepped AS s ON w.rank = s.rank
    WHERE w.kind = 'kernel' AND (w.step IS NOT NULL OR NOT s.has_steps)
    GROUP BY w.rank, w.device, w.graph_id IS NOT NULL
),

devices AS (
    SELECT
        s.rank,
        s.device,
        max(t.steps) AS steps,
        greatest(max(t.steps), 1) AS parts,
        sum(s.time_ns) AS time_ns,
        max(t.collective_ns) AS collective_ns,
        max(t.exposed_ns) AS exposed_ns,
        flatten(list(s.event_ids ORDER BY s.compiled ASC))[:100] AS event_ids
    FROM summed AS s
    INNER JOIN (
        SELECT
            m.rank,
            nullif(count(m.step), 0) AS steps,
            sum(m.collective_ns) AS collective_ns,
            sum(m.exposed_collective_ns) AS exposed_ns
        FROM modelled_steps AS m
        INNER JOIN stepped AS p ON m.rank = p.rank
        WHERE m.step IS NOT NULL OR NOT p.has_steps
        GROUP BY m.rank
    ) AS t ON s.rank = t.rank
    GROUP BY s.rank, s.device
),

places AS (
    SELECT
        rank,
        'fallback' AS what,
        regexp_extract(source_file, '[^/\\]+$') || ':' || source_line AS place,
        sum(count)::BIGINT AS times,
        NULL AS batch_only
    FROM fallbacks
    GROUP BY rank, place
    UNION ALL
    SELECT
        rank,
        'recompilation' AS what,
        regexp_extract(source_file, '[^/\\]+$') || ':' || source_line AS place,
        count(*) AS times,
        coalesce(bool_and(batch_only), FALSE) AS batch_only
    FROM shape_recompilations
    GROUP BY rank, place
),

placed AS (
    SELECT
        rank,
        what,
        sum(times)::BIGINT AS times,
        bool_and(batch_only) AS batch_only,
        list(coalesce(place, 'unknown lines') || if(single, '', ' (' || times || ')'))[:3] AS top,
        count(*) - 3 AS more
    FROM (
        SELECT
            *,
            count(*) OVER (PARTITION BY rank, what) = 1 AS single
        FROM places
        ORDER BY times DESC, place ASC
    ) AS ranked
    GROUP BY rank, what
),

told AS (
    SELECT
        rank,
        what,
        times,
        batch_only,
        array_to_string(top, ', ') || if(more > 0, ' and ' || more || ' more lines', '') AS said
    FROM placed
),

would AS (
    SELECT
        rank,
        device,
        sum(graphs)::BIGINT AS graphs,
        sum(programs)::BIGINT AS programs,
        sum(one_low_ns)::BIGINT AS low_ns,
        sum(one_high_ns)::BIGINT AS high_ns,
        sum(saving_low_ns)::BIGINT AS saving_low_ns,
        sum(saving_high_ns)::BIGINT AS saving_high_ns,
        sum(bytes - outside_bytes)::BIGINT AS inside_bytes,
        greatest(sum(graph_launches_ns), 1) AS launch_ns,
        sum(if(outside_ns >= compute_ns, outside_ns, 0)) AS memory_ns,
        sum(if(outside_ns >= compute_ns, 0, compute_ns)) AS compute_ns
    FROM modelled_gains
    WHERE scope = 'phase'
    GROUP BY rank, device
    HAVING sum(graphs) < sum(programs)
)

SELECT
    d.rank,
    d.device,
    d.event_ids,
    d.steps,
    'modelled' AS figures,
    round(e.programs / d.parts)::BIGINT AS submissions,
    round(e.time_ns / d.parts)::BIGINT AS modelled_ns,
    round(e.memory_ns / e.time_ns, 4) AS memory_share,
    round(e.launch_ns / e.time_ns, 4) AS launch_share,
    round(e.compute_ns / e.time_ns, 4) AS compute_share,
    round(e.launches_ns / e.time_ns, 4) AS launch_cost_share,
    round(e.moved / d.parts)::BIGINT AS bytes,
    f.times AS fallbacks,
    f.said AS say_fallbacks,
    r.times AS recompilations,
    if(r.batch_only, 'batch size', 'shapes') || ' at ' || r.said AS say_changes,
    g.names AS graphs,
    round(g.programs / d.parts)::BIGINT AS graph_submissions,
    round(g.time_ns / d.parts)::BIGINT AS compiled_ns,
    round(g.moved / d.parts)::BIGINT AS compiled_bytes,
    round(greatest(g.launch_ns, g.memory_ns, g.compute_ns) / g.time_ns, 4) AS compiled_share,
    CASE greatest(g.launch_ns, g.memory_ns, g.compute_ns)
        WHEN g.launch_ns THEN 'launch-bound'
        WHEN g.memory_ns THEN 'HBM-bound'
        ELSE 'compute-bound'
    END AS say_compiled,
    w.graphs AS would_graphs,
    w.low_ns AS would_low_ns,
    w.high_ns AS would_high_ns,
    w.programs - w.graphs AS saved_launches,
    w.inside_bytes,
    w.saving_low_ns,
    w.saving_high_ns,
    if(
        w.graphs IS NULL, NULL,
        'modelled: low all launches but the graphs'', high also all bytes that stay inside'
    ) AS saving_basis,
    round(
        greatest(w.launch_ns, w.memory_ns, w.compute_ns)
        / (w.launch_ns + w.memory_ns + w.compute_ns),
        4
    ) AS remains_share,
    CASE greatest(w.launch_ns, w.memory_ns, w.compute_ns)
        WHEN w.memory_ns THEN 'HBM traffic'
        WHEN w.compute_ns THEN 'arithmetic'
        ELSE 'launches'
    END AS say_remains,
    nullif(round(d.collective_ns / d.parts)::BIGINT, 0) AS collective_ns,
    round(d.exposed_ns / d.parts)::BIGINT AS exposed_ns,
    coalesce(nullif(regexp_extract(d.device, '\((.+), dry run\)$', 1), ''), d.device) AS chip,
    if(d.steps IS NULL, 'in all', 'a step') AS per,
    concat_ws(
        ' and ',
        round(e.programs / d.parts)::BIGINT || ' eager programs',
        round(g.programs / d.parts)::BIGINT || ' compiled graphs'
    ) AS say_counts,
    CASE
        WHEN e.programs IS NOT NULL
            THEN
                'Compile the enclosing module, torch.compile(module, backend="neuron", '
                || 'fullgraph=True, dynamic=False); a transformer block is usually the right '
                || 'piece. First take out graph breaks (print, .item(), CPU fallbacks) and fix '
                || 'the shapes.'
        WHEN g.launch_ns >= greatest(g.memory_ns, g.compute_ns)
            THEN
                'Launches dominate even so: compile larger pieces, or a larger batch at once.'
        WHEN g.memory_ns >= g.compute_ns
            THEN
                'Narrower tensors (bf16, casts once a step) move fewer bytes; on the chip, look '
                || 'for spills and small DMAs before writing an NKI kernel.'
        ELSE 'The matrix engine is the limit: bf16 or fp8, and fewer FLOPs.'
    END AS fix
FROM devices AS d
LEFT JOIN summed AS e ON d.rank = e.rank AND d.device = e.device AND NOT e.compiled
LEFT JOIN summed AS g ON d.rank = g.rank AND d.device = g.device AND g.compiled
LEFT JOIN told AS f ON d.rank = f.rank AND f.what = 'fallback'
LEFT JOIN told AS r ON d.rank = r.rank AND r.what = 'recompilation'
LEFT JOIN would AS w ON d.rank = w.rank AND d.device = w.device
ORDER BY d.time_ns DESC, d.rank ASC
