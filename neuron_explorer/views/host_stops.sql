-- +++
-- doc = """Reads of a DataLoader and collections of Python's garbage collector inside the span of
-- their rank (see `rank_spans`), each with how long the devices stood still meanwhile. What a
-- loader reads from another one counts once, at the outer read."""
-- key = ["rank", "event_id"]
-- materialize = true
--
-- [columns]
-- event_id = "Event of the read or collection."
-- rank = "Distributed rank."
-- kind = "input_wait or gc."
-- name = "Iterator that was read, or the collection with its generation."
-- start_ns = "Start of the part that counts (ns)."
-- end_ns = "Its end (ns)."
-- stop_ns = "Its duration (ns)."
-- idle_ns = "Part of that in which no device worked; NULL without a device (ns)."
-- source_file = "File of the line in which it happened."
-- source_line = "That line."
-- steps = "Steps of the rank; NULL where it has none."
-- span_ns = "Span that it is a part of (ns)."
-- +++
WITH own AS (
    SELECT
        e.event_id,
        e.rank,
        e.kind,
        e.name,
        e.source_file,
        e.source_line,
        s.steps,
        s.span_ns,
        s.accelerated,
        least(e.end_ns, s.end_ns) AS end_ns,
        greatest(
            e.start_ns, s.start_ns,
            coalesce(
                max(e.end_ns) OVER (
                    PARTITION BY e.rank, e.kind
                    ORDER BY e.start_ns ASC, e.end_ns DESC, e.event_id ASC
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                ), e.start_ns
            )
        ) AS start_ns
    FROM events AS e
    INNER JOIN rank_spans AS s ON e.rank = s.rank
    WHERE
        e.layer = 'host' AND e.kind IN ('input_wait', 'gc')
        AND e.start_ns IS NOT NULL AND e.duration_ns IS NOT NULL
),

begun AS (
    SELECT
        o.*,
        coalesce(b.before_ns + least(o.start_ns, b.end_ns) - b.start_ns, 0) AS busy_ns
    FROM own AS o
    ASOF LEFT JOIN busy_stretches AS b ON o.rank = b.rank AND o.start_ns >= b.start_ns
    WHERE o.end_ns > o.start_ns
),

ended AS (
    SELECT
        o.rank,
        o.event_id,
        coalesce(b.before_ns + least(o.end_ns, b.end_ns) - b.start_ns, 0) AS busy_ns
    FROM own AS o
    ASOF LEFT JOIN busy_stretches AS b ON o.rank = b.rank AND o.end_ns >= b.start_ns
    WHERE o.end_ns > o.start_ns
)

SELECT
    b.event_id,
    b.rank,
    b.kind,
    b.name,
    b.start_ns,
    b.end_ns,
    b.end_ns - b.start_ns AS stop_ns,
    if(b.accelerated, b.end_ns - b.start_ns - (e.busy_ns - b.busy_ns), NULL)::BIGINT AS idle_ns,
    b.source_file,
    b.source_line,
    b.steps,
    b.span_ns
FROM begun AS b
INNER JOIN ended AS e ON b.rank = e.rank AND b.event_id = e.event_id
ORDER BY b.rank ASC, b.start_ns ASC, b.event_id ASC
