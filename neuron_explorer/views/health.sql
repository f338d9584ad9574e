-- +++
-- doc = """Is this trace fit to be judged? One row a check and rank. bad: figures drawn from it
-- would mislead; warn: part of the answers is missing, and the message says what gives them."""
-- key = ["rank", "check_name"]
-- materialize = true
--
-- [columns]
-- rank = "Distributed rank."
-- check_name = """What was looked at: events, truncated, unreadable, dropped, device_events,
-- device_time_lost, launch_links, cost_coverage, worked_steps, raw_time, names, shapes, sources."""
-- status = "ok, warn or bad."
-- value = "What was found; NULL where it does not apply."
-- threshold = "Where the status changes."
-- message = "What it means and what to do; empty where all is well."
-- +++
WITH ranks AS (
    SELECT rank FROM raw.metadata
    UNION
    SELECT rank FROM events
),

counted AS (
    SELECT
        rank,
        count(*) FILTER (WHERE layer <> 'meta') AS events,
        count(*) FILTER (WHERE layer = 'meta' AND kind = 'unreadable') AS unreadable,
        count(*) FILTER (WHERE layer = 'hardware') AS hardware,
        count(*) FILTER (
            -- a dry run that executes nothing has modelled times only
            WHERE layer = 'hardware' AND (start_ns IS NULL OR duration_ns IS NULL)
            AND modelled_start_ns IS NULL
        ) AS lost,
        count(*) FILTER (WHERE layer = 'hardware' AND launch_id IS NOT NULL) AS launched,
        count(*) FILTER (WHERE layer = 'runtime') AS runtime_calls,
        count(*) FILTER (WHERE layer = 'runtime' AND kind IN ('launch', 'graph_launch'))
            AS launch_calls,
        count(*) FILTER (WHERE layer = 'framework' AND kind = 'op') AS ops,
        count(*) FILTER (WHERE layer = 'framework' AND kind = 'op' AND input_shapes IS NOT NULL)
            AS shaped_ops,
        count(*) FILTER (WHERE layer = 'framework' AND kind = 'op' AND source_file IS NOT NULL)
            AS placed_ops,
        count(*) FILTER (
            WHERE name = 'unknown' AND (kind = 'annotation' OR layer = 'python')
        ) AS nameless,
        sum(coalesce(raw_duration_ns, duration_ns)) FILTER (WHERE layer = 'hardware') AS raw_ns,
        max(raw_duration_ns) FILTER (WHERE layer = 'hardware') AS repaired_ns
    FROM events
    GROUP BY rank
),

costed AS (
    SELECT
        rank,
        sum(duration_ns) FILTER (WHERE bytes IS NOT NULL) AS known_ns,
        sum(duration_ns) AS all_ns
    FROM work
    WHERE kind <> 'collective'
    GROUP BY rank
),

reasons AS (
    SELECT
        rank,
        cost_note,
        sum(duration_ns) AS unknown_ns
    FROM work
    WHERE bytes IS NULL AND cost_note IS NOT NULL AND kind <> 'collective'
    GROUP BY rank, cost_note
),

main_reason AS (
    SELECT
        rank,
        arg_max(cost_note, (unknown_ns, cost_note)) AS reason
    FROM reasons
    GROUP BY rank
),

stepped AS (
    SELECT
        rank,
        count(*) AS steps,
        count(*) FILTER (WHERE work_events > 0 OR device_busy_ns > 0) AS worked
    FROM steps
    GROUP BY rank
),

told AS (
    SELECT
        rank,
        bool_or(key = 'origin' AND coalesce((value ->> '$.truncated')::BOOLEAN, FALSE))
            AS truncated,
        max(if(key = 'dropped' AND value NOT IN ('{}', '[]', 'null'), value, NULL)) AS dropped
    FROM raw.metadata
    GROUP BY rank
),

facts AS (
    SELECT
        r.rank,
        coalesce(c.events, 0) AS events,
        coalesce(c.hardware, 0) AS hardware,
        coalesce(c.runtime_calls, 0) AS runtime_calls,
        coalesce(c.launch_calls, 0) AS launch_calls,
        coalesce(c.nameless, 0) AS nameless,
        coalesce(t.truncated, FALSE) AS truncated,
        t.dropped,
        c.lost,
        c.ops,
        coalesce(s.steps, 0) AS steps,
        coalesce(s.worked, 0) AS worked,
        coalesce(c.unreadable, 0) / nullif(c.events + c.unreadable, 0) AS unreadable_share,
        c.lost / nullif(c.hardware, 0) AS lost_share,
        c.launched / nullif(c.hardware, 0) AS launched_share,
        coalesce(k.known_ns, 0) / nullif(k.all_ns, 0) AS cost_share,
        coalesce(m.reason, 'no reason recorded') AS cost_reason,
        if(s.steps >= 4, s.worked / s.steps, NULL) AS worked_share,
        c.repaired_ns / nullif(c.raw_ns, 0) AS raw_share,
        c.shaped_ops / nullif(c.ops, 0) AS shaped_share,
        c.placed_ops / nullif(c.ops, 0) AS placed_share
    FROM ranks AS r
    LEFT JOIN counted AS c ON r.rank = c.rank
    LEFT JOIN costed AS k ON r.rank = k.rank
    LEFT JOIN main_reason AS m ON r.rank = m.rank
    LEFT JOIN stepped AS s ON r.rank = s.rank
    LEFT JOIN told AS t ON r.rank = t.rank
),

