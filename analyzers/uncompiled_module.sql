-- +++
-- title = "{module_class} runs eagerly: a compiler would fuse {chains:count run} of small ops"
-- question = "Which module should be compiled first?"
-- severity = "info"
-- needs = ["modules", "work", "shapes", "cost", "measured"]
-- message = """
-- {modules:count module} of class {module_class} take {device_time_ns:ns} of work, {share:share} \
-- of the recorded time. {fusable_ns:ns} of it is {ops:count op} in {chains:count run} that \
-- torch.compile makes one kernel each; {launches_saved:count launch} go."""
-- advice = """
-- Compile the repeated block, not the whole model: `for m in model.modules(): if isinstance(m, \
-- {module_class}): m.compile()`; it compiles once for all that share shapes. Add \
-- mode="reduce-overhead" where launches hold the device up."""
-- key = ["rank", "module_class"]
-- proof = """
-- SELECT *
-- FROM chains
-- WHERE rank = {rank} AND list_contains({event_ids}, first_event_id)
-- ORDER BY device_time_ns DESC"""
-- reference = "https://docs.pytorch.org/tutorials/recipes/regional_compilation.html"
--
-- [params.min_share]
-- default = 0.05
-- doc = "Where the upper saving is less of the recorded time, compiling is not worth a finding."
--
-- [params.warning_share]
-- default = 0.15
-- doc = "From this share in upper savings on it is a warning, else info."
--
-- [params.covered]
-- default = 0.6
-- doc = "Part of the work that disappears in the whole model that the class must hold (0 to 1)."
--
-- [columns]
-- module_class = "Class to compile: the innermost that holds most of what fusing spares."
-- modules = "Modules of this class."
-- device_time_ns = "Work in them, inner modules and backward included (ns)."
-- share = "The same over the recorded time."
-- fusable_ns = "Part of it in runs that fuse (ns)."
-- ops = "Ops in these runs."
-- chains = "These runs: rows of `chains`."
-- launches_saved = "Launches of the ops that disappear."
-- compiled_ns = "Work of compiled regions anywhere in the rank (ns)."
-- rank = "Distributed rank."
-- source_file = "File of the line with most of the fusable time; NULL without stacks."
-- source_line = "That line."
-- module = "Module of this class with most of it."
-- severity = "warning or info, by the upper saving."
-- saving_low_ns = "Bytes no other op can need, at their ops' speed; 0 where the host is late."
-- saving_high_ns = "Ops that disappear and more, see saving_basis; the host's time if late (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "medium: what else reads a tensor between two ops is not recorded."
-- event_ids = "Units of work of the runs."
-- start_ns = "When the first of them ran."
-- +++
-- A block that a model repeats compiles in seconds and serves every layer. Only memory-bound and
-- tiny ops gain: products and convolutions stay as they are, and their time does not count here.
-- It misleads where graph breaks split the block; `graph_breaks` shows them after a try.
--
-- Next: `compile_opportunities` for the lines, `compile_gain` for a dry run.
WITH fused AS (
    SELECT
        c.rank,
        c.chain_id,
        c.op_id,
        c.launches,
        c.device_time_ns,
        c.disappears,
        c.device_time_ns * c.sure_bytes / nullif(c.bytes, 0) AS sure_ns,
        o.module,
        o.source_file,
        o.source_line,
        o.start_ns,
        o.duration_ns AS host_ns,
        c.device = 'cpu' AS on_cpu,
        c.event_ids,
        -- the op that stands for the run moves what is left of its bytes, at best at the roof; a
        -- CPU computes as long as before
        if(
            c.device = 'cpu', 0,
            greatest(
                0,
                c.device_time_ns - sum(c.bytes - c.most_bytes) OVER (
                    PARTITION BY c.rank, c.chain_id
                ) * 1e9 / r.peak_bytes_per_s
            )
        ) AS beyond_ns
    FROM chain_ops AS c
    INNER JOIN ops AS o ON c.rank = o.rank AND c.op_id = o.event_id
    LEFT JOIN roofline AS r ON c.rank = r.rank AND c.event_ids[1] = r.event_id
    WHERE o.module IS NOT NULL
),

paced AS (
    SELECT
        w.rank,
        w.op_id,
        sum(w.duration_ns) FILTER (WHERE p.pace = 'device')
        / nullif(sum(w.duration_ns), 0) AS part
    FROM work AS w
    INNER JOIN work_pace AS p ON w.rank = p.rank AND w.event_id = p.event_id
    GROUP BY w.rank, w.op_id
),

