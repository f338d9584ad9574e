"""Questions in SQL, and the words to ask them in."""

from __future__ import annotations

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
    RowFormat,
    report_format,
    row_format,
)

commands = typer.Typer()


@commands.command(
    epilog=examples(
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


@commands.command(
    epilog=examples(
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
