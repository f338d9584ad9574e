"""One recorded window of any torch profiler -> one `trace.parquet`."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from torch.profiler import profile as torch_profile

from neuron_explorer.collectors.capture.clock import MARK, ClockMarks
from neuron_explorer.collectors.capture.companions import Companion, Remark, rows_of
from neuron_explorer.collectors.capture.compiler import CompileSources, known_graphs
from neuron_explorer.collectors.capture.guards import inherited, undisturbed
from neuron_explorer.collectors.capture.outputs import Outputs, rank_of_environment
from neuron_explorer.collectors.capture.recorded_lines import LineSession
from neuron_explorer.collectors.capture.tree import TreeFacts, may_be_changed, read_tree
from neuron_explorer.collectors.importers import ImportOptions, import_file
from neuron_explorer.collectors.importers.chrome import ChromeTrace
from neuron_explorer.collectors.importers.facts import read_facts
from neuron_explorer.collectors.linking.frames import USUAL, Owners
from neuron_explorer.errors import TraceError

PARTLY = "not everything is recorded"


@dataclass
class Beside:
    """What a session recorded of a window beside torch."""

    clock: ClockMarks = field(default_factory=ClockMarks)
    lines: LineSession | None = None
    companions: Sequence[Companion] = ()
    remarks: list[Remark] = field(default_factory=list)
    """What the session itself could not record of the window."""
    facts: dict[str, object] = field(default_factory=dict)
    """What else the session has to say of it."""
    owners: Owners = USUAL

    def start(self) -> None:
        """Begin a window; torch records already."""
        self.clock = ClockMarks()
        self.clock.set()
        for companion in self.companions:
            attempt(companion.start, PARTLY)
        if self.lines is not None:
            self.lines.start()

    def stop(self) -> None:
        """End it; torch still records."""
        if self.lines is not None:
            self.lines.stop()
        for companion in reversed(self.companions):
            attempt(companion.stop, PARTLY)
        self.clock.set()

    def options(self, facts: TreeFacts) -> ImportOptions:
        """All of it, on torch's clock."""
        clock = self.clock.align(facts.clock_marks)
        lines = None if self.lines is None else self.lines.timeline(clock)
        remarks = list(self.remarks)
        if lines is not None and lines.facts.get("truncated"):
            remarks.append(("lines_truncated", f"after {lines.facts.get('marks')} marks", 1))
        # what a companion says of its rows it knows once it has made them
        recorded = rows_of(self.companions, clock)
        said = self.facts | {k: value for c in self.companions for k, value in c.facts().items()}
        return ImportOptions(
            owners=self.owners,
            captured_here=True,
            true_names=facts.true_names,
            call_lines=facts.call_lines,
            lines=lines,
            dropped_names=frozenset({MARK}),
            recorded=recorded,
            compiled_graphs=known_graphs(),
            capture=said,
            remarks=[*remarks, *(remark for c in self.companions for remark in c.remarks())],
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
    beside = beside or Beside()

    def known(trace: ChromeTrace) -> ImportOptions:
        return beside.options(_facts(session, trace, beside.owners))

    import_file(exported, output, options=known)


def _facts(session: torch_profile, trace: ChromeTrace, owners: Owners) -> TreeFacts:
    """What the trace file does not hold; torch's tree is walked only where something is missing."""
    results = None if session.profiler is None else session.profiler.kineto_results
    frames = bool(session.with_stack)
    if results is None:
        return TreeFacts()
    buffer = trace.reader.buffer
    annotations = buffer.names_of("framework/annotation")
    if frames or may_be_changed(buffer.names.name.texts, annotations):
        return read_tree(results, owners, frames=frames)
    starts = buffer.starts_of(MARK) + read_facts(trace.header, None).base_ns
    return TreeFacts(clock_marks=starts.tolist())


def holds_window(session: torch_profile) -> bool:
    """Whether a session holds events, or at least a window without any."""
    results = None if session.profiler is None else session.profiler.kineto_results
    return results is not None and results.trace_start_ns() != 0


def export_window(session: torch_profile, path: Path) -> None:
    """Write the Chrome trace that a session holds, as torch does.

    Raises:
        TraceError: It holds none, since another profiler took its place or it was stopped on
            another thread than it was started on. torch crashes there.
    """
    if not holds_window(session):
        raise TraceError(
            "torch holds no events of this window",
            hint="open one profiler at a time, and stop it on the thread that started it",
        )
    torch_profile.export_chrome_trace(session, str(path))


def attempt(act: Callable[[], None], failed: str = "the profile was not written") -> None:
    """Do something inside somebody's job, which goes on whatever becomes of its profile."""
    try:
        act()
    except Exception as error:  # noqa: BLE001 - a fault of ours must not end the job
        what = str(error) or type(error).__name__
        warnings.warn(f"{failed}: {what}", stacklevel=2)


def owners_of(mine: str | Sequence[str], plumbing: str | Sequence[str]) -> Owners:
    """Whose code it is by what the user names; a text is one entry, not one a letter."""
    return Owners(*((said,) if isinstance(said, str) else tuple(said) for said in (mine, plumbing)))


def trace_handler(
    output: str | Path, *, mine: str | Sequence[str] = (), plumbing: str | Sequence[str] = ()
) -> Callable[[torch_profile], None]:
    """An `on_trace_ready` for people who keep their own `torch.profiler.profile`.

    Example: `torch.profiler.profile(on_trace_ready=neuron_explorer.trace_handler("runs/"))`

    Args:
        output: A `.parquet` path, or a folder for many windows; as in `profile()`.
        mine: Paths or packages that are your own code; as in `profile()`.
        plumbing: Those that are nobody's; as in `profile()`.

    Raises:
        OutputError: The output cannot be written; found out at once.
    """
    owners = owners_of(mine, plumbing)
    outputs = Outputs(Path(output), rank_of_environment())
    outputs.check()

    def write(session: torch_profile) -> None:
        inner = session.profiler
        if inner is not None and inherited(inner.profiling_start_time_ns):
            return  # this is a forked child, and the parent writes
        with undisturbed():
            attempt(lambda: export(session))

    def export(session: torch_profile) -> None:
        with tempfile.TemporaryDirectory(prefix="neuron_explorer-") as folder:
            exported = Path(folder) / "window.json"
            export_window(session, exported)
            write_window(
                session,
                exported,
                outputs.next(),
                Beside(companions=[CompileSources()], owners=owners),
            )

    return write
