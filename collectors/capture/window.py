"""One recorded window of any torch profiler -> one `trace.parquet`."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from torch.profiler import profile as torch_profile

from neuron_explorer.collectors.capture.clock import MARK, ClockMarks
from neuron_explorer.collectors.capture.companions import Companion, rows_of
from neuron_explorer.collectors.capture.outputs import Outputs, rank_of_environment
from neuron_explorer.collectors.capture.recorded_lines import LineSession
from neuron_explorer.collectors.capture.tree import TreeFacts, read_tree
from neuron_explorer.collectors.importers import ImportOptions, import_file


@dataclass
class Beside:
    """What a session recorded of a window beside torch."""

    clock: ClockMarks = field(default_factory=ClockMarks)
    lines: LineSession | None = None
    companions: Sequence[Companion] = ()

    def start(self) -> None:
        """Begin a window; torch records already."""
        self.clock = ClockMarks()
        self.clock.set()
        for companion in self.companions:
            companion.start()
        if self.lines is not None:
            self.lines.start()

    def stop(self) -> None:
        """End it; torch still records."""
        if self.lines is not None:
            self.lines.stop()
        for companion in reversed(self.companions):
            companion.stop()
        self.clock.set()

    def options(self, facts: TreeFacts) -> ImportOptions:
        """All of it, on torch's clock."""
        clock = self.clock.align(facts.clock_marks)
        said = {key: value for c in self.companions for key, value in c.facts().items()}
        return ImportOptions(
            captured_here=True,
            true_names=facts.true_names,
            call_lines=facts.call_lines,
            lines=None if self.lines is None else self.lines.timeline(clock),
            dropped_names=frozenset({MARK}),
            recorded=rows_of(self.companions, clock),
            capture=said,
            remarks=[remark for c in self.companions for remark in c.remarks()],
        )


def write_window(
    session: torch_profile, exported: Path, output: Path, beside: Beside | None = None
) -> None:
    """Write the window that a session holds.

    Args:
        session: A profiler that has just stopped recording.
        exported: Its Chrome trace, already written.
        output: Where the trace goes.
        beside: What was recorded beside torch, if anything was.

    Raises:
        OutputError: The output cannot be written.
        ImportFailedError: The window holds no event.
    """
    results = None if session.profiler is None else session.profiler.kineto_results
    facts = TreeFacts() if results is None else read_tree(results)
    import_file(exported, output, options=(beside or Beside()).options(facts))


def attempt(write: Callable[[], None]) -> None:
    """Write a window inside somebody's job, which goes on whatever becomes of its profile."""
    try:
        write()
    except Exception as error:  # noqa: BLE001 - a fault of ours must not end the job
        what = str(error) or type(error).__name__
        warnings.warn(f"the profile was not written: {what}", stacklevel=2)


def trace_handler(output: str | Path) -> Callable[[torch_profile], None]:
    """An `on_trace_ready` for people who keep their own `torch.profiler.profile`.

    Example: `torch.profiler.profile(on_trace_ready=neuron_explorer.trace_handler("runs/"))`

    Args:
        output: A `.parquet` path, or a folder for many windows; as in `profile()`.

    Raises:
        OutputError: The output cannot be written; found out at once.
    """
    outputs = Outputs(Path(output), rank_of_environment())
    outputs.check()

    def write(session: torch_profile) -> None:
        attempt(lambda: export(session))

    def export(session: torch_profile) -> None:
        with tempfile.TemporaryDirectory(prefix="neuron_explorer-") as folder:
            exported = Path(folder) / "window.json"
            session.export_chrome_trace(str(exported))
            write_window(session, exported, outputs.next())

    return write
