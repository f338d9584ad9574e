"""What every table, column and code of this program means, gathered from where each is defined."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from pyarrow import parquet

from neuron_explorer.analyzers import analyzers
from neuron_explorer.collectors.costs.registry import find, names
from neuron_explorer.collectors.importers import issues
from neuron_explorer.cost_notes import ASSUMED, WHY_NULL, WHY_UNLINKED
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

RULES = (
    (
        "A row belongs to a rank and ids are unique within one: join on rank AND id, as in"
        " work.rank = ops.rank AND work.op_id = ops.event_id."
    ),
    (
        "NULL means unknown or not applicable, never 0. Sums skip it: say for how much of the time"
        " a sum of bytes or flops is known (metric_definitions: cost coverage)."
    ),
    (
        "Columns in _ns are int64 nanoseconds, starts and ends Unix time: subtract"
        " (SELECT min(start_ns) FROM events) to see offsets. Shares go from 0 to 1."
    ),
    (
        "Of ops, duration_ns includes the ops inside: add up self_ns, or take op_calls, which holds"
        " those the model calls itself. Units in work are not nested, but those of two streams may"
        " overlap: add up timeline.busy_ns for the time in which the device worked."
    ),
    (
        "Work that only a compilation caused has phase = 'compile' in work and counts as busy time;"
        " kernels, lines, modules and roofline leave it out."
    ),
    (
        "Times are measured. Columns that begin with modelled_, the views that begin so, and rows"
        " where modelled is true are a chip's model and are never added to measured ones."
    ),
    "A trace without any device has its ops as units of work, on device 'cpu'.",
    "Shapes and dtypes are JSON text: input_shapes ->> '$[0]' is the first. attributes too.",
    (
        "source_file and source_line are the model's line (not torch's), NULL without stacks;"
        " user_file and user_line are the innermost line of the user's own code."
    ),
    (
        "The SQL is DuckDB's, SELECT only. Tables are the views listed here; the file itself"
        " (trace.parquet) is the view events."
    ),
)

_EXAMPLES = 8
"""Ops named for each family."""

_UNIT = re.compile(r"\s*\((ns|bytes|flop|bytes/s|flop/s|flop/byte)\)(\.?)$")
"""How the header of a view ends the meaning of a column that has a unit."""

_KEY_OF: dict[str, str] = {
    "parent_id": "events (rank, event_id)",
    "launch_id": "launches (rank, event_id)",
    "op_id": "ops (rank, event_id)",
    "op_ids": "ops (rank, event_id), one an item",
    "forward_id": "ops (rank, event_id)",
    "producer_id": "ops (rank, event_id)",
    "consumer_id": "ops (rank, event_id)",
    "event_id": "events (rank, event_id)",
    "event_ids": "events (rank, event_id), one an item",
    "chain_id": "chains (rank, chain_id)",
    "lane": "lanes (rank, lane)",
    "chip": "chips (chip)",
    "step": "steps (rank, step)",
}
"""Columns that lead to a row of another view, by the name they have everywhere."""


@dataclass(frozen=True)
class ColumnDoc:
    """A column of a table or view."""

    name: str
    type: str
    unit: str
    doc: str
    references: str = ""
    """What its value is the key of: `ops (rank, event_id)`."""


@dataclass(frozen=True)
class TableDoc:
    """A table or view with all its columns."""

    name: str
    doc: str
    columns: Sequence[ColumnDoc]
    key: Sequence[str] = ()
    """Columns that tell its rows apart; empty where none do."""


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
    rules: Sequence[str] = RULES
    """What is true of every table and not said at each of them."""


@cache
def reference() -> Reference:
    """The event table first, then every view by name; then the words they use."""
    with _trace_without_events() as trace:
        found = sorted(views().values(), key=lambda view: view.name)
        tables = [_event_table(), *[_view(view, trace) for view in found]]
        return Reference(tables, [*_codes(), _families(), _thresholds(trace), _analyzers()])


def metrics() -> Sequence[dict[str, str]]:
    """Rows of `metric_definitions`."""
    with _trace_without_events() as trace:
        return trace.sql("SELECT * FROM metric_definitions ORDER BY metric").to_pylist()


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
    return TableDoc(
        EVENT_TABLE, "The file itself: one row an event.", columns, ("rank", "event_id")
    )


def _view(view: View, trace: Trace) -> TableDoc:
    described = trace.sql(f"DESCRIBE {view.name}").to_pylist()
    types = {row["column_name"]: row["column_type"] for row in described}
    columns = [_column(view, name, types[name], doc) for name, doc in view.columns.items()]
    return TableDoc(view.name, _flowing(view.doc), columns, view.key)


def _column(view: View, name: str, type_: str, doc: str) -> ColumnDoc:
    text = _flowing(doc)
    unit = _UNIT.search(text)
    meaning = _UNIT.sub(r"\2", text)
    return ColumnDoc(name, type_, unit[1] if unit else "", meaning, _referenced(view, name))


def _referenced(view: View, column: str) -> str:
    """What a column leads to; nothing where it is what tells the view's own rows apart."""
    found = _KEY_OF.get(column) or (
        _KEY_OF["event_id"] if column.endswith(("_event_id", "previous_id", "_ids")) else ""
    )
    own = column in view.key and found.startswith(f"{view.name} ")
    return "" if own else found


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


def _families() -> Vocabulary:
    """Gathered from the formulas, as the ops that each stands for are."""
    found: dict[str, list[str]] = {}
    # torch's own public names first: they are the ones that are looked for
    for name in sorted(names(), key=lambda op: (not op.startswith("aten::"), "::_" in op, op)):
        entry = find(name)
        if entry is not None:
            found.setdefault(entry.family, []).append(name)
    terms = [
        Term(family, None, f"{', '.join(ops[:_EXAMPLES])}{', ...' if ops[_EXAMPLES:] else ''}")
        for family, ops in sorted(found.items())
    ]
    said = "Values of `family`, which an op has by its cost, with some ops of each."
    return Vocabulary("families", said, terms)


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
