-- +++
-- doc = """Compilations that happened again because a shape changed, each at the line where the
-- shape comes in: the call of the outermost module around it, else its own line."""
-- key = ["rank", "event_id"]
-- materialize = true
--
-- [columns]
-- event_id = "Event."
-- rank = "Distributed rank."
-- name = "Op or function that was compiled again."
-- reason = "Shapes before and after, or the guard that failed."
-- batch_only = "Whether only first dimensions changed; NULL where the shapes are not listed."
-- program = "Shapes of a device's own program; NULL for torch.compile."
-- start_ns = "When it happened (ns)."
-- step = "Number of the training step."
-- source_file = "File of that line."
-- source_line = "That line."
-- own_place = "File and line of the op itself."
-- +++
WITH again AS (
    SELECT c.*
    FROM compilations AS c
    WHERE
        c.kind = 'recompile'
        AND regexp_matches(
            c.reason, ' -> |size mismatch|stride mismatch|rank mismatch|shape|dynamic'
        )
),

-- the outermost call of a module around each
called AS (
    SELECT
        a.rank,
        a.event_id,
        arg_min(m.source_file, (m.start_ns, m.event_id)) AS source_file,
        arg_min(m.source_line, (m.start_ns, m.event_id)) AS source_line
    FROM again AS a
    INNER JOIN events AS e
        ON a.rank = e.rank AND a.event_id = e.event_id AND e.layer = 'compiler'
    INNER JOIN events AS m
        ON
            e.rank = m.rank AND e.pid = m.pid AND e.tid = m.tid
            AND e.start_ns >= m.start_ns AND e.start_ns < m.end_ns
    WHERE m.layer = 'framework' AND m.kind = 'module' AND m.source_line IS NOT NULL
    GROUP BY a.rank, a.event_id
),

-- each shape without its first dimension
compared AS (
    SELECT
        rank,
        event_id,
        regexp_replace(split_part(reason, ' -> ', 1), '(^|, )\d+(x| )', '\1*\2', 'g')
        = regexp_replace(split_part(reason, ' -> ', 2), '(^|, )\d+(x| )', '\1*\2', 'g')
            AS batch_only
    FROM again
    WHERE reason LIKE '% -> %'
)

SELECT
    a.event_id,
    a.rank,
    a.name,
    a.reason,
    s.batch_only,
    e.attributes ->> '$.program' AS program,
    a.start_ns,
    a.step,
    coalesce(c.source_file, a.user_file, a.source_file) AS source_file,
    CASE
        WHEN c.source_file IS NOT NULL THEN c.source_line
        WHEN a.user_file IS NOT NULL THEN a.user_line
        ELSE a.source_line
    END AS source_line,
    concat_ws(':', a.source_file, a.source_line) AS own_place
FROM again AS a
INNER JOIN events AS e
    ON a.rank = e.rank AND a.event_id = e.event_id AND e.layer = 'compiler'
LEFT JOIN called AS c ON a.rank = c.rank AND a.event_id = c.event_id
LEFT JOIN compared AS s ON a.rank = s.rank AND a.event_id = s.event_id
ORDER BY a.rank ASC, a.start_ns ASC
