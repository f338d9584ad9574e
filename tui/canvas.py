"""A widget that draws its own cells, line by line."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from neuron_explorer.tui.ink import Ink
from neuron_explorer.tui.text import Line, strip

if TYPE_CHECKING:
    from neuron_explorer.tui.app import Explorer


class Canvas(Widget):
    """Knows what each of its lines is drawn with, and draws again only those that changed."""

    _ground = Style.null()
    """The style under all that is drawn."""

    @property
    def ink(self) -> Ink:
        return cast("Explorer", self.app).ink

    def render_lines(self, crop: Region) -> list[Strip]:
        # put together here: asked for with every line it takes longer than the line
        self._ground = self.rich_style
        return super().render_lines(crop)

    def drawn(self, line: Line, role: str = "") -> Strip:
        """A line in the whole width, on the ground that `role` gives it."""
        return strip(line, self.size.width, self.ink, role, self._ground)

    def refresh_lines(self, first: int, count: int = 1) -> None:
        """Draw again only some lines, by their place in the widget from 0."""
        self.refresh(Region(0, first, self.size.width, count))
