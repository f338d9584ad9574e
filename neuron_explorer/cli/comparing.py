"""Two traces side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neuron_explorer.cli.options import (
    Chip,
    Form,
    Json,
    Quiet,
    Raw,
    examples,
)
from neuron_explorer.commands.choices import (
    report_format,
)

commands = typer.Typer()


@commands.command(
    epilog=examples(
        "diff before.parquet after.parquet",
        "diff main/ branch/ --format md -o comment.md",
        "diff before.json.gz after.json.gz --fail-on 'step_time>5%,new_critical>0'",
    )
)
def diff(  # noqa: PLR0913  one parameter an option
    base: Annotated[str, typer.Argument(metavar="BASE", help="A trace, a folder or a glob.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The same program's, later.")],
    *,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIGURE>LIMIT[,..]",
            help="Exit 4 where a figure grew by more; repeatable. FIGURE is step_time, ...",
        ),
    ] = None,
    device: Chip = None,
    limit: Annotated[
        int | None,
        typer.Option(min=0, help="Rows of each kind; 0 = all. Default: 10, in JSON all."),
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
    """Compare two traces of one program.

    What became slower, faster, new or gone beyond noise: the step, by line, module, op, queue
    and finding. Figures are of a typical step, so the numbers of steps may differ.

    A gate that cannot be judged, as the figure or its noise is unknown, exits with 3.
    """
    from neuron_explorer.commands.diff import Request
    from neuron_explorer.commands.diff import diff as show
    from neuron_explorer.commands.gates import read_gates

    return show(
        Request(
            base,
            new,
            device=device,
            raw=raw,
            gates=read_gates(fail_on or ()),
            limit=limit,
            form=report_format(form, json=json, output=output),
            output=output,
            quiet=quiet,
        )
    )
