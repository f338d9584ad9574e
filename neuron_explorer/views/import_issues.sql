-- +++
-- doc = "What could not be used as it stood in the file that the trace was made from."
--
-- [columns]
-- rank = "Rank that the file's facts are filed under."
-- file = "Path of the trace file."
-- kind = "Sort of trouble: bad_escape, truncated, ..."
-- count = "How often."
-- first_position = "Byte at which it first occurred."
-- example = "What it looked like."
-- action = "What was done about it."
-- +++
WITH listed AS (
    SELECT
        rank,
        file,
        unnest(
            from_json(
                value,
                '[{"kind": "VARCHAR", "count": "BIGINT", "first_position": "BIGINT",'
                || ' "example": "VARCHAR", "action": "VARCHAR"}]'
            )
        ) AS issue
    FROM raw.metadata
    WHERE key = 'import_issues'
)

SELECT
    rank,
    file,
    issue.kind AS kind,
    issue.count AS count,
    issue.first_position AS first_position,
    issue.example AS example,
    issue.action AS action
FROM listed
ORDER BY rank ASC, file ASC, kind ASC, first_position ASC
