-- +++
-- title = "{cause_text}: {queue}"
-- question = "Which engines and DMA queues of a device work while the others stand still?"
-- severity = "info"
-- needs = ["engines", "measured"]
-- acts_on = "device"
-- message = """
-- {device} works {device_busy_ns:ns}; for {alone_ns:ns} of that ({alone_share:share}) \
-- {say_what}.[[ Its busiest queue, {queue}, is busy {queue_busy_ns:ns}, the mean of the \
-- {queues:count} of its kind is {mean_busy_ns:ns}.]]"""
-- advice = "{fix}"
-- key = ["rank", "device", "cause"]
-- proof = """
-- SELECT *
-- FROM queues
-- WHERE rank = {rank} AND device = {device}
-- ORDER BY busy_ns DESC"""
-- reference = "https://awsdocs-neuron.readthedocs-hosted.com/en/latest/"
--
-- [params.min_share]
-- default = 0.1
-- doc = "Devices of which one sort of queue works alone for less of the busy time are left out."
--
-- [params.warning_share]
-- default = 0.3
-- doc = "From this share of the busy time on it is a warning, else info."
--
-- [params.uneven]
-- default = 1.5
-- doc = "Queues of a kind are uneven from this ratio of the busiest to their mean on."
--
-- [columns]
-- cause = "dma: copies while no engine computes; engine: one engine other than the matrix one."
-- cause_text = "The cause in words."
-- alone_ns = "Time in which only queues of that sort worked (ns)."
-- alone_share = "The same over device_busy_ns."
-- device_busy_ns = "Time in which any queue of the device worked (ns)."
-- queue = "The busiest queue of that sort."
-- queue_busy_ns = "How long it was busy; NULL where its kind is evenly busy (ns)."
-- mean_busy_ns = "Mean busy time of the queues of its kind; NULL where evenly busy (ns)."
-- queues = "Queues of its kind; NULL where they are evenly busy."
-- rank = "Distributed rank."
-- device = "Device."
-- severity = "warning or info, by alone_share."
-- device_time_ns = "alone_ns (ns)."
-- share = "alone_share."
-- saving_low_ns = "0: the order of the work may need it (ns)."
-- saving_high_ns = "alone_ns, were it all beside the other queues (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "medium: what waits for what is not recorded."
-- say_what = "What works alone, as text."
-- fix = "The change to make."
-- event_ids = "The work of that sort."
-- start_ns = "When it first ran."
-- +++
-- A device of several engines is fast while they work together: DMA queues bring in the next tiles,
-- the matrix engine multiplies, the others do what lies between. Time in which copies run and no
-- engine computes is bound by memory or by the size of the transfers; time in which one vector
-- engine works alone keeps the matrix engine waiting.
--
-- The matrix engine alone is what one wants, so it is no finding. Engines are told by the kind or
-- the name of their queue.
--
-- Next: `SELECT queue, busy_ns, idle_ns FROM queues`.
WITH limits AS (
    SELECT
        $uneven AS uneven,
        $warning_share AS warning_share,
        $min_share AS min_share
),

sorted AS (
    SELECT
        w.rank,
        w.device,
        w.queue,
        w.event_id,
        w.start_ns,
        w.end_ns,
        CASE
            WHEN
                w.kind IN ('dma', 'memcpy', 'memset')
                OR coalesce(e.queue_kind IN ('dma', 'copy'), FALSE)
                THEN 'dma'
            WHEN regexp_matches(w.queue, '(?i)tensor|matrix|^pe\b|mxu|cube|gemm') THEN 'matrix'
            ELSE w.queue
        END AS sort
    FROM work AS w
    INNER JOIN events AS e ON w.rank = e.rank AND w.event_id = e.event_id
    WHERE w.device <> 'cpu'
),

mixed AS (
    SELECT
        rank,
        device
    FROM work
    WHERE kind IN ('engine', 'dma')
    GROUP BY rank, device
    HAVING count(DISTINCT queue) > 1
),

