-- +++
-- title = "Gradients of a device travel through the host: {collective} by gloo"
-- question = "Do ranks with an accelerator communicate over gloo?"
-- severity = "warning"
-- needs = ["hardware", "collectives", "measured"]
-- message = """
-- {events:count time} {collective}[[ of {bytes:bytes} in all]] by gloo on threads of the host: \
-- {host_ns:ns}, {host_share:share} of {device}'s span. It stood still for {idle_ns:ns} of that."""
-- advice = """
-- Initialise the group with the device's own backend: init_process_group("nccl") on CUDA and ROCm \
-- ("xccl" on XPU), or "cpu:gloo,cuda:nccl" where host tensors are sent as well."""
-- key = ["rank", "source_file", "source_line", "collective"]
-- proof = """
-- SELECT *
-- FROM collectives
-- WHERE rank = {rank} AND list_contains({event_ids}, event_id)
-- ORDER BY duration_ns DESC"""
-- reference = "https://docs.pytorch.org/docs/stable/distributed.html"
--
-- [params.min_share]
-- default = 0.01
-- doc = "Collectives that take less of the device's span are left out (0 to 1)."
--
-- [params.warning_share]
-- default = 0.02
-- doc = "From this share of the span on, with the device idle, it is a warning, else info."
--
-- [columns]
-- events = "Collectives of this kind at this place."
-- host_ns = "Time in which at least one of them ran on a thread of the host (ns)."
-- host_share = "The same over the span of the device."
-- idle_ns = "Part of it in which no device of the rank worked (ns)."
-- collective = "all_reduce, broadcast, ..."
-- bytes = "Their bytes; NULL where one is unknown (bytes)."
-- rank = "Distributed rank."
-- device = "Device of the rank, the busiest where it has several."
-- source_file = "File of the line that asked for them; NULL without stacks."
-- source_line = "That line."
-- steps = "Steps they ran in; NULL where the trace has no steps."
-- severity = "warning or info, by idle_ns over the span."
-- saving_low_ns = "0: it may be time to wait for a slower rank (ns)."
-- saving_high_ns = "idle_ns (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "medium: the trace of one rank does not say what is waiting for others."
-- event_ids = "The collectives."
-- start_ns = "When the first of them ran."
-- +++
-- Gloo sends from the host's memory: tensors of a device are copied there, added up by the CPU, and
-- copied back. The device's own backend (NCCL, RCCL) sends from device to device.
--
-- Where the same rank has collectives on the device too, gloo carries what belongs to the host
-- (objects, barriers): that is no finding.
--
-- Next: `SELECT device, collective, count(*), sum(duration_ns) FROM collectives GROUP BY 1, 2`.
WITH limits AS (
    SELECT
        $warning_share AS warning_share,
        $min_share AS min_share
),

device_links AS (
    SELECT DISTINCT rank
    FROM collectives
    WHERE device <> 'cpu'
),

hosted AS (
    SELECT
        c.rank,
        c.event_id,
        c.bytes,
        c.step,
        c.source_file,
        c.source_line,
        c.start_ns,
        coalesce(c.collective, c.name) AS collective,
        c.start_ns + c.duration_ns AS end_ns,
        max(c.start_ns + c.duration_ns) OVER (
            PARTITION BY c.rank ORDER BY c.start_ns ASC, c.duration_ns DESC, c.event_id ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
    FROM collectives AS c
    ANTI JOIN device_links AS d ON c.rank = d.rank
    WHERE
        c.device = 'cpu' AND starts_with(c.name, 'gloo:')
        AND c.start_ns IS NOT NULL AND c.duration_ns IS NOT NULL
),

own AS (
    SELECT
        * EXCLUDE (start_ns),
        greatest(start_ns, coalesce(reached_ns, start_ns)) AS start_ns
    FROM hosted
),

busiest AS (
    SELECT
        rank,
        device,
        span_ns
    FROM devices
    WHERE device <> 'cpu'
    QUALIFY row_number() OVER (PARTITION BY rank ORDER BY busy_ns DESC, device ASC) = 1
),

busy AS (
    SELECT
        o.rank,
        o.event_id,
        sum(least(o.end_ns, t.end_ns) - greatest(o.start_ns, t.end_ns - t.rank_busy_ns))
            AS busy_ns
    FROM own AS o
    INNER JOIN timeline AS t
        ON
            o.rank = t.rank AND o.start_ns < t.end_ns
            AND o.end_ns > t.end_ns - t.rank_busy_ns
    WHERE t.rank_busy_ns > 0 AND t.device <> 'cpu' AND o.end_ns > o.start_ns
    GROUP BY o.rank, o.event_id
),

places AS (
    SELECT
        o.rank,
        o.source_file,
        o.source_line,
        o.collective,
        count(*) AS events,
        nullif(count(DISTINCT o.step), 0) AS steps,
        if(bool_or(o.bytes IS NULL), NULL, sum(o.bytes))::BIGINT AS bytes,
        sum(greatest(0, o.end_ns - o.start_ns))::BIGINT AS host_ns,
        sum(greatest(0, o.end_ns - o.start_ns) - coalesce(b.busy_ns, 0))::BIGINT AS idle_ns,
        list(o.event_id ORDER BY o.event_id ASC) AS event_ids,
        min(o.start_ns) AS start_ns
    FROM own AS o
    LEFT JOIN busy AS b ON o.rank = b.rank AND o.event_id = b.event_id
    GROUP BY ALL
)

SELECT
    p.events,
    p.host_ns,
    p.idle_ns,
    p.collective,
    p.bytes,
    p.rank,
    d.device,
    p.source_file,
    p.source_line,
    p.steps,
    p.event_ids,
    p.start_ns,
    0::BIGINT AS saving_low_ns,
    p.idle_ns AS saving_high_ns,
    'high: the device never waits for it; low: it waits for another rank' AS saving_basis,
    'medium' AS confidence,
    round(p.host_ns / d.span_ns, 4) AS host_share,
    CASE WHEN p.idle_ns >= limits.warning_share * d.span_ns THEN 'warning' ELSE 'info' END
        AS severity
FROM places AS p
INNER JOIN busiest AS d ON p.rank = d.rank
CROSS JOIN limits
WHERE p.host_ns >= limits.min_share * d.span_ns
ORDER BY p.idle_ns DESC, p.start_ns ASC
