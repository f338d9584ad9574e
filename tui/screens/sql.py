"""SQL: ask the views of the trace anything; what may be asked is bounded as everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import TextArea

from neuron_explorer.sandbox import QueryResult
from neuron_explorer.tui.data import Ask
from neuron_explorer.tui.grid import Column, Grid
from neuron_explorer.tui.lines import Lines
from neuron_explorer.tui.screen import TraceScreen
from neuron_explorer.tui.text import Line, Piece, paragraph, safe
from neuron_explorer.view_files import views

FIRST = "SELECT * FROM lines LIMIT 100"
MOST_ROWS = 10_000
TIMEOUT_S = 30.0
_WIDEST = 40


class SqlScreen(TraceScreen):
    NAME = "sql"
    TITLE = "SQL"
    ORDER = 9
    HELP = (
        "One SELECT over the documented views, read-only and in a process of its own; no file and"
        " no network can be reached. ctrl+r runs it. DESCRIBE names the columns of a view. Tab goes"
        " from the query to its rows and back; in the rows, left and right move over the columns."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r,f5,ctrl+j", "run_query", "run"),
        Binding("tab,shift+tab", "other_half", "query or rows", priority=True),
        Binding("right,l", "columns(1)", "columns to the right", show=False),
        Binding("left,h", "columns(-1)", "columns to the left", show=False),
    ]
    DEFAULT_CSS = """
    SqlScreen TextArea { height: 7; border: none; padding: 0 1; }
    SqlScreen #said { height: 3; }
    SqlScreen.low TextArea { height: 2; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._said: tuple[str, str] = (f"views: {', '.join(sorted(views()))}", "dim")
        self._found: QueryResult | None = None
        self._first = 0
        """Column that stands leftmost."""

    def body(self) -> ComposeResult:
        yield TextArea(FIRST, id="query", compact=True)
        yield Lines(self._message, id="said", ruled=True)
        yield Grid(empty="no rows", id="rows")

    def on_resize(self) -> None:
        self.set_class(self.size.height < 14, "low")

    def entered(self) -> None:
        given = self.explorer.state.query
        if given:
            self.explorer.state.query = ""
            self.query_one(TextArea).text = given
            self.action_run_query()
        else:
            self.query_one(TextArea).focus()
            if self._found is None:
                self.action_run_query()

    def action_run_query(self) -> None:
        text = self.query_one(TextArea).text
        self._tell(("running ...", "dim"))
        self.ask("query", lambda ask: _run(ask, text), self._know, self._refused)

    def action_other_half(self) -> None:
        area, grid = self.query_one(TextArea), self.query_one(Grid)
        (grid if area.has_focus else area).focus()

    def action_columns(self, by: int) -> None:
        if self._found is not None and not self.query_one(TextArea).has_focus:
            self._first = min(max(self._first + by, 0), max(len(self._found.columns) - 1, 0))
            self.query_one(Grid).columns = _columns(self._found, self._first)
            self.query_one(Grid).refresh()

    def _know(self, found: QueryResult) -> None:
        self._found, self._first = found, 0
        grid = self.query_one(Grid)
        grid.columns = _columns(found, 0)
        grid.cursor = 0
        grid.show_rows(found.rows)
        count = f"{len(found.rows):,} rows"
        more = (
            f"the first {count}: the query has more; say LIMIT and OFFSET"
            if found.truncated
            else ""
        )
        self._tell((more or count, "warn" if more else "dim"))

    def _refused(self, problem: str) -> None:
        if problem != "stopped":
            self._tell((problem, "bad"))

    def _tell(self, said: tuple[str, str]) -> None:
        self._said = said
        self.query_one("#said", Lines).redraw()

    def _message(self, width: int, height: int) -> list[Line]:
        said, role = self._said
        return paragraph(safe(said), width, role)[:height]


def _run(ask: Ask, text: str) -> QueryResult:
    return ask.trace.query(text, limit=MOST_ROWS, timeout_s=TIMEOUT_S)


def _columns(found: QueryResult, first: int) -> list[Column]:
    """As wide as what the first rows hold; those left of `first` are scrolled away."""
    columns = []
    for place in range(first, len(found.columns)):
        name = safe(found.columns[place], _WIDEST)
        some = [row[place] for row in found.rows[:100]]
        widest = max([cell_len(name), *(cell_len(_shown(value)) for value in some)], default=4)
        right = all(value is None or isinstance(value, int | float) for value in some)
        columns.append(
            Column(
                name,
                lambda row, place=place: _cell(row, place),  # type: ignore[misc]
                min(widest, _WIDEST),
                right=right,
                keep=-place,
            )
        )
    return columns


def _cell(row: Sequence[Any], place: int) -> Piece:
    return ("NULL", "dim") if row[place] is None else _shown(row[place])


def _shown(value: object) -> str:
    return safe(str(value) if value is not None else "NULL", _WIDEST)
