-- +++
-- title = "A tensor is copied whole each time it grows: cat to {shape}"
-- question = "Which lines grow a tensor by concatenation, step by step?"
-- severity = "warning"
-- likely = 0.75
-- needs = ["work", "shapes", "measured"]
-- acts_on = "device"
-- message = """
-- {calls:count call} of cat[[ in {steps:count step}]] each add a little to what the one before \
-- made, up to {shape}: {device_time_ns:ns}, of which {old_share:share} copies what was there \
-- before."""
-- advice = """
-- Make the tensor as long as it may get once (a static cache: `cache[:, :, n : n + 1] = new`), or \
-- keep the parts in a list and concatenate once at the end."""
-- key = ["rank", "device", "source_file", "source_line", "anonymous_place"]
-- proof = """
-- SELECT *
-- FROM op_calls
-- WHERE rank = {rank} AND name = 'aten::cat' AND source_line IS NOT DISTINCT FROM {source_line}
--     AND source_file IS NOT DISTINCT FROM {source_file}
-- ORDER BY start_ns"""
-- reference = "https://docs.pytorch.org/docs/stable/generated/torch.cat.html"
--
-- [params.min_calls]
-- default = 3
-- doc = "Lines whose tensor has fewer lengths are left out."
--
-- [params.min_share]
-- default = 0.005
-- doc = "Lines that copy for less of the recorded time are left out (0 to 1)."
--
-- [params.warning_share]
-- default = 0.05
-- doc = "From this share on a line is a warning, else info."
--
-- [params.write_ns]
-- default = 10_000
-- doc = "What writing the new part in its place takes at most, for the low saving (ns a call)."
--
-- [columns]
-- calls = "Calls that take what an earlier one made, or made what a later one takes."
-- old_share = "Part of their time by the bytes that were there before (0 to 1)."
-- shape = "Shape of the longest result."
-- steps = "Steps they ran in; NULL where the trace has no steps."
-- rank = "Distributed rank."
-- device = "Device that copies."
-- source_file = "File of the line; NULL without stacks."
-- source_line = "That line."
-- module = "Module of the first."
-- anonymous_place = "Size of all but the longest dimension; it stands for an unknown line."
-- device_time_ns = "Time of these calls (ns)."
-- severity = "warning or info, by that time over the recorded one."
-- saving_low_ns = "What was there before, less write_ns a call (ns)."
-- saving_high_ns = "What was there before (ns)."
-- saving_basis = "How the saving follows from the numbers."
-- confidence = "medium: which tensor a call takes is inferred from its shape."
-- event_ids = "Units of work of these calls."
-- start_ns = "When the first of them ran."
-- +++
-- A cache of keys and values that grows by torch.cat is read and written whole for each new token,
-- and its new length recompiles programs for static shapes. A tensor of the final length takes each
-- new part in its place.
--
-- A call counts where its largest input has the shape of what an earlier call of the same line
-- made, and is the larger part of the result. It misleads where equal shapes are a coincidence.
--
-- Next: `dynamic_shapes`; `SELECT input_shapes, step FROM op_calls WHERE name = 'aten::cat'`.
WITH calls AS (
    SELECT
        rank,
        pid,
        tid,
        place,
        step,
        device,
        module,
        source_file,
        source_line,
        start_ns,
        work_ns,
        work_ids,
        json_transform(output_shapes -> '$[0]', '["BIGINT"]') AS made,
        struct_extract(
            list_extract(
                list_reverse_sort(
                    list_transform(
                        json_transform(input_shapes -> '$[0]', '[["BIGINT"]]'),
                        LAMBDA s: struct_pack(size := list_product(s), shape := s)
                    )
                ),
                1
            ),
            'shape'
        ) AS largest
    FROM op_calls
    WHERE
        name = 'aten::cat' AND work_ns > 0 AND NOT by_autograd
        AND NOT coalesce(compiled, FALSE)
        AND json_array_length(input_shapes -> '$[0]') > 0
        AND json_array_length(output_shapes -> '$[0]') > 0
),

named AS (
    SELECT
        *,
        list_product(largest) / nullif(list_product(made), 0) AS old_part,
        if(source_line IS NULL, (list_product(made) // list_max(made))::VARCHAR, NULL)
            AS anonymous_place
    FROM calls
),

first_made AS (
    SELECT
        rank,
        pid,
        tid,
        source_file,
        source_line,
        anonymous_place,
        made,
        min(place) AS place
    FROM named
    GROUP BY ALL
),

growing AS (
    SELECT n.*
    FROM named AS n
    INNER JOIN first_made AS f
        ON
            n.rank = f.rank AND n.pid IS NOT DISTINCT FROM f.pid
            AND n.tid IS NOT DISTINCT FROM f.tid
            AND n.source_file IS NOT DISTINCT FROM f.source_file
            AND n.source_line IS NOT DISTINCT FROM f.source_line
            AND n.anonymous_place IS NOT DISTINCT FROM f.anonymous_place
            AND n.largest = f.made
    WHERE n.place > f.place AND n.old_part BETWEEN 0.5 AND 0.9999999
),

-- the call that the others go on from copied as well
members AS (
    SELECT n.*
    FROM named AS n
    SEMI JOIN growing AS g
        ON
            n.rank = g.rank AND n.pid IS NOT DISTINCT FROM g.pid
            AND n.tid IS NOT DISTINCT FROM g.tid
            AND n.source_file IS NOT DISTINCT FROM g.source_file
            AND n.source_line IS NOT DISTINCT FROM g.source_line
            AND n.anonymous_place IS NOT DISTINCT FROM g.anonymous_place
            AND (n.place = g.place OR n.made = g.largest)
    WHERE n.old_part BETWEEN 0.5 AND 0.9999999
),

places AS (
    SELECT
        rank,
        device,
        source_file,
        source_line,
        anonymous_place,
        count(*) AS calls,
        nullif(count(DISTINCT step), 0) AS steps,
        arg_max(made, (list_product(made), place))::VARCHAR AS shape,
        arg_min(module, start_ns) AS module,
        sum(work_ns)::BIGINT AS device_time_ns,
        sum(work_ns * old_part) AS old_ns,
        count(*) * $write_ns AS write_ns,
        list_sort(flatten(list(work_ids))) AS event_ids,
        min(start_ns) AS start_ns
    FROM members
    GROUP BY ALL
    HAVING count(DISTINCT made) >= $min_calls
),

recorded_spans AS (
    SELECT
        rank,
        $min_share * span_ns AS least_ns,
        $warning_share * span_ns AS warning_ns
    FROM rank_spans
)

SELECT
    p.calls,
    p.shape,
    p.steps,
    p.rank,
    p.device,
    p.source_file,
    p.source_line,
    p.module,
    p.anonymous_place,
    p.device_time_ns,
    p.event_ids,
    p.start_ns,
    round(p.old_ns / p.device_time_ns, 4) AS old_share,
    CASE WHEN p.device_time_ns >= r.warning_ns THEN 'warning' ELSE 'info' END
        AS severity,
    greatest(0, round(p.old_ns - p.write_ns))::BIGINT AS saving_low_ns,
    round(p.old_ns)::BIGINT AS saving_high_ns,
    'high: what was there before is not copied again, its bytes over all of the result; low: less'
    || ' what the calls that write the new parts take' AS saving_basis,
    'medium' AS confidence
FROM places AS p
INNER JOIN recorded_spans AS r ON p.rank = r.rank
WHERE p.device_time_ns >= r.least_ns
ORDER BY saving_high_ns DESC, p.start_ns ASC
