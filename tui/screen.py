"""What every screen of a trace has: the bars, questions, help, and the way back.

A screen is one file in `screens/`: a subclass of `TraceScreen` with its name, title, order and
help. The app finds it by its place; the number keys, the tabs and the palette follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from neuron_explorer.tui.asking import Asking
from neuron_explorer.tui.bars import KeyBar, TopBar
from neuron_explorer.tui.kept import Mark
from neuron_explorer.tui.state import EventKey, Spot
from neuron_explorer.tui.text import place

_KEYS = {
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "enter": "enter",
    "slash": "/",
    "question_mark": "?",
    "plus": "+",
    "minus": "-",
    "equals_sign": "=",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "escape": "esc",
    "full_stop": ".",
    "comma": ",",
}


def key_name(key: str) -> str:
    """A key as it stands on the keyboard; an upper-case letter as itself."""
    return _KEYS.get(key, key)


class TraceScreen(Asking, Screen[None]):
    """One way to look at the trace."""

    NAME: ClassVar[str] = ""
    """How `--screenshot` and other screens call it."""
    TITLE: ClassVar[str] = ""
    SHORT: ClassVar[str] = ""
    """What its tab says where there is little room; empty = the title."""
    ORDER: ClassVar[int] = 0
    """Place among the screens; 0 = opened from another screen only."""
    OF_TWO: ClassVar[bool] = False
    """Whether it needs a second trace to have a place among the screens."""
    HELP: ClassVar[str] = ""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,backspace", "go_back", "back", show=False),
        # on the screen, since Textual's own screens take tab for themselves
        Binding("tab", "app.next_screen(1)", "next screen", show=False),
        Binding("shift+tab", "app.next_screen(-1)", "previous screen", show=False),
        Binding("y", "copy_place", "copy file:line", show=False),
        Binding("e", "edit", "open the line in your editor", show=False),
        Binding("m", "mark", "set a bookmark, or remove it", show=False),
        Binding("M", "app.marks", "bookmarks", show=False),
    ]

    DEFAULT_CSS = """
    TraceScreen { layout: vertical; }
    """

    def compose(self) -> ComposeResult:
        yield TopBar()
        yield from self.body()
        yield KeyBar()

    def body(self) -> ComposeResult:
        """The widgets between the bars."""
        raise NotImplementedError

    def entered(self) -> None:
        """Called whenever the screen comes to the front: read the shared state."""

    def state_changed(self) -> None:
        """Called on the screen in front when the app learnt more of the trace."""

    def spot_here(self) -> Spot | None:
        """The line that the cursor stands for; None = none is known."""
        return self.explorer.state.spot

    def event_here(self) -> EventKey | None:
        """The event that the cursor stands for; None = none."""
        return self.explorer.state.event

    def label_here(self) -> str:
        """What the cursor stands on, as a bookmark calls it."""
        spot = self.spot_here()
        return "" if spot is None else place(spot.file, spot.line, 60)

    def action_copy_place(self) -> None:
        spot = self.spot_here()
        if spot is None:
            self.explorer.complain("no source line is known here that could be copied")
        else:
            self.explorer.copy(f"{spot.file}:{spot.line}")

    def action_edit(self) -> None:
        spot = self.spot_here()
        if spot is None:
            self.explorer.complain("no source line is known here that could be opened")
        else:
            self.explorer.edit(spot)

    def action_mark(self) -> None:
        spot, event = self.spot_here(), self.event_here()
        if spot is None and event is None:
            self.explorer.complain("nothing here to come back to: choose a line or an event")
            return
        # evidence has no place among the screens: its line or its event has one
        screen = self.NAME if self.ORDER else "source" if spot is not None else "timeline"
        self.explorer.toggle_mark(Mark(screen, self.label_here(), spot, event))

    def action_go_back(self) -> None:
        """To the screen before; screens with a search leave that first."""
        self.explorer.go_back()

    def on_screen_resume(self) -> None:
        self.explorer.shown = self.NAME
        self.entered()

    def keys_shown(self) -> Iterator[tuple[str, str]]:
        """Key and meaning, those of this screen first, then of what has the focus."""
        for binding in self.all_bindings():
            if binding.show:
                yield (
                    binding.key_display or key_name(binding.key.partition(",")[0]),
                    binding.description,
                )

    def all_bindings(self) -> Iterator[Binding]:
        """Every described binding that works here, each once, with the keys that lead to it."""
        active = self.active_bindings
        told: set[tuple[str, str]] = set()
        nodes = [self, self.focused] if self.focused is not None else [self]
        for kinds in [type(node).__mro__ for node in nodes] + [type(self.app).__mro__]:
            for binding in _declared(kinds):
                keys = [
                    key
                    for key in binding.key.split(",")
                    if key in active and active[key].binding.action == binding.action
                ]
                mine = (",".join(keys), binding.action)
                if keys and mine not in told:
                    told.add(mine)
                    yield replace(binding, key=mine[0])


def _declared(kinds: Sequence[type]) -> Iterator[Binding]:
    """The described bindings of this program's own classes."""
    for kind in kinds:
        if kind.__module__.startswith("neuron_explorer"):
            for binding in vars(kind).get("BINDINGS", ()):
                whole = binding if isinstance(binding, Binding) else Binding(*binding)
                if whole.description:
                    yield whole


def spot_of(row: Mapping[str, Any] | None) -> Spot | None:
    """The line of a row with `source_file` and `source_line`."""
    if row is None or row["source_file"] is None or row["source_line"] is None:
        return None
    return Spot(row["source_file"], row["source_line"])


def event_of(row: Mapping[str, Any] | None) -> EventKey | None:
    """The event of a row with `rank` and `event_id`."""
    return None if row is None else EventKey(row["rank"], row["event_id"])
