"""The screens: one file each, found by its place; nothing lists them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from neuron_explorer.tui.screen import TraceScreen


@cache
def screens() -> Mapping[str, type[TraceScreen]]:
    """The class of every screen in this folder by its name, in the order of their tabs."""
    found: dict[str, type[TraceScreen]] = {}
    for module in iter_modules(__path__):
        inside = vars(import_module(f"{__name__}.{module.name}")).values()
        found |= {kind.NAME: kind for kind in inside if _is_screen(kind)}
    return dict(sorted(found.items(), key=lambda item: (item[1].ORDER, item[0])))


def _is_screen(thing: object) -> bool:
    return isinstance(thing, type) and issubclass(thing, TraceScreen) and bool(thing.NAME)
