-- +++
-- doc = """Time, bytes and arithmetic by module of the model, each module's own part only: what
-- inner modules do is theirs. Only `call_ns` holds the inner ones too."""
-- key = ["rank", "module"]
-- materialize = true
--
-- [columns]
-- rank = "Distributed rank."
-- module = "Module path or instance; innermost."
-- module_class = "Its class."
-- calls = "Times it was called; NULL where the trace has no row for calls."
-- call_ns = "Sum of the calls' durations, inner modules included, compilations not (ns)."
-- ops = "Framework ops it called."
-- host_ns = "Host time of its ops and runtime calls, each nanosecond once (ns)."
-- forward_host_ns = "Part of `host_ns` in the forward (ns)."
-- backward_host_ns = "Part of `host_ns` in the backward, recomputed work included (ns)."
-- work_events = "Units of work it caused."
-- device_ns = "Sum of their durations (ns)."
-- forward_device_ns = "Part of `device_ns` in the forward (ns)."
-- backward_device_ns = "Part of `device_ns` in the backward, recomputed work included (ns)."
-- bytes = "Sum of the bytes known; NULL where none are (bytes)."
-- flops = "Sum of the floating-point operations known (flop)."
-- +++
WITH called AS (
    SELECT
        rank,
        name AS module,
        any_value(module_class) AS module_class,
        count(*) AS calls,
        sum(duration_ns - coalesce(compile_ns, 0))::BIGINT AS call_ns
    FROM events
    WHERE layer = 'framework' AND kind = 'module'
    GROUP BY rank, name
),

hosted AS (
    SELECT
        rank,
        module,
        any_value(module_class) AS module_class,
        count(*) FILTER (WHERE layer = 'framework') AS ops,
        sum(self_ns)::BIGINT AS host_ns,
        (sum(self_ns) FILTER (WHERE phase = 'forward'))::BIGINT AS forward_host_ns,
        (sum(self_ns) FILTER (WHERE phase = 'backward'))::BIGINT AS backward_host_ns
    FROM events
    WHERE
        module IS NOT NULL AND phase IS DISTINCT FROM 'compile'
        AND ((layer = 'framework' AND kind = 'op') OR layer = 'runtime')
    GROUP BY rank, module
),

worked AS (
    SELECT
        rank,
        module,
        any_value(module_class) AS module_class,
        count(*) AS work_events,
        sum(duration_ns)::BIGINT AS device_ns,
        (sum(duration_ns) FILTER (WHERE phase = 'forward'))::BIGINT AS forward_device_ns,
        (sum(duration_ns) FILTER (WHERE phase = 'backward'))::BIGINT AS backward_device_ns,
        sum(bytes)::BIGINT AS bytes,
        sum(flops)::BIGINT AS flops
    FROM work
    WHERE module IS NOT NULL AND phase IS DISTINCT FROM 'compile'
    GROUP BY rank, module
)

SELECT
    rank,
    module,
    coalesce(c.module_class, h.module_class, w.module_class) AS module_class,
    c.calls,
    c.call_ns,
    coalesce(h.ops, 0) AS ops,
    h.host_ns,
    h.forward_host_ns,
    h.backward_host_ns,
    coalesce(w.work_events, 0) AS work_events,
    w.device_ns,
    w.forward_device_ns,
    w.backward_device_ns,
    w.bytes,
    w.flops
FROM called AS c
FULL JOIN hosted AS h USING (rank, module)
FULL JOIN worked AS w USING (rank, module)
ORDER BY w.device_ns DESC NULLS LAST, rank ASC, module ASC
