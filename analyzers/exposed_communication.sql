-- +++
-- title = "Communication that nothing hides: {collective}"
-- question = "Which collectives run while nothing else computes?"
-- severity = "warning"
-- needs = ["collectives", "work", "measured"]
-- acts_on = "exposed"
-- message = """
-- {events:count time} {collective}[[ of {bytes:bytes} in all]]: {device_time_ns:ns}, of which \
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
-- [params.least_steps]
-- default = 3
-- doc = "With so many steps a collective that ran once is set-up, and no warning."
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
-- severity = "warning or info, by exposed_share and whether it recurs."
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
        c.rank,
        c.device,
        c.event_id,
        c.source_file,
        c.source_line,
        c.phase,
        c.step,
        c.bytes,
        c.group_size,
        c.start_ns,
        c.duration_ns,
        e.exposed_ns,
        coalesce(c.collective, regexp_replace(c.name, '\(.*$', '')) AS collective
    FROM collectives AS c
    INNER JOIN exposed AS e ON c.rank = e.rank AND c.event_id = e.event_id
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
    FROM talks
    GROUP BY ALL
),

device_spans AS (
    SELECT
        rank,
        device,
        span_ns,
        $min_share * span_ns AS least_ns,
        $warning_share * span_ns AS warning_ns
    FROM devices
),

loops AS (
    SELECT
        rank,
        coalesce(steps >= $least_steps, FALSE) AS many_steps
    FROM rank_spans
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
    CASE
        WHEN p.events = 1 AND l.many_steps THEN 'info'
        WHEN p.exposed_ns >= d.warning_ns THEN 'warning'
        ELSE 'info'
    END AS severity,
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
INNER JOIN device_spans AS d ON p.rank = d.rank AND p.device = d.device
INNER JOIN loops AS l ON p.rank = l.rank
WHERE p.exposed_ns >= d.least_ns
ORDER BY p.exposed_ns DESC, p.start_ns ASC
