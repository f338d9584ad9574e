"""What torch's event tree knows and its trace file does not: true names, calling lines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from neuron_explorer.collectors.call_lines import CallLines
from neuron_explorer.collectors.capture.clock import MARK
from neuron_explorer.collectors.importers import LOST_NAME
from neuron_explorer.collectors.linking.frames import USUAL, Owners, parse_frame

_CHANGED = frozenset('\\"')
_SIGNS = frozenset('/"')
_OF_TORCH = (MARK, "ProfilerStep#", "Optimizer.", "enumerate(DataLoader)#")
"""How annotations begin that torch and we make ourselves."""
_tags: Any = torch._C._profiler._EventType
_PYTHON = frozenset({int(_tags.PyCall), int(_tags.PyCCall)})
"""As numbers, since their names cost more than all else there is to ask."""


@dataclass
class TreeFacts:
    """Facts of one recorded window, by the start of the event they belong to (Unix ns)."""

    true_names: dict[int, str] = field(default_factory=dict)
    """Names with what an exporter changes: not ASCII, a control, a backslash or a quote."""
    calls: list[tuple[int, int]] = field(default_factory=list)
    """(start, line) of every frame or built-in that model code called."""
    clock_marks: list[int] = field(default_factory=list)
    """Starts of the marks by which lines are aligned."""

    @property
    def call_lines(self) -> CallLines:
        return CallLines.of(self.calls)


def read_tree(results: Any, owners: Owners = USUAL, *, frames: bool = True) -> TreeFacts:
    """Walk the event tree once.

    Args:
        results: `torch.profiler.profile().profiler.kineto_results`.
        owners: Whose code it is where the usual rules do not say.
        frames: Whether torch has recorded Python frames (`with_stack`), which takes as long to
            ask of each event as all else.
    """
    found = TreeFacts()
    is_special: dict[str, bool] = {}
    calls = _Calls(owners)
    waiting = list(results.experimental_event_tree())
    while waiting:
        node = waiting.pop()
        waiting.extend(node.children)
        name = _name(node)
        special = is_special.get(name)
        if special is None:
            special = is_special[name] = name == MARK or _is_changed(name)
        if special:
            _note(node, name, found)
        if frames and (line := calls.line_of(node)) is not None:
            found.calls.append((node.start_time_ns, line))
    return found


def may_be_changed(names: Iterable[str], annotations: Iterable[str]) -> bool:
    """Whether the exporter may have changed a name, as far as its trace file tells.

    A name with what it cannot write is `unknown` there, a backslash becomes a slash, a quote is
    let through, and a line break leaves no sign at all: a user's own annotation may have had one.

    Args:
        names: All names in the trace file.
        annotations: Those of them that a program may choose as it likes.
    """
    return any(name == LOST_NAME or not _SIGNS.isdisjoint(name) for name in names) or any(
        not name.startswith(_OF_TORCH) for name in annotations
    )


def _note(node: Any, name: str, found: TreeFacts) -> None:
    if name == MARK:
        found.clock_marks.append(node.start_time_ns)
    else:
        found.true_names[node.start_time_ns] = name


def _is_changed(name: str) -> bool:
    return not (name.isascii() and name.isprintable()) or not _CHANGED.isdisjoint(name)


class _Calls:
    """Which events are calls by model code."""

    def __init__(self, owners: Owners) -> None:
        self._owners = owners
        self._is_model: dict[str, bool] = {}

    def line_of(self, node: Any) -> int | None:
        """Line of model code that called a frame or a built-in; None for all else."""
        if int(node.tag) not in _PYTHON:
            return None
        caller = node.extra_fields.caller
        file = caller.file_name
        if file not in self._is_model:
            frame = parse_frame(f"{file}(1): f", self._owners)
            self._is_model[file] = frame is not None and frame.model
        return int(caller.line_number) if self._is_model[file] else None


def _name(node: Any) -> str:
    """The name, also where torch cut it in the middle of a character."""
    try:
        name: str = node.name
    except UnicodeDecodeError as error:
        return error.object.decode("utf-8", "replace")
    return name
