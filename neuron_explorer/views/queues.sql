-- +++
-- doc = "How busy each hardware queue was."
-- key = ["rank", "device", "queue"]
--
-- [columns]
-- rank = "Distributed rank."
-- device = "Device."
-- queue = "Queue of the device."
-- events = "Units of work it ran."
-- work_ns = "Sum of their durations (ns)."
-- busy_ns = "Union of their intervals (ns)."
-- span_ns = "From its first start to its last end (ns)."
-- idle_ns = "Span minus busy time (ns)."
-- +++
SELECT
    rank,
    device,
    queue,
    count(*) AS events,
    sum(end_ns - start_ns)::BIGINT AS work_ns,
    sum(queue_busy_ns)::BIGINT AS busy_ns,
    max(end_ns) - min(start_ns) AS span_ns,
    max(end_ns) - min(start_ns) - sum(queue_busy_ns)::BIGINT AS idle_ns
FROM timeline
GROUP BY rank, device, queue
ORDER BY rank ASC, device ASC, queue ASC
