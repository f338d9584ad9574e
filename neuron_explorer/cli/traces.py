"""From a trace to what wastes the accelerator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neuron_explorer.cli.options import (
    MINE,
    Chip,
    Files,
    Form,
    Json,
    Plumbing,
    Quiet,
    Raw,
    examples,
)
from neuron_explorer.commands.choices import (
    FindingsFormat,
    Format,
    analyzer_names,
    findings_format,
    report_format,
    thresholds,
)

commands = typer.Typer()


@commands.command(
    "import",
    epilog=examples(
        "import trace.json.gz -o trace.parquet",
        "import rank0.json rank1.json -o traces",
        "import --mine /opt/ours --costs our_ops.py trace.json",
    ),
)
def import_(  # noqa: PLR0913  one parameter an option
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Chrome traces.")],
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Default: trace.parquet; for several files traces/."),
    ] = None,
    mine: Annotated[
        list[str] | None,
        typer.Option("--mine", "--user-code", metavar="PATH|PACKAGE", help=MINE),
    ] = None,
    plumbing: Plumbing = None,
    costs: Annotated[
        Path | None, typer.Option(help="Cost formulas of your own ops: a Python file, executed.")
    ] = None,
    json: Json = False,
    form: Form = None,
    quiet: Quiet = False,
) -> int:
    """Turn profiler traces into trace.parquet.

    One FILE becomes one Parquet file. Several become a folder with one rank=N.parquet each,
    N being the rank the trace names, or its place among the files where it names none.
    """
    from neuron_explorer.commands import importing
    from neuron_explorer.progress import progress_bar
    from neuron_explorer.reports import console

    as_json = report_format(form, json=json) is Format.JSON
    options = importing.import_options(mine or [], plumbing or [], costs)
    with progress_bar(quiet=quiet) as progress:
        done = importing.import_all(files, output, progress, options)
    if as_json:
        console.write_data(importing.import_json(done))
    for line in () if quiet or as_json else importing.import_notes(done):
        console.note(line)
    return importing.exit_code(done)


@commands.command(
    epilog=examples(
        "info trace.json.gz",
        "info trace.parquet --json",
    )
)
def info(
    files: Files,
    *,
    form: Form = None,
    json: Json = False,
    device: Chip = None,
    raw: Raw = False,
    quiet: Quiet = False,
) -> int:
    """Show what a trace holds and lacks.

    Devices, steps, events, capture options, import issues, and whether to trust it.
    """
    from neuron_explorer.commands.info import show_info

    return show_info(files, report_format(form, json=json), device, raw=raw, quiet=quiet)


@commands.command(
    epilog=examples(
        "analyze trace.json.gz",
        "analyze traces/ -o comment.md",
        "analyze trace.parquet -o report.html",
        "analyze trace.parquet --device trn2 --json",
        "analyze trace.parquet --fail-on critical,graph_breaks",
        "analyze trace.parquet --param device_idle.min_idle_share=0.1",
    )
)
def analyze(  # noqa: PLR0913  one parameter an option
    files: Files,
    *,
    device: Chip = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="A,B", help="Run only these analyzers.")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=0, help="Findings to show; 0 = all. Default: 10, in HTML 25, in JSON all."
        ),
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="ANALYZER.NAME=VALUE", help="Set a threshold; repeatable."),
    ] = None,
    form: Annotated[
        FindingsFormat | None, typer.Option("--format", help="How to write it; default: text.")
    ] = None,
    json: Json = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="To a file; .json, .md and .html set the format."),
    ] = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SEVERITY|ANALYZER[,..]",
            help="Exit 4 on such a finding, or a more severe one; repeatable.",
        ),
    ] = None,
    raw: Raw = False,
    quiet: Quiet = False,
) -> int:
    """Rank what wastes the accelerator.

    Which source line, why, how much it would save, and what to change.
    """
    from neuron_explorer.commands.analyze import Request
    from neuron_explorer.commands.analyze import analyze as run
    from neuron_explorer.commands.gates import finding_gate

    chosen = findings_format(form, json=json, output=output)
    names, params = analyzer_names(only or []), thresholds(param or [])
    gate = finding_gate(fail_on or [], names)
    return run(Request(files, device, raw, names, params, limit, chosen, output, quiet, gate))


@commands.command(
    epilog=examples(
        "verify trace.parquet",
        "verify trace.parquet compile_opportunities --seconds 60",
        "verify trace.parquet --device cpu --json",
    )
)
def verify(  # noqa: PLR0913  one parameter an option
    file: Annotated[str, typer.Argument(metavar="FILE", help="A trace or a folder of ranks.")],
    findings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FINDING]...",
            help="Ids, or their beginnings, or analyzers. Default: what `analyze` shows.",
        ),
    ] = None,
    *,
    rounds: Annotated[
        int | None, typer.Option(min=5, help="Times to measure each; default: 21.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(min=0.1, help="Time for one finding; default: 20.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads of torch on a CPU; default: as it has them.")
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Replay on this device of torch: cpu, cuda:0."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
    quiet: Quiet = False,
) -> int:
    """Replay what findings talk about, and measure.

    The recorded ops run before and after the change (eager and compiled, fp32 and bf16, ...) in
    turns. The verdict is kept beside the trace, and `analyze` shows it. Needs torch.
    """
    from neuron_explorer.commands.verify import Request
    from neuron_explorer.commands.verify import verify as run

    request = Request(
        file, findings or (), device, rounds, seconds, threads, as_json=json, quiet=quiet
    )
    return run(request)


@commands.command(
    epilog=examples(
        "tui trace.parquet",
        "tui trace.json.gz --device h100-sxm",
        "tui base.parquet --compare new.parquet",
        "tui trace.parquet --screenshot source -o source.svg --size 140x45",
    )
)
def tui(  # noqa: PLR0913  one parameter an option
    files: Files,
    *,
    device: Chip = None,
    raw: Raw = False,
    compare: Annotated[
        list[str] | None,
        typer.Option(
            "--compare", metavar="FILE", help="A later trace of the same program; repeatable."
        ),
    ] = None,
    light: Annotated[bool, typer.Option("--light", help="Dark on light.")] = False,
    screenshot: Annotated[
        str | None,
        typer.Option(
            metavar="SCREEN", help="Draw a screen as SVG: overview, source, timeline, ..."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where the picture goes.")
    ] = None,
    size: Annotated[
        str | None, typer.Option(metavar="COLSxROWS", help="Of the picture; default: 120x40.")
    ] = None,
) -> int:
    """Walk through a trace in the terminal.

    From the findings to the line, its kernels and the timeline. ? shows the keys.

    Where no terminal can show it, it prints what analyze does.
    """
    from neuron_explorer.commands.tui import Look, screen_size, show

    others = tuple(compare or ())
    return show(Look(files, device, raw, screenshot, output, screen_size(size), light, others))
