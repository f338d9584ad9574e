"""The chips that work is judged on."""

from __future__ import annotations

from typing import Annotated

import typer

from neuron_explorer.cli.options import (
    Form,
    Json,
    Quiet,
    examples,
)
from neuron_explorer.commands.choices import (
    report_format,
)

commands = typer.Typer()


@commands.command(
    epilog=examples(
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


@commands.command(epilog=examples("calibrate"))
def calibrate(*, form: Form = None, json: Json = False, quiet: Quiet = False) -> None:
    """Measure the roof of this CPU.

    Bandwidth, and FLOP/s by dtype; kept for every later judgement of work on this CPU.
    """
    from neuron_explorer.commands.chips import show_calibration

    show_calibration(report_format(form, json=json), quiet=quiet)
