"""What other tools read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neuron_explorer.cli.options import Chip, Files, Quiet, Raw, examples
from neuron_explorer.commands.choices import Target

commands = typer.Typer()


_FORMATS = {
    Target.PERFETTO: "to look at in ui.perfetto.dev: launches lead to kernels",
    Target.CHROME: "as torch.profiler writes it; import reads all of it back",
    Target.CSV: "events, or the rows of any view",
    Target.SPEEDSCOPE: "flame graphs of device and host time by source",
    Target.SARIF: "findings as code-scanning alerts on their lines",
    Target.OTLP: "spans for OpenTelemetry",
}
_HELP = "\n".join(
    [
        "Write a trace in the format of another tool.",
        "",
        "\b",  # tells the help page to keep the line breaks
        *(f"{name:<11} {says}" for name, says in _FORMATS.items()),
        "",
        "Times count from the first event of the trace.",
    ]
)


@commands.command(
    help=_HELP,
    epilog=examples(
        "export trace.parquet --to perfetto -o trace.json.gz",
        "export trace.parquet --to perfetto --step 3 -o step3.json.gz",
        "export trace.parquet --to chrome --from 10ms --to-time 25ms -o part.json",
        "export trace.parquet --to csv --view kernels",
        "export trace.parquet --to sarif --root . -o findings.sarif",
    ),
)
def export(  # noqa: PLR0913  one parameter an option
    files: Files,
    *,
    to: Annotated[Target, typer.Option("--to", help="The format; see below.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Default: stdout, also as -. Ends in .gz: packed."),
    ] = None,
    step: Annotated[int | None, typer.Option(help="Only events of this training step.")] = None,
    from_: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="Leave out what ended before: 10ms, 1.5s."),
    ] = None,
    to_time: Annotated[
        str | None, typer.Option(metavar="TIME", help="Leave out what began at or after it.")
    ] = None,
    rank: Annotated[int | None, typer.Option(help="Only this rank.")] = None,
    view: Annotated[
        str | None, typer.Option(metavar="NAME", help="csv: rows of this view; default: events.")
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option(help="sarif: paths become relative to this folder; default: here."),
    ] = None,
    device: Chip = None,
    raw: Raw = False,
    json: Annotated[bool, typer.Option("--json", help="Tell in JSON what was written.")] = False,
    quiet: Quiet = False,
) -> int:
    """Write a trace in the format of another tool."""
    from neuron_explorer.commands.export import Request, nanoseconds
    from neuron_explorer.commands.export import export as run
    from neuron_explorer.exports.window import Window

    begin = None if from_ is None else nanoseconds(from_, "--from")
    end = None if to_time is None else nanoseconds(to_time, "--to-time")
    path = None if output is None or str(output) == "-" else output
    window = Window(step, begin, end, rank)
    return run(Request(files, to, path, window, view, root, device, raw, as_json=json, quiet=quiet))
