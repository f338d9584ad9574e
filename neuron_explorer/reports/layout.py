"""Small pieces a text page is built of. Names enter as text, never as markup."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from neuron_explorer.reports import formats

MARKS = {"critical": ("●", "bold red"), "warning": ("▲", "yellow"), "info": ("·", "cyan")}
STATUS = {"ok": "green", "warn": "yellow", "bad": "bold red"}


def text(content: str, style: str = "") -> Text:
    """A line that wraps between words."""
    return Text(formats.name(content), style=style)


def line(*pieces: str | Text | tuple[str, str]) -> Text:
    """Pieces on one line, each plain or (content, style)."""
    return Text.assemble(*pieces)


def indent(part: RenderableType, columns: int) -> Padding:
    return Padding(part, (0, 0, 0, columns))


def hanging(lead: Text, body: Text, columns: int = 0) -> RenderableType:
    """`lead` once, and `body` beside it, wrapped in a column of its own."""
    grid = Table.grid(padding=0)
    grid.add_column(no_wrap=True, width=lead.cell_len)
    grid.add_column(ratio=1, overflow="fold")
    grid.add_row(lead, body)
    return indent(grid, columns)


def heading(title: str) -> Text:
    return Text(f"\n{title}", style="bold")


def pairs(rows: Sequence[tuple[str, Text]], columns: int = 0) -> RenderableType:
    """Labels in one column, what they say in the other."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold")
    for label, body in rows:
        grid.add_row(formats.name(label), body)
    return indent(grid, columns)


def share_bar(part: float | None, width: int, style: str = "green") -> Text:
    """A bar and its number; unknown is said, not drawn as empty."""
    if part is None:
        return Text(formats.UNKNOWN, style="dim")
    return line((formats.bar(part, width), style), f" {formats.share(part)}")


def status_text(status: str) -> Text:
    return Text(status, style=STATUS.get(status, ""))
