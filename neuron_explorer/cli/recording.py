"""Recording a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neuron_explorer.cli.options import (
    MINE,
    Form,
    Json,
    Plumbing,
    Quiet,
    examples,
)
from neuron_explorer.commands.choices import (
    report_format,
)

commands = typer.Typer()


@commands.command(
    context_settings={"allow_interspersed_args": False},
    epilog=examples(
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
    mine: Annotated[list[str] | None, typer.Option(metavar="PATH|PACKAGE", help=MINE)] = None,
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


@commands.command(epilog=examples("demo -o trace.parquet"))
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
