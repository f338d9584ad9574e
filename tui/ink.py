"""What each role looks like, and the letter that says the same where there is no colour."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from rich.style import Style

BOUNDS: Mapping[str, tuple[str, str]] = {
    "compute": ("C", "arithmetic holds it back: good"),
    "memory": ("M", "moving bytes holds it back"),
    "overhead": ("O", "neither explains its time: too small, or launched too slowly"),
    "communication": ("N", "a collective over the network"),
    "copy": ("T", "a transfer to or from the host or a peer"),
    "unknown": ("?", "its cost or chip is not known"),
}
"""Letter and meaning of each value of `roofline.bound`."""

_DARK = {
    "compute": "#7fbf6b",
    "memory": "#e5a445",
    "overhead": "#b48ead",
    "communication": "#4fb3bf",
    "copy": "#6a9fd8",
    "unknown": "#9a9a9a",
    "idle": "#6c6c6c",
    "host": "#8fa1b3",
    "good": "#7fbf6b",
    "warn": "#e5a445",
    "bad": "#e06c6c",
    "accent": "#7aa6da",
    "dim": "#9e9e9e",
    "rule": "#3f4652",
    "keyword": "#b48ead",
    "string": "#a3be8c",
    "number": "#d8a657",
    "comment": "#989898",
    "function": "#7aa6da",
}
_LIGHT = {
    "compute": "#2f7d1f",
    "memory": "#a35a00",
    "overhead": "#7b3f8c",
    "communication": "#006d77",
    "copy": "#1d5fa8",
    "unknown": "#6a6a6a",
    "idle": "#7c7c7c",
    "host": "#4d6378",
    "good": "#2f7d1f",
    "warn": "#a35a00",
    "bad": "#b3261e",
    "accent": "#1d5fa8",
    "dim": "#6a6a6a",
    "rule": "#8d97a3",
    "keyword": "#7b3f8c",
    "string": "#3f6f1f",
    "number": "#8a5a00",
    "comment": "#777777",
    "function": "#1d5fa8",
}
_BOLD = {"bad", "title", "critical", "accent"}
_ALIASES = {"critical": "bad", "warning": "warn", "info": "copy", "ok": "good", "place": "accent"}
_GROUNDS = {"cursor": ("#3a4a63", "#cfe0f7"), "bar": ("#262b33", "#e4e8ee")}


class Ink:
    """Styles by role for one theme; without colour only weight and reversal tell roles apart."""

    def __init__(self, *, dark: bool = True, color: bool = True) -> None:
        self.dark = dark
        self.color = color
        self._mixed: dict[tuple[Style, str, str], Style] = {}

    def __call__(self, role: str) -> Style:
        return _style(role, self.dark, self.color)

    def over(self, base: Style, ground: str, role: str) -> Style:
        """A role on a ground, on the style of the widget; mixed once, since mixing is slow."""
        key = (base, ground, role)
        style = self._mixed.get(key)
        if style is None:
            style = self._mixed[key] = base + self(ground) + self(role)
        return style


def letter(mark: str) -> str:
    """One letter for a bound or for a kind of host event: capital for a bound."""
    return BOUNDS[mark][0] if mark in BOUNDS else mark[:1].lower() or " "


def role_of(mark: str) -> str:
    """The role of a bound; host events share one."""
    if mark in BOUNDS:
        return mark
    return "bad" if mark in {"sync", "graph_break", "recompile"} else "host"


@lru_cache(maxsize=512)
def _style(role: str, dark: bool, color: bool) -> Style:  # noqa: FBT001 - keys of a cache
    filled = role.removesuffix(":fill")
    name = _ALIASES.get(filled, filled)
    if name == "chosen":
        return (
            Style(
                bgcolor="#ffffff" if dark else "#101010",
                color="#101010" if dark else "#ffffff",
                bold=True,
            )
            if color
            else Style(reverse=True, bold=True, underline=True)
        )
    if name in _GROUNDS:
        ground = _GROUNDS[name][0 if dark else 1]
        return Style(bgcolor=ground) if color else Style(reverse=name == "cursor")
    bold = filled in _BOLD
    tint = (_DARK if dark else _LIGHT).get(name)
    if tint is None or not color:
        return Style(bold=bold or None, reverse=(filled != role) or None)
    if filled != role:
        return Style(bgcolor=tint, color="#101010" if dark else "#ffffff", bold=bold)
    return Style(color=tint, bold=bold or None)
