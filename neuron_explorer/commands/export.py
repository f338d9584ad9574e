"""`export`: a trace, or a part of it, in the format of another tool."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from neuron_explorer.analyzers import run
from neuron_explorer.commands.choices import Target, keep_inputs
from neuron_explorer.commands.traces import open_trace
from neuron_explorer.errors import ExitCode, UsageError
from neuron_explorer.exports.csv_rows import EVENTS, write_csv
from neuron_explorer.exports.otlp import write_otlp
from neuron_explorer.exports.sarif import write_sarif
from neuron_explorer.exports.sink import Sink, open_sink
from neuron_explorer.exports.speedscope import write_speedscope
from neuron_explorer.exports.trace_event import write_chrome, write_perfetto
from neuron_explorer.exports.window import Part, Window, part_of
from neuron_explorer.reports import console, formats, json_report
from neuron_explorer.reports.judgement import Judgement
from neuron_explorer.reports.overview import overview
from neuron_explorer.trace import Trace

EXPORT_SCHEMA = "neuron_explorer.export/1"
_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_TIME = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,9}))?\s*(ns|us|ms|s)")


_LONG = frozenset([Target.PERFETTO, Target.CHROME, Target.OTLP])
_NEXT = {
    Target.PERFETTO: "open it at https://ui.perfetto.dev",
    Target.CHROME: "open it in chrome://tracing, or import it again",
    Target.SPEEDSCOPE: "open it at https://www.speedscope.app",
    Target.SARIF: "upload it with github/codeql-action/upload-sarif",
}


@dataclass(frozen=True)
class Request:
    """What the caller of `export` chose."""

    files: Sequence[str]
    target: Target
    output: Path | None = None
    """None = stdout."""
    window: Window = field(default_factory=Window)
    view: str | None = None
    root: Path | None = None
    device: str | None = None
    raw: bool = False
    as_json: bool = False
    quiet: bool = False


def export(request: Request) -> ExitCode:
    """Write the file, and say what is in it.

    Raises:
        UsageError: options that exclude each other, or a part that the trace has not.
        TraceError: a file is missing or is no trace.
        OutputError: the output cannot be written.
    """
    _check(request)
    if request.output is not None:
        keep_inputs(request.files, request.output)
    code = ExitCode.OK
    with open_trace(request.files, request.device, raw=request.raw, quiet=request.quiet) as trace:
        part = part_of(trace, request.window)
        _check_ranks(request, part)
        judgement = _judged(trace, request) if request.target is Target.SARIF else None
        with open_sink(request.output) as out:
            written = _write(trace, part, request, judgement, out)
    if judgement is not None:
        code = judgement.exit_code
    _tell(request, part, written, code)
    return code


def nanoseconds(text: str, option: str) -> int:
    """`12.5ms` as 12500000.

    Raises:
        UsageError: no such time.
    """
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise UsageError(
            f"{option} {text!r} is no time", hint=f"write a number with its unit: {option} 12.5ms"
        )
    whole, part, unit = found.groups(default="")
    size = _UNITS[unit]
    return int(whole) * size + int(part.ljust(9, "0") or 0) * size // 10**9


def _check(request: Request) -> None:
    """Refuse what would be ignored."""
    if request.as_json and request.output is None:
        raise UsageError(
            "--json tells of the file that is written, so name one with -o",
            hint="without --json the export itself goes to stdout",
        )
    if request.view is not None and request.target is not Target.CSV:
        raise UsageError("--view is for --to csv", hint="leave it out, or write --to csv")
    if request.root is not None and request.target is not Target.SARIF:
        raise UsageError("--root is for --to sarif", hint="leave it out, or write --to sarif")
    if request.target is Target.SARIF and request.window != Window():
        raise UsageError(
            "findings are of the whole trace: no --step, --from, --to-time or --rank",
            hint="leave them out, or export the events",
        )
    if request.output is None and request.target in _LONG and sys.stdout.isatty():
        raise UsageError(
            f"{request.target} is too long for a terminal", hint="-o out.json.gz, or a pipe"
        )


def _check_ranks(request: Request, part: Part) -> None:
    if request.target is Target.CHROME and len(part.ranks) > 1:
        raise UsageError(
            f"torch's form holds one rank, and this trace has {len(part.ranks)}",
            hint=f"--rank {part.ranks[0]}, or all of them with --to perfetto",
        )


def _judged(trace: Trace, request: Request) -> Judgement:
    return Judgement(overview(trace, request.files), run(trace))


def _write(
    trace: Trace, part: Part, request: Request, judgement: Judgement | None, out: Sink
) -> dict[str, object]:
    writers = {
        Target.PERFETTO: write_perfetto,
        Target.CHROME: write_chrome,
        Target.SPEEDSCOPE: write_speedscope,
        Target.OTLP: write_otlp,
    }
    if judgement is not None:
        return write_sarif(trace, judgement, out, request.root or Path.cwd())
    if request.target is Target.CSV:
        return write_csv(trace, part, out, request.view or EVENTS)
    return writers[request.target](trace, part, out)


def _tell(request: Request, part: Part, written: Mapping[str, object], code: ExitCode) -> None:
    if request.output is None:
        return
    size = request.output.stat().st_size
    if request.as_json:
        told: dict[str, object] = {
            "schema": EXPORT_SCHEMA,
            "files": list(request.files),
            "output": str(request.output),
            "format": request.target.value,
            "bytes": size,
            "whole": part.whole,
            "ranks": list(part.ranks),
            "written": dict(written),
            "exit_code": int(code),
        }
        console.write_data(json_report.dump(told))
    elif not request.quiet:
        console.note(f"{request.output}: {_said(written)}, {formats.bytes_(size)}")
        if request.target in _NEXT:
            console.note(f"next: {_NEXT[request.target]}")


def _said(written: Mapping[str, object]) -> str:
    """`24,656 events, 929 flows`."""
    numbers = [(k, v) for k, v in written.items() if isinstance(v, int) and k != "time_ns"]
    return ", ".join(f"{formats.count(value)} {name.replace('_', ' ')}" for name, value in numbers)
