-- +++
-- doc = "How busy each device was."
-- key = ["rank", "device"]
-- materialize = true
--
-- [columns]
-- rank = "Distributed rank."
-- device = "Device."
-- chip = "Chip it is judged by; NULL where it is not recognised."
-- modelled = "Whether that chip is another one than the trace was recorded on."
-- events = "Units of work it ran."
-- work_ns = "Sum of their durations, overlaps counted twice (ns)."
-- busy_ns = "Union of their intervals: time in which at least one queue worked (ns)."
-- span_ns = "From its first start to its last end (ns)."
-- idle_ns = "Span minus busy time (ns)."
-- start_ns = "Its first start (ns)."
-- end_ns = "Its last end (ns)."
-- +++
SELECT
    t.rank,
    t.device,
    any_value(c.chip) AS chip,
    any_value(c.modelled) AS modelled,
    count(*) AS events,
    sum(t.end_ns - t.start_ns)::BIGINT AS work_ns,
    sum(t.busy_ns)::BIGINT AS busy_ns,
    max(t.end_ns) - min(t.start_ns) AS span_ns,
    max(t.end_ns) - min(t.start_ns) - sum(t.busy_ns)::BIGINT AS idle_ns,
    min(t.start_ns) AS start_ns,
    max(t.end_ns) AS end_ns
FROM timeline AS t
LEFT JOIN device_chips AS c ON t.rank = c.rank AND t.device = c.device
GROUP BY t.rank, t.device
ORDER BY t.rank ASC, t.device ASC
