"""Files of other tools -> `trace.parquet`."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neuron_explorer.collectors.assembly import Gathered, assemble, write_trace
from neuron_explorer.collectors.call_lines import CallLines
from neuron_explorer.collectors.events import (
    RECORDED_DEVICE,
    RECORDED_STREAM,
    UNKNOWN,
    Bools,
    Events,
    Places,
)
from neuron_explorer.collectors.importers.categories import UNKNOWN as UNKNOWN_ROLE
from neuron_explorer.collectors.importers.categories import device_type, refine
from neuron_explorer.collectors.importers.chrome import ChromeTrace, read_chrome
from neuron_explorer.collectors.importers.exported import is_export, read_export
from neuron_explorer.collectors.importers.facts import HeaderFacts, read_facts
from neuron_explorer.collectors.importers.issues import IssueLog
from neuron_explorer.collectors.importers.tables import pair_marks, process_role
from neuron_explorer.collectors.interning import NULL, Codes
from neuron_explorer.collectors.line_timeline import LineTimeline
from neuron_explorer.collectors.linking.frames import USUAL, Owners
from neuron_explorer.collectors.linking.kernels import CompiledGraph
from neuron_explorer.collectors.recorded import append_recorded
from neuron_explorer.collectors.row_codes import Track
from neuron_explorer.collectors.rows import TraceRows
from neuron_explorer.collectors.writer import TraceWriter
from neuron_explorer.errors import ImportFailedError, UsageError
from neuron_explorer.progress import Progress, Silent

LOST_NAME = "unknown"

__all__ = ["ImportOptions", "ImportReport", "import_file"]


@dataclass(frozen=True)
class ImportOptions:
    """How a foreign file is read."""

    rank: int | None = None
    """Rank to file it under where the trace names none; None = 0."""
    owners: Owners = USUAL
    """Whose code it is where the usual rules do not say."""
    captured_here: bool = False
    """This process made the trace, so its source files are the ones on disk."""
    true_names: Mapping[int, str] = field(default_factory=dict)
    """Start (Unix ns) -> name, for framework and Python events that the exporter renamed."""
    call_lines: CallLines | None = None
    """Lines from which Python frames were called; a trace file alone does not have them."""
    lines: LineTimeline | None = None
    """Lines that ran by time and thread, recorded beside the trace."""
    dropped_names: frozenset[str] = frozenset()
    """Framework events of these names are the recorder's own, not the program's."""
    recorded: pa.Table | None = None
    """Rows of `recorded.RECORDED` that this process wrote down beside the trace."""
    compiled_graphs: Sequence[CompiledGraph] = ()
    """Graphs that this process saw torch.compile make."""
    capture: Mapping[str, object] = field(default_factory=dict)
    """What else is to be said of the capture, for the trace's metadata."""
    remarks: Sequence[tuple[str, str, int]] = ()
    """(kind, example, count) of what a capture could not record, for `import_issues`."""


@dataclass(frozen=True)
class ImportReport:
    """What an import did."""

    output: Path
    events: int
    issues: list[dict[str, Any]]
    truncated: bool


def import_file(
    path: Path,
    output: Path,
    *,
    progress: Progress | None = None,
    options: ImportOptions | Callable[[ChromeTrace], ImportOptions] | None = None,
) -> ImportReport:
    """Read a Chrome trace, link it, cost it and write it to `output`.

    Args:
        path: The trace.
        output: Where the Parquet file goes.
        progress: Told how far the reading is.
        options: What is known beside the file; a function where that depends on what it holds.

    Raises:
        ImportFailedError: The file is missing, empty or holds no event.
        OutputError: The output cannot be written.
        UsageError: The output is the input.
    """
    if output.exists() and path.exists() and output.samefile(path):
        raise UsageError(f"{output} is the input itself", hint="choose another output with -o")
    issues = IssueLog()
    with TraceWriter(output) as writer:
        progress = progress or Silent()
        if is_export(path):
            rows, cut = read_export(path, writer, issues, progress)
            return ImportReport(output, rows, issues.records(), cut)
        trace = read_chrome(path, issues, progress)
        progress.start(f"linking {path.name}")
        with closing(trace.reader.buffer):
            known = options(trace) if callable(options) else options or ImportOptions()
            _add_recorded(trace, known)
            events = _write(path, trace, writer, issues, known)
        progress.finish()
    return ImportReport(output, events, issues.records(), trace.truncated)


