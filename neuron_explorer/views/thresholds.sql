-- +++
-- doc = "Every number that a judgement in a view turns on, in one place."
-- key = ["name"]
-- materialize = true
--
-- [columns]
-- name = "Name that views and analyzers look it up by."
-- value = "The number."
-- meaning = "What turns on it, and why this value."
-- +++
SELECT
    listed.name,
    listed.value,
    listed.meaning
FROM (
    VALUES
    (
        'bound_share', 0.3::DOUBLE,
        'A unit of work is bound by memory or compute when that floor is at least this share of'
        ' its time; below it, something else took most of the time: overhead.'
    ),
    (
        'at_roof_share', 0.75,
        'From this share of its floor on, a unit is as fast as the chip gets: vendors'' peaks are'
        ' reached to 75-80 % by the best kernels.'
    ),
    (
        'tiny_kernel_ns', 5000,
        'Up to this mean duration (ns) a kernel far below its roof is mostly start-up and latency;'
        ' a longer one has another reason.'
    ),
    (
        'tiny_kernel_bytes', 65536,
        'Up to this mean size (bytes) a kernel leaves most of any chip without work, however long'
        ' it takes.'
    ),
    (
        'lost_time_bad', 0.05,
        'Health is bad when more than this share of device events has no usable time.'
    ),
    (
        'unreadable_bad', 0.01,
        'Health is bad when more than this share of events could not be read.'
    ),
    (
        'launched_warn', 0.95,
        'Health warns when less than this share of device events is linked to its launch.'
    ),
    (
        'cost_warn', 0.5,
        'Health warns when less than this share of device time has a known number of bytes.'
    ),
    (
        'worked_steps_bad', 0.5,
        'Health is bad when less than this share of at least four steps has any work.'
    ),
    (
        'raw_share_warn', 0.5,
        'Health warns when one repaired event held more than this share of all recorded time.'
    ),
    (
        'turnaround_ns', 2000,
        'Shorter gaps (ns) are the device''s own turnaround between two kernels, not a late launch.'
    ),
    (
        'wait_ns', 5000,
        'A synchronising call that returns sooner (ns) had nothing to wait for.'
    ),
    (
        'bound_by_share', 0.8,
        'A step is bound by the device when this share of its work sets the pace and the device is'
        ' busy for as much of it; by the host when all but this share of the work sets none.'
    )
) AS listed (name, value, meaning)
