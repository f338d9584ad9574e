-- +++
-- doc = """Training steps of a dry run as the modelled device would run them, and what happened in
-- each. Modelled times only, beside counts; measured times of the same steps are in `steps`. One
-- row with the step NULL holds what belongs to no step: the whole capture where none is marked."""
-- key = ["rank", "step"]
--
-- [columns]
-- rank = "Distributed rank."
-- device = "Device that is modelled; that of most of the work where there are several."
-- step = "Number of the training step; NULL for what lies outside of all."
-- submissions = "Programs submitted: eager ones and compiled graphs."
-- eager_programs = "Programs of one op each."
-- compiled_programs = "Compiled graphs."
-- graphs = "Different compiled graphs among them."
-- copies = "Copies between host and device."
-- collectives = "Collectives."
-- collective_ns = "Sum of the collectives' modelled durations; 0 where there are none (ns)."
-- exposed_collective_ns = "Time in which collectives run and no program does (ns)."
-- start_ns = "First modelled start (ns)."
-- end_ns = "Last modelled end (ns)."
-- span_ns = "From the one to the other: what the step would take; steps may overlap (ns)."
-- work_ns = "Sum of all modelled durations, copies included (ns)."
-- program_ns = "Sum of the programs' modelled durations (ns)."
-- launch_bound_ns = "Programs that mostly wait for their launch (ns)."
-- memory_bound_ns = "Programs that mostly wait for HBM (ns)."
-- compute_bound_ns = "Programs that mostly compute (ns)."
-- link_ns = "Copies and collectives, over a link (ns)."
-- launch_cost_ns = "Launch costs of all programs, whatever bounds them (ns)."
-- bytes = "Bytes that the programs move through HBM (bytes)."
-- host_wait_ns = "Time in which the modelled host stands and waits; NULL where none says so (ns)."
-- syncs = "Calls in which the host waits for the device."
-- fallbacks = "Ops that ran on the CPU, their tensors copied there and back."
-- compilations = "Programs that were built, recompilations included."
-- recompilations = "Programs built again at a place that had run with other shapes before."
-- +++
-- Only the device's own programs count as compilations: torch.compile's graphs are compiled by its
-- back end, which builds one program for each.
WITH worked AS (
    SELECT
        rank,
        step,
        mode(device) AS device,
        count(*) FILTER (WHERE kind = 'kernel') AS submissions,
        count(*) FILTER (WHERE kind = 'kernel' AND graph_id IS NULL) AS eager_programs,
        count(*) FILTER (WHERE kind = 'kernel' AND graph_id IS NOT NULL) AS compiled_programs,
        count(DISTINCT name) FILTER (WHERE kind = 'kernel' AND graph_id IS NOT NULL) AS graphs,
        count(*) FILTER (WHERE kind = 'memcpy') AS copies,
        count(*) FILTER (WHERE kind = 'collective') AS collectives,
        sum(modelled_duration_ns) FILTER (WHERE kind = 'collective') AS collective_ns,
        min(modelled_start_ns) AS start_ns,
        max(modelled_end_ns) AS end_ns,
        sum(modelled_duration_ns)::BIGINT AS work_ns,
        sum(modelled_duration_ns) FILTER (WHERE kind = 'kernel') AS program_ns,
        sum(modelled_duration_ns) FILTER (WHERE bound = 'launch') AS launch_bound_ns,
        sum(modelled_duration_ns) FILTER (WHERE bound = 'memory') AS memory_bound_ns,
        sum(modelled_duration_ns) FILTER (WHERE bound = 'compute') AS compute_bound_ns,
        sum(modelled_duration_ns) FILTER (WHERE bound = 'link') AS link_ns,
        sum(launch_cost_ns) FILTER (WHERE kind = 'kernel') AS launch_cost_ns,
        sum(bytes) FILTER (WHERE kind = 'kernel') AS bytes
    FROM modelled_work
    GROUP BY rank, step
),

-- when how many collectives and programs run; a part belongs to the collective that began last
edges AS (
    SELECT
        w.rank,
        unnest([w.modelled_start_ns, w.modelled_end_ns]) AS at_ns,
        unnest([1, -1]) AS change,
        w.kind = 'collective' AS talks,
        w.step
    FROM modelled_work AS w
    SEMI JOIN modelled_work AS c ON w.rank = c.rank AND c.kind = 'collective'
    WHERE w.kind IN ('kernel', 'collective')
),

swept AS (
    SELECT
        rank,
        lead(at_ns) OVER running - at_ns AS lasts_ns,
        sum(if(talks, change, 0)) OVER running AS talking,
        sum(if(talks, 0, change)) OVER running AS computing,
        last_value(if(talks AND change > 0, struct_pack(step := step), NULL) IGNORE NULLS)
            OVER running AS latest
    FROM edges
    WINDOW running AS (PARTITION BY rank ORDER BY at_ns ASC)
),

exposed AS (
    SELECT
        rank,
        latest.step AS step,
        sum(lasts_ns)::BIGINT AS exposed_ns
    FROM swept
    WHERE talking > 0 AND computing = 0
    GROUP BY rank, latest.step
),

hosted AS (
    SELECT
        e.rank,
        e.step,
        sum(e.modelled_duration_ns) FILTER (WHERE e.kind = 'sync')::BIGINT AS host_wait_ns,
        count(*) FILTER (WHERE e.layer = 'runtime' AND e.kind = 'sync') AS syncs,
        count(*) FILTER (
            WHERE e.layer = 'host' AND ends_with(e.name, ' executed via CPU fallback')
        ) AS fallbacks,
        count(*) FILTER (
            WHERE e.layer = 'compiler' AND e.attributes ->> '$.program' IS NOT NULL
        ) AS compilations,
        count(*) FILTER (
            WHERE e.kind = 'recompile' AND e.attributes ->> '$.program' IS NOT NULL
        ) AS recompilations
    FROM events AS e
    WHERE e.layer IN ('runtime', 'host', 'compiler')
    GROUP BY e.rank, e.step
)

SELECT
    w.rank,
    w.device,
    w.step,
    w.submissions,
    w.eager_programs,
    w.compiled_programs,
    w.graphs,
    w.copies,
    w.collectives,
    coalesce(w.collective_ns, 0)::BIGINT AS collective_ns,
    if(w.collectives > 0, coalesce(x.exposed_ns, 0), 0)::BIGINT AS exposed_collective_ns,
    w.start_ns,
    w.end_ns,
    w.end_ns - w.start_ns AS span_ns,
    w.work_ns,
    coalesce(w.program_ns, 0)::BIGINT AS program_ns,
    coalesce(w.launch_bound_ns, 0)::BIGINT AS launch_bound_ns,
    coalesce(w.memory_bound_ns, 0)::BIGINT AS memory_bound_ns,
    coalesce(w.compute_bound_ns, 0)::BIGINT AS compute_bound_ns,
    coalesce(w.link_ns, 0)::BIGINT AS link_ns,
    w.launch_cost_ns::BIGINT AS launch_cost_ns,
    w.bytes::BIGINT AS bytes,
    h.host_wait_ns,
    coalesce(h.syncs, 0) AS syncs,
    coalesce(h.fallbacks, 0) AS fallbacks,
    coalesce(h.compilations, 0) AS compilations,
    coalesce(h.recompilations, 0) AS recompilations
FROM worked AS w
LEFT JOIN hosted AS h ON w.rank = h.rank AND w.step IS NOT DISTINCT FROM h.step
LEFT JOIN exposed AS x ON w.rank = x.rank AND w.step IS NOT DISTINCT FROM x.step
ORDER BY w.rank ASC, w.step ASC NULLS LAST
