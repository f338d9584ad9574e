"""SQL: ask the views of the trace anything; what may be asked is bounded as everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input, TextArea

from neuron_explorer.sandbox import QueryResult
from neuron_explorer.tui import export
from neuron_explorer.tui.data import Ask
from neuron_explorer.tui.grid import Grid
from neuron_explorer.tui.lines import Lines
from neuron_explorer.tui.query_editor import QueryEditor
from neuron_explorer.tui.result_columns import result_columns
from neuron_explorer.tui.screen import TraceScreen
from neuron_explorer.tui.text import Line, paragraph, safe
from neuron_explorer.view_files import views

FIRST = "SELECT * FROM lines LIMIT 100"
MOST_ROWS = 10_000
TIMEOUT_S = 30.0


class SqlScreen(TraceScreen):
    NAME = "sql"
    TITLE = "SQL"
    ORDER = 9
    HELP = (
        "One SELECT over the documented views, read-only and in a process of its own; no file and"
        " no network can be reached. ctrl+r runs it, escape ends one that takes too long. Tab ends"
        " a word that has begun (the line below says how it may go on), else it goes from the query"
        " to its rows and back; DESCRIBE names the columns of a view. ctrl+up brings back earlier"
        " queries. In the rows, left and right move over the columns, x writes them to a .csv or"
        " .parquet file, c copies them."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r,f5,ctrl+j", "run_query", "run"),
        Binding("tab", "tab", "rows", priority=True),
        Binding("shift+tab", "other_half", "query or rows", show=False, priority=True),
        Binding("ctrl+up,alt+up", "earlier(-1)", "earlier", key_display="ctrl+↑"),
        Binding("ctrl+down,alt+down", "earlier(1)", "later query", show=False),
        Binding("x", "export", "export"),
        Binding("c", "copy_rows", "copy the rows", show=False),
        Binding("right,l", "columns(1)", "columns to the right", show=False),
        Binding("left,h", "columns(-1)", "columns to the left", show=False),
    ]
    DEFAULT_CSS = """
    SqlScreen TextArea { height: 7; border: none; padding: 0 1; }
    SqlScreen #said { height: 3; }
    SqlScreen.low TextArea { height: 2; }
    SqlScreen Input { display: none; height: 1; border: none; padding: 0 1; }
    SqlScreen.naming Input { display: block; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._said: tuple[str, str] = (f"views: {', '.join(sorted(views()))}", "dim")
        self._found: QueryResult | None = None
        self._first = 0
        """Column that stands leftmost."""
        self._running = False

    def body(self) -> ComposeResult:
        yield QueryEditor(FIRST, id="query", compact=True)
        yield Lines(self._message, id="said", ruled=True)
        yield Grid(empty="no rows", id="rows")
        yield Input(placeholder="file to write: rows.csv or rows.parquet", compact=True)

    @property
    def editor(self) -> QueryEditor:
        return self.query_one(QueryEditor)

    def on_resize(self) -> None:
        self.set_class(self.size.height < 14, "low")

    def entered(self) -> None:
        given = self.explorer.state.query
        if given:
            self.explorer.state.query = ""
            self.editor.text = given
            self.action_run_query()
        else:
            self.editor.focus()
            if self._found is None:
                self._run(self.editor.text)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        found = self.editor.candidates()
        if found and self.editor.has_focus:
            self._tell(("tab: " + "  ".join(found[:60]), "accent"))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._leave_naming()
        name, found, inputs = event.value.strip(), self._found, self.explorer.trace.files
        if name and found is not None:
            path = Path(name).expanduser()
            self.ask(
                "export",
                lambda _: export.write_rows(found, path, inputs),
                lambda _: self._tell((f"wrote {len(found.rows):,} rows to {path}", "good")),
                self._refused,
            )

    def spot_here(self) -> None:
        """A row of a query may be anything."""

    def event_here(self) -> None:
        """As above."""

    def action_run_query(self) -> None:
        text = self.editor.text
        self.explorer.kept.remember_query(text)
        self.editor.forget_place()
        self._run(text)

    def action_tab(self) -> None:
        if not (self.editor.has_focus and self.editor.complete()):
            self.action_other_half()

    def action_other_half(self) -> None:
        (self.query_one(Grid) if self.editor.has_focus else self.editor).focus()

    def action_earlier(self, by: int) -> None:
        if not self.editor.step_back(self.explorer.kept.queries, by):
            self.explorer.complain("no query before that" if by < 0 else "no query after that")

    def action_columns(self, by: int) -> None:
        if self._found is not None and not self.editor.has_focus:
            self._first = min(max(self._first + by, 0), max(len(self._found.columns) - 1, 0))
            self.query_one(Grid).columns = result_columns(self._found, self._first)
            self.query_one(Grid).refresh()

    def action_export(self) -> None:
        if self._found is None:
            self.explorer.complain("no rows to write: ctrl+r runs the query")
            return
        self.add_class("naming")
        self.query_one(Input).focus()

    def action_copy_rows(self) -> None:
        found = self._found
        if found is not None:
            self.ask("export", lambda _: export.clipboard_text(found), self.explorer.copy)

    def action_go_back(self) -> None:
        """Ends a query that runs, leaves the file's name, or goes to the screen before."""
        if self._running:
            self.workers.cancel_group(self, "query")
            self._running = False
            self._tell(("ended: it gave no rows", "warn"))
        elif self.has_class("naming"):
            self._leave_naming()
        else:
            self.explorer.go_back()

    def _leave_naming(self) -> None:
        self.remove_class("naming")
        self.query_one(Grid).focus()

    def _run(self, text: str) -> None:
        self._running = True
        self._tell(("running ... escape ends it", "dim"))
        self.ask("query", lambda ask: _rows(ask, text), self._know, self._refused)

    def _know(self, found: QueryResult) -> None:
        self._found, self._first, self._running = found, 0, False
        grid = self.query_one(Grid)
        grid.columns = result_columns(found, 0)
        grid.cursor = 0
        grid.show_rows(found.rows)
        count = f"{_counted(found.rows, 'row')}, {_counted(found.columns, 'column')}"
        more = f"the first {count}: the query has more; say LIMIT and OFFSET"
        self._tell((more, "warn") if found.truncated else (count, "dim"))

    def _refused(self, problem: str) -> None:
        self._running = False
        if problem != "stopped":
            self._tell((problem, "bad"))

    def _tell(self, said: tuple[str, str]) -> None:
        self._said = said
        self.query_one("#said", Lines).redraw()

    def _message(self, width: int, height: int) -> list[Line]:
        said, role = self._said
        return paragraph(safe(said), width, role)[:height]


def _counted(some: Sequence[object], what: str) -> str:
    return f"{len(some):,} {what}{'' if len(some) == 1 else 's'}"


def _rows(ask: Ask, text: str) -> QueryResult:
    return ask.query(text, limit=MOST_ROWS, timeout_s=TIMEOUT_S)
