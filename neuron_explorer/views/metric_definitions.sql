-- +++
-- doc = """What each figure of this program means. `SELECT <formula> FROM <view_name>` computes it,
-- for a whole trace or, with GROUP BY, for a rank, device, step, line or module."""
-- key = ["metric"]
-- materialize = true
--
-- [columns]
-- metric = "Its name in the field."
-- definition = "What it says, and what it does not."
-- unit = "ns, bytes, flop, flop/byte, bytes/s, flop/s, share (0 to 1), or count."
-- formula = "SQL over the view; NULL where what it needs is unknown."
-- view_name = "View it is found in."
-- figures = "measured: by a clock; derived: from recorded shapes; modelled: on a chip's data."
-- +++
SELECT
    listed.metric,
    listed.definition,
    listed.unit,
    listed.formula,
    listed.view_name,
    listed.figures
FROM (
    VALUES
    (
        'device time',
        'Durations of units of work, added up: two that overlap on two streams both count.',
        'ns', 'sum(duration_ns)', 'work', 'measured'
    ),
    (
        'device busy time',
        'Time in which at least one queue of a device worked: the union of the intervals.',
        'ns', 'sum(busy_ns)', 'timeline', 'measured'
    ),
    (
        'device span',
        'From the first start to the last end of a device''s work.',
        'ns', 'sum(span_ns)', 'devices', 'measured'
    ),
    (
        'device idle time',
        'Time between the first and last unit of work in which no queue of the device worked.',
        'ns', 'sum(idle_ns)', 'devices', 'measured'
    ),
    (
        'busy share',
        'Busy time over span; what is before the first and after the last kernel is in neither.',
        'share', 'sum(busy_ns) / nullif(sum(span_ns), 0)', 'devices', 'measured'
    ),
    (
        'step time',
        'Host time from the begin to the end of a training step (ProfilerStep#n), mean of all.',
        'ns', 'avg(duration_ns)', 'steps', 'measured'
    ),
    (
        'step idle share',
        'Part of the steps in which no device of the rank worked, compilations left out.',
        'share', 'sum(idle_ns) / nullif(sum(duration_ns), 0)', 'steps', 'measured'
    ),
    (
        'host time',
        'Time of ops and runtime calls on host threads, each nanosecond once (self time).',
        'ns', 'sum(host_ns)', 'lines', 'measured'
    ),
    (
        'op time',
        'Duration of an op, everything that it calls included: nested ops count twice in a sum.',
        'ns', 'sum(duration_ns)', 'ops', 'measured'
    ),
    (
        'self time',
        'Part of a duration in which no op or call inside it ran: sums without counting twice.',
        'ns', 'sum(self_ns)', 'ops', 'measured'
    ),
    (
        'launch delay',
        'From a launch call''s start to the start of its first work: long = the queue is full,'
        ' short = the device waits for the host.',
        'ns', 'avg(delay_ns)', 'launches', 'measured'
    ),
    (
        'gap',
        'A stretch in which no queue of a device worked, between two units of work.',
        'ns', 'sum(duration_ns)', 'gaps', 'measured'
    ),
    (
        'sync wait',
        'Time in which the host stood in a call that waits for the device.',
        'ns', 'sum(wait_ns)', 'syncs', 'measured'
    ),
    (
        'input wait',
        'Time of the steps that waited for a DataLoader; NULL where the trace has none.',
        'ns', 'sum(input_wait_ns)', 'steps', 'measured'
    ),
    (
        'exposed communication',
        'Time of collectives that no compute of the device covers: gone when they overlap.',
        'ns', 'sum(exposed_ns) FILTER (WHERE class = ''communication'')', 'exposed', 'measured'
    ),
    (
        'exposed copies',
        'Time of copies that no compute of the device covers.',
        'ns', 'sum(exposed_ns) FILTER (WHERE class = ''copy'')', 'exposed', 'measured'
    ),
    (
        'bytes',
        'What a unit must read and write in device memory, by shapes, dtypes and strides: caches'
        ' may spare some of it, a bad access pattern may cost more.',
        'bytes', 'sum(bytes)', 'work', 'derived'
    ),
    (
        'FLOPs',
        'Floating-point operations by shapes, a multiply-add counted as two.',
        'flop', 'sum(flops)', 'work', 'derived'
    ),
    (
        'arithmetic intensity',
        'FLOPs for each byte moved.',
        'flop/byte',
        'sum(flops) FILTER (WHERE bytes IS NOT NULL)'
        ' / nullif(sum(bytes) FILTER (WHERE flops IS NOT NULL), 0)',
        'work', 'derived'
    ),
    (
        'ridge point',
        'Intensity at which moving bytes and computing take equally long on the chip.',
        'flop/byte', 'max(ridge)', 'roofline', 'modelled'
    ),
    (
        'memory floor',
        'Bytes over the chip''s memory bandwidth: no time below it is possible on this chip.',
        'ns', 'sum(memory_floor_ns)', 'roofline', 'modelled'
    ),
    (
        'compute floor',
        'FLOPs over the chip''s peak for the dtype.',
        'ns', 'sum(compute_floor_ns)', 'roofline', 'modelled'
    ),
    (
        'floor',
        'The larger of both for each unit: its roof.',
        'ns', 'sum(floor_ns)', 'roofline', 'modelled'
    ),
    (
        'share of the roof',
        'Floor over measured time, of work whose floor is known: 1 cannot be faster on this chip.',
        'share',
        'sum(floor_ns) / nullif(sum(device_time_ns) FILTER (WHERE floor_ns IS NOT NULL), 0)',
        'roofline', 'modelled'
    ),
    (
        'achieved bandwidth',
        'Bytes known over the time of the units they are known for.',
        'bytes/s',
        'sum(bytes) / nullif(sum(duration_ns) FILTER (WHERE bytes IS NOT NULL), 0) * 1e9',
        'work', 'derived'
    ),
    (
        'achieved FLOP rate',
        'FLOPs known over the time of the units they are known for.',
        'flop/s',
        'sum(flops) / nullif(sum(duration_ns) FILTER (WHERE flops IS NOT NULL), 0) * 1e9',
        'work', 'derived'
    ),
    (
        'cost coverage',
        'Share of the device time, collectives left out, whose bytes are known: below it all'
        ' byte figures are lower bounds.',
        'share',
        'coalesce(sum(duration_ns) FILTER (WHERE bytes IS NOT NULL AND kind <> ''collective''), 0)'
        ' / nullif(sum(duration_ns) FILTER (WHERE kind <> ''collective''), 0)',
        'work', 'measured'
    ),
    (
        'source coverage',
        'Share of the device time whose source line is known.',
        'share',
        'coalesce(sum(duration_ns) FILTER (WHERE source_file IS NOT NULL), 0)'
        ' / nullif(sum(duration_ns), 0)',
        'work', 'measured'
    ),
    (
        'bytes saved by fusion',
        'Bytes of tensors that one eager op writes and the next reads back: a fused kernel keeps'
        ' them in registers.',
        'bytes', 'sum(bytes_saved)', 'chains', 'derived'
    ),
    (
        'peak memory',
        'Largest use of a device''s allocator, from 0 at the first event where the trace says no'
        ' more (live_is_relative).',
        'bytes', 'max(live_bytes)', 'allocations', 'measured'
    ),
    (
        'compile time',
        'Time in which torch.compile compiled.',
        'ns', 'sum(duration_ns) FILTER (WHERE kind = ''compile'')', 'compilations', 'measured'
    ),
    (
        'graph breaks',
        'Places at which torch.compile had to leave the graph.',
        'count', 'count(*) FILTER (WHERE kind = ''graph_break'')', 'compilations', 'measured'
    ),
    (
        'recompilations',
        'Compilations that happened again because a guard failed.',
        'count', 'count(*) FILTER (WHERE kind = ''recompile'')', 'compilations', 'measured'
    ),
    (
        'modelled step time',
        'Span that a dry run gives a step on its chip; nothing of it ran there.',
        'ns', 'avg(span_ns)', 'modelled_steps', 'modelled'
    )
) AS listed (metric, definition, unit, formula, view_name, figures)
