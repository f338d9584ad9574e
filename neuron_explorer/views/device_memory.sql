-- +++
-- doc = "How much memory each accelerator of the trace has, where the recording says so."
-- key = ["rank", "device"]
--
-- [columns]
-- rank = "Distributed rank."
-- device = "Device of memory or hardware events, such as `cuda:0`; never `cpu`."
-- memory_bytes = "All its memory as its driver reported it; NULL where not recorded (bytes)."
-- +++
WITH listed AS (
    SELECT
        rank,
        json(value) AS properties
    FROM trace_metadata
    WHERE key = 'devices'
),

sizes AS (
    SELECT
        l.rank,
        (d.value ->> '$.id')::BIGINT AS device_index,
        max((d.value ->> '$.totalGlobalMem')::BIGINT) AS memory_bytes
    FROM listed AS l, json_each(l.properties) AS d
    GROUP BY ALL
),

used AS (
    SELECT DISTINCT
        rank,
        device
    FROM events
    WHERE layer IN ('memory', 'hardware') AND device <> 'cpu'
)

SELECT
    u.rank,
    u.device,
    s.memory_bytes
FROM used AS u
LEFT JOIN sizes AS s
    ON u.rank = s.rank AND s.device_index = try_cast(split_part(u.device, ':', 2) AS BIGINT)
ORDER BY u.rank ASC, u.device ASC
