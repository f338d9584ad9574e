-- +++
-- doc = "Communication between ranks, as the devices ran it."
--
-- [columns]
-- event_id = "Unit of work."
-- rank = "Distributed rank."
-- device = "Device that ran it."
-- queue = "Queue that ran it."
-- name = "Name of the kernel."
-- collective = "allreduce, _allgather_base, ... as the capture names it."
-- start_ns = "Start (ns)."
-- duration_ns = "Duration (ns)."
-- bytes = "Larger of the elements in and out, times the size of one; NULL where unknown (bytes)."
-- dtype = "Dtype of the elements."
-- group_size = "Ranks that take part."
-- group_name = "Name of the process group."
-- step = "Number of the training step."
-- source_file = "File of the model line."
-- source_line = "Line of the model."
-- +++
WITH told AS (
    SELECT
        w.*,
        e.attributes ->> '$."Collective name"' AS collective,
        try_cast(e.attributes ->> '$."In msg nelems"' AS BIGINT) AS elements_in,
        try_cast(e.attributes ->> '$."Out msg nelems"' AS BIGINT) AS elements_out,
        e.attributes ->> '$.dtype' AS dtype,
        try_cast(e.attributes ->> '$."Group size"' AS BIGINT) AS group_size,
        e.attributes ->> '$."Process Group Name"' AS group_name
    FROM work AS w
    INNER JOIN events AS e ON w.rank = e.rank AND w.event_id = e.event_id
    WHERE w.kind = 'collective' OR regexp_matches(w.name, '(?i)nccl|rccl|hccl|oneccl')
)

SELECT
    event_id,
    rank,
    device,
    queue,
    name,
    collective,
    start_ns,
    duration_ns,
    greatest(elements_in, elements_out) * CASE
        WHEN regexp_matches(lower(dtype), '^(double|long|int64|complexfloat)$') THEN 8
        WHEN regexp_matches(lower(dtype), '^(float|int|int32|float32)$') THEN 4
        WHEN regexp_matches(lower(dtype), '^(half|bfloat16|short|float16|int16)$') THEN 2
        WHEN regexp_matches(lower(dtype), '^(byte|char|bool|float8.*|uint8|int8)$') THEN 1
    END AS bytes,
    dtype,
    group_size,
    group_name,
    step,
    source_file,
    source_line
FROM told
ORDER BY rank ASC, start_ns ASC, event_id ASC
