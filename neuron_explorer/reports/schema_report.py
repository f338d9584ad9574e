"""The event table and the views, column by column, as text, markdown and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from rich.console import RenderableType
from rich.text import Text

from neuron_explorer.errors import UsageError
from neuron_explorer.reports import console, json_report, layout
from neuron_explorer.reports.tables import Table, table_markdown
from neuron_explorer.schema import SCHEMA_VERSION, column_docs
from neuron_explorer.view_files import views

SCHEMA_SCHEMA = "neuron_explorer.schema/1"
EVENT_TABLE = "trace.parquet"


@dataclass(frozen=True)
class ColumnDoc:
    """A column; type and unit only where the event table states them."""

    name: str
    doc: str
    type: str = ""
    unit: str = ""


@dataclass(frozen=True)
class TableDoc:
    """A table or view with all its columns."""

    name: str
    doc: str
    columns: Sequence[ColumnDoc]


def documented() -> list[TableDoc]:
    """The event table first, then every view by name."""
    columns = [ColumnDoc(c["name"], c["doc"], c["type"], c["unit"]) for c in column_docs()]
    known = [TableDoc(EVENT_TABLE, "The file itself: one row an event.", columns)]
    for view in sorted(views().values(), key=lambda each: each.name):
        meanings = [ColumnDoc(name, doc) for name, doc in view.columns.items()]
        known.append(TableDoc(view.name, view.doc, meanings))
    return known


def chosen(name: str | None) -> list[TableDoc]:
    """One table, or all of them.

    Raises:
        UsageError: there is no table of this name.
    """
    known = documented()
    found = [table for table in known if name is None or table.name == name]
    if not found:
        names = ", ".join(table.name for table in known)
        raise UsageError(f"there is no table {name!r}", hint=f"tables: {names}")
    return found


def schema_text(name: str | None, page: console.Page) -> str:
    """A page of one table, or the list of all and the columns of the event table."""
    tables = chosen(name)
    parts: list[RenderableType] = []
    if name is None:
        rows = [(table.name, layout.text(table.doc)) for table in tables]
        parts += [Text(f"tables, schema {SCHEMA_VERSION}", style="bold"), layout.pairs(rows, 2)]
        parts.append(Text())
    parts += _columns(tables[0])
    if name is None:
        parts.append(layout.text("\nneuron-explorer schema TABLE shows the columns of a view"))
    return console.render(parts, page)


def schema_markdown(name: str | None) -> str:
    """A section for each table."""
    sections = []
    for table in chosen(name):
        names = [field for field in ("name", "type", "unit", "doc") if _used(table, field)]
        rows = [[getattr(column, field) for field in names] for column in table.columns]
        sections.append(f"## {table.name}\n\n{table.doc}\n\n{table_markdown(Table(names, rows))}")
    return "\n".join(sections)


def schema_json(name: str | None) -> str:
    """Every table with every column."""
    tables = [asdict(table) for table in chosen(name)]
    return json_report.dump(
        {"schema": SCHEMA_SCHEMA, "schema_version": SCHEMA_VERSION, "tables": tables}
    )


def _columns(table: TableDoc) -> Iterator[RenderableType]:
    yield Text(table.name, style="bold")
    yield layout.indent(layout.text(table.doc), 2)
    rows = []
    for column in table.columns:
        kind = " ".join(filter(None, (column.type, column.unit)))
        said = layout.line((f"{kind}  ", "cyan") if kind else "", column.doc)
        rows.append((column.name, said))
    yield layout.pairs(rows, 2)


def _used(table: TableDoc, field: str) -> bool:
    return any(getattr(column, field) for column in table.columns)
