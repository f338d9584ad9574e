-- +++
-- doc = """What a dry run's eager programs would take as compiled graphs: by phase, and by module,
-- one graph a phase of each. Modelled; figures are those of a step where there are steps, else of
-- the capture. The two scopes hold the same programs: they do not add up."""
-- materialize = true
--
-- [columns]
-- rank = "Distributed rank."
-- device = "Device that is modelled."
-- scope = "phase or module: what one graph holds."
-- phase = "forward, backward, optimizer, input or other; capture where unknown; NULL by module."
-- module = "Module by module, down to the items of a list: `Net.layers.*`; NULL by phase."
-- module_class = "Class of that module."
-- instances = "Different modules of that name; NULL by phase."
-- programs = "Eager programs."
-- graphs = "Graphs instead: one each, and one more for each copy to the host that splits it."
-- breaks = "Those places."
-- eager_ns = "Modelled time of the programs (ns)."
-- one_low_ns = "As graphs, when only what crosses their borders goes through HBM (ns)."
-- one_high_ns = "As graphs, when every intermediate still goes through HBM (ns)."
-- launches_ns = "Launch costs of the programs (ns)."
-- graph_launches_ns = "Launch costs of the graphs (ns)."
-- bytes = "Bytes that the programs move through HBM (bytes)."
-- outside_bytes = "Bytes of tensors from outside and of results used outside (bytes)."
-- launch_bound_ns = "Part of `eager_ns` in programs that mostly wait for their launch (ns)."
-- memory_bound_ns = "Part in programs that mostly wait for HBM (ns)."
-- compute_bound_ns = "Part in programs that mostly compute (ns)."
-- outside_ns = "Time that `outside_bytes` take at the bandwidth programs achieve (ns)."
-- compute_ns = "Time that the FLOPs take at the rate the engines achieve (ns)."
-- steps = "Steps; NULL where the trace has none."
-- saving_low_ns = "eager_ns minus one_high_ns, over all steps (ns)."
-- saving_high_ns = "eager_ns minus one_low_ns, over all steps (ns)."
-- source_file = "File of the line that most of the programs come from, or calls the module."
-- source_line = "That line; NULL for a phase that has no line of its own."
-- event_ids = "The programs, at most 1000."
-- +++
WITH stepped AS (
    SELECT
        rank,
        bool_or(step IS NOT NULL) AS has_steps
    FROM modelled_work
    GROUP BY rank
),

eager AS (
    SELECT
        w.*,
        coalesce(w.step, -1) AS unit_step,
        -- an item of a list is the piece that is usually compiled; else what the root holds
        coalesce(
            nullif(regexp_extract(w.module, '^(.*?\.\d+)(\.|$)', 1), ''),
            nullif(regexp_extract(w.module, '^([^.]+\.[^.]+)', 1), ''),
            w.module
        ) AS block
    FROM modelled_work AS w
    INNER JOIN stepped AS s ON w.rank = s.rank
    WHERE
        w.kind = 'kernel' AND w.graph_id IS NULL
        AND (w.step IS NOT NULL OR NOT s.has_steps)
),

programs AS (
    SELECT
        *,
        'phase' AS scope,
        coalesce(phase, 'capture') AS unit,
        coalesce(phase, 'capture') AS grouped
    FROM eager
    UNION ALL BY NAME
    SELECT
        *,
        'module' AS scope,
        block || ' ' || phase AS unit,
        regexp_replace(block, '\.\d+$', '.*') AS grouped
    FROM eager
    WHERE block IS NOT NULL AND phase IN ('forward', 'backward')
),

