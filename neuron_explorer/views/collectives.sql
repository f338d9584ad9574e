-- +++
-- doc = "Communication between ranks: as the devices ran it, or the host's threads (gloo, MPI)."
-- key = ["rank", "event_id"]
-- materialize = true
--
-- [columns]
-- event_id = "Unit of work, or event of the host thread."
-- rank = "Distributed rank."
-- device = "Device that ran it; cpu for host threads."
-- queue = "Queue or thread that ran it."
-- name = "Name of the kernel, or gloo:all_reduce and its like."
-- collective = "allreduce, _allgather_base, ... as the capture names it."
-- start_ns = "Start (ns)."
-- duration_ns = "Duration, waiting for the other ranks included (ns)."
-- bytes = "Larger of the elements in and out, times the size of one; NULL where unknown (bytes)."
-- dtype = "Dtype of the elements."
-- group_size = "Ranks that take part."
-- group_name = "Name of the process group."
-- sequence = "Number of the collective in its group; NULL where the backend records none (gloo)."
-- op_id = "Op that asked for it."
-- op_name = "Name of that op."
-- link_via = "How that op or the launch was found."
-- step = "Number of the training step."
-- phase = "forward, backward, optimizer, input or other."
-- source_file = "File of the model line."
-- source_line = "Line of the model."
-- +++
-- NCCL writes size, dtype and group beside each kernel. Gloo writes shape and dtype of what goes
-- in; its group is known only where the job has no more than one.
WITH grouped AS (
    SELECT
        rank,
        any_value(value -> '$.distributedInfo.pg_config[0]') AS pg
    FROM trace_metadata
    WHERE
        key = 'environment'
        AND json_array_length(value, '$.distributedInfo.pg_config') = 1
    GROUP BY rank
),

told AS (
    SELECT
        w.event_id,
        w.rank,
        w.device,
        w.queue,
        w.name,
        w.start_ns,
        w.duration_ns,
        w.op_id,
        w.step,
        w.phase,
        w.source_file,
        w.source_line,
        e.link_via,
        e.attributes ->> '$."Collective name"' AS collective,
        try_cast(e.attributes ->> '$."In msg nelems"' AS BIGINT) AS elements_in,
        try_cast(e.attributes ->> '$."Out msg nelems"' AS BIGINT) AS elements_out,
        e.attributes ->> '$.dtype' AS dtype,
        try_cast(e.attributes ->> '$."Group size"' AS BIGINT) AS group_size,
        e.attributes ->> '$."Process Group Name"' AS group_name,
        try_cast(e.attributes ->> '$.Seq' AS BIGINT) AS sequence,
        NULL::BIGINT AS op_bytes
    FROM work AS w
    INNER JOIN events AS e ON w.rank = e.rank AND w.event_id = e.event_id
    WHERE
        w.kind = 'collective'
        -- ILIKE first: a third of the time, and hardly a kernel comes further
        OR (
            w.device <> 'cpu' AND w.name ILIKE '%ccl%'
            AND regexp_matches(w.name, '(?i)nccl|rccl|hccl|oneccl')
        )
),

host AS (
    SELECT
        *,
        -- of a lone number the op's cost is unknown: its shape reads like no tensor at all
        if(
            split_part(name, ':', 2) IN ('all_reduce', 'broadcast', 'reduce', 'send', 'recv'),
            list_sum(
                list_transform(
                    try_cast(input_shapes AS BIGINT[][]),
                    LAMBDA s: coalesce(list_product(s), 1)
                )
            )::BIGINT,
            NULL
        ) AS elements_in
    FROM events
    WHERE layer = 'host' AND kind = 'collective'
),

on_host AS (
    SELECT
        h.event_id,
        h.rank,
        'cpu' AS device,
        'thread ' || coalesce(h.tid::VARCHAR, h.tid_raw, '?') AS queue,
        h.name,
        h.start_ns,
        h.duration_ns,
        h.op_id,
        h.step,
        h.phase,
        h.source_file,
        h.source_line,
        h.link_via,
        split_part(h.name, ':', 2) AS collective,
        h.input_dtypes ->> '$[0]' AS dtype,
        h.elements_in,
        (g.pg ->> '$.pg_size')::BIGINT AS group_size,
        g.pg ->> '$.pg_name' AS group_name,
        NULL::BIGINT AS sequence,
        -- of a list of lists torch records the other side only, which is one rank's share
        greatest(o.read_bytes, o.write_bytes) * if(
            regexp_matches(o.name, '::(allgather_|gather_|scatter_|reduce_scatter_)$'),
            (g.pg ->> '$.pg_size')::BIGINT,
            1
        ) AS op_bytes
    FROM host AS h
    LEFT JOIN events AS o
        ON h.rank = o.rank AND h.op_id = o.event_id AND o.layer = 'framework'
    LEFT JOIN grouped AS g ON h.rank = g.rank
),

every AS (
    SELECT * FROM told
    UNION ALL BY NAME
    SELECT * FROM on_host
),

typed AS (
    SELECT
        *,
        regexp_replace(lower(dtype), '^c10::', '') AS bare_dtype
    FROM every
)

SELECT
    c.event_id,
    c.rank,
    c.device,
    c.queue,
    c.name,
    c.collective,
    c.start_ns,
    c.duration_ns,
    coalesce(
        c.op_bytes,
        greatest(c.elements_in, c.elements_out) * CASE
            WHEN regexp_matches(c.bare_dtype, '^(double|long( int)?|int64|complexfloat)$') THEN 8
            WHEN regexp_matches(c.bare_dtype, '^(float|int|int32|float32)$') THEN 4
            WHEN regexp_matches(c.bare_dtype, '^(half|bfloat16|short( int)?|float16|int16)$')
                THEN 2
            WHEN
                regexp_matches(
                    c.bare_dtype, '^(byte|((un)?signed )?char|bool|float8.*|uint8|int8)$'
                )
                THEN 1
        END
    ) AS bytes,
    c.dtype,
    c.group_size,
    c.group_name,
    c.sequence,
    c.op_id,
    o.name AS op_name,
    c.link_via,
    c.step,
    c.phase,
    c.source_file,
    c.source_line
FROM typed AS c
LEFT JOIN events AS o ON c.rank = o.rank AND c.op_id = o.event_id AND o.layer = 'framework'
ORDER BY c.rank ASC, c.start_ns ASC, c.event_id ASC
