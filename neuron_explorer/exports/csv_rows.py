"""`csv`: the events, or the rows of any view."""

from __future__ import annotations

from neuron_explorer.errors import UsageError
from neuron_explorer.exports.sink import Sink
from neuron_explorer.exports.window import Part
from neuron_explorer.reports.tables import Table, table_csv
from neuron_explorer.trace import Trace
from neuron_explorer.view_files import views

EVENTS = "events"


def write_csv(trace: Trace, part: Part, out: Sink, view: str = EVENTS) -> dict[str, object]:
    """A header line, then a line a row; a list is JSON, NULL an empty field.

    Raises:
        UsageError: there is no such view, or it has no column that the window asks of.
    """
    written = 0
    for batch in trace.batches(_query(part, view)):
        rows = list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
        text = table_csv(Table(batch.schema.names, rows))
        out.write(text if not written else text.partition("\n")[2])
        written += batch.num_rows
    if not written:
        out.write(table_csv(Table(list(views()[view].columns), [])))
    return {"view": view, "rows": written}


def _query(part: Part, view: str) -> str:
    if view not in views():
        raise UsageError(f"no view {view}", hint="neuron-explorer schema lists them")
    order = "ORDER BY rank, event_id" if view == EVENTS else ""
    return f"SELECT * FROM {view} WHERE {_condition(part, view)} {order}"


def _condition(part: Part, view: str) -> str:
    """The part in the view's own columns.

    Rows of events are chosen by their event; other views only know their rank.
    """
    columns = views()[view].columns
    if view == EVENTS or part.condition == "TRUE":
        return part.condition
    if {"rank", "event_id"} <= columns.keys():
        chosen = f"SELECT rank, event_id FROM events WHERE {part.condition}"
        return f"(rank, event_id) IN ({chosen})"
    if part.whole and "rank" in columns:
        return part.condition
    raise UsageError(
        f"the rows of {view} are no events, so no step or stretch of time can be cut out",
        hint="leave out --step, --from and --to-time, or take --view work",
    )
