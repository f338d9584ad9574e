"""What every screen of a trace has: the bars, questions, help, and the way back.

A screen is one file in `screens/`: a subclass of `TraceScreen` with its name, title, order and
help. The app finds it by its place; the number keys, the tabs and the palette follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from neuron_explorer.tui.asking import Asking
from neuron_explorer.tui.bars import KeyBar, TopBar

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
    ORDER: ClassVar[int] = 0
    """Place among the screens; 0 = opened from another screen only."""
    HELP: ClassVar[str] = ""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,backspace", "go_back", "back", show=False)
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
        """Every described binding that works here, each once."""
        told = set()
        nodes = [self, self.focused] if self.focused is not None else [self]
        for kinds in [type(node).__mro__ for node in nodes] + [type(self.app).__mro__]:
            for kind in kinds:
                for binding in vars(kind).get("BINDINGS", ()):
                    if not kind.__module__.startswith("neuron_explorer"):
                        continue
                    whole = binding if isinstance(binding, Binding) else Binding(*binding)
                    if whole.description and (whole.key, whole.action) not in told:
                        told.add((whole.key, whole.action))
                        yield whole
