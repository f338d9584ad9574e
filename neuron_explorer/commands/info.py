"""`info`: what a trace holds and what it lacks."""

from __future__ import annotations

from collections.abc import Sequence

from neuron_explorer.commands.choices import Format
from neuron_explorer.commands.traces import open_trace
from neuron_explorer.errors import ExitCode
from neuron_explorer.reports import console, info, json_report
from neuron_explorer.reports.overview import overview


def show_info(
    files: Sequence[str],
    form: Format,
    device: str | None = None,
    *,
    raw: bool = False,
    quiet: bool = False,
) -> ExitCode:
    """Print it; the exit code says whether to trust the trace."""
    with open_trace(files, device, raw=raw, quiet=quiet) as trace:
        seen = overview(trace, files)
    match form:
        case Format.JSON:
            console.write_data(json_report.info_json(seen))
        case Format.MD:
            console.write_data(info.info_markdown(seen))
        case Format.TEXT:
            console.write(info.info_text(seen, console.stdout_page()))
    return seen.exit_code
