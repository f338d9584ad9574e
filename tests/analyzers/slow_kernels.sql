-- +++
-- title = "Slow {name}"
-- question = "Which kernels take a millisecond and more?"
-- severity = "info"
-- needs = ["work"]
-- message = "{events:count run} of {name} took {device_time_ns:ns}."
-- advice = "Look at its shapes first."
-- key = ["rank", "name"]
-- proof = "SELECT * FROM kernels WHERE rank = {rank} AND name = {name}"
-- reference = "https://docs.pytorch.org/docs/stable/profiler.html"
-- [columns]
-- rank = "Distributed rank."
-- name = "Kernel."
-- events = "Runs of it."
-- device_time_ns = "Their time (ns)."
-- +++
-- A long kernel is no fault by itself.
SELECT
    rank,
    name,
    events,
    total_ns AS device_time_ns
FROM kernels
WHERE mean_ns >= 1000000
