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
    "collectives": Need(
        "SELECT 1 FROM collectives LIMIT 1",
        "no collectives in this trace (capture a distributed run)",
    ),
}
