"""What torch's event tree knows and its trace file does not: true names, calling lines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from neuron_explorer.collectors.call_lines import CallLines
from neuron_explorer.collectors.capture.clock import MARK
from neuron_explorer.collectors.linking.frames import USUAL, Owners, parse_frame

_CHANGED = frozenset('\\"')
_PYTHON = frozenset({"PyCall", "PyCCall"})


@dataclass
class TreeFacts:
    """Facts of one recorded window, by the start of the event they belong to (Unix ns)."""

    true_names: dict[int, str] = field(default_factory=dict)
    """Names that an exporter changes: not ASCII, or with a backslash or a quote."""
    calls: list[tuple[int, int]] = field(default_factory=list)
    """(start, line) of every frame or built-in that model code called."""
    clock_marks: list[int] = field(default_factory=list)
    """Starts of the marks by which lines are aligned."""

    @property
    def call_lines(self) -> CallLines:
        return CallLines.of(self.calls)


def read_tree(results: Any, owners: Owners = USUAL) -> TreeFacts:
    """Walk the event tree once.

    Args:
        results: `torch.profiler.profile().profiler.kineto_results`.
        owners: Whose code it is where the usual rules do not say.
    """
    found = TreeFacts()
    is_model: dict[str, bool] = {}
    waiting = list(results.experimental_event_tree())
    while waiting:
        node = waiting.pop()
        waiting.extend(node.children)
        name = _name(node)
        if name == MARK:
            found.clock_marks.append(node.start_time_ns)
        if not name.isascii() or _CHANGED.intersection(name):
            found.true_names[node.start_time_ns] = name
        if node.tag.name in _PYTHON:
            caller = node.extra_fields.caller
            file = caller.file_name
            if file not in is_model:
                frame = parse_frame(f"{file}(1): f", owners)
                is_model[file] = frame is not None and frame.model
            if is_model[file]:
                found.calls.append((node.start_time_ns, caller.line_number))
    return found


def _name(node: Any) -> str:
    """The name, also where torch cut it in the middle of a character."""
    try:
        name: str = node.name
    except UnicodeDecodeError as error:
        return error.object.decode("utf-8", "replace")
    return name
