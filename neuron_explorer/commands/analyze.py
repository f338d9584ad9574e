"""`analyze`: judge a trace and write the findings in one of three forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from neuron_explorer.analyzers import run
from neuron_explorer.commands.choices import Format, keep_inputs
from neuron_explorer.commands.traces import open_trace
from neuron_explorer.errors import ExitCode
from neuron_explorer.reports import console
from neuron_explorer.reports.json_report import findings_json
from neuron_explorer.reports.judgement import Judgement
from neuron_explorer.reports.markdown import findings_markdown
from neuron_explorer.reports.overview import overview
from neuron_explorer.reports.text import findings_text

FINDINGS = 10
"""What a person reads at once; JSON gives all of them."""


@dataclass(frozen=True)
class Request:
    """What the caller of `analyze` chose."""

    files: Sequence[str]
    device: str | None = None
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
    with open_trace(request.files, request.device, quiet=request.quiet) as trace:
        report = run(trace, only=request.only, params=request.params)
        judgement = Judgement(overview(trace, request.files), report, _limit(request))
    _write(judgement, request.form, request.output)
    return judgement.exit_code


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
