"""`sql`: one question over the views, its rows as a table, JSON or CSV."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from neuron_explorer.commands.choices import RowFormat
from neuron_explorer.commands.traces import open_trace
from neuron_explorer.reports import console
from neuron_explorer.reports.tables import (
    Table,
    natural_width,
    table_csv,
    table_json,
    table_text,
)
from neuron_explorer.trace import Trace

MANY_ROWS = 10_000
SCREEN_ROWS = 100


@dataclass(frozen=True)
class Question:
    """What the caller of `sql` chose."""

    file: str
    text: str
    form: RowFormat = RowFormat.TABLE
    limit: int | None = None
    """None = as the format has it, 0 = all."""
    timeout_s: float = 30.0
    """0 = no bound."""
    device: str | None = None
    raw: bool = False
    """Times as recorded."""
    quiet: bool = False


def ask(question: Question) -> None:
    """Print the rows; that there are more is said on stderr and in the JSON."""
    default = SCREEN_ROWS if question.form is RowFormat.TABLE else MANY_ROWS
    limit = default if question.limit is None else question.limit or None
    with _opened(question) as trace:
        found = trace.query(question.text, limit=limit, timeout_s=question.timeout_s or None)
    table = Table(found.columns, found.rows, found.truncated)
    _write(table, question.form)
    if table.truncated and not question.quiet:
        console.note(f"only the first {limit} rows: --limit N shows more, 0 all")


def _opened(question: Question) -> Trace:
    return open_trace([question.file], question.device, raw=question.raw, quiet=question.quiet)


def _write(table: Table, form: RowFormat) -> None:
    match form:
        case RowFormat.JSON:
            console.write_data(table_json(table))
        case RowFormat.CSV:
            console.write_data(table_csv(table))
        case RowFormat.TABLE:
            _write_table(table)


def _write_table(table: Table) -> None:
    """As wide as the terminal; off a terminal as wide as it takes, so that nothing is cut."""
    page = console.stdout_page()
    if sys.stdout.isatty():
        console.write(console.render([table_text(table, page.width)], page))
        return
    whole = console.Page(max(natural_width(table), 1), page.color)
    console.write(console.render([table_text(table, None)], whole))
