-- +++
-- title = "{say_unit} as {say_graphs} instead of {programs:count program}"
-- question = "What would compiling the eager programs of a dry run buy?"
-- severity = "warning"
-- needs = ["modelled"]
-- message = """
-- {say_unit}: {programs:count eager program} {per}, modelled {eager_ns:ns}, {launch_share:share} \
-- launch-bound and {memory_share:share} HBM-bound; as {say_graphs} {one_low_ns:ns} to \
-- {one_high_ns:ns}, because {saved_launches:count launch} ({saved_launch_ns:ns}) go and up to \
-- {inside_bytes:bytes} of intermediates stay on the chip; what remains is {remains_share:share} \
-- {say_remains}, with {outside_bytes:bytes} through HBM."""
-- advice = "{fix}"
-- key = ["rank", "device", "phase", "module"]
-- proof = """
-- SELECT *
-- FROM modelled_gains
-- WHERE rank = {rank} AND device = {device}
--     AND phase IS NOT DISTINCT FROM {phase} AND module IS NOT DISTINCT FROM {module}"""
-- reference = "https://awsdocs-neuron.readthedocs-hosted.com/en/latest/"
--
-- [params.min_programs]
-- default = 2
-- doc = "Phases and modules with fewer eager programs a graph than this are left out."
--
-- [params.min_gain_share]
-- default = 0.01
-- doc = "What would save less than this share of all eager programs' time is left out (0 to 1)."
--
-- [columns]
-- programs = "Eager programs, a step where there are steps."
-- graphs = "Graphs instead: one, and one more for each copy to the host that splits it, a step."
-- eager_ns = "Their modelled time, a step where there are steps (ns)."
-- one_low_ns = "As graphs, when only what crosses their borders goes through HBM (ns)."
-- one_high_ns = "As graphs, when every intermediate still goes through HBM (ns)."
-- saved_launches = "Launches that are left out, a step."
-- saved_launch_ns = "What they cost, a step (ns)."
-- bytes = "Bytes that the eager programs move, a step (bytes)."
-- outside_bytes = "Bytes of tensors from outside and of results that are used outside, a step."
-- inside_bytes = "The difference: what at best stays on the chip, a step (bytes)."
-- launch_share = "Part of the eager time in programs that mostly wait for their launch (0 to 1)."
-- memory_share = "Part in programs that mostly wait for HBM (0 to 1)."
-- compute_share = "Part in programs that mostly compute (0 to 1)."
-- remains_share = "Part that the largest cost has of the time as graphs, at best (0 to 1)."
-- rank = "Distributed rank."
-- device = "Device that is modelled."
-- phase = "forward, backward, optimizer, input or other; capture where unknown; NULL by module."
-- module = "Module, or items of a list of modules: `Net.layers.*`; NULL by phase."
-- module_class = "Class of that module."
-- source_file = "File of the line that calls the module, or that steps the optimizer."
-- source_line = "That line; NULL for a phase that has no line of its own."
-- per = "a step, or in all."
-- steps = "Steps counted; NULL where the trace has none."
-- breaks = "Copies to the host between its programs: each one splits the graph, a step."
-- saving_low_ns = "eager_ns minus one_high_ns, over all steps (ns)."
-- saving_high_ns = "eager_ns minus one_low_ns, over all steps (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- figures = "Always modelled."
-- confidence = "low where copies split it."
-- say_unit = "The phase or module, as text."
-- say_graphs = "Number of graphs, as text."
-- say_remains = "The largest cost as graphs, as text."
-- fix = "The change to make."
-- event_ids = "The programs, at most 1000."
-- +++
-- An eager op is a program of its own: it is launched, reads its inputs from HBM and writes its
-- result back. A compiled graph is launched once and keeps what it can on the chip. High assumes
-- that all intermediates stay there, low that none does; the truth lies between, near high while
-- the largest intermediates fit the chip's memory.
--
-- The same programs stand in a phase and in a module, so that their savings do not add up. A
-- module counts as one graph for its forward and one for its backward.
--
-- It misleads where a graph cannot be whole: reads of values on the host, CPU fallbacks and
-- changing shapes split it. The optimizer is only compiled where the step is; a foreach or fused
-- form saves most of its launches too.
--
-- Next: run it with torch.compile(..., backend="neuron") in the dry run; `dry_run_summary` then
-- says what the graphs take.
WITH gains AS (
    SELECT
        *,
        sum(if(scope = 'phase', eager_ns * coalesce(steps, 1), 0))
            OVER (PARTITION BY rank, device) AS all_ns
    FROM modelled_gains
)

