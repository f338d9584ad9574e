-- +++
-- title = "torch.compile breaks its graph here: {cause}"
-- question = "Which lines break the graph of torch.compile, and why?"
-- severity = "warning"
-- needs = ["breaks"]
-- message = """
-- {breaks:count graph break} at this line: {reason}.[[ What follows was compiled apart \
-- {resumed:count time}, which took {compile_ns:ns}.]]"""
-- advice = "{fix}"
-- key = ["rank", "source_file", "source_line", "cause"]
-- proof = """
-- SELECT *
-- FROM compilations
-- WHERE rank = {rank} AND kind = 'graph_break' AND list_contains({event_ids}, event_id)
-- ORDER BY start_ns"""
-- reference = "https://docs.pytorch.org/docs/stable/torch.compiler_faq.html"
--
-- [params.min_breaks]
-- default = 1
-- doc = "Lines with fewer graph breaks are left out."
--
-- [columns]
-- breaks = "Graph breaks at this line, whenever since the process began to listen."
-- cause = "data-dependent branch, scalar read, print or logging, not traceable, or other."
-- reason = "Reason of the first as torch.compile gives it, up to its explanation."
-- resumed = "Compilations of the code behind the break in the window; NULL where none is known."
-- compile_ns = "Their time (ns)."
-- rank = "Distributed rank."
-- source_file = "File of the break."
-- source_line = "Line of the break."
-- saving_low_ns = "NULL: what one graph instead of two gains at run time is not recorded."
-- saving_high_ns = "compile_ns: one graph is compiled once; NULL where unknown (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "high: each break is recorded."
-- fix = "The change to make."
-- event_ids = "The breaks."
-- start_ns = "When the first of them happened."
-- +++
-- At a graph break the compiled code ends, Python runs the line, and what follows is compiled as a
-- function of its own. Nothing fuses across it, the tensors in between go through memory, guards
-- are checked again and CUDA graphs are cut.
--
-- Breaks are recorded when they are compiled, not each time they are passed: the cost at run time
-- is in `compile_opportunities` and `host_syncs` at the same line.
--
-- Next: `SELECT * FROM compilations WHERE kind IN ('graph_break', 'compile') ORDER BY start_ns`.
WITH broken AS (
    SELECT
        rank,
        event_id,
        source_file,
        source_line,
        start_ns,
        reason,
        CASE
            WHEN regexp_matches(reason, '(?i)builtin .?(operator )?.?print|logging|warn')
                THEN 'print or logging'
            WHEN regexp_matches(reason, '(?i)data-dependent|jump|branch')
                THEN 'data-dependent branch'
            WHEN regexp_matches(reason, '(?i)\.item|_local_scalar_dense|scalar|tolist')
                THEN 'scalar read'
            WHEN regexp_matches(reason, '(?i)skip|unsupported|failed to trace|not traceable')
                THEN 'code that is not traceable'
            ELSE 'another reason'
        END AS cause
    FROM compilations
    WHERE kind = 'graph_break'
),

places AS (
    SELECT
        rank,
        source_file,
        source_line,
        cause,
        count(*) AS breaks,
        trim(split_part(arg_min(reason, (start_ns, event_id)), 'Explanation:', 1)) AS reason,
        list(event_id ORDER BY event_id ASC) AS event_ids,
        min(start_ns) AS start_ns
    FROM broken
    GROUP BY ALL
    HAVING count(*) >= $min_breaks
),

-- Dynamo names what follows a break after its line
resumed AS (
    SELECT
        rank,
        source_file,
        try_cast(regexp_extract(name, '^torch_dynamo_resume_in_.*_at_(\d+)$', 1) AS BIGINT)
            AS break_line,
        count(*) AS resumed,
        sum(duration_ns)::BIGINT AS compile_ns
    FROM compilations
    WHERE kind = 'compile' AND in_window AND starts_with(name, 'torch_dynamo_resume_in_')
    GROUP BY ALL
)

SELECT
    p.breaks,
    p.cause,
    p.reason,
    r.resumed,
    r.compile_ns,
    p.rank,
    p.source_file,
    p.source_line,
    p.event_ids,
    p.start_ns,
    NULL::BIGINT AS saving_low_ns,
    r.compile_ns AS saving_high_ns,
    'high' AS confidence,
    CASE
        WHEN r.compile_ns IS NULL THEN 'unknown: no compilation of what follows in the window'
        ELSE
            'high: the code behind the break is not compiled apart; the gain of each call is not'
            || ' known'
    END AS saving_basis,
    CASE p.cause
        WHEN 'print or logging'
            THEN
                'Take print and logging out of the compiled function, or allow them with'
                || ' torch._dynamo.config.reorderable_logging_functions.'
        WHEN 'data-dependent branch'
            THEN
                'Replace the branch on a tensor''s value by torch.where or torch.cond, or decide it'
                || ' outside the compiled function.'
        WHEN 'scalar read'
            THEN
                'Keep the value a tensor, or set torch._dynamo.config.capture_scalar_outputs = True'
                || ' where the graph can hold it.'
        ELSE
            'Move this call out of the compiled function, or register it with'
            || ' torch.library.custom_op; compile with fullgraph=True to keep it whole.'
    END AS fix
FROM places AS p
LEFT JOIN resumed AS r
    ON p.rank = r.rank AND p.source_file = r.source_file AND p.source_line = r.break_line
ORDER BY r.compile_ns DESC NULLS LAST, p.breaks DESC, p.start_ns ASC
