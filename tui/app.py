"""The app: opens the trace, holds what the screens share, and moves between them."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

from textual import events
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.filter import LineFilter
from textual.screen import Screen

from neuron_explorer.errors import UsageError
from neuron_explorer.loading import load
from neuron_explorer.trace import Trace
from neuron_explorer.tui.data import Ask, Questions, one_line
from neuron_explorer.tui.editor import editor_command, run_in_terminal
from neuron_explorer.tui.help import HelpScreen
from neuron_explorer.tui.ink import Ink
from neuron_explorer.tui.judging import Judging
from neuron_explorer.tui.kept import Kept, Mark
from neuron_explorer.tui.marks import MarksScreen
from neuron_explorer.tui.opening import Import, OpeningScreen, memory_bytes
from neuron_explorer.tui.plain import AsciiLines, from_environment
from neuron_explorer.tui.screen import TraceScreen
from neuron_explorer.tui.screens import screens
from neuron_explorer.tui.state import Spot, State
from neuron_explorer.tui.text import safe

DARK, LIGHT = "textual-dark", "textual-light"
_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_TURN_S = 0.2
_SHOWN_CHARACTERS = 200


class Explorer(App[int], Judging):
    """`neuron-explorer tui`: one trace, several ways to look at it."""

    TITLE = "neuron-explorer"
    CSS = """
    Screen { background: $background; color: $foreground; }
    ModalScreen { background: $background; }
    """
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(n % 10), f"open_place({n})", show=False) for n in range(1, 11)),
        Binding("question_mark,f1", "explain", "help", show=False),
        Binding("ctrl+p", "command_palette", "all commands", show=False),
        Binding("D", "light_or_dark", "light or dark", show=False),
        Binding("q", "leave", "leave", show=False),
        Binding("ctrl+c,ctrl+q", "leave", "leave", show=False, priority=True),
    ]

    def __init__(
        self,
        files: Sequence[str],
        device: str | None = None,
        *,
        raw: bool = False,
        light: bool = False,
        kept: Kept | None = None,
        others: Sequence[str] = (),
    ) -> None:
        without_color = bool(os.environ.get("NO_COLOR"))
        super().__init__(ansi_color=True if without_color else None)
        self.kept = kept or Kept()
        light = light or self.kept.light
        self.ink = Ink(dark=not light, color=not without_color)
        self.state = State(files=tuple(files), others=tuple(others))
        self.questions = Questions()
        self.kinds = [k for k in screens().values() if k.ORDER and (others or not k.OF_TWO)]
        self.importing = Import()
        self.shown = ""
        self.said, self.said_role = self.kept.problem, "bad"
        """One line to the reader until the next key."""
        self.failure: Exception | None = None
        """Why the trace could not be opened."""
        self.pending = 0
        """Questions without an answer."""
        self.turn = 0
        self._device, self._raw = device, raw
        self._busy = 0
        self._trace: Trace | None = None
        self._before: list[str] = []
        self._plain = AsciiLines(enabled=from_environment())
        self.theme = LIGHT if light else DARK

    @property
    def trace(self) -> Trace:
        if self._trace is None:
            raise RuntimeError("asked before a trace was open")
        return self._trace

    @property
    def opened(self) -> bool:
        return self._trace is not None

    @property
    def at_work(self) -> bool:
        """Whether a question takes longer than an eye blinks, or analyzers are still to run."""
        return self._busy > 0 or bool(self.state.analyzers_left)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Textual's own, and ASCII in place of glyphs that the locale does not have."""
        return [*super().get_line_filters(), *([self._plain] if self._plain.enabled else [])]

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The palette: every screen, and what works on all of them."""
        _ = screen
        for kind in self.kinds:
            about = kind.HELP.partition(". ")[0]
            yield SystemCommand(kind.TITLE, about, lambda name=kind.NAME: self.action_open(name))
        yield SystemCommand("Light or dark", "Change the colours", self.action_light_or_dark)
        yield SystemCommand("Help", "Keys and letters of this screen", self.action_explain)
        yield SystemCommand("Leave", "Close the trace", self.action_leave)

    async def on_mount(self) -> None:
        self.watch(self, "theme", self._theme_changed, init=False)
        loop = asyncio.get_running_loop()
        if not self.is_headless:
            for number in _SIGNALS:
                loop.add_signal_handler(number, self._signalled, number)
        self.set_interval(_TURN_S, self._turn)
        self.push_screen(OpeningScreen())
        self.run_worker(self._open())

    def on_key(self, event: events.Key) -> None:
        """A message stays until the next key."""
        _ = event
        if self.said:
            self.said = ""
            self._refresh_bars()

    def close(self) -> None:
        """Free the trace once the app has left."""
        gc.unfreeze()
        self.importing.abandoned = True
        self.questions.stop()
        while not self.questions.over():
            self.questions.end_queries()
        self.questions.join()
        if self._trace is not None:
            self._trace.close()

    def complain(self, problem: str) -> None:
        """Say in one line what went wrong."""
        if problem != "stopped":
            self.tell(problem, "bad")

    def tell(self, said: str, role: str = "good") -> None:
        """Say in one line what was done."""
        self.said, self.said_role = said, role
        self._refresh_bars()

    def copy(self, text: str) -> None:
        """Into the clipboard of the reader's terminal, over ssh too (OSC 52)."""
        clean = text.encode("utf-8", "backslashreplace").decode("utf-8")
        self.copy_to_clipboard(clean)
        shown = clean if len(clean) < _SHOWN_CHARACTERS else f"{len(clean):,} characters"
        self.tell(f"copied, if this terminal lets programs copy: {shown}")

    def edit(self, spot: Spot) -> None:
        """Leave the terminal to the reader's editor until that has ended."""
        try:
            run_in_terminal(self, editor_command(os.environ, spot))
        except UsageError as error:
            self.complain(one_line(error))
        self.refresh()

    @property
    def marks(self) -> list[Mark]:
        return self.kept.marks_of(self.state.files)

    def change_marks(self, marks: Sequence[Mark]) -> None:
        self.kept.change_marks(self.state.files, marks)

    def toggle_mark(self, mark: Mark) -> None:
        """Set a bookmark; one that is there already goes."""
        there = mark in self.marks
        left = [each for each in self.marks if each != mark]
        self.change_marks(left if there else [*left, mark])
        done = "removed the bookmark" if there else "bookmarked (M lists them)"
        self.tell(f"{done}: {safe(mark.label)}")

    def action_marks(self) -> None:
        self.push_screen(MarksScreen(), self._to_mark)

    @contextmanager
    def working(self) -> Iterator[None]:
        """The top bar says so meanwhile."""
        self._busy += 1
        self._refresh_bars()
        try:
            yield
        finally:
            self._busy -= 1
            self._refresh_bars()

    def action_open(self, name: str) -> None:
        """Bring a screen to the front; it is made on first use and keeps its state."""
        if self._trace is None or name == self.shown:
            return
        if len(self.screen_stack) > 2 or isinstance(self.screen, HelpScreen):
            self.pop_screen()
        if self.shown:
            self._before.append(self.shown)
        self._switch(name)

    def action_open_place(self, place: int) -> None:
        if place <= len(self.kinds):
            self.action_open(self.kinds[place - 1].NAME)

    def action_next_screen(self, by: int) -> None:
        names = [kind.NAME for kind in self.kinds]
        if self.shown in names:
            self.action_open(names[(names.index(self.shown) + by) % len(names)])

    def go_back(self) -> None:
        if self._before:
            self._switch(self._before.pop())

    def action_explain(self) -> None:
        if isinstance(self.screen, TraceScreen):
            self.push_screen(HelpScreen(self.screen))

    def action_light_or_dark(self) -> None:
        self.theme = LIGHT if self.current_theme.dark else DARK
        self.kept.remember_light(light=not self.current_theme.dark)

    def action_leave(self) -> None:
        self.exit(0)

    def _switch(self, name: str) -> None:
        if not self.is_screen_installed(name):
            self.install_screen(screens()[name](), name)
        self.switch_screen(name)

    def _to_mark(self, mark: Mark | None) -> None:
        if mark is not None:
            self.state.spot = mark.spot or self.state.spot
            self.state.event = mark.event or self.state.event
            self.action_open(mark.screen)

    def _signalled(self, number: signal.Signals) -> None:
        self.exit(128 + number)

    def _theme_changed(self) -> None:
        self.ink = Ink(dark=self.current_theme.dark, color=self.ink.color)
        for widget in self.screen.walk_children():
            widget.refresh()

    def _turn(self) -> None:
        if self.at_work:
            self.turn += 1
            self._refresh_bars()

    def _refresh_bars(self) -> None:
        for screen in self.screen_stack:
            for bar in screen.query("TopBar, KeyBar"):
                bar.refresh()

    async def _open(self) -> None:
        """Open the files; first of all questions, before there is a trace to ask."""
        state = self.state
        answer = await self.questions.start(
            Ask(None),
            lambda _: load(
                *state.files, device=self._device, raw=self._raw, progress=self.importing
            ),
        )
        if answer.value is None:
            self.failure = answer.error
            self.exit(1)
            return
        self._trace = answer.value
        self._trace.memory_limit_bytes = memory_bytes(self._trace)
        # modules and widgets stay: a collection that goes through them all stops the keys for 0.1 s
        gc.freeze()
        self._switch(next(kind.NAME for kind in self.kinds))
        self.judge()

    def learnt(self) -> None:
        """Show what is known of the trace now."""
        self._refresh_bars()
        if isinstance(self.screen, TraceScreen):
            self.screen.state_changed()
