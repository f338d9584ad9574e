"""The event table, the views and the words they use, as text, markdown and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from rich.console import RenderableType
from rich.text import Text

from neuron_explorer.analyzers import analyzers
from neuron_explorer.errors import UsageError
from neuron_explorer.reports import console, formats, json_report, layout
from neuron_explorer.reports.reference import (
    Reference,
    TableDoc,
    Vocabulary,
    metrics,
    reference,
)
from neuron_explorer.reports.tables import Table, table_markdown
from neuron_explorer.schema import SCHEMA_VERSION

SCHEMA_SCHEMA = "neuron_explorer.schema/1"
METRICS_SCHEMA = "neuron_explorer.metrics/1"
ANALYZERS_SCHEMA = "neuron_explorer.analyzers/1"


def chosen(name: str | None) -> Reference:
    """Everything, or what goes by one name: a table, a vocabulary, or both.

    Raises:
        UsageError: there is neither of this name.
    """
    known = reference()
    if name is None:
        return known
    tables = [table for table in known.tables if table.name == name]
    words = [words for words in known.vocabularies if words.name == name]
    if not tables and not words:
        names = dict.fromkeys(table.name for table in known.tables)
        names |= dict.fromkeys(words.name for words in known.vocabularies)
        raise UsageError(f"there is no table {name!r}", hint=f"there are {', '.join(names)}")
    return Reference(tables, words)


def schema_text(name: str | None, page: console.Page) -> str:
    """A page of one name, or the list of all and the columns of the event table."""
    found = chosen(name)
    parts = _contents(found) if name is None else _pages(found)
    return console.render(list(parts), page)


def schema_markdown(name: str | None) -> str:
    """A section for each table and vocabulary."""
    found = chosen(name)
    sections = []
    for table in found.tables:
        rows = [[c.name, c.type, c.unit, c.doc, c.references] for c in table.columns]
        columns = ["name", "type", "unit", "meaning", "references"]
        sections.append(_section(table, Table(columns, rows)))
    for words in found.vocabularies:
        rows = [[term.name, _value(term.value), term.doc] for term in words.terms]
        sections.append(_section(words, Table(["name", "value", "meaning"], rows)))
    return "\n".join(sections)


def schema_json(name: str | None) -> str:
    """Every table with every column, and a list of terms under the name of each vocabulary."""
    found = chosen(name)
    told: dict[str, object] = {
        "schema": SCHEMA_SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "rules": list(found.rules),
    }
    for words in found.vocabularies:
        told[words.name] = [asdict(term) for term in words.terms]
    return json_report.dump(told | {"tables": [asdict(table) for table in found.tables]})


def metrics_json() -> str:
    """What each metric means, and how to compute it."""
    return json_report.dump({"schema": METRICS_SCHEMA, "metrics": list(metrics())})


def analyzers_json() -> str:
    """Every analyzer with the question it answers, its needs and its thresholds."""
    listed = [
        {
            "id": each.id,
            "title": each.title,
            "question": " ".join(each.question.split()),
            "needs": list(each.needs),
            "thresholds": {name: asdict(param) for name, param in each.params.items()},
        }
        for each in analyzers().values()
    ]
    return json_report.dump({"schema": ANALYZERS_SCHEMA, "analyzers": listed})


def _contents(found: Reference) -> Iterator[RenderableType]:
    yield Text("rules", style="bold")
    for rule in found.rules:
        yield layout.hanging(Text("  "), layout.text(rule), 2)
    yield Text()
    yield Text(f"tables, schema {SCHEMA_VERSION}", style="bold")
    yield layout.pairs([(table.name, layout.text(table.doc)) for table in found.tables], 2)
    yield layout.heading("words")
    yield layout.pairs([(words.name, layout.text(words.doc)) for words in found.vocabularies], 2)
    yield Text()
    yield from _table(found.tables[0])
    yield Text()
    yield layout.text("neuron-explorer schema NAME explains any other table or the words", "dim")


def _pages(found: Reference) -> Iterator[RenderableType]:
    for table in found.tables:
        yield from _table(table)
    if found.tables and found.vocabularies:
        yield Text()
    for words in found.vocabularies:
        yield from _words(words)


def _table(table: TableDoc) -> Iterator[RenderableType]:
    yield Text(table.name, style="bold")
    yield layout.indent(layout.text(table.doc), 2)
    if table.key:
        yield layout.indent(layout.text(f"One row for each {', '.join(table.key)}.", "dim"), 2)
    rows = []
    for column in table.columns:
        kind = ", ".join(filter(None, (column.type, column.unit)))
        leads = f" -> {column.references}" if column.references else ""
        rows.append((column.name, layout.line((f"{kind}  ", "cyan"), column.doc, (leads, "dim"))))
    yield layout.pairs(rows, 2)


def _words(words: Vocabulary) -> Iterator[RenderableType]:
    yield Text(words.name, style="bold")
    yield layout.indent(layout.text(words.doc), 2)
    rows = []
    for term in words.terms:
        value = _value(term.value)
        said = layout.line((f"{value}  ", "cyan") if value else "", term.doc)
        rows.append((term.name, said))
    yield layout.pairs(rows, 2)


def _value(value: float | str | None) -> str:
    """Thresholds as they would be typed: `0.05`, `10,000` without an exponent."""
    if value is None or isinstance(value, str):
        return value or ""
    return formats.count(value) if value == int(value) else f"{value:g}"


def _section(each: TableDoc | Vocabulary, table: Table) -> str:
    return f"## {each.name}\n\n{each.doc}\n\n{table_markdown(table)}"
