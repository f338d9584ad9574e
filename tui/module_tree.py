"""Modules as a tree: what each did itself, and with all the modules inside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

_PATH = re.compile(r"\w+(\.\w+)+")
_INSTANCE = re.compile(r"(.+)_\d+")
AMOUNTS = ("device_ns", "forward_device_ns", "backward_device_ns", "host_ns", "bytes", "flops")


@dataclass
class Module:
    """A module; amounts are None where nothing of it is known."""

    path: str
    """Whole path: `layers.3.mlp`."""
    name: str
    """Its last part."""
    above: str = ""
    """Path of the one that it is in; empty = none."""
    depth: int = 0
    kind: str = ""
    """Its class, where the trace knows it."""
    calls: int | None = None
    work_events: int = 0
    amounts: dict[str, int | None] = field(default_factory=dict)
    """Of the module and all inside it, by names of AMOUNTS."""
    recorded: list[str] = field(default_factory=list)
    """Modules of the trace that are counted here."""
    inner: dict[str, Module] = field(default_factory=dict)


def tree(rows: Iterable[Mapping[str, Any]]) -> Module:
    """The modules under one root that is none of them.

    Args:
        rows: Of the view `modules`, summed over ranks. A dotted path is taken apart; an instance
            name such as `nn.Module: Linear_0` has no place in the model, and stands with the
            others of its class.
    """
    root = Module("", "")
    for row in rows:
        chain = [root]
        for path, name in _way(str(row["module"])):
            above = chain[-1]
            new = Module(path, name, above.path, len(chain) - 1)
            chain.append(above.inner.setdefault(path, new))
        chain[-1].kind, chain[-1].calls = row["module_class"] or "", row["calls"]
        for each in chain:
            each.work_events += row["work_events"]
            each.recorded.append(row["module"])
            _add(each.amounts, row)
    return root


def _way(recorded: str) -> list[tuple[str, str]]:
    """Path and name of each module from the outermost to the recorded one."""
    if _PATH.fullmatch(recorded):
        parts = recorded.split(".")
        return [(".".join(parts[: n + 1]), part) for n, part in enumerate(parts)]
    instance = _INSTANCE.fullmatch(recorded)
    of_class = [(f"{instance[1]}_*", f"{instance[1]}, all")] if instance is not None else []
    return [*of_class, (recorded, recorded)]


def opened(root: Module, open_paths: set[str]) -> list[Module]:
    """The modules in sight from the top down, the longest device time first in each."""
    shown: list[Module] = []
    for module in sorted(root.inner.values(), key=_weight):
        shown.append(module)
        if module.path in open_paths:
            shown += opened(module, open_paths)
    return shown


def _weight(module: Module) -> tuple[float, float, str]:
    amounts = module.amounts
    return -(amounts["device_ns"] or 0), -(amounts["host_ns"] or 0), module.path


def _add(amounts: dict[str, int | None], row: Mapping[str, Any]) -> None:
    for name in AMOUNTS:
        known, more = amounts.get(name), row[name]
        amounts[name] = more if known is None else known if more is None else known + more
