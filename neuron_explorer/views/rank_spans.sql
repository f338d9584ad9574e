-- +++
-- doc = "What the times of a rank are a part of: all its steps, or else all that was recorded."
-- key = ["rank"]
-- materialize = true
--
-- [columns]
-- rank = "Distributed rank."
-- steps = "Steps; NULL where it has none."
-- start_ns = "Start of the first step, or of the first event (ns)."
-- end_ns = "End of the last step, or of the last event (ns)."
-- span_ns = "Duration of all steps, or of their work where it takes longer; else the whole (ns)."
-- accelerated = "Whether a device other than the CPU worked for it."
-- +++
-- Devices run behind the host: a loop that never waits for them is over before its work is.
WITH recorded AS (
    SELECT
        rank,
        min(start_ns) AS start_ns,
        max(end_ns) AS end_ns,
        bool_or(layer = 'hardware' AND end_ns IS NOT NULL) AS accelerated
    FROM events
    WHERE layer IN ('framework', 'hardware', 'host', 'runtime') AND end_ns IS NOT NULL
    GROUP BY rank
),

stepped AS (
    SELECT
        rank,
        count(*) AS steps,
        sum(duration_ns) AS step_ns,
        min(start_ns) AS start_ns,
        max(end_ns) AS end_ns
    FROM steps
    GROUP BY rank
),

worked AS (
    SELECT
        rank,
        sum(rank_busy_ns) AS busy_ns
    FROM timeline
    WHERE step IS NOT NULL
    GROUP BY rank
)

SELECT
    r.rank,
    s.steps,
    coalesce(s.start_ns, r.start_ns) AS start_ns,
    coalesce(s.end_ns, r.end_ns) AS end_ns,
    coalesce(greatest(s.step_ns, w.busy_ns), r.end_ns - r.start_ns)::BIGINT AS span_ns,
    r.accelerated
FROM recorded AS r
LEFT JOIN stepped AS s ON r.rank = s.rank
LEFT JOIN worked AS w ON s.rank = w.rank
ORDER BY r.rank ASC
