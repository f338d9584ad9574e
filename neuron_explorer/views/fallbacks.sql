-- +++
-- doc = """Ops that a PrivateUse1 device (neuron and others) handed to the CPU: inputs are copied
-- to the host, the op runs there, outputs are copied back. Only for ranks whose trace names such
-- a device: on every other device it does not apply and has no row."""
-- key = ["rank", "op_name", "source_file", "source_line", "device", "recognised_by"]
--
-- [columns]
-- rank = "Distributed rank."
-- op_name = "Op that fell back."
-- source_file = "File of the model line."
-- source_line = "Line of the model."
-- count = "How often."
-- device = "Device that handed them over; that of most of the work where there are several."
-- duration_ns = "Sum of the ops' durations on the host, copies included (ns)."
-- copied_bytes = "Bytes the copies inside moved, both ways; NULL where one is unknown (bytes)."
-- recognised_by = "marked: by the device; to_cpu: torch's own fallback; copyout: host copy inside."
-- first_event_id = "First of the ops."
-- +++
-- torch's generic fallback calls aten::_to_cpu first. Neuron's own makes aten::to, whose copy
-- reads the device's memory, inside an op that does something else. A dry run marks each one, as
-- TorchNeuron's log does.
WITH ranks AS (
    SELECT
        rank,
        mode(device) AS device
    FROM events
    WHERE regexp_matches(device, '^(privateuseone|neuron)(:|$)')
    GROUP BY rank
),

marked AS (
    SELECT
        e.*,
        split_part(e.name, ' ', 1) AS op_name,
        try_cast(e.attributes ->> '$.copied_bytes' AS BIGINT) AS copied_bytes
    FROM events AS e
    WHERE e.layer = 'host' AND ends_with(e.name, ' executed via CPU fallback')
),

ops AS (
    SELECT e.*
    FROM events AS e
    SEMI JOIN ranks AS r ON e.rank = r.rank
    WHERE e.layer = 'framework' AND e.kind = 'op'
),

reads AS (
    SELECT
        e.rank,
        e.pid,
        e.tid,
        e.start_ns
    FROM events AS e
    SEMI JOIN ranks AS r ON e.rank = r.rank
    WHERE e.layer = 'runtime' AND regexp_matches(e.name, '(?i)buf_copyout|tensor_read')
),

told AS (
    SELECT DISTINCT
        c.rank,
        c.parent_id AS event_id,
        'to_cpu' AS recognised_by
    FROM ops AS c
    WHERE c.name = 'aten::_to_cpu'
    UNION
    SELECT DISTINCT
        c.rank,
        c.parent_id AS event_id,
        'copyout' AS recognised_by
    FROM ops AS c
    INNER JOIN reads AS r
        ON
            c.rank = r.rank AND c.pid = r.pid AND c.tid = r.tid
            AND c.start_ns <= r.start_ns AND c.end_ns >= r.start_ns
    WHERE c.name = 'aten::to'
),

fallen AS (
    SELECT
        o.*,
        -- torch's own mark is the surer one: to_cpu is the larger text
        max(t.recognised_by) AS recognised_by
    FROM ops AS o
    INNER JOIN told AS t ON o.rank = t.rank AND o.event_id = t.event_id
    WHERE NOT regexp_matches(o.name, '^aten::(to|_to_copy|copy_|cpu|_to_cpu)$')
    GROUP BY ALL
),

copied AS (
    SELECT
        f.rank,
        f.event_id,
        if(count(*) = count(c.read_bytes), sum(c.read_bytes), NULL)::BIGINT AS copied_bytes
    FROM fallen AS f
    INNER JOIN ops AS c
        ON
            f.rank = c.rank AND f.pid = c.pid AND f.tid = c.tid
            AND f.start_ns <= c.start_ns AND f.end_ns >= c.end_ns
    WHERE c.name = 'aten::copy_'
    GROUP BY f.rank, f.event_id
),

recognised AS (
    SELECT
        f.rank,
        f.event_id,
        f.name AS op_name,
        f.source_file,
        f.source_line,
        f.duration_ns,
        c.copied_bytes,
        f.recognised_by
    FROM fallen AS f
    LEFT JOIN copied AS c ON f.rank = c.rank AND f.event_id = c.event_id
    ANTI JOIN marked AS m
        ON
            f.rank = m.rank AND f.pid = m.pid AND f.tid = m.tid
            AND f.start_ns <= m.start_ns AND f.end_ns >= m.end_ns
    UNION ALL BY NAME
    SELECT
        rank,
        event_id,
        op_name,
        source_file,
        source_line,
        duration_ns,
        copied_bytes,
        'marked' AS recognised_by
    FROM marked
)

SELECT
    r.rank,
    r.op_name,
    r.source_file,
    r.source_line,
    count(*) AS count,
    d.device,
    sum(r.duration_ns)::BIGINT AS duration_ns,
    if(count(*) = count(r.copied_bytes), sum(r.copied_bytes), NULL)::BIGINT AS copied_bytes,
    r.recognised_by,
    min(r.event_id) AS first_event_id
FROM recognised AS r
INNER JOIN ranks AS d ON r.rank = d.rank
GROUP BY r.rank, r.op_name, r.source_file, r.source_line, d.device, r.recognised_by
ORDER BY r.rank ASC, duration_ns DESC NULLS LAST, first_event_id ASC