-- the union of each sort, as pieces that do not overlap
reached AS (
    SELECT
        s.*,
        max(s.end_ns) OVER (
            PARTITION BY s.rank, s.device, s.sort
            ORDER BY s.start_ns ASC, s.end_ns DESC, s.event_id ASC
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
    FROM sorted AS s
    SEMI JOIN mixed AS m ON s.rank = m.rank AND s.device = m.device
),

borders AS (
    SELECT
        rank,
        device,
        sort,
        greatest(start_ns, coalesce(reached_ns, start_ns)) AS at_ns,
        1 AS turn
    FROM reached
    WHERE end_ns > coalesce(reached_ns, start_ns)
    UNION ALL
    SELECT
        rank,
        device,
        sort,
        end_ns AS at_ns,
        -1 AS turn
    FROM reached
    WHERE end_ns > coalesce(reached_ns, start_ns)
),

-- how many sorts work from each border to the next, and which one where it is one
stretches AS (
    SELECT
        rank,
        device,
        lead(at_ns) OVER moment - at_ns AS stretch_ns,
        sum(turn) OVER moment AS working,
        sum(if(sort = 'dma', turn, 0)) OVER moment AS copying,
        sum(turn * (hash(sort) % 1_000_000_007)::BIGINT) OVER moment AS working_hash
    FROM borders
    WINDOW moment AS (
        PARTITION BY rank, device ORDER BY at_ns ASC, turn DESC, sort ASC
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )
),

sorts AS (
    SELECT
        rank,
        device,
        sort,
        (hash(sort) % 1_000_000_007)::BIGINT AS sort_hash,
        list(event_id ORDER BY event_id ASC) AS event_ids,
        min(start_ns) AS start_ns
    FROM reached
    GROUP BY rank, device, sort
),

alone AS (
    SELECT
        s.rank,
        s.device,
        s.sort,
        any_value(s.event_ids) AS event_ids,
        any_value(s.start_ns) AS start_ns,
        sum(t.stretch_ns)::BIGINT AS alone_ns
    FROM sorts AS s
    INNER JOIN stretches AS t
        ON
            s.rank = t.rank AND s.device = t.device AND t.working = 1
            AND s.sort_hash = t.working_hash
    WHERE s.sort <> 'matrix' AND t.stretch_ns > 0
    GROUP BY s.rank, s.device, s.sort
),

members AS (
    SELECT DISTINCT
        r.rank,
        r.device,
        r.sort,
        q.queue,
        q.busy_ns
    FROM reached AS r
    INNER JOIN queues AS q ON r.rank = q.rank AND r.device = q.device AND r.queue = q.queue
),

kinds AS (
    SELECT
        rank,
        device,
        sort,
        count(*) AS queues,
        arg_max(queue, (busy_ns, queue)) AS queue,
        max(busy_ns) AS queue_busy_ns,
        avg(busy_ns)::BIGINT AS mean_busy_ns
    FROM members
    GROUP BY rank, device, sort
),

worst AS (
    SELECT
        a.*,
        k.queue,
        k.queue_busy_ns >= limits.uneven * k.mean_busy_ns AS uneven,
        k.queue_busy_ns AS its_busy_ns,
        k.mean_busy_ns AS kind_busy_ns,
        k.queues AS kind_queues,
        if(a.sort = 'dma', 'dma', 'engine') AS cause
    FROM alone AS a
    INNER JOIN kinds AS k ON a.rank = k.rank AND a.device = k.device AND a.sort = k.sort
    CROSS JOIN limits
    QUALIFY row_number() OVER (
        PARTITION BY a.rank, a.device, if(a.sort = 'dma', 'dma', 'engine')
        ORDER BY a.alone_ns DESC, a.sort ASC
    ) = 1
)

SELECT
    w.cause,
    w.alone_ns,
    w.queue,
    w.rank,
    w.device,
    w.alone_ns AS device_time_ns,
    w.event_ids,
    w.start_ns,
    d.busy_ns AS device_busy_ns,
    round(w.alone_ns / d.busy_ns, 4) AS alone_share,
    round(w.alone_ns / d.busy_ns, 4) AS share,
    0::BIGINT AS saving_low_ns,
    w.alone_ns AS saving_high_ns,
    'high: it all runs beside the other queues; low: what follows needs it first' AS saving_basis,
    'medium' AS confidence,
    if(w.uneven, w.its_busy_ns, NULL) AS queue_busy_ns,
    if(w.uneven, w.kind_busy_ns, NULL) AS mean_busy_ns,
    if(w.uneven, w.kind_queues, NULL) AS queues,
    CASE WHEN w.alone_ns >= limits.warning_share * d.busy_ns THEN 'warning' ELSE 'info' END
        AS severity,
    CASE w.cause WHEN 'dma' THEN 'Bound by DMA' ELSE 'One engine works alone' END AS cause_text,
    CASE w.cause
        WHEN 'dma' THEN 'only its DMA queues do'
        ELSE 'only ' || w.queue || ' does'
    END AS say_what,
    CASE
        WHEN w.cause = 'dma' AND w.uneven
            THEN
                'Spread the transfers over the DMA queues (split large ones), and load the next'
                || ' tile while this one is computed.'
        WHEN w.cause = 'dma'
            THEN
                'Move fewer bytes or earlier: fuse ops so that tiles stay on the chip, transfer in'
                || ' larger pieces, use a narrower dtype, load the next tile while this one is'
                || ' computed.'
        ELSE
            'Give the matrix engine work meanwhile: interleave independent tiles, move elementwise'
            || ' work to an engine that idles, or fuse it into the product before.'
    END AS fix
FROM worst AS w
INNER JOIN devices AS d ON w.rank = d.rank AND w.device = d.device
CROSS JOIN limits
WHERE w.alone_ns >= limits.min_share * d.busy_ns
ORDER BY w.alone_ns DESC, w.rank ASC, w.device ASC, w.cause ASC