SELECT
    programs,
    graphs,
    eager_ns,
    one_low_ns,
    one_high_ns,
    programs - graphs AS saved_launches,
    launches_ns - graph_launches_ns AS saved_launch_ns,
    bytes,
    outside_bytes,
    bytes - outside_bytes AS inside_bytes,
    round(launch_bound_ns / greatest(eager_ns, 1), 4) AS launch_share,
    round(memory_bound_ns / greatest(eager_ns, 1), 4) AS memory_share,
    round(compute_bound_ns / greatest(eager_ns, 1), 4) AS compute_share,
    round(
        greatest(graph_launches_ns, outside_ns, compute_ns)
        / greatest(graph_launches_ns + greatest(outside_ns, compute_ns), 1),
        4
    ) AS remains_share,
    rank,
    device,
    phase,
    module,
    module_class,
    source_file,
    source_line,
    if(steps IS NULL, 'in all', 'a step') AS per,
    steps,
    breaks,
    saving_low_ns,
    saving_high_ns,
    'modelled: low all launches but the graphs'', high also all bytes that stay inside'
        AS saving_basis,
    'modelled' AS figures,
    if(breaks > 0, 'low', 'medium') AS confidence,
    CASE
        WHEN module IS NOT NULL AND instances > 1
            THEN module || ' (' || instances || ' x ' || coalesce(module_class, 'module') || ')'
        WHEN module IS NOT NULL THEN module || coalesce(' (' || module_class || ')', '')
        WHEN phase = 'other' THEN 'The rest of the step'
        WHEN phase = 'capture' THEN 'The whole capture'
        ELSE 'The ' || phase
    END AS say_unit,
    if(graphs = 1, 'one graph', graphs || ' graphs') AS say_graphs,
    CASE greatest(graph_launches_ns, outside_ns, compute_ns)
        WHEN outside_ns THEN 'HBM traffic'
        WHEN compute_ns THEN 'arithmetic'
        ELSE 'launches'
    END AS say_remains,
    CASE
        WHEN phase = 'other'
            THEN
                'Loss, clipping and zeroing outside of all modules: put them into a function that '
                || 'is compiled with the model, or use their foreach forms.'
        WHEN phase = 'optimizer'
            THEN
                'Use the foreach or fused form of the optimizer, or compile the step: '
                || 'torch.compile(optimizer.step, backend="neuron").'
        WHEN module IS NOT NULL
            THEN
                'Compile ' || if(instances > 1, 'each ' || coalesce(module_class, module), 'it')
                || ' where it is made: module.compile(backend="neuron", fullgraph=True, '
                || 'dynamic=False).'
        ELSE
            'Compile the enclosing module: torch.compile(module, backend="neuron", fullgraph=True, '
            || 'dynamic=False)'
            || if(
                breaks > 0,
                '. Reads of values on the host and CPU fallbacks split it: take them out first.',
                '.'
            )
    END AS fix,
    event_ids
FROM gains
WHERE
    programs >= $min_programs * graphs AND programs > graphs
    AND saving_high_ns >= $min_gain_share * all_ns
    -- what a root runs itself is no piece to compile
    AND (module IS NULL OR contains(module, '.'))
ORDER BY saving_high_ns DESC, rank ASC, phase ASC, module ASC
