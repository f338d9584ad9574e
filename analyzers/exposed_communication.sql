-- +++
-- title = "Communication that nothing hides: {collective}"
-- question = "Which collectives run while nothing else computes?"
-- severity = "warning"
-- needs = ["collectives", "work", "measured"]
-- message = """
-- {events:count} times {collective}[[ of {bytes:bytes} in all]]: {device_time_ns:ns}, of which \
-- {exposed_ns:ns} while no compute of this rank ran, {exposed_share:share} of {device}'s span."""
-- advice = "{fix}"
-- key = ["rank", "device", "source_file", "source_line", "collective", "phase"]
-- proof = """
-- SELECT *
-- FROM collectives
-- WHERE rank = {rank} AND list_contains({event_ids}, event_id)
-- ORDER BY duration_ns DESC"""
-- reference = "https://docs.pytorch.org/docs/stable/notes/ddp.html"
--
-- [params.min_share]
-- default = 0.01
-- doc = "Exposed time of less of the device's span is left out (0 to 1)."
--
-- [params.warning_share]
-- default = 0.05
-- doc = "From this share of the span on it is a warning, else info."
--
-- [columns]
-- events = "Collectives of this kind at this place."
-- exposed_ns = "Their time in which neither compute nor an earlier collective ran (ns)."
-- exposed_share = "The same over the span of the device."
-- hidden_ns = "The rest of their time (ns)."
-- collective = "allreduce, allgather, ... as the capture names it, or the kernel."
-- bytes = "Their bytes; NULL where one is unknown (bytes)."
-- rank = "Distributed rank."
-- device = "Device that ran them; cpu for host threads."
-- source_file = "File of the line that asked for them; NULL without stacks."
-- source_line = "That line."
-- phase = "Phase they belong to."
-- group_size = "Ranks that take part; NULL where unknown."
-- steps = "Steps they ran in; NULL where the trace has no steps."
-- device_time_ns = "Their time, waiting for other ranks included (ns)."
-- severity = "warning or info, by exposed_share."
-- saving_low_ns = "0: it may be time to wait for a slower rank, or needed at once (ns)."
-- saving_high_ns = "exposed_ns (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "medium: the trace of one rank does not say what is waiting for others."
-- fix = "The change to make."
-- event_ids = "The collectives."
-- start_ns = "When the first of them ran."
-- +++
-- Communication is free while the rank computes. What is left over stands in every step: the last
-- gradient bucket, a collective on the compute stream, an all-gather that is asked for too late.
--
-- The time of a collective includes waiting for the slowest rank: with uneven work the exposed time
-- is that rank's lead, and another bucket size changes nothing. Compare `collectives` of all ranks.
--
-- Next: `SELECT rank, collective, sequence, start_ns, duration_ns FROM collectives`.
WITH talks AS (
    SELECT
        *,
        max(start_ns + duration_ns) OVER (
            PARTITION BY rank, device ORDER BY start_ns ASC, duration_ns DESC, event_id ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
    FROM collectives
    WHERE start_ns IS NOT NULL AND duration_ns IS NOT NULL
),

-- the part of each that no earlier one covers
parts AS (
    SELECT
        rank,
        device,
        event_id,
        greatest(start_ns, coalesce(reached_ns, start_ns)) AS from_ns,
        start_ns + duration_ns AS to_ns
    FROM talks
    WHERE start_ns + duration_ns > coalesce(reached_ns, start_ns)
),

computing AS (
    SELECT
        w.rank,
        w.device,
        w.start_ns,
        w.end_ns,
        max(w.end_ns) OVER (
            PARTITION BY w.rank, w.device ORDER BY w.start_ns ASC, w.end_ns DESC, w.event_id ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
    FROM work AS w
    ANTI JOIN collectives AS c ON w.rank = c.rank AND w.event_id = c.event_id
    WHERE
        w.kind IN ('kernel', 'engine', 'op')
        AND NOT regexp_matches(coalesce(w.op_name, w.name), '^c10d::|^_c10d|record_param_comms')
        AND w.rank IN (SELECT k.rank FROM talks AS k)
),

covered AS (
    SELECT
        p.rank,
        p.event_id,
        sum(
            least(p.to_ns, c.end_ns)
            - greatest(p.from_ns, c.start_ns, coalesce(c.reached_ns, c.start_ns))
        ) AS computed_ns
    FROM parts AS p
    INNER JOIN computing AS c
        ON
            p.rank = c.rank AND p.device = c.device AND p.from_ns < c.end_ns
            AND p.to_ns > greatest(c.start_ns, coalesce(c.reached_ns, c.start_ns))
    WHERE c.end_ns > coalesce(c.reached_ns, c.start_ns)
    GROUP BY p.rank, p.event_id
),

accelerated AS (
    SELECT DISTINCT rank
    FROM devices
    WHERE device <> 'cpu'
),

exposed AS (
    SELECT
        t.rank,
        t.device,
        t.event_id,
        t.source_file,
        t.source_line,
        t.phase,
        t.step,
        t.bytes,
        t.group_size,
        t.start_ns,
        t.duration_ns,
        coalesce(t.collective, regexp_replace(t.name, '\(.*$', '')) AS collective,
        coalesce(p.to_ns - p.from_ns - coalesce(o.computed_ns, 0), 0) AS exposed_ns
    FROM talks AS t
    LEFT JOIN parts AS p ON t.rank = p.rank AND t.event_id = p.event_id
    LEFT JOIN covered AS o ON t.rank = o.rank AND t.event_id = o.event_id
    -- the host's threads of a rank with a device compute nothing
    WHERE
        t.device <> 'cpu'
        OR t.rank NOT IN (SELECT a.rank FROM accelerated AS a)
),

places AS (
    SELECT
        rank,
        device,
        source_file,
        source_line,
        collective,
        phase,
        count(*) AS events,
        nullif(count(DISTINCT step), 0) AS steps,
        max(group_size) AS group_size,
        if(bool_or(bytes IS NULL), NULL, sum(bytes))::BIGINT AS bytes,
        sum(duration_ns)::BIGINT AS device_time_ns,
        sum(exposed_ns)::BIGINT AS exposed_ns,
        list(event_id ORDER BY event_id ASC) AS event_ids,
        min(start_ns) AS start_ns
    FROM exposed
    GROUP BY ALL
),

spans AS (
    SELECT
        rank,
        device,
        span_ns,
        $min_share * span_ns AS least_ns,
        $warning_share * span_ns AS warning_ns
    FROM devices
)

SELECT
    p.events,
    p.exposed_ns,
    p.collective,
    p.bytes,
    p.rank,
    p.device,
    p.source_file,
    p.source_line,
    p.phase,
    p.group_size,
    p.steps,
    p.device_time_ns,
    p.event_ids,
    p.start_ns,
    p.exposed_ns AS saving_high_ns,
    0::BIGINT AS saving_low_ns,
    'high: all of it behind compute; low: it waits for another rank' AS saving_basis,
    'medium' AS confidence,
    p.device_time_ns - p.exposed_ns AS hidden_ns,
    round(p.exposed_ns / d.span_ns, 4) AS exposed_share,
    CASE WHEN p.exposed_ns >= d.warning_ns THEN 'warning' ELSE 'info' END
        AS severity,
    CASE
        WHEN p.device = 'cpu'
            THEN
                'Start it with async_op=True and wait for it after the next piece of compute; on'
                || ' GPUs use the nccl backend.'
        WHEN p.phase = 'backward'
            THEN
                'Let it overlap the backward: smaller buckets for the last one (bucket_cap_mb),'
                || ' gradient_as_bucket_view=True, no_sync() on all but the last micro-batch, and'
                || ' bf16 gradients (a communication hook) to halve the bytes.'
        ELSE
            'Start it earlier (async_op=True, prefetching of FSDP) and put independent compute'
            || ' before the wait; send fewer bytes (a narrower dtype, one call for many tensors).'
    END AS fix
FROM places AS p
INNER JOIN spans AS d ON p.rank = d.rank AND p.device = d.device
WHERE p.exposed_ns >= d.least_ns
ORDER BY p.exposed_ns DESC, p.start_ns ASC
