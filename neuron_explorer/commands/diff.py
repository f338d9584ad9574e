"""`diff`: two traces of one program side by side, and gates on what changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from neuron_explorer.analyzers.compare import compare
from neuron_explorer.commands.choices import Format, keep_inputs
from neuron_explorer.commands.gates import Gate, Judged, Outcome, combined, judge
from neuron_explorer.commands.traces import open_trace
from neuron_explorer.errors import ExitCode
from neuron_explorer.reports import console
from neuron_explorer.reports.diff_json import diff_json
from neuron_explorer.reports.diff_markdown import diff_markdown
from neuron_explorer.reports.diff_text import diff_text
from neuron_explorer.reports.diff_words import Compared
from neuron_explorer.trace import Trace

ROWS = 10
"""Rows of each kind that a person reads at once; JSON gives all of them."""


@dataclass(frozen=True)
class Request:
    """What the caller of `diff` chose."""

    base: str
    new: str
    device: str | None = None
    raw: bool = False
    """Compare the times as recorded."""
    gates: Sequence[Gate] = ()
    limit: int | None = None
    """None = as the format has it, 0 = all."""
    form: Format = Format.TEXT
    output: Path | None = None
    quiet: bool = False


def diff(request: Request) -> ExitCode:
    """Print the comparison, or write it to the output file; gates are told on stderr."""
    if request.output is not None:
        keep_inputs([request.base, request.new], request.output)
    with _opened(request, request.base) as base, _opened(request, request.new) as new:
        comparison = compare(base, new)
    judged = judge(request.gates, comparison)
    code = combined((each.outcome for each in judged), trusted=comparison.trusted)
    _write(Compared(comparison, request.base, request.new, _limit(request)), judged, code, request)
    for each in judged:
        if each.outcome is not Outcome.PASSED or (each.by_noise and not request.quiet):
            console.note(f"neuron-explorer: --fail-on {each.gate.text}: {each.why}")
    return code


def _opened(request: Request, path: str) -> Trace:
    return open_trace([path], request.device, raw=request.raw, quiet=request.quiet)


def _limit(request: Request) -> int | None:
    if request.limit is None:
        return None if request.form is Format.JSON else ROWS
    return request.limit or None


def _write(compared: Compared, judged: Sequence[Judged], code: ExitCode, request: Request) -> None:
    to_terminal = request.output is None and request.form is Format.TEXT
    page = console.stdout_page() if to_terminal else console.Page()
    text = _rendered(compared, judged, code, request.form, page)
    if request.output is not None:
        console.write_file(request.output, text)
    elif to_terminal:
        console.write(text)
    else:
        console.write_data(text)


def _rendered(
    compared: Compared, judged: Sequence[Judged], code: ExitCode, form: Format, page: console.Page
) -> str:
    match form:
        case Format.JSON:
            return diff_json(compared, [each.as_data() for each in judged], code)
        case Format.MD:
            failed = [
                f"{each.gate.text}: {each.why}"
                for each in judged
                if each.outcome is not Outcome.PASSED
            ]
            return diff_markdown(compared, failed)
        case Format.TEXT:
            return diff_text(compared, page)
