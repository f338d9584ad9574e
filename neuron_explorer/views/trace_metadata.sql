-- +++
-- doc = "What each file says of its capture, as JSON."
-- key = ["rank", "file", "key"]
--
-- [columns]
-- rank = "Rank that the file's facts are filed under."
-- file = "Path of the file."
-- key = "schema_version, origin, environment, devices, capture, clock, ..."
-- value = "JSON text."
-- +++
SELECT
    rank,
    file,
    key,
    value
FROM raw.metadata
ORDER BY rank ASC, file ASC, key ASC
