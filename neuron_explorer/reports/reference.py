"""What every table, column and code of this program means, gathered from where each is defined."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from pyarrow import parquet

from neuron_explorer.analyzers import analyzers
from neuron_explorer.collectors.attribution import WHY_UNLINKED
from neuron_explorer.collectors.costs.notes import ASSUMED, WHY_NULL
from neuron_explorer.collectors.importers import issues
from neuron_explorer.schema import (
    KINDS,
    LAYERS,
    METADATA_PREFIX,
    SCHEMA_VERSION,
    arrow_schema,
    column_docs,
)
from neuron_explorer.trace import Trace
from neuron_explorer.view_files import View, views

EVENT_TABLE = "trace.parquet"

_UNIT = re.compile(r"\s*\((ns|bytes|flop|bytes/s|flop/s|flop/byte)\)(\.?)$")
"""How the header of a view ends the meaning of a column that has a unit."""


@dataclass(frozen=True)
class ColumnDoc:
    """A column of a table or view."""

    name: str
    type: str
    unit: str
    doc: str


@dataclass(frozen=True)
class TableDoc:
    """A table or view with all its columns."""

    name: str
    doc: str
    columns: Sequence[ColumnDoc]


@dataclass(frozen=True)
class Term:
    """A code, name or threshold: what it means and, where it has one, its value."""

    name: str
    value: float | str | None
    doc: str


@dataclass(frozen=True)
class Vocabulary:
    """The terms a column or an option takes."""

    name: str
    doc: str
    terms: Sequence[Term]


@dataclass(frozen=True)
class Reference:
    """Everything that can be looked up."""

    tables: Sequence[TableDoc]
    vocabularies: Sequence[Vocabulary]


def reference() -> Reference:
    """The event table first, then every view by name; then the words they use."""
    with _trace_without_events() as trace:
        found = sorted(views().values(), key=lambda view: view.name)
        tables = [_event_table(), *[_view(view, trace) for view in found]]
        return Reference(tables, [*_codes(), _thresholds(trace), _analyzers()])


@contextmanager
def _trace_without_events() -> Iterator[Trace]:
    """The views have their types, and the thresholds their values, whatever the trace."""
    version = {f"{METADATA_PREFIX}schema_version": json.dumps(SCHEMA_VERSION)}
    with TemporaryDirectory(prefix="neuron_explorer-") as folder:
        path = Path(folder) / EVENT_TABLE
        parquet.write_table(arrow_schema().with_metadata(version).empty_table(), path)
        with Trace.open([path]) as trace:
            yield trace


def _event_table() -> TableDoc:
    columns = [ColumnDoc(c["name"], c["type"], c["unit"], c["doc"]) for c in column_docs()]
    return TableDoc(EVENT_TABLE, "The file itself: one row an event.", columns)


def _view(view: View, trace: Trace) -> TableDoc:
    described = trace.sql(f"DESCRIBE {view.name}").to_pylist()
    types = {row["column_name"]: row["column_type"] for row in described}
    columns = [_column(name, types[name], doc) for name, doc in view.columns.items()]
    return TableDoc(view.name, _flowing(view.doc), columns)


def _column(name: str, type_: str, doc: str) -> ColumnDoc:
    text = _flowing(doc)
    unit = _UNIT.search(text)
    return ColumnDoc(name, type_, unit[1] if unit else "", _UNIT.sub(r"\2", text))


def _codes() -> Iterator[Vocabulary]:
    kinds = [Term(layer, ", ".join(KINDS[layer]), doc) for layer, doc in LAYERS.items()]
    yield Vocabulary(
        "layers", "Values of `layer` in the event table, with the kinds of each.", kinds
    )
    notes = [Term(code, "unknown", doc) for code, doc in (WHY_NULL | WHY_UNLINKED).items()]
    notes += [Term(code, "assumed", doc) for code, doc in ASSUMED.items()]
    said = "Codes in `cost_note`: why a cost is unknown, or what was assumed to know it."
    yield Vocabulary("notes", said, notes)
    troubles = [Term(kind, issues.ACTIONS[kind], doc) for kind, doc in issues.KINDS.items()]
    yield Vocabulary("issues", "Kinds in `import_issues`, and what is done about each.", troubles)


def _thresholds(trace: Trace) -> Vocabulary:
    rows = trace.sql("SELECT name, value, meaning FROM thresholds ORDER BY name").to_pylist()
    terms = [Term(row["name"], row["value"], row["meaning"]) for row in rows]
    return Vocabulary("thresholds", "Numbers that a judgement in a view turns on.", terms)


def _analyzers() -> Vocabulary:
    terms = []
    for each in analyzers().values():
        terms.append(Term(each.id, None, _flowing(each.question)))
        terms += [
            Term(f"{each.id}.{name}", param.default, _flowing(param.doc))
            for name, param in each.params.items()
        ]
    said = "What `--only` takes, with the question each answers, and what `--param` sets."
    return Vocabulary("analyzers", said, terms)


def _flowing(text: str) -> str:
    """Without the line breaks of the file it was written in."""
    return " ".join(text.split())