def _write(
    path: Path, trace: ChromeTrace, writer: TraceWriter, issues: IssueLog, options: ImportOptions
) -> int:
    if not trace.reader.buffer.rows:
        raise ImportFailedError(
            f"{path} holds no trace events",
            hint="give a Chrome trace, as torch.profiler's export_chrome_trace writes it",
        )
    facts = read_facts(trace.header, options.rank)
    for kind, example, count in options.remarks:
        issues.add(kind, example=example, count=count)
    rows = assemble(_gather(trace, facts, issues, options))
    _report_repairs(rows, issues)
    if options.captured_here:
        _report_unsourced(rows, issues)
    metadata = facts.metadata()
    if options.captured_here:
        metadata["environment"]["hostname"] = platform.node()
    if options.lines is not None:
        metadata["capture"]["lines"] = dict(options.lines.facts)
    metadata["capture"] |= options.capture
    metadata["dropped"] |= _lost_by_sources(options.capture)
    metadata |= {
        "origin": _origin(path, trace, captured=options.captured_here),
        "import_issues": issues.records(),
    }
    return write_trace(writer, rows, metadata, embed_sources=options.captured_here)


def _lost_by_sources(capture: Mapping[str, Any]) -> dict[str, int]:
    """Events that queue sources say they lost, by source and queue."""
    return {
        f"{source} {queue}": count
        for source, told in (capture.get("queue_sources") or {}).items()
        for queue, count in told["dropped"].items()
        if count
    }


def _add_recorded(trace: ChromeTrace, options: ImportOptions) -> None:
    if options.recorded is not None and options.recorded.num_rows:
        base_ns = read_facts(trace.header, options.rank).base_ns
        buffer, pid = trace.reader.buffer, str(os.getpid())
        trace.reader.reported.append(append_recorded(buffer, options.recorded, base_ns, pid))


def _report_repairs(rows: TraceRows, issues: IssueLog) -> None:
    shortened = [row for row in rows.raw_duration if rows.events.duration[row] != UNKNOWN]
    for kind, changed in (
        ("time_set_aside", list(rows.raw_start)),
        ("duration_overrun", shortened),
    ):
        if changed:
            example = rows.events.names.name.texts[rows.events.name[changed[0]]]
            issues.add(kind, example=example, count=len(changed))


def _report_unsourced(rows: TraceRows, issues: IssueLog) -> None:
    names = rows.links.graphs.unsourced
    if names:
        issues.add("compiled_without_sources", example=names[0], count=len(names))


def _origin(path: Path, trace: ChromeTrace, *, captured: bool) -> dict[str, Any]:
    return {
        "tool": "torch.profiler" if "schemaVersion" in trace.header else "chrome trace",
        "file": path.name,
        "bytes": path.stat().st_size,
        "via": "capture" if captured else "import",
        "truncated": trace.truncated,
    }


def _gather(
    trace: ChromeTrace, facts: HeaderFacts, issues: IssueLog, options: ImportOptions
) -> Gathered:
    reader = trace.reader
    events = reader.buffer.freeze()
    tracks = _tracks(trace)
    recorded = 0 if options.recorded is None else options.recorded.num_rows
    _roles_by_process(events, trace, tracks, len(events) - recorded)
    places = _places(events, trace, tracks)
    _restore_names(events, facts.base_ns, options.true_names)
    _report_lost_names(events, issues)
    _join_lines(events, tracks, facts.base_ns, options)
    _report_threads(events, tracks, options, issues)
    return Gathered(
        buffer=reader.buffer,
        events=events,
        tracks=tracks,
        places=places,
        reported=reader.reported_costs(),
        base_ns=facts.base_ns,
        rank=facts.rank,
        device_type=device_type(reader.categories, reader.labels.process.values()),
        raw_duration=reader.raw_duration,
        keep=_kept(events, trace, options),
        owners=options.owners,
        compiled_graphs=options.compiled_graphs,
    )


def _join_lines(events: Events, tracks: list[Track], base_ns: int, options: ImportOptions) -> None:
    if options.call_lines is not None:
        events.call_line = options.call_lines.of_frames(events, base_ns)
    if options.lines is not None:
        tids = [track.tid for track in tracks]
        events.running = options.lines.at_start(events, tids, base_ns)


def _report_threads(
    events: Events, tracks: list[Track], options: ImportOptions, issues: IssueLog
) -> None:
    """Threads that certainly ran the program's code, and of which torch recorded nothing."""
    if options.lines is None or options.capture.get("all_threads") is not False:
        return
    with_ops = {tracks[t].tid for t in np.unique(events.track[events.roles("framework/")]).tolist()}
    without = sorted(set(options.lines.threads) - with_ops)
    if without and with_ops:
        issues.add("threads_without_ops", example=f"thread {without[0]}", count=len(without))


