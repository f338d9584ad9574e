"""`analyze`: judge a trace and write the findings in one of three forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from neuron_explorer.analyzers import analyzers, run
from neuron_explorer.commands.choices import Format, keep_inputs
from neuron_explorer.commands.traces import open_trace
from neuron_explorer.errors import ExitCode, UsageError
from neuron_explorer.reports import console
from neuron_explorer.reports.json_report import findings_json
from neuron_explorer.reports.judgement import Judgement
from neuron_explorer.reports.markdown import findings_markdown
from neuron_explorer.reports.overview import overview
from neuron_explorer.reports.text import findings_text
from neuron_explorer.trace import Trace

FINDINGS = 10
"""What a person reads at once; JSON gives all of them."""


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
    form: Format = Format.TEXT
    output: Path | None = None
    quiet: bool = False


def analyze(request: Request) -> ExitCode:
    """Print the findings, or write them to the output file."""
    if request.output is not None:
        keep_inputs(request.files, request.output)
    _check_thresholds(request.params or {})
    with _opened(request) as trace:
        report = run(trace, only=request.only, params=request.params)
        judgement = Judgement(overview(trace, request.files), report, _limit(request))
    _write(judgement, request.form, request.output)
    return judgement.exit_code


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


def _opened(request: Request) -> Trace:
    return open_trace(request.files, request.device, raw=request.raw, quiet=request.quiet)


def _limit(request: Request) -> int | None:
    if request.limit is None:
        return None if request.form is Format.JSON else FINDINGS
    return request.limit or None


def _write(judgement: Judgement, form: Format, output: Path | None) -> None:
    if output is not None:
        console.write_file(output, _rendered(judgement, form, console.Page()))
    elif form is Format.TEXT:
        console.write(_rendered(judgement, form, console.stdout_page()))
    else:
        console.write_data(_rendered(judgement, form, console.Page()))


def _rendered(judgement: Judgement, form: Format, page: console.Page) -> str:
    match form:
        case Format.JSON:
            return findings_json(judgement)
        case Format.MD:
            return findings_markdown(judgement)
        case Format.TEXT:
            return findings_text(judgement, page)
