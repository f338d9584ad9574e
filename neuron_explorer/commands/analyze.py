"""`analyze`: judge a trace and write the findings in one of four forms."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from neuron_explorer.analyzers import analyzers, run
from neuron_explorer.commands.choices import FindingsFormat, keep_inputs
from neuron_explorer.commands.gates import FindingGate, combined, judge_findings
from neuron_explorer.commands.traces import open_trace
from neuron_explorer.errors import ExitCode, UsageError
from neuron_explorer.reports import console
from neuron_explorer.reports.html import check_installed
from neuron_explorer.reports.json_report import findings_json
from neuron_explorer.reports.judgement import Judgement
from neuron_explorer.reports.markdown import findings_markdown
from neuron_explorer.reports.overview import overview
from neuron_explorer.reports.text import findings_text
from neuron_explorer.trace import Trace

FINDINGS = 10
"""What a person reads at once; JSON gives all of them."""
_USUAL_LIMITS: Mapping[FindingsFormat, int | None] = {
    FindingsFormat.JSON: None,
    FindingsFormat.HTML: 25,  # folded, and never so many that the page grows large
}


@dataclass(frozen=True)
class Request:
    """What the caller of `analyze` chose."""

    files: Sequence[str]
    device: str | None = None
    raw: bool = False
    """Judge by the times as recorded."""
    only: Sequence[str] | None = None
    params: dict[str, int | float | str] | None = None
    limit: int | None = None
    """None = as the format has it, 0 = all."""
    form: FindingsFormat = FindingsFormat.TEXT
    output: Path | None = None
    quiet: bool = False
    gate: FindingGate | None = None
    """What must not be found."""


def analyze(request: Request) -> ExitCode:
    """Print the findings, or write them to the output file."""
    if request.output is not None:
        keep_inputs(request.files, request.output)
    _check_thresholds(request.params or {})
    _check_page(request)
    with _opened(request) as trace:
        report = run(trace, only=request.only, params=request.params)
        judgement = Judgement(overview(trace, request.files), report, _limit(request))
        page = _page(trace, judgement) if request.form is FindingsFormat.HTML else None
    _write(judgement, page, request.form, request.output)
    if request.gate is None:
        return judgement.exit_code
    outcome, why = judge_findings(request.gate, report)
    if why:
        console.note(f"neuron-explorer: --fail-on {request.gate.text}: {why}")
    return combined([outcome], trusted=judgement.exit_code is ExitCode.OK)


def _check_thresholds(given: Mapping[str, int | float | str]) -> None:
    """Refuse a word where a number is needed; the runner refuses unknown names."""
    numbers = {
        written
        for analyzer in analyzers().values()
        for name, param in analyzer.params.items()
        if not isinstance(param.default, str)
        for written in (name, f"{analyzer.id}.{name}")
    }
    wrong = next((key for key in numbers & given.keys() if isinstance(given[key], str)), None)
    if wrong is not None:
        raise UsageError(
            f"--param {wrong} takes a number, not {given[wrong]!r}",
            hint=f"write it as --param {wrong}=0.1",
        )


def _check_page(request: Request) -> None:
    """Refuse a page that cannot be made, or that nobody could read, before any work is done."""
    if request.form is not FindingsFormat.HTML:
        return
    check_installed()
    if request.output is None and sys.stdout.isatty():
        raise UsageError("a page is no text for a terminal", hint="-o report.html, or a pipe")


def _page(trace: Trace, judgement: Judgement) -> str:
    from neuron_explorer.reports.html.facts import facts  # noqa: PLC0415 - needs an extra
    from neuron_explorer.reports.html.page import findings_html  # noqa: PLC0415

    return findings_html(judgement, facts(trace))


def _opened(request: Request) -> Trace:
    return open_trace(request.files, request.device, raw=request.raw, quiet=request.quiet)


def _limit(request: Request) -> int | None:
    if request.limit is None:
        return _USUAL_LIMITS.get(request.form, FINDINGS)
    return request.limit or None


def _write(
    judgement: Judgement, page: str | None, form: FindingsFormat, output: Path | None
) -> None:
    if output is not None:
        console.write_file(output, page or _rendered(judgement, form, console.Page()))
    elif page is not None:
        console.write_data(page)
    elif form is FindingsFormat.TEXT:
        console.write(_rendered(judgement, form, console.stdout_page()))
    else:
        console.write_data(_rendered(judgement, form, console.Page()))


def _rendered(judgement: Judgement, form: FindingsFormat, page: console.Page) -> str:
    match form:
        case FindingsFormat.JSON:
            return findings_json(judgement)
        case FindingsFormat.MD:
            return findings_markdown(judgement)
        case _:
            return findings_text(judgement, page)
