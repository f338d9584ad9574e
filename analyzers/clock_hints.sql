-- +++
-- title = "The same kernels get slower over the trace"
-- question = "Does the device slow down while the same kernels run again and again?"
-- severity = "info"
-- needs = ["hardware", "measured"]
-- acts_on = "device"
-- message = """
-- {kernels:count launch} of {groups:count kernel} on {device} that compute the same: the last \
-- quarter of each takes {slower_share:share} more time than the first ({device_time_ns:ns} in \
-- all; {slower_groups:count} of the {groups:count} are slower).[[ {say_top}.]]"""
-- advice = """
-- Look at clock and power while it runs (nvidia-smi -q -d CLOCK,PERFORMANCE; rocm-smi \
-- --showclocks): a chip that is hot or at its power limit lowers its clock. Lock the clock for \
-- comparisons, and measure after a warm-up of the same length."""
-- key = ["rank", "device"]
-- proof = """
-- SELECT name, input_shapes, count(*) AS kernels, min(start_ns) AS first_ns,
--     median(duration_ns) AS median_ns
-- FROM work
-- WHERE rank = {rank} AND device = {device} AND kind = 'kernel'
-- GROUP BY name, input_shapes
-- ORDER BY sum(duration_ns) DESC"""
-- reference = "https://docs.pytorch.org/docs/stable/benchmark_utils.html"
--
-- [params.min_kernels]
-- default = 12
-- doc = "Kernels that run less often are left out."
--
-- [params.min_kernel_ns]
-- default = 5_000
-- doc = "Kernels with a shorter median are left out: their time is start-up (ns)."
--
-- [params.min_slower]
-- default = 0.05
-- doc = "Devices that slow down by less are left out (0 to 1)."
--
-- [params.warning_slower]
-- default = 0.15
-- doc = "From this slow-down on it is a warning, else info."
--
-- [params.min_agreement]
-- default = 0.8
-- doc = "Least share of the kernels' time that must have become slower (0 to 1)."
--
-- [columns]
-- slower_share = "Time of the last quarters over that of the first, less 1."
-- groups = "Kernels of the same name, grid and shapes that were compared."
-- slower_groups = "Those of them that are slower at the end."
-- kernels = "Their launches."
-- device_time_ns = "Time of all of them (ns)."
-- rank = "Distributed rank."
-- device = "Device."
-- severity = "warning or info, by slower_share."
-- say_top = "The kernel with most time, and its medians."
-- saving_low_ns = "0: data or neighbours may be the reason (ns)."
-- saving_high_ns = "Time above what the first quarters' medians would have taken (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "low: the trace has no clock."
-- event_ids = "The kernels."
-- start_ns = "When the first of them ran."
-- +++
-- The same kernel on the same shapes does the same work. When nearly all of them take longer
-- towards the end, the device itself became slower: its clock fell for heat or power, or another
-- program shares it.
--
-- It misleads where values matter (sparse data, random indices) and where other queues start to run
-- beside the kernels.
--
-- Next: `SELECT step, median(duration_ns) FROM work WHERE name = '...' GROUP BY 1`.
WITH limits AS (
    SELECT $min_kernel_ns AS min_kernel_ns
),

compared AS (
    SELECT
        w.rank,
        w.device,
        w.event_id,
        w.start_ns,
        w.duration_ns,
        w.name,
        concat_ws(
            '|', w.name, w.input_shapes,
            e.attributes ->> '$.grid', e.attributes ->> '$.block'
        ) AS same
    FROM work AS w
    INNER JOIN events AS e
        ON w.rank = e.rank AND w.event_id = e.event_id AND e.layer = 'hardware'
    ANTI JOIN collectives AS c ON w.rank = c.rank AND w.event_id = c.event_id
    WHERE
        w.kind = 'kernel' AND w.phase IS DISTINCT FROM 'compile'
        -- without either nothing says that two launches do the same
        AND (w.input_shapes IS NOT NULL OR contains(e.attributes, '"grid"'))
),

repeated AS (
    SELECT
        rank,
        device,
        same,
        any_value(name) AS name,
        count(*) AS kernels,
        sum(duration_ns)::BIGINT AS device_time_ns,
        median(duration_ns) AS median_ns,
        list(duration_ns ORDER BY start_ns ASC, event_id ASC) AS durations,
        min(start_ns) AS start_ns,
        max(start_ns) AS last_start_ns,
        list(event_id ORDER BY event_id ASC) AS event_ids
    FROM compared
    GROUP BY rank, device, same
    HAVING count(*) >= $min_kernels
),

-- quarters as ntile(4) cuts them, which over so many small partitions is slow
alike AS (
    SELECT
        * EXCLUDE (durations),
        list_median(durations[:(kernels + 3) // 4]) AS first_ns,
        list_median(durations[kernels - kernels // 4 + 1:]) AS last_ns
    FROM repeated
),

spread AS (
    SELECT
        g.*,
        greatest(0, g.device_time_ns - g.kernels * g.first_ns)::BIGINT AS above_ns
    FROM alike AS g
    INNER JOIN devices AS d ON g.rank = d.rank AND g.device = d.device
    CROSS JOIN limits
    WHERE
        g.median_ns >= limits.min_kernel_ns
        -- what runs in a corner of the trace only says nothing of its length
        AND g.last_start_ns - g.start_ns >= 0.5 * d.span_ns
),

summed AS (
    SELECT
        rank,
        device,
        count(*) AS groups,
        count(*) FILTER (WHERE last_ns > first_ns) AS slower_groups,
        sum(device_time_ns) FILTER (WHERE last_ns > first_ns) AS slower_ns,
        sum(kernels)::BIGINT AS kernels,
        sum(device_time_ns)::BIGINT AS device_time_ns,
        sum(above_ns)::BIGINT AS above_ns,
        sum(last_ns * kernels) / sum(first_ns * kernels) - 1 AS slower_share,
        arg_max(
            left(name, 60) || ': ' || printf('%.1f', first_ns / 1e3) || ' us at first, '
            || printf('%.1f', last_ns / 1e3) || ' us at the end',
            (device_time_ns, same)
        ) AS say_top,
        list_sort(flatten(list(event_ids))) AS event_ids,
        min(start_ns) AS start_ns
    FROM spread
    GROUP BY rank, device
)

SELECT
    groups,
    slower_groups,
    kernels,
    device_time_ns,
    rank,
    device,
    say_top,
    event_ids,
    start_ns,
    0::BIGINT AS saving_low_ns,
    above_ns AS saving_high_ns,
    'high: every launch as fast as in the first quarter; low: the work itself is another'
        AS saving_basis,
    'low' AS confidence,
    round(slower_share, 4) AS slower_share,
    CASE WHEN slower_share >= $warning_slower THEN 'warning' ELSE 'info' END AS severity
FROM summed
WHERE slower_share >= $min_slower AND slower_ns >= $min_agreement * device_time_ns
ORDER BY above_ns DESC, rank ASC, device ASC