limits AS (SELECT map_from_entries(list((name, value))) AS at FROM thresholds),

checks AS (
    SELECT
        f.rank,
        unnest([
            {
                'check_name': 'events',
                'status': if(f.events = 0, 'bad', 'ok'),
                'value': f.events::DOUBLE,
                'threshold': 1::DOUBLE,
                'message': 'no events: the capture was empty or its schedule never recorded'
            },
            {
                'check_name': 'truncated',
                'status': if(f.truncated, 'bad', 'ok'),
                'value': f.truncated::INT::DOUBLE,
                'threshold': 1::DOUBLE,
                'message': 'the file is cut off: what came after is missing; export it again'
            },
            {
                'check_name': 'unreadable',
                'status': CASE
                    WHEN f.unreadable_share > l.at['unreadable_bad'] THEN 'bad'
                    WHEN f.unreadable_share > 0 THEN 'warn'
                    ELSE 'ok'
                END,
                'value': f.unreadable_share,
                'threshold': l.at['unreadable_bad'],
                'message': format(
                    '{:.1f} % of the events could not be read; see import_issues',
                    100 * f.unreadable_share
                )
            },
            {
                'check_name': 'dropped',
                'status': if(f.dropped IS NULL, 'ok', 'warn'),
                'value': NULL::DOUBLE,
                'threshold': NULL::DOUBLE,
                'message': 'the profiler itself reports events dropped or errors: '
                || regexp_replace(f.dropped, '[{}\[\]"]', '', 'g')
            },
            {
                'check_name': 'device_events',
                'status': if(f.hardware = 0 AND f.launch_calls > 0, 'bad', 'ok'),
                'value': f.hardware::DOUBLE,
                'threshold': 1::DOUBLE,
                'message': format(
                    '{} launches but no device events: the device side was not recorded; add the'
                    ' device''s ProfilerActivity and see that no other profiler holds it',
                    f.launch_calls
                )
            },
            {
                'check_name': 'device_time_lost',
                'status': CASE
                    WHEN f.lost_share > l.at['lost_time_bad'] THEN 'bad'
                    WHEN f.lost_share > 0 THEN 'warn'
                    ELSE 'ok'
                END,
                'value': f.lost_share,
                'threshold': l.at['lost_time_bad'],
                'message': format(
                    '{} of {} device events have no usable time and are in no total',
                    f.lost, f.hardware
                )
            },
            {
                'check_name': 'launch_links',
                'status': if(f.launched_share < l.at['launched_warn'], 'warn', 'ok'),
                'value': f.launched_share,
                'threshold': l.at['launched_warn'],
                'message': if(
                    f.runtime_calls = 0,
                    'no runtime calls were recorded, so device work has no launch and no source;'
                    ' add ProfilerActivity.CPU',
                    format(
                        '{:.1f} % of the device events are linked to their launch',
                        100 * f.launched_share
                    )
                )
            },
            {
                'check_name': 'cost_coverage',
                'status': if(f.cost_share < l.at['cost_warn'], 'warn', 'ok'),
                'value': f.cost_share,
                'threshold': l.at['cost_warn'],
                'message': if(
                    f.shaped_share > 0,
                    format(
                        '{:.1f} % of the device time has known bytes; why, for most of the rest: {}'
                        ' (cost_note in work)',
                        100 * f.cost_share, f.cost_reason
                    ),
                    'bytes and FLOPs are unknown without shapes: record with record_shapes=True'
                )
            },
            {
                'check_name': 'worked_steps',
                'status': if(f.worked_share < l.at['worked_steps_bad'], 'bad', 'ok'),
                'value': f.worked_share,
                'threshold': l.at['worked_steps_bad'],
                'message': format(
                    'device work in {} of {} steps only: the rest was not recorded or not run',
                    f.worked, f.steps
                )
            },
            {
                'check_name': 'raw_time',
                'status': if(f.raw_share > l.at['raw_share_warn'], 'warn', 'ok'),
                'value': f.raw_share,
                'threshold': l.at['raw_share_warn'],
                'message': format(
                    '1 event = {:.1f} % of raw time; its duration was repaired, raw_duration_ns'
                    ' keeps what was recorded',
                    floor(1000 * f.raw_share) / 10
                )
            },
            {
                'check_name': 'names',
                'status': if(f.nameless >= 2, 'warn', 'ok'),
                'value': f.nameless::DOUBLE,
                'threshold': 2::DOUBLE,
                'message': format(
                    '{} ranges or frames are called unknown: names were lost by the exporter',
                    f.nameless
                )
            },
            {
                'check_name': 'shapes',
                'status': if(f.shaped_share = 0, 'warn', 'ok'),
                'value': f.shaped_share,
                'threshold': 0::DOUBLE,
                'message': 'no op has shapes: record with record_shapes=True'
            },
            {
                'check_name': 'sources',
                'status': if(f.placed_share = 0, 'warn', 'ok'),
                'value': f.placed_share,
                'threshold': 0::DOUBLE,
                'message': 'no op has a source line: record with with_stack=True'
            }
        ]) AS found
    FROM facts AS f
    CROSS JOIN limits AS l
)

SELECT
    rank,
    found.check_name AS check_name,
    found.status AS status,
    found.value AS value,
    found.threshold AS threshold,
    if(found.status = 'ok', '', found.message) AS message
FROM checks
ORDER BY rank ASC, array_position(['bad', 'warn', 'ok'], found.status) ASC, check_name ASC