units AS (
    SELECT
        rank,
        device,
        scope,
        grouped,
        unit,
        unit_step,
        any_value(block) AS block,
        any_value(phase) AS phase,
        count(*) AS programs,
        sum(modelled_duration_ns) AS eager_ns,
        sum(launch_cost_ns) AS launches_ns,
        max(launch_cost_ns) AS launch_ns,
        sum(memory_floor_ns) AS memory_ns,
        sum(compute_floor_ns) AS compute_ns,
        sum(greatest(memory_floor_ns, compute_floor_ns)) AS work_ns,
        sum(bytes) AS bytes,
        coalesce(sum(modelled_duration_ns) FILTER (WHERE bound = 'launch'), 0) AS launch_bound_ns,
        coalesce(sum(modelled_duration_ns) FILTER (WHERE bound = 'memory'), 0) AS memory_bound_ns,
        coalesce(sum(modelled_duration_ns) FILTER (WHERE bound = 'compute'), 0)
            AS compute_bound_ns,
        min(modelled_start_ns) AS start_ns,
        max(modelled_end_ns) AS end_ns,
        -- a backward's lines are those of the forward, so that none of them is its own
        if(
            any_value(phase) = 'optimizer',
            mode(struct_pack(file := source_file, line := source_line)),
            NULL
        ) AS place,
        list(event_id ORDER BY event_id ASC) AS event_ids
    FROM programs
    GROUP BY rank, device, scope, grouped, unit, unit_step
),

-- one row a storage that a piece of work reads or writes
accesses AS (
    SELECT
        a.rank,
        a.event_id,
        a.modelled_start_ns,
        a.access[1] AS storage,
        a.access[2] AS nbytes,
        a.reads
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
),

inside AS (
    SELECT
        a.rank,
        p.scope,
        p.unit,
        p.unit_step,
        a.storage,
        max(a.nbytes) AS nbytes,
        -- a program that reads and writes a storage reads it first
        arg_min(a.reads, (a.modelled_start_ns, a.event_id, NOT a.reads)) AS comes_from_outside,
        bool_or(NOT a.reads) AS is_written,
        max((a.modelled_start_ns, a.event_id)) FILTER (WHERE NOT a.reads) AS last_write
    FROM accesses AS a
    INNER JOIN programs AS p ON a.rank = p.rank AND a.event_id = p.event_id
    GROUP BY a.rank, p.scope, p.unit, p.unit_step, a.storage
),

used AS (
    SELECT DISTINCT
        i.rank,
        i.scope,
        i.unit,
        i.unit_step,
        i.storage
    FROM inside AS i
    INNER JOIN accesses AS t ON i.rank = t.rank AND i.storage = t.storage
    LEFT JOIN programs AS p
        ON t.rank = p.rank AND t.event_id = p.event_id AND i.scope = p.scope
    WHERE
        t.reads AND i.is_written AND (t.modelled_start_ns, t.event_id) > i.last_write
        AND (p.unit, p.unit_step) IS DISTINCT FROM (i.unit, i.unit_step)
),

borders AS (
    SELECT
        i.rank,
        i.scope,
        i.unit,
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
            i.rank = u.rank AND i.scope = u.scope AND i.unit = u.unit
            AND i.unit_step = u.unit_step AND i.storage = u.storage
    GROUP BY i.rank, i.scope, i.unit, i.unit_step
),

-- copies to the host with nothing between them split a graph once
split AS (
    SELECT
        u.rank,
        u.scope,
        u.unit,
        u.unit_step,
        count(DISTINCT p.event_id) AS breaks
    FROM modelled_work AS c
    INNER JOIN units AS u
        ON
            c.rank = u.rank
            AND c.modelled_start_ns > u.start_ns AND c.modelled_start_ns < u.end_ns
            AND c.phase IS NOT DISTINCT FROM u.phase
    ASOF INNER JOIN programs AS p
        ON
            u.rank = p.rank AND u.scope = p.scope AND u.unit = p.unit
            AND u.unit_step = p.unit_step AND c.modelled_start_ns >= p.modelled_start_ns
    WHERE c.kind = 'memcpy' AND c.reads <> '[]'
    GROUP BY u.rank, u.scope, u.unit, u.unit_step
),

bordered AS (
    SELECT
        u.*,
        -- an embedding reads some rows of its table: never more than the programs moved
        least(b.outside_bytes, u.bytes) AS outside_bytes,
        u.memory_ns * least(b.outside_bytes, u.bytes) / greatest(u.bytes, 1) AS outside_ns,
        coalesce(s.breaks, 0) AS breaks,
        least(u.programs, coalesce(s.breaks, 0) + 1) AS graphs
    FROM units AS u
    LEFT JOIN borders AS b
        ON
            u.rank = b.rank AND u.scope = b.scope AND u.unit = b.unit
            AND u.unit_step = b.unit_step
    LEFT JOIN split AS s
        ON
            u.rank = s.rank AND u.scope = s.scope AND u.unit = s.unit
            AND u.unit_step = s.unit_step
),