def _kept(events: Events, trace: ChromeTrace, options: ImportOptions) -> Bools | None:
    """Rows that are events of their own; None = all."""
    reader = trace.reader
    keep = pair_marks(reader, events.start, events.duration) if reader.marks else None
    if not options.dropped_names:
        return keep
    own = events.roles("framework/") & events.named(options.dropped_names.__contains__)
    if not own.any():
        return keep
    return ~own if keep is None else keep & ~own


def _tracks(trace: ChromeTrace) -> list[Track]:
    threads = trace.reader.labels.thread
    pairs = [text.split("\t", 1) for text in trace.reader.buffer.names.track.texts]
    return [Track(pid, tid, threads.get((pid, tid))) for pid, tid in pairs]


def _roles_by_process(
    events: Events, trace: ChromeTrace, tracks: list[Track], rows_of_trace: int
) -> None:
    """Slices without a category take their role from the process they stand in.

    Rows of a capture come behind those of the trace, and say what they are.
    """
    labels, roles = trace.reader.labels.process, events.names.role
    found = [process_role(labels.get(track.pid_raw)) for track in tracks]
    if all(role == UNKNOWN_ROLE for role in found):
        return
    without = events.role[:rows_of_trace] == roles.code("/".join(UNKNOWN_ROLE))
    rows = np.flatnonzero(without)
    pairs = events.track[rows].astype(np.int64) << 32 | (events.name[rows] + 1)
    distinct, place = np.unique(pairs, return_inverse=True)
    names = [*events.names.name.texts, ""]
    codes = [
        roles.code("/".join(refine(found[pair >> 32], names[(pair & 0xFFFFFFFF) - 1])))
        for pair in distinct.tolist()
    ]
    events.role[rows] = np.array(codes, np.int16)[place]


def _places(events: Events, trace: ChromeTrace, tracks: list[Track]) -> Places:
    """Device and stream of hardware and memory rows: from their args, else pid and tid."""
    chosen = events.roles("hardware/", "framework/device_annotation", "memory/")
    rows: Codes = np.flatnonzero(chosen).astype(np.int32)
    track, of_memory = events.track[rows], events.roles("memory/")[rows]
    labels = trace.reader.labels.device
    by_pid = np.array([_device(t, labels) for t in tracks] or [NULL], np.int32)[track]
    by_tid = np.array([_stream(t) for t in tracks] or [NULL], np.int32)[track]
    device, stream = events.device.of(rows, NULL), events.stream.of(rows, NULL)
    device = np.where((device == NULL) & ~of_memory, by_pid, device)
    stream = np.where((stream == NULL) & ~of_memory, by_tid, stream)
    own, queue = (events.recorded[name].of(rows, NULL) for name in ("device_name", "queue"))
    device = np.where(own == NULL, device, RECORDED_DEVICE - own)
    stream = np.where(queue == NULL, stream, RECORDED_STREAM + queue)
    return Places(rows, device.astype(np.int32), stream.astype(np.int32))


def _device(track: Track, labels: dict[str, str]) -> int:
    """Number of the device a process stands for: that of its label `NPU 3`, else its pid."""
    number = labels.get(track.pid_raw, "").rpartition(" ")[2]
    return _small(int(number) if number.isascii() and number.isdigit() else track.pid)


def _small(number: int | None) -> int:
    return number if number is not None and 0 <= number < 1 << 31 else NULL


def _stream(track: Track) -> int:
    """`stream 7`, as old traces call a thread, or a plain number."""
    digits = track.tid_raw.removeprefix("stream").strip()
    return _small(int(digits)) if digits.isascii() and digits.isdigit() else NULL


def _restore_names(events: Events, base_ns: int, true_names: Mapping[int, str]) -> None:
    if not true_names:
        return
    starts = np.fromiter(true_names, np.int64, len(true_names)) - base_ns
    named = np.isin(events.start, starts) & events.roles("framework/", "python/")
    for row in np.flatnonzero(named).tolist():
        events.name[row] = events.names.name.code(true_names[int(events.start[row]) + base_ns])


def _report_lost_names(events: Events, issues: IssueLog) -> None:
    lost = events.named(lambda name: name == LOST_NAME)
    lost &= events.roles("framework/annotation", "python/frame")
    if lost.sum() >= 2:
        issues.add("names_lost", example=LOST_NAME, count=int(lost.sum()))
