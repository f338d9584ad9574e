"""The options that mean the same in every command."""

from __future__ import annotations

from typing import Annotated

import typer

from neuron_explorer.commands.choices import Format

PROGRAM = "neuron-explorer"


def examples(*commands: str) -> str:
    """The foot of a help page."""
    # the backspace tells the help page to keep the line breaks
    return "\n".join(["\b", "Examples:", *(f"  {PROGRAM} {command}" for command in commands)])


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
MINE = "Is your own code wherever it lies; repeatable."
Plumbing = Annotated[
    list[str] | None,
    typer.Option(metavar="PATH|PACKAGE", help="Is only passed through, like torch; repeatable."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no remarks.")]