judged AS (
    SELECT
        *,
        graphs * launch_ns AS graph_launches_ns,
        least(eager_ns, graphs * launch_ns + greatest(compute_ns, outside_ns)) AS one_low_ns,
        least(eager_ns, graphs * launch_ns + work_ns) AS one_high_ns
    FROM bordered
),

calls AS (
    SELECT
        rank,
        name,
        any_value(module_class) AS module_class,
        arg_min(source_file, (start_ns, event_id)) AS source_file,
        arg_min(source_line, (start_ns, event_id)) AS source_line
    FROM events
    WHERE layer = 'framework' AND kind = 'module'
    GROUP BY rank, name
),

summed AS (
    SELECT
        j.rank,
        j.device,
        j.scope,
        j.grouped,
        count(DISTINCT j.block) AS instances,
        count(DISTINCT j.unit_step) AS parts,
        max(j.unit_step) >= 0 AS has_steps,
        sum(j.programs) AS programs,
        sum(j.graphs) AS graphs,
        sum(j.breaks) AS breaks,
        sum(j.eager_ns) AS eager_ns,
        sum(j.one_low_ns) AS one_low_ns,
        sum(j.one_high_ns) AS one_high_ns,
        sum(j.launches_ns) AS launches_ns,
        sum(j.graph_launches_ns) AS graph_launches_ns,
        sum(j.bytes) AS bytes,
        sum(j.outside_bytes) AS outside_bytes,
        sum(j.launch_bound_ns) AS launch_bound_ns,
        sum(j.memory_bound_ns) AS memory_bound_ns,
        sum(j.compute_bound_ns) AS compute_bound_ns,
        sum(j.outside_ns) AS outside_ns,
        sum(j.compute_ns) AS compute_ns,
        any_value(c.module_class) AS module_class,
        any_value(if(j.scope = 'module', c.source_file, j.place.file)) AS source_file,
        any_value(if(j.scope = 'module', c.source_line, j.place.line)) AS source_line,
        flatten(list(j.event_ids ORDER BY j.unit_step ASC, j.start_ns ASC))[:1000] AS event_ids
    FROM judged AS j
    LEFT JOIN calls AS c ON j.rank = c.rank AND j.block = c.name
    GROUP BY j.rank, j.device, j.scope, j.grouped
)

SELECT
    rank,
    device,
    scope,
    if(scope = 'phase', grouped, NULL) AS phase,
    if(scope = 'module', grouped, NULL) AS module,
    if(scope = 'module', module_class, NULL) AS module_class,
    if(scope = 'module', instances, NULL) AS instances,
    round(programs / parts)::BIGINT AS programs,
    round(graphs / parts)::BIGINT AS graphs,
    round(breaks / parts)::BIGINT AS breaks,
    round(eager_ns / parts)::BIGINT AS eager_ns,
    round(one_low_ns / parts)::BIGINT AS one_low_ns,
    round(one_high_ns / parts)::BIGINT AS one_high_ns,
    round(launches_ns / parts)::BIGINT AS launches_ns,
    round(graph_launches_ns / parts)::BIGINT AS graph_launches_ns,
    round(bytes / parts)::BIGINT AS bytes,
    round(outside_bytes / parts)::BIGINT AS outside_bytes,
    round(launch_bound_ns / parts)::BIGINT AS launch_bound_ns,
    round(memory_bound_ns / parts)::BIGINT AS memory_bound_ns,
    round(compute_bound_ns / parts)::BIGINT AS compute_bound_ns,
    round(outside_ns / parts)::BIGINT AS outside_ns,
    round(compute_ns / parts)::BIGINT AS compute_ns,
    if(has_steps, parts, NULL) AS steps,
    round(eager_ns - one_high_ns)::BIGINT AS saving_low_ns,
    round(eager_ns - one_low_ns)::BIGINT AS saving_high_ns,
    source_file,
    source_line,
    event_ids
FROM summed
ORDER BY rank ASC, scope DESC, saving_high_ns DESC
