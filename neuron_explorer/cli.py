"""The command line: one short function a command. Each imports what it needs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from neuron_explorer import __version__
from neuron_explorer.commands.choices import (
    Format,
    RowFormat,
    analyzer_names,
    report_format,
    row_format,
    thresholds,
)
from neuron_explorer.errors import ExitCode, NeuronExplorerError

PROGRAM = "neuron-explorer"

# What typer raises for a wrong command line; its name for it differs between versions.
_CommandLineError: type[Exception] = typer.BadParameter.__mro__[2]

_INTERRUPTED_QUERY = "Query interrupted"
"""What DuckDB makes of Ctrl-C while it runs a query of this process."""


def _examples(*commands: str) -> str:
    # the backspace tells the help page to keep the line breaks
    return "\n".join(["\b", "Examples:", *(f"  {PROGRAM} {command}" for command in commands)])


app = typer.Typer(
    help="Which source line wastes the accelerator, why, and what to change.",
    epilog=f"A first look: {PROGRAM} demo",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

Files = Annotated[
    list[str],
    typer.Argument(metavar="FILE", help="Traces: .parquet, .json, .json.gz, folders or globs."),
]
Form = Annotated[Format | None, typer.Option("--format", help="How to write it; default: text.")]
Json = Annotated[bool, typer.Option("--json", help="Short for --format json.")]
Chip = Annotated[
    str | None, typer.Option("--device", metavar="NAME", help="Judge as if run on this chip.")
]
Raw = Annotated[
    bool, typer.Option("--raw", help="Times as recorded, even where the import repaired them.")
]
_MINE = "Is your own code wherever it lies; repeatable."
Plumbing = Annotated[
    list[str] | None,
    typer.Option(metavar="PATH|PACKAGE", help="Is only passed through, like torch; repeatable."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no remarks.")]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the only place that turns errors into words and exit codes."""
    arguments = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    try:
        code = app(arguments, prog_name=PROGRAM, standalone_mode=False)
    except NeuronExplorerError as error:
        return _failed(error.exit_code, str(error), error.hint)
    except _CommandLineError as error:
        return _failed(ExitCode.USAGE, *_usage(error))
    except OSError as error:
        return _output_failed(error)
    except (KeyboardInterrupt, typer.Abort):
        code = ExitCode.INTERRUPTED
    except RuntimeError as error:
        if str(error) != _INTERRUPTED_QUERY:
            raise
        code = ExitCode.INTERRUPTED
    if code == ExitCode.INTERRUPTED:
        return _failed(ExitCode.INTERRUPTED, "interrupted")
    return int(code or ExitCode.OK)


def _show_version(asked: bool) -> None:  # noqa: FBT001  typer calls it so
    if asked:
        typer.echo(f"{PROGRAM} {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version."),
    ] = False,
) -> None:
    _ = version


