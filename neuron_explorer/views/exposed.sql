-- +++
-- doc = """What of each unit of work nothing else on its device covers: time that is gone from the
-- device when the unit is. Collectives of host threads are units of a rank without a device."""
-- key = ["rank", "event_id"]
-- materialize = true
--
-- [columns]
-- event_id = "Unit of work, or collective of a host thread."
-- rank = "Distributed rank."
-- device = "Device that ran it."
-- class = "compute; copy: memcpy, memset and DMA; communication: collectives."
-- start_ns = "Its start (ns)."
-- end_ns = "Its end (ns)."
-- duration_ns = "Its duration (ns)."
-- alone_ns = "Part of it in which no other unit ran on the device (ns)."
-- exposed_ns = "Part in which neither compute nor an earlier unit of its class ran (ns)."
-- +++
-- An op that only starts a collective and waits for it is no unit here: the collective is.
-- Alone is where the number of running units is one: the sum of the ids of those begun less that
-- of those ended is then its id.
WITH units AS (
    SELECT
        w.event_id,
        w.rank,
        w.device,
        w.start_ns,
        w.end_ns,
        if(w.kind IN ('memcpy', 'memset', 'dma'), 'copy', 'compute') AS class
    FROM work AS w
    ANTI JOIN collectives AS c ON w.rank = c.rank AND w.event_id = c.event_id
    WHERE NOT regexp_matches(coalesce(w.op_name, w.name), '^c10d::|^_c10d|record_param_comms')
    UNION ALL
    SELECT
        c.event_id,
        c.rank,
        c.device,
        c.start_ns,
        c.start_ns + c.duration_ns AS end_ns,
        'communication' AS class
    FROM collectives AS c
    LEFT JOIN rank_spans AS r ON c.rank = r.rank
    WHERE c.duration_ns IS NOT NULL AND (c.device <> 'cpu' OR NOT r.accelerated)
),

ends AS (
    SELECT
        rank,
        device,
        start_ns AS at_ns,
        1 AS begun,
        event_id AS ids
    FROM units
    UNION ALL
    SELECT
        rank,
        device,
        end_ns AS at_ns,
        -1 AS begun,
        -event_id AS ids
    FROM units
),

moments AS (
    SELECT
        rank,
        device,
        at_ns,
        sum(begun) AS begun,
        sum(ids) AS ids
    FROM ends
    GROUP BY rank, device, at_ns
),

slices AS (
    SELECT
        rank,
        lead(at_ns) OVER forward_ - at_ns AS slice_ns,
        sum(begun) OVER so_far AS running,
        sum(ids) OVER so_far AS event_id
    FROM moments
    WINDOW
        forward_ AS (PARTITION BY rank, device ORDER BY at_ns ASC),
        so_far AS (
            PARTITION BY rank, device ORDER BY at_ns ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        )
),

alone AS (
    SELECT
        rank,
        event_id::BIGINT AS event_id,
        sum(slice_ns)::BIGINT AS alone_ns
    FROM slices
    WHERE running = 1
    GROUP BY ALL
),

parts AS (
    SELECT
        *,
        greatest(
            start_ns,
            coalesce(
                max(end_ns) OVER (
                    PARTITION BY rank, device, class
                    ORDER BY start_ns ASC, end_ns DESC, event_id ASC
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                ), start_ns
            )
        ) AS from_ns
    FROM units
),

-- compute as disjoint stretches, with how much of it went before
computing AS (
    SELECT
        rank,
        device,
        from_ns,
        end_ns,
        sum(end_ns - from_ns) OVER (
            PARTITION BY rank, device ORDER BY from_ns ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) - (end_ns - from_ns) AS before_ns
    FROM parts
    WHERE class = 'compute' AND end_ns > from_ns
),

others AS (
    SELECT *
    FROM parts
    WHERE class <> 'compute' AND end_ns > from_ns
),

begun AS (
    SELECT
        o.rank,
        o.event_id,
        coalesce(c.before_ns + least(o.from_ns, c.end_ns) - c.from_ns, 0) AS computed_ns
    FROM others AS o
    ASOF LEFT JOIN computing AS c
        ON o.rank = c.rank AND o.device = c.device AND o.from_ns >= c.from_ns
),

ended AS (
    SELECT
        o.rank,
        o.event_id,
        coalesce(c.before_ns + least(o.end_ns, c.end_ns) - c.from_ns, 0) AS computed_ns
    FROM others AS o
    ASOF LEFT JOIN computing AS c
        ON o.rank = c.rank AND o.device = c.device AND o.end_ns >= c.from_ns
)

SELECT
    p.event_id,
    p.rank,
    p.device,
    p.class,
    p.start_ns,
    p.end_ns,
    p.end_ns - p.start_ns AS duration_ns,
    coalesce(a.alone_ns, 0) AS alone_ns,
    (
        greatest(0, p.end_ns - p.from_ns) - coalesce(e.computed_ns - b.computed_ns, 0)
    )::BIGINT AS exposed_ns
FROM parts AS p
LEFT JOIN alone AS a ON p.rank = a.rank AND p.event_id = a.event_id
LEFT JOIN begun AS b ON p.rank = b.rank AND p.event_id = b.event_id
LEFT JOIN ended AS e ON p.rank = e.rank AND p.event_id = e.event_id
