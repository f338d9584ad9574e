"""Traces that agents have opened: each with a short name, judged once, closed when others need it.

Every trace is known by its files; one that changed on disk is opened again, so that an agent that
edits, records and asks sees what it recorded.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from neuron_explorer.analyzers import Report, run
from neuron_explorer.devices import all_chips
from neuron_explorer.errors import UsageError
from neuron_explorer.loading import load
from neuron_explorer.mcp.readable import Readable
from neuron_explorer.reports.overview import Overview, overview
from neuron_explorer.trace import Trace

_MOST_OPEN = 6
"""Each may hold memory and a process that runs its queries."""

_Stamp = tuple[tuple[int, int], ...]


class OpenTrace:
    """One trace under its short name; callable from several threads at once."""

    def __init__(self, name: str, files: Sequence[Path], device: str | None) -> None:
        self.name = name
        self.files = list(files)
        self.device = device
        self.users = 0
        self._lock = threading.RLock()
        self._stamp: _Stamp = ()
        self._trace: Trace | None = None
        self._report: Report | None = None
        self._seen: Overview | None = None

    @property
    def title(self) -> str:
        """`t1 (trace.parquet)`, with the chip where it is judged by another."""
        more = f" and {len(self.files) - 1} more" if len(self.files) > 1 else ""
        chip = f", as {self.device}" if self.device else ""
        return f"{self.name} ({self.files[0].name}{more}{chip})"

    def trace(self) -> Trace:
        """The trace as its files are now.

        Raises:
            TraceError: A file is missing or is no trace.
            ImportFailedError: Nothing could be read from a file.
        """
        with self._lock:
            stamp = tuple((s.st_mtime_ns, s.st_size) for s in (f.stat() for f in self.files))
            # whoever asks it right now keeps what he has
            if self._trace is None or (stamp != self._stamp and self.users <= 1):
                self.close()
                self._trace = load(*self.files, device=self.device)
                self._stamp = stamp
            return self._trace

    def report(self) -> Report:
        """What the analyzers say, asked once."""
        with self._lock:
            trace = self.trace()
            if self._report is None:
                self._report = run(trace)
            return self._report

    def seen(self) -> Overview:
        with self._lock:
            trace = self.trace()
            if self._seen is None:
                self._seen = overview(trace, [str(file) for file in self.files])
            return self._seen

    def forget_report(self) -> None:
        """Something beside the trace changed what its findings say."""
        with self._lock:
            self._report = None

    @property
    def is_open(self) -> bool:
        return self._trace is not None

    def close(self) -> None:
        with self._lock:
            if self._trace is not None:
                self._trace.close()
            self._trace = self._report = self._seen = None


class OpenTraces:
    """All traces of a server, by name."""

    def __init__(self, readable: Readable) -> None:
        self.readable = readable
        self._lock = threading.RLock()
        self._known: dict[str, OpenTrace] = {}
        self._numbers = count(1)
        for path in readable.files:
            self._add([path], None)

    @property
    def titles(self) -> list[str]:
        with self._lock:
            return [each.title for each in self._known.values()]

    def open(self, path: str, device: str | None = None) -> OpenTrace:
        """A trace by its path.

        Raises:
            TraceError: It is not there, or not readable.
            UsageError: No chip is called `device`.
        """
        if device is not None:
            _check_chip(device)
        files = self.readable.find(path)
        with self._lock:
            same = (t for t in self._known.values() if t.files == files and t.device == device)
            return next(same, None) or self._add(files, device)

    def named(self, name: str | None) -> OpenTrace:
        """The trace an agent means: by short name or path; the only one where it names none.

        Raises:
            UsageError: It names none, and there is none or there are several.
            TraceError: It names a path that is not there, or not readable.
        """
        if name is not None:
            return self._known.get(name) or self.open(name)
        titles = self.titles
        if len(titles) == 1:
            return next(iter(self._known.values()))
        if titles:
            raise UsageError(f"several traces are known: {', '.join(titles)}; name one")
        listing = ", ".join(self.readable.listing()[:10]) or "there is none in the folders"
        raise UsageError(f"no trace is open: call open_trace first. Readable: {listing}")

    @contextmanager
    def using(self, name: str | None) -> Iterator[OpenTrace]:
        """The trace, open, and kept so for as long as somebody asks it.

        Raises:
            UsageError: As `named`.
            TraceError: As `named`, or a file is no trace.
            ImportFailedError: Nothing could be read from a file.
        """
        chosen = self.named(name)
        with self._lock:
            chosen.users += 1
            self._known[chosen.name] = self._known.pop(chosen.name)  # the last one used
            self._make_room(chosen)
        try:
            chosen.trace()
            yield chosen
        finally:
            with self._lock:
                chosen.users -= 1
                if not chosen.is_open:  # it is none, so it gets no name
                    self._known.pop(chosen.name, None)

    def close(self) -> None:
        for each in list(self._known.values()):
            each.close()

    def _add(self, files: Sequence[Path], device: str | None) -> OpenTrace:
        added = OpenTrace(f"t{next(self._numbers)}", files, device)
        self._known[added.name] = added
        return added

    def _make_room(self, chosen: OpenTrace) -> None:
        idle = [t for t in self._known.values() if t.is_open and not t.users and t is not chosen]
        for each in idle[: max(len(idle) + 1 - _MOST_OPEN, 0)]:
            each.close()


def _check_chip(name: str) -> None:
    """A name and never a path: chip files are read from wherever they lie."""
    known = sorted(chip.name for chip in all_chips())
    if name not in known:
        raise UsageError(f"there is no chip {name!r}", hint=f"there are {', '.join(known)}")