@app.command(
    "import",
    epilog=_examples(
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
        typer.Option("--mine", "--user-code", metavar="PATH|PACKAGE", help=_MINE),
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


@app.command(
    epilog=_examples(
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


@app.command(
    epilog=_examples(
        "analyze trace.json.gz",
        "analyze traces/ -o comment.md",
        "analyze trace.parquet --device trn2 --json",
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
        typer.Option(min=0, help="Findings to show; 0 = all. Default: 10, in JSON all."),
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="ANALYZER.NAME=VALUE", help="Set a threshold; repeatable."),
    ] = None,
    form: Form = None,
    json: Json = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write to a file; .json and .md set the format."),
    ] = None,
    raw: Raw = False,
    quiet: Quiet = False,
) -> int:
    """Rank what wastes the accelerator.

    Which source line, why, how much it would save, and what to change.
    """
    from neuron_explorer.commands.analyze import Request
    from neuron_explorer.commands.analyze import analyze as run

    chosen = report_format(form, json=json, output=output)
    names, params = analyzer_names(only or []), thresholds(param or [])
    return run(Request(files, device, raw, names, params, limit, chosen, output, quiet))


@app.command(
    epilog=_examples(
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


@app.command(
    epilog=_examples(
        "tui trace.parquet",
        "tui trace.json.gz --device h100-sxm",
        "tui trace.parquet --screenshot source -o source.svg --size 140x45",
    )
)
def tui(  # noqa: PLR0913  one parameter an option
    files: Files,
    *,
    device: Chip = None,
    raw: Raw = False,
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

    return show(Look(files, device, raw, screenshot, output, screen_size(size), light))


@app.command(
    epilog=_examples(
        'sql trace.parquet "SHOW TABLES"',
        'sql trace.parquet "SELECT * FROM kernels ORDER BY total_ns DESC" --limit 5',
        'sql trace.parquet "SELECT * FROM lines" --json',
    )
)
def sql(  # noqa: PLR0913  one parameter an option
    file: Annotated[str, typer.Argument(metavar="FILE", help="A trace, a folder or a glob.")],
    query: Annotated[str, typer.Argument(metavar="QUERY", help="One SELECT over the views.")],
    *,
    form: Annotated[
        RowFormat | None, typer.Option("--format", help="How to write it; default: table.")
    ] = None,
    json: Json = False,
    limit: Annotated[
        int | None,
        typer.Option(min=0, help="Most rows; 0 = all. Default: 10000, in a table 100."),
    ] = None,
    timeout: Annotated[float, typer.Option(min=0, help="Most seconds; 0 = no bound.")] = 30.0,
    device: Chip = None,
    raw: Raw = False,
    quiet: Quiet = False,
) -> None:
    """Ask the views of a trace, read-only.

    No other file and no network can be reached.

    JSON is {"columns": [...], "rows": [[...]], "truncated": false}.
    """
    from neuron_explorer.commands.query import Question, ask

    ask(Question(file, query, row_format(form, json=json), limit, timeout, device, raw, quiet))


@app.command(
    epilog=_examples(
        "schema",
        "schema roofline",
        "schema --format md",
    )
)
def schema(
    table: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A table, view or list of words.")
    ] = None,
    *,
    form: Form = None,
    json: Json = False,
) -> None:
    """Explain every table, column and code.

    Without NAME: what there is, and the columns of the event table.
    """
    from neuron_explorer.commands.schema import show_schema

    show_schema(table, report_format(form, json=json))


@app.command(
    epilog=_examples(
        "devices",
        "devices h100-sxm",
    )
)
def devices(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A chip, or the path of a chip file.")
    ] = None,
    *,
    form: Form = None,
    json: Json = False,
) -> None:
    """List the known chips.

    With NAME: all its numbers, each with its source.
    """
    from neuron_explorer.commands.chips import show_devices

    show_devices(name, report_format(form, json=json))


@app.command(epilog=_examples("calibrate"))
def calibrate(*, form: Form = None, json: Json = False, quiet: Quiet = False) -> None:
    """Measure the roof of this CPU.

    Bandwidth, and FLOP/s by dtype; kept for every later judgement of work on this CPU.
    """
    from neuron_explorer.commands.chips import show_calibration

    show_calibration(report_format(form, json=json), quiet=quiet)


@app.command(
    context_settings={"allow_interspersed_args": False},
    epilog=_examples(
        "run train.py --epochs 1",
        "run --steps 5 --wait 10 -o runs/trace.parquet train.py",
        "run -m package.train",
        "run --dryrun trn2 train.py",
    ),
)
def run(  # noqa: PLR0913  one parameter an option
    target: Annotated[list[str], typer.Argument(metavar="SCRIPT [ARGS]...", show_default=False)],
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A .parquet file, or a folder.")
    ] = Path("trace.parquet"),
    module: Annotated[bool, typer.Option("-m", help="SCRIPT is the name of a module.")] = False,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Optimizer steps to record; default: everything.")
    ] = None,
    wait: Annotated[int, typer.Option(min=0, help="Steps to leave out before those.")] = 0,
    mine: Annotated[list[str] | None, typer.Option(metavar="PATH|PACKAGE", help=_MINE)] = None,
    plumbing: Plumbing = None,
    dryrun: Annotated[
        str | None,
        typer.Option(metavar="CHIP", help="Give it a `neuron` device, run here, modelled as CHIP."),
    ] = None,
    execute: Annotated[
        bool,
        typer.Option("--execute/--no-execute", help="Dry run: compute values, or shapes only."),
    ] = True,
    quiet: Quiet = False,
) -> int:
    """Record a script without changing it.

    It runs as `python SCRIPT ARGS` would, and its exit code is kept. Needs torch.

    With --dryrun trn2 the script finds a `neuron` device (`model.to("neuron")`, or
    torch.accelerator): ops run on this CPU, and each has the time that the chip would need.
    """
    from neuron_explorer.commands.run import run_target

    return run_target(
        target,
        output=output,
        module=module,
        steps=(steps, wait),
        owners=(mine or (), plumbing or ()),
        dry_run=(dryrun, execute),
        quiet=quiet,
    )


@app.command(epilog=_examples("demo -o trace.parquet"))
def demo(
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write the trace.")
    ] = Path("trace.parquet"),
    form: Form = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Profile a small training step, see its waste.

    The waste is planted. Needs torch. Runs on the accelerator of this machine, or else on its CPU.
    """
    from neuron_explorer.commands.demo import show_demo

    return show_demo(output, report_format(form, json=json), quiet=quiet)


def _failed(code: ExitCode, message: str, hint: str = "") -> int:
    from neuron_explorer.reports import console

    console.complain(message, hint)
    return int(code)


def _output_failed(error: OSError) -> int:
    """A reader that left (`| head`) has what it wanted; anything else is said."""
    from neuron_explorer.reports import console

    console.close_quietly()
    if isinstance(error, BrokenPipeError):
        return int(ExitCode.OK)
    reason = error.strerror or str(error)
    return _failed(ExitCode.FAILED, f"{error.filename}: {reason}" if error.filename else reason)


def _usage(error: Exception) -> tuple[str, str]:
    """The words of a wrong command line, and where to read how it goes."""
    say = getattr(error, "format_message", None)
    context = getattr(error, "ctx", None)
    command = PROGRAM if context is None else context.command_path
    return str(say() if say else error), f"{command} --help"
