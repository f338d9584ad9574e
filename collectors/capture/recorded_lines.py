"""Lines recorded beside torch's profiler: from one session's window to a `LineTimeline`."""

from __future__ import annotations

import os
import re
import warnings
from array import array
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import neuron_explorer
from neuron_explorer.collectors.capture.clock import Alignment
from neuron_explorer.collectors.capture.lines import BY_EVENTS, LineCollector, Recording
from neuron_explorer.collectors.capture.timelines import Timelines
from neuron_explorer.collectors.capture.watched import Watch
from neuron_explorer.collectors.events import Ints
from neuron_explorer.collectors.line_timeline import LineChanges, LineTimeline
from neuron_explorer.collectors.linking.frames import USUAL, Frame, Owners, owner_of
from neuron_explorer.errors import UsageError

_OWN = (str(Path(neuron_explorer.__file__).parent) + os.sep, str(Path(__file__).parent) + os.sep)
_DEMO = str(Path(__file__).with_name("demo.py"))

_PLUMBING = re.compile(
    r"/(site|dist)-packages/"
    r"(sympy|mpmath|networkx|jinja2|markupsafe|filelock|fsspec|typing_extensions)\b"
)
"""What torch itself runs on: millions of lines in a compilation, none of them a model's."""


def is_model_file(file: str, owners: Owners = USUAL) -> bool:
    """Whether a file's code is model code: not torch's, the standard library's or ours."""
    if _PLUMBING.search(file):
        return False
    if file.startswith(_OWN) and file != _DEMO:
        return False
    return owner_of(file, owners) in ("site", "user")


class LineSession:
    """Records the lines of one window after the other.

    Args:
        watch: Foreign functions whose calls are to be written down as well.
        lines: Whether lines are wanted, or those calls only.
        check: Called on the recorded threads now and then; it may end the recording.
        owners: Whose code it is where the usual rules do not say.
    """

    def __init__(
        self,
        watch: Watch | None = None,
        *,
        lines: bool = True,
        check: Callable[[], None] | None = None,
        owners: Owners = USUAL,
    ) -> None:
        self._lines, self._owners = lines, owners
        is_model = partial(is_model_file, owners=owners) if lines else _none
        self._collector = LineCollector(is_model, watch=watch, check=check)
        self._recording: Recording | None = None

    def start(self) -> None:
        """Begin a window; torch records already. Where lines cannot be had, says so and goes on."""
        self._recording = None
        try:
            self._collector.start()
        except UsageError as error:
            warnings.warn(f"no exact lines: {error}; {error.hint}", stacklevel=2)

    def stop(self) -> None:
        """End the window; torch still records."""
        if self._collector.active:
            self._recording = self._collector.stop()

    def timeline(self, clock: Alignment) -> LineTimeline | None:
        """Lines of the window that has ended; None where none were recorded."""
        if self._recording is None or not self._lines:
            return None
        timelines, self._recording = self._recording.timelines(), None
        if timelines.truncated:
            warnings.warn(
                f"exact lines end after {timelines.marks} marks: what ran later has none; "
                "record fewer steps",
                stacklevel=2,
            )
        return to_timeline(timelines, clock, self._owners)


def _none(_file: str) -> bool:
    return False


def to_timeline(found: Timelines, alignment: Alignment, owners: Owners = USUAL) -> LineTimeline:
    """The same on torch's clock, with the frames as torch names them."""
    changes = {
        thread.thread: LineChanges(
            alignment.to_torch(_column(thread.start_ns)),
            np.frombuffer(thread.node, np.int32),
            alignment.to_torch(_column(thread.entered_ns)),
        )
        for thread in found.threads
        if len(thread.node)
    }
    files = {file: _shortened(file) for file in {code.co_filename for code in found.codes}}
    users = {file: _is_user(file, owners) for file in files}
    frames = []
    for node in found.nodes:
        code = found.codes[node.code]
        file = code.co_filename
        frames.append(Frame(files[file], node.line, code.co_name, model=True, user=users[file]))
    return LineTimeline(
        threads=changes,
        callers=[node.caller for node in found.nodes],
        frames=frames,
        facts={
            "via": "sys.monitoring" if BY_EVENTS else "sys.settrace",
            "marks": found.marks,
            "truncated": found.truncated,
            "clock_offset_ns": list(alignment.offset_ns),
            "clock_error_ns": alignment.error_ns,
        },
    )


def _column(times: array[int]) -> Ints:
    return np.frombuffer(times, np.int64)


def _is_user(file: str, owners: Owners) -> bool:
    return owner_of(file, owners) == "user"


def _shortened(file: str) -> str:
    """The name as torch's Python tracer has it: without the entry of `sys.path` it lies under."""
    from torch.profiler.python_tracer import _prefix_regex

    for prefix in _prefix_regex():
        if file.startswith(prefix):
            return file[len(prefix) :]
    return file