per_module AS (
    SELECT
        f.rank,
        f.module,
        count(DISTINCT f.chain_id) AS chains,
        count(*) AS ops,
        sum(f.device_time_ns) AS fusable_ns,
        sum(f.launches) FILTER (WHERE f.disappears) AS launches_saved,
        sum(f.sure_ns * coalesce(p.part, 0)) AS low_ns,
        sum(
            if(
                f.disappears,
                greatest(f.device_time_ns, if(f.on_cpu OR coalesce(p.part, 0) = 1, 0, f.host_ns)),
                coalesce(f.beyond_ns, 0)
            )
        ) AS high_ns,
        sum(f.device_time_ns) FILTER (WHERE f.disappears) AS gone_ns,
        flatten(list(f.event_ids)) AS event_ids,
        arg_max(f.source_file, (f.device_time_ns, -f.start_ns)) AS source_file,
        arg_max(f.source_line, (f.device_time_ns, -f.start_ns)) AS source_line,
        min(f.start_ns) AS start_ns
    FROM fused AS f
    LEFT JOIN paced AS p ON f.rank = p.rank AND f.op_id = p.op_id
    GROUP BY f.rank, f.module
),

worked AS (
    SELECT
        rank,
        module,
        sum(duration_ns) AS work_ns
    FROM work
    WHERE module IS NOT NULL AND phase IS DISTINCT FROM 'compile'
    GROUP BY rank, module
),

-- a module counts for itself and for all that contain it
paths AS (
    SELECT
        rank,
        module,
        unnest(
            list_transform(
                range(1, len(string_split(module, '.')) + 1),
                LAMBDA n: array_to_string(string_split(module, '.')[1:n], '.')
            )
        ) AS holder
    FROM worked
),

classes AS (
    SELECT
        rank,
        module AS holder,
        any_value(module_class) AS module_class
    FROM modules
    WHERE module_class IS NOT NULL
    GROUP BY rank, module
),

held AS (
    SELECT
        p.rank,
        c.module_class,
        count(DISTINCT p.holder) AS modules,
        sum(w.work_ns) AS work_ns,
        sum(m.chains) AS chains,
        sum(m.ops) AS ops,
        sum(m.fusable_ns) AS fusable_ns,
        sum(m.launches_saved) AS launches_saved,
        sum(m.low_ns) AS low_ns,
        sum(m.high_ns) AS high_ns,
        sum(m.gone_ns) AS gone_ns,
        flatten(list(m.event_ids)) AS event_ids,
        arg_max(m.source_file, (m.fusable_ns, p.holder)) AS source_file,
        arg_max(m.source_line, (m.fusable_ns, p.holder)) AS source_line,
        arg_max(p.holder, (m.fusable_ns, p.holder)) AS module,
        min(m.start_ns) AS start_ns
    FROM paths AS p
    INNER JOIN classes AS c ON p.rank = c.rank AND p.holder = c.holder
    INNER JOIN worked AS w ON p.rank = w.rank AND p.module = w.module
    LEFT JOIN per_module AS m ON p.rank = m.rank AND p.module = m.module
    GROUP BY p.rank, c.module_class
),

totals AS (
    SELECT
        rank,
        $covered * sum(gone_ns) AS needed_ns
    FROM per_module
    GROUP BY rank
),

compiled AS (
    SELECT
        rank,
        sum(duration_ns)::BIGINT AS compiled_ns
    FROM work
    WHERE compiled
    GROUP BY rank
),

recorded_spans AS (
    SELECT
        rank,
        span_ns,
        $min_share * span_ns AS least_ns,
        $warning_share * span_ns AS warning_ns
    FROM rank_spans
),

chosen AS (
    SELECT
        h.*,
        r.least_ns,
        r.warning_ns,
        r.span_ns
    FROM held AS h
    INNER JOIN totals AS t ON h.rank = t.rank
    INNER JOIN recorded_spans AS r ON h.rank = r.rank
    WHERE h.gone_ns >= t.needed_ns AND h.module_class <> 'ModuleList'
    QUALIFY row_number() OVER (
        PARTITION BY h.rank ORDER BY h.work_ns ASC, h.modules DESC, h.module_class ASC
    ) = 1
)

SELECT
    c.module_class,
    c.modules,
    c.rank,
    c.source_file,
    c.source_line,
    c.module,
    c.start_ns,
    c.work_ns::BIGINT AS device_time_ns,
    c.fusable_ns::BIGINT AS fusable_ns,
    c.ops::BIGINT AS ops,
    c.chains::BIGINT AS chains,
    c.launches_saved::BIGINT AS launches_saved,
    k.compiled_ns,
    round(c.low_ns)::BIGINT AS saving_low_ns,
    greatest(round(c.low_ns), round(c.high_ns))::BIGINT AS saving_high_ns,
    'low: bytes between two ops that no other can need, at the speed of these ops, where they set'
    || ' the pace; high: the ops that disappear, and of the longest what its bytes do not explain'
    || ' at the chip''s bandwidth (not on a CPU), or the time of the host where it is late'
        AS saving_basis,
    list_sort(list_distinct(c.event_ids)) AS event_ids,
    round(c.work_ns / c.span_ns, 4) AS share,
    CASE WHEN c.high_ns >= c.warning_ns THEN 'warning' ELSE 'info' END AS severity,
    'medium' AS confidence
FROM chosen AS c
LEFT JOIN compiled AS k ON c.rank = k.rank
WHERE c.high_ns >= c.least_ns
ORDER BY saving_high_ns DESC, c.start_ns ASC
