-- +++
-- doc = "Work summed up by name, without what only a compilation caused."
-- key = ["rank", "device", "name", "family"]
--
-- [columns]
-- rank = "Distributed rank."
-- device = "Device."
-- name = "Name of the kernel or copy."
-- family = "Family of its cost."
-- events = "How many ran."
-- total_ns = "Sum of their durations (ns)."
-- mean_ns = "Mean duration (ns)."
-- max_ns = "Longest duration (ns)."
-- bytes = "Sum of the bytes known; NULL where none are (bytes)."
-- flops = "Sum of the floating-point operations known (flop)."
-- share = "Total over the work time of the device, 0 to 1."
-- +++
SELECT
    rank,
    device,
    name,
    family,
    count(*) AS events,
    sum(duration_ns)::BIGINT AS total_ns,
    round(avg(duration_ns))::BIGINT AS mean_ns,
    max(duration_ns) AS max_ns,
    sum(bytes)::BIGINT AS bytes,
    sum(flops)::BIGINT AS flops,
    sum(duration_ns) / nullif(sum(sum(duration_ns)) OVER (PARTITION BY rank, device), 0) AS share
FROM work
WHERE phase IS DISTINCT FROM 'compile'
GROUP BY rank, device, name, family
ORDER BY total_ns DESC, rank ASC, device ASC, name ASC
