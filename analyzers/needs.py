"""What an analyzer may require of a trace, and which capture option gives it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Need:
    """A cheap question to the trace and what to say when the answer is no."""

    check: str
    """Query that gives at least one row where the need is met."""
    reason: str
    """Why an analyzer cannot judge without it, and how to get it."""


def _with(column: str) -> str:
    return f"SELECT 1 FROM events WHERE {column} IS NOT NULL LIMIT 1"


def _of_layer(layer: str) -> str:
    return f"SELECT 1 FROM events WHERE layer = '{layer}' LIMIT 1"


NEEDS: dict[str, Need] = {
    "work": Need(
        "SELECT 1 FROM work LIMIT 1",
        "no timed work in this trace (capture at least one operator)",
    ),
    "hardware": Need(
        _of_layer("hardware"),
        "no device events in this trace (capture with the device's activity, such as"
        " activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])",
    ),
    "measured": Need(
        "SELECT 1 FROM (SELECT count(*) AS rows, count(*) FILTER"
        " (WHERE ends_with(device, 'dry run)')) AS dry FROM events) WHERE rows > 0 AND dry = 0",
        "the measured times of a dry run are those of this machine (modelled_work has the chip's)",
    ),
    "modelled": Need(
        "SELECT 1 FROM modelled_work LIMIT 1",
        "no modelled times in this trace (neuron-explorer run --dryrun trn2 SCRIPT gives them)",
    ),
    "privateuse": Need(
        "SELECT 1 FROM events WHERE regexp_matches(device, '^(privateuseone|neuron)(:|$)') LIMIT 1",
        "no device of a PrivateUse1 back end in this trace (only such a one hands ops to the CPU)",
    ),
    "runtime": Need(
        _of_layer("runtime"),
        "no runtime events in this trace (capture with the device's activity, such as"
        " activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])",
    ),
    "waits": Need(
        "SELECT 1 FROM (SELECT bool_or(layer = 'hardware') AS device,"
        " bool_or(layer = 'runtime') AS calls, bool_or(layer = 'framework') AS ops FROM events)"
        " WHERE CASE WHEN device THEN calls ELSE ops END",
        "no runtime events in this trace (capture with the device's activity, such as"
        " activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])",
    ),
    "framework": Need(
        "SELECT 1 FROM ops LIMIT 1",
        "no framework operators in this trace (capture with ProfilerActivity.CPU)",
    ),
    "shapes": Need(
        _with("input_shapes"),
        "no shapes in this trace (capture with record_shapes=True)",
    ),
    "strides": Need(
        _with("input_strides"),
        "no strides in this trace (capture with record_shapes=True, by PyTorch 2.2 or later)",
    ),
    "cost": Need(
        "SELECT 1 FROM work WHERE bytes IS NOT NULL AND kind NOT IN ('memcpy', 'memset') LIMIT 1",
        "no known bytes in this trace (capture with record_shapes=True)",
    ),
    "chip": Need(
        "SELECT 1 FROM roofline WHERE peak_bytes_per_s IS NOT NULL LIMIT 1",
        "the chip of this trace is unknown (name it with --device)",
    ),
    "source": Need(
        _with("source_file"),
        "no source lines in this trace (capture with with_stack=True)",
    ),
    "modules": Need(
        _with("module"),
        "no modules in this trace (capture with neuron_explorer.profile, or with_stack=True)",
    ),
    "input_waits": Need(
        "SELECT 1 FROM events WHERE layer = 'host' AND kind = 'input_wait'"
        " AND duration_ns IS NOT NULL LIMIT 1",
        "no reads of a DataLoader in this trace (only a loop over one has them)",
    ),
    "collector": Need(
        "SELECT 1 FROM events WHERE layer = 'host' AND kind = 'gc' LIMIT 1",
        "no collector pauses in this trace (capture with neuron_explorer.profile; none may have"
        " happened)",
    ),
    "python_frames": Need(
        _of_layer("python"),
        "no Python frames in this trace (capture with with_stack=True)",
    ),
    "steps": Need(
        "SELECT 1 FROM steps LIMIT 1",
        "no steps in this trace (call profiler.step() once a training step)",
    ),
    "memory": Need(
        _of_layer("memory"),
        "no allocations in this trace (capture with profile_memory=True)",
    ),
    "compiler": Need(
        _of_layer("compiler"),
        "no compilations in this trace (capture with neuron_explorer.profile while torch.compile"
        " runs)",
    ),
    "compile_times": Need(
        "SELECT 1 FROM compilations WHERE kind = 'compile' AND duration_ns IS NOT NULL LIMIT 1",
        "no compilation in this trace (capture with neuron_explorer.profile while torch.compile"
        " compiles)",
    ),
    "breaks": Need(
        "SELECT 1 FROM events WHERE layer = 'compiler' AND kind IN ('compile', 'graph_break')"
        " AND graph_id IS NOT NULL LIMIT 1",
        "no graph breaks were recorded (capture with neuron_explorer.profile while torch.compile"
        " compiles)",
    ),
    "collectives": Need(
        "SELECT 1 FROM collectives LIMIT 1",
        "no collectives in this trace (capture a distributed run)",
    ),
    "queues": Need(
        "SELECT 1 FROM work WHERE kind = 'kernel' GROUP BY rank, device"
        " HAVING count(DISTINCT queue) > 1 LIMIT 1",
        "the kernels of each device run on one queue (nothing could run side by side)",
    ),
    "engines": Need(
        "SELECT 1 FROM work WHERE kind IN ('engine', 'dma') LIMIT 1",
        "no engines or DMA queues in this trace (GPU streams are none)",
    ),
    "copies": Need(
        "SELECT 1 FROM work WHERE kind = 'memcpy' LIMIT 1",
        "no copies of a device in this trace (capture with the device's activity)",
    ),
    "device_memory": Need(
        "SELECT 1 FROM events WHERE layer = 'memory' AND device_allocated IS NOT NULL"
        " AND device_reserved IS NOT NULL LIMIT 1",
        "no allocations of a device in this trace (capture with profile_memory=True)",
    ),
    "addresses": Need(
        "SELECT 1 FROM events WHERE layer = 'memory' AND contains(attributes, '\"Addr\"') LIMIT 1",
        "no allocations with their addresses in this trace (capture with profile_memory=True, by a"
        " PyTorch that records them)",
    ),
    "memory_pressure": Need(
        "SELECT 1 FROM events WHERE (layer = 'memory' AND device_reserved IS NOT NULL)"
        " OR (layer = 'runtime' AND kind = 'allocation') LIMIT 1",
        "no allocations of a device in this trace (capture with profile_memory=True)",
    ),
    "recomputation": Need(
        "SELECT 1 FROM events WHERE recomputed LIMIT 1",
        "no recomputed work in this trace (only torch.utils.checkpoint makes it; found by"
        " neuron_explorer.profile, or with_stack=True)",
    ),
    "data_parallel": Need(
        "SELECT 1 FROM events WHERE layer = 'framework' AND name = 'DataParallel.forward' LIMIT 1",
        "no nn.DataParallel in this trace",
    ),
    "steps_to_compare": Need(
        "SELECT 1 FROM steps GROUP BY rank HAVING count(*) >= 4 LIMIT 1",
        "fewer than four steps in this trace (call profiler.step() once a training step)",
    ),
}
