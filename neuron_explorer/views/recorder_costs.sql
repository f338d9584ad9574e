-- +++
-- doc = """What the recorder itself takes of a rank's host, estimated from the trace: an op that
-- only calls another one (`t` around `transpose`) takes next to nothing, so what it took is what
-- recording the inner one costs."""
-- key = ["rank"]
-- materialize = true
--
-- [columns]
-- rank = "Distributed rank."
-- op_ns = "Median self time of view ops around one op; NULL with fewer than 16 of them (ns)."
-- ops = "How many these are."
-- events = "Recorded ops and nodes of autograd inside the steps, or in all without steps."
-- opened_ns = """Time between the begin of each step and its first event, at most 1 ms each: the
-- recorder opens the step; 0 without steps (ns)."""
-- +++
-- Modelled. Recording lines or Python frames comes on top, and so do rows of memory.
WITH inner_ops AS (
    SELECT
        rank,
        parent_id,
        count(*) AS ops
    FROM events
    WHERE layer = 'framework' AND parent_id IS NOT NULL
    GROUP BY rank, parent_id
),

around AS (
    SELECT
        e.rank,
        count(*) AS ops,
        median(e.self_ns) AS op_ns
    FROM events AS e
    INNER JOIN inner_ops AS i ON e.rank = i.rank AND e.event_id = i.parent_id
    WHERE e.kind = 'op' AND e.family = 'view' AND i.ops = 1 AND e.self_ns IS NOT NULL
    GROUP BY e.rank
),

first_events AS (
    SELECT
        rank,
        step,
        min(start_ns) AS start_ns,
        count(*) FILTER (WHERE layer = 'framework' AND kind IN ('op', 'autograd')) AS events
    FROM events
    WHERE
        layer IN ('runtime', 'compiler', 'host')
        OR (layer = 'framework' AND kind IN ('op', 'autograd'))
    GROUP BY rank, step
),

opened AS (
    SELECT
        f.rank,
        sum(least(1000000, greatest(0, f.start_ns - s.start_ns)))::BIGINT AS opened_ns,
        sum(f.events) FILTER (WHERE s.step IS NOT NULL OR r.steps IS NULL) AS events
    FROM first_events AS f
    INNER JOIN rank_spans AS r ON f.rank = r.rank
    LEFT JOIN steps AS s ON f.rank = s.rank AND f.step = s.step
    GROUP BY f.rank
)

SELECT
    r.rank,
    if(a.ops >= 16, round(a.op_ns), NULL)::BIGINT AS op_ns,
    coalesce(a.ops, 0) AS ops,
    coalesce(o.events, 0)::BIGINT AS events,
    coalesce(o.opened_ns, 0) AS opened_ns
FROM rank_spans AS r
LEFT JOIN around AS a ON r.rank = a.rank
LEFT JOIN opened AS o ON r.rank = o.rank
