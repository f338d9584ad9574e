"""Modules: the model as a tree, each part with the time of all that is inside it."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from neuron_explorer.reports import formats
from neuron_explorer.tui.data import Ask
from neuron_explorer.tui.grid import Column, Grid
from neuron_explorer.tui.lines import Lines
from neuron_explorer.tui.module_tree import Module, opened, tree
from neuron_explorer.tui.screen import TraceScreen
from neuron_explorer.tui.state import Modules
from neuron_explorer.tui.text import Line, Piece, known, safe

_MODULES = """
SELECT module, any_value(module_class) AS module_class, CAST(sum(calls) AS BIGINT) AS calls,
    CAST(sum(work_events) AS BIGINT) AS work_events, CAST(sum(host_ns) AS BIGINT) AS host_ns,
    CAST(sum(device_ns) AS BIGINT) AS device_ns,
    CAST(sum(forward_device_ns) AS BIGINT) AS forward_device_ns,
    CAST(sum(backward_device_ns) AS BIGINT) AS backward_device_ns,
    CAST(sum(bytes) AS BIGINT) AS bytes, CAST(sum(flops) AS BIGINT) AS flops
FROM modules GROUP BY ALL
"""


class ModulesScreen(TraceScreen):
    NAME = "modules"
    TITLE = "Modules"
    ORDER = 5
    HELP = (
        "The model as a tree: device and host time of each module with all that is inside it, over"
        " all ranks. Enter or right opens a module, left closes it, E opens all. o shows the ops"
        " of the module and of what is inside it."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "ops", "its ops"),
        Binding("right,l", "open_module", "open"),
        Binding("left,h", "close_module", "close"),
        Binding("E", "all", "open all"),
    ]
    DEFAULT_CSS = "ModulesScreen #said { height: 1; }"

    def __init__(self) -> None:
        super().__init__()
        self._root: Module | None = None
        self._open: set[str] = set()
        self._asked = False

    def body(self) -> ComposeResult:
        yield Lines(self._said, id="said")
        yield Grid(self._columns(), empty="reading ...", open_cells=24)

    def entered(self) -> None:
        self.query_one(Grid).focus()
        if not self._asked:
            self._asked = True
            self.ask("modules", _read, self._know)

    def on_grid_chosen(self, event: Grid.Chosen) -> None:
        event.stop()
        module = self.query_one(Grid).row
        if module.path in self._open:
            self.action_close_module()
        elif module.inner:
            self.action_open_module()
        else:
            self.action_ops()

    def spot_here(self) -> None:
        """A module has many lines."""

    def event_here(self) -> None:
        """And many events."""

    def action_open_module(self) -> None:
        module = self.query_one(Grid).row
        if module is not None and module.inner:
            self._open.add(module.path)
            self._show()

    def action_close_module(self) -> None:
        """The module itself, or the one that it is in."""
        module = self.query_one(Grid).row
        if module is None:
            return
        path = module.path if module.path in self._open else module.above
        if path in self._open:
            self._open.discard(path)
            self._show(path)

    def action_all(self) -> None:
        if self._root is not None:
            before, self._open = self._open, _paths(self._root)
            if before == self._open:
                self._open = set()
            self._show()

    def action_ops(self) -> None:
        module = self.query_one(Grid).row
        if module is not None:
            self.explorer.state.modules = Modules(module.path, tuple(module.recorded))
            self.explorer.action_open("ops")

    def _know(self, root: Module) -> None:
        self._root = root
        self._open = (
            {module.path for module in root.inner.values()} if len(root.inner) == 1 else set()
        )
        self.query_one(Grid).empty = NO_MODULES
        self._show()

    def _show(self, path: str | None = None) -> None:
        """Draw the tree again, with the cursor where it was or on the module at `path`."""
        if self._root is None:
            return
        grid = self.query_one(Grid)
        here = path or (grid.row.path if grid.row is not None else None)
        shown = opened(self._root, self._open)
        grid.show_rows(shown)
        grid.move_to(next((i for i, module in enumerate(shown) if module.path == here), 0))
        self.query_one("#said", Lines).redraw()

    def _said(self, width: int, height: int) -> list[Line]:
        _ = width, height
        amounts = self._root.amounts if self._root is not None else {}
        if not amounts:
            return [[]]
        device, host = amounts["device_ns"], amounts["host_ns"]
        told = [
            f"{formats.duration(device)} on devices" if device is not None else "no device time",
            f"{formats.duration(host)} on the host" if host is not None else "no host time",
        ]
        return [[(f" in all modules: {', '.join(told)}", "dim")]]

    def _columns(self) -> list[Column]:
        return [
            Column("module", self._label, keep=10),
            Column("class", lambda m: (safe(m.kind, 18), "dim"), 18, keep=2),
            Column("calls", lambda m: known(m.calls, formats.count), 7, right=True, keep=1),
            Column(
                "device",
                lambda m: known(m.amounts["device_ns"], formats.duration),
                9,
                right=True,
                keep=9,
            ),
            Column("", self._bar, 8, keep=6),
            Column(
                "forward",
                lambda m: known(m.amounts["forward_device_ns"], formats.duration),
                9,
                right=True,
            ),
            Column(
                "backward",
                lambda m: known(m.amounts["backward_device_ns"], formats.duration),
                9,
                right=True,
            ),
            Column(
                "host",
                lambda m: known(m.amounts["host_ns"], formats.duration),
                9,
                right=True,
                keep=8,
            ),
            Column("work", lambda m: f"{m.work_events:,}", 7, right=True, keep=1),
            Column(
                "bytes", lambda m: known(m.amounts["bytes"], formats.bytes_), 9, right=True, keep=4
            ),
        ]

    def _label(self, module: Module) -> Piece:
        sign = " " if not module.inner else "▾" if module.path in self._open else "▸"
        return f"{'  ' * module.depth}{sign} {safe(module.name)}"

    def _bar(self, module: Module) -> Piece:
        tops = self._root.inner.values() if self._root is not None else ()
        most = max((top.amounts["device_ns"] or 0 for top in tops), default=0) or 1
        drawn = formats.bar((module.amounts["device_ns"] or 0) / most, 8)
        return drawn.replace("░", " "), "accent"


NO_MODULES = "no modules in this trace: record with with_modules=True"


def _read(ask: Ask) -> Module:
    return tree(ask.rows(_MODULES))


def _paths(module: Module) -> set[str]:
    found = {module.path} if module.inner and module.path else set()
    return found.union(*(_paths(inner) for inner in module.inner.values()))
