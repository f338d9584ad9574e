"""The relational views: one `.sql` file each, with a TOML header that documents every column."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from importlib.resources import files

from neuron_explorer.schema import COLUMNS

_FENCE = "-- +++\n"
_SOURCE = re.compile(r"\b(?:from|join)\s+([a-z_][a-z0-9_]*)\b(?!\.)", re.IGNORECASE)
_COMMENT = re.compile(r"--[^\n]*")
_EVENTS_DOC = "One row an event: all that was recorded, in every layer."
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class View:
    """One view as its file describes it."""

    name: str
    doc: str
    columns: dict[str, str]
    """What each column means, in the view's own column order."""
    sql: str
    materialize: bool
    """Kept as a table once it was first read: several others read it."""
    reads: frozenset[str]
    """Names of the other views in its FROM and JOIN clauses."""
    key: tuple[str, ...] = ()
    """Columns that tell its rows apart; empty where none do."""


@cache
def views() -> dict[str, View]:
    """Every view by name, each after those it reads."""
    texts = {
        entry.name.removesuffix(".sql"): entry.read_text("utf-8")
        for entry in files("neuron_explorer").joinpath("views").iterdir()
        if entry.name.endswith(".sql")
    }
    names = frozenset(texts) | {"events"}
    found = {name: parse_view(name, text, names) for name, text in texts.items()}
    found["events"] = _events_view()
    order = TopologicalSorter({name: sorted(found[name].reads) for name in sorted(found)})
    return {name: found[name] for name in order.static_order()}


def parse_view(name: str, text: str, names: frozenset[str]) -> View:
    """Split a view file into its header and its query.

    Raises:
        ValueError: The file does not start with a TOML header between two `-- +++` lines.
    """
    before, *rest = text.split(_FENCE, 2)
    if before or len(rest) != 2:
        raise ValueError(f"{name}.sql must start with a header between two '-- +++' lines")
    header, body = rest
    meta = tomllib.loads("\n".join(line[3:] for line in header.splitlines()))
    code = _COMMENT.sub("", body)
    reads = frozenset(found.lower() for found in _SOURCE.findall(code)) & names - {name}
    return View(
        name,
        meta["doc"],
        meta["columns"],
        body,
        meta.get("materialize", False),
        reads,
        tuple(meta.get("key", ())),
    )


def _events_view() -> View:
    """The event table itself, as `schema.py` describes it, with what every query needs beside."""
    columns = {
        column.name: f"{column.doc} ({column.unit})" if column.unit else column.doc
        for column in COLUMNS
    } | {"end_ns": "Start plus duration; NULL where either is. (ns)"}
    sql = """
SELECT
    * REPLACE (string_split(stack, chr(10)) AS stack),
    start_ns + duration_ns AS end_ns
FROM raw.events
"""
    return View(
        "events",
        _EVENTS_DOC,
        columns,
        sql,
        materialize=False,
        reads=frozenset(),
        key=("rank", "event_id"),
    )


def views_in(query: str) -> list[View]:
    """The views that `query` may read, at any depth, each after those it reads.

    Goes by the words of the text: one word too many costs a little time, never a wrong result.
    """
    known = views()
    wanted = {word for word in map(str.lower, _WORD.findall(query)) if word in known}
    pending = list(wanted)
    while pending:
        fresh = known[pending.pop()].reads - wanted
        wanted |= fresh
        pending.extend(fresh)
    return [view for view in known.values() if view.name in wanted]
