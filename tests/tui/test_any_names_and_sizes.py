"""Whatever a trace calls its things and however large the terminal is: no crash, nothing lost.

One trace holds names that generated text gives to everything a screen shows; the app stays open
while sizes, screens and keys change.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from terminal_walks import Sitting, drawn, press, sitting
from textual.binding import Binding
from textual.dom import DOMNode
from textual.pilot import Pilot

from builders import H100, kernel, launch, op, row, step, write_trace
from neuron_explorer.findings import Finding
from neuron_explorer.tui.app import Explorer
from neuron_explorer.tui.grid import Grid
from neuron_explorer.tui.lanes import Lanes
from neuron_explorer.tui.lines import Lines
from neuron_explorer.tui.picture import settled
from neuron_explorer.tui.screens import screens
from neuron_explorer.tui.text import safe

KNOWN = [
    "x_[/red]_0",
    "[bold]mm[/bold]",
    "x[/",
    "tab\there\x1b[2J\x1b]52;c;AAAA\x07",
    "核函数" * 30,
    "👩‍👩‍👧‍👦 family 🇩🇪 flag",
    "e\u0301\u0302" * 40,
    "\u202eright to left\u2066",
    "n" * 5_000,
    "multi\r\nline\x0b\x0c\u2028\u2029\x85",
    "\x00\x7f\x9b31m",
    "'; DROP TABLE spans; --",
    "$start_ns {key} %s {0}",
    " ",
]
ODD = "\t\x1b\x00\x07\x9b\r\n[]/\\{}$%'\"核関🇩🇪👩\u200d\u0301\u202e\ufeff\u00ad█▸…azAZ09:. "
names_drawn = st.lists(
    st.one_of(
        st.text(st.sampled_from(ODD), min_size=1, max_size=60),
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40),
    ),
    min_size=20,
    max_size=20,
    unique=True,
)


def rows_named(names: list[str]) -> list[Any]:
    """Each name on everything that has one: ops, kernels, queues, threads, files, modules, ..."""
    rows: list[Any] = [step(1, 0, 1_000 * len(names))]
    for place, name in enumerate(names):
        at = place * 1_000
        where = {
            "source_file": f"/nowhere/{name}.py",
            "source_line": place + 1,
            "source_function": name,
            "user_file": f"/nowhere/{name}.py",
            "user_line": place + 1,
            "module": name,
            "phase": "forward",
            "step": 1,
        }
        thread = {"tid": place % 4, "thread_name": name}
        operator = len(rows)
        rows.append(
            op(at, 500, name=name, parent_id=0, input_shapes=f"[[{name}]]", **thread, **where)
        )
        rows.append(launch(at + 10, 20, name=name, op_id=operator, parent_id=operator, **thread))
        work = {"flops": 1_000 * (place + 1), "read_bytes": 4_000, "write_bytes": 400}
        links = {"op_id": operator, "launch_id": operator + 1}
        rows.append(kernel(at + 100, 300, name=name, queue=name[:50], **links, **work, **where))
        rows.append(
            row("compiler", "graph_break", at, None, name=name, reason=name, graph_id=name, **where)
        )
        memory = {"device": "cuda:0", "attributes": f'{{"Addr":"{place}"}}', "op_id": operator}
        rows.append(
            row("memory", "alloc", at, None, alloc_bytes=1_000, name=name, **memory, **where)
        )
    return rows


def finding_named(name: str, place: int) -> Finding:
    return Finding(
        id=name,
        analyzer=name,
        severity="warning",
        title=name,
        message=name,
        advice=name,
        rank=0,
        source_file=f"/nowhere/{name}.py",
        source_line=place + 1,
        source_text=name,
        module=name,
        evidence={name: name, "list": [name], "share": 0.5},
        event_ids=(1, 2),
        sql=name,
    )


@pytest.fixture(scope="module")
def names() -> list[str]:
    """The known ones, and others: the same each time under CI, new ones on a desk."""
    drawn_names: list[str] = []

    @settings(
        max_examples=1,
        phases=[Phase.generate],
        database=None,
        derandomize=bool(os.environ.get("CI")),
    )
    @given(names_drawn)
    def draw(more: list[str]) -> None:
        drawn_names[:] = more

    draw()
    return list(dict.fromkeys([*KNOWN, *drawn_names]))


@pytest.fixture(scope="module")
def app(names: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sitting]:
    folder = tmp_path_factory.mktemp("named")
    path = write_trace(folder / "t.parquet", rows_named(names), {"devices": [H100]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LANG", "C.UTF-8")
        for variable in ("NO_COLOR", "LC_ALL", "LC_CTYPE", "VISUAL", "EDITOR"):
            patch.delenv(variable, raising=False)
        patch.setattr("neuron_explorer.tui.judging.analyzers", dict)
        # page by page, as rows too many to be read at once are
        patch.setattr("neuron_explorer.tui.screens.compile._FEW_ROWS", 5)
        patch.setattr("neuron_explorer.tui.grid.PAGE_ROWS", 7)
        with sitting([path], (200, 60)) as opened:

            async def find(pilot: Pilot[int], explorer: Explorer) -> None:
                explorer.state.findings = [finding_named(n, i) for i, n in enumerate(names)]
                explorer.learnt()
                await settled(pilot)

            opened.go(find)
            yield opened


def assert_safe(explorer: Explorer) -> None:
    """No cell beyond the edge, and no character that a terminal would obey."""
    width, height = explorer.size
    lines = drawn(explorer)
    assert len(lines) <= height
    for line in lines:
        assert cell_len(line) <= max(width, 1), line
        assert not [c for c in line if unicodedata.category(c) in {"Cc", "Zl", "Zp"}], line
        assert not set(line) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"), line


def test_every_name_is_shown_in_full_or_with_its_middle_left_out(
    app: Sitting, names: list[str]
) -> None:
    async def look(pilot: Pilot[int], explorer: Explorer) -> None:
        explorer.action_open("ops")
        await press(pilot, "home")
        grid = explorer.screen.query_one(Grid)
        assert grid.total == len(names)
        seen = ""
        for _ in names:
            seen += "\n".join(drawn(explorer))
            assert_safe(explorer)
            await press(pilot, "pagedown")
        for name in names:
            assert safe(name, 40).partition("…")[0].strip() in seen

    app.go(look)


def keys_of(*kinds: type[DOMNode]) -> set[str]:
    """All keys that these classes bind."""
    bound = [binding for kind in kinds for each in kind.__mro__ for binding in bindings_of(each)]
    return {key for binding in bound for key in binding.key.split(",")}


def bindings_of(kind: type) -> list[Binding]:
    return [b for b in vars(kind).get("BINDINGS", ()) if isinstance(b, Binding)]


def test_pages_come_as_they_are_needed_and_are_kept(app: Sitting, names: list[str]) -> None:
    async def page_on(pilot: Pilot[int], explorer: Explorer) -> None:
        await pilot.resize_terminal(100, 16)
        explorer.action_open("compile")
        await settled(pilot)
        grid = explorer.screen.query_one(Grid)
        assert grid.total == len(names)
        assert grid.at(len(names) - 1) is None
        await press(pilot, "end")
        last = grid.at(len(names) - 1)
        assert last is not None
        assert grid.row == last
        await press(pilot, "f")
        assert grid.total == len(names)
        await press(pilot, "f", "f", "f", "f")
        assert grid.cursor == 0
        # kept: they are there before anything could be asked
        assert grid.at(len(names) - 1) == last

    app.go(page_on)


QUITTING = {"q", "ctrl+c", "ctrl+q", "ctrl+p"}
KEYS = sorted(keys_of(Explorer, Grid, Lines, Lanes, *screens().values()) - QUITTING)


@settings(
    max_examples=16,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.generate],
)
@given(
    screen=st.sampled_from(list(screens())),
    sizes=st.lists(
        st.one_of(
            st.sampled_from([(40, 10), (80, 24), (1, 1), (200, 60)]),
            st.tuples(st.integers(1, 220), st.integers(1, 70)),
        ),
        min_size=1,
        max_size=4,
    ),
    keys=st.lists(st.sampled_from(KEYS), max_size=8),
)
def test_no_screen_breaks_at_any_size_or_key(
    app: Sitting, screen: str, sizes: list[tuple[int, int]], keys: list[str]
) -> None:
    """A storm of sizes, then any keys, then a look at every cell."""

    async def storm(pilot: Pilot[int], explorer: Explorer) -> None:
        explorer.action_open(screen)
        for size in sizes:
            await pilot.resize_terminal(*size)
        await settled(pilot)
        assert explorer.shown == screen
        assert_safe(explorer)
        for key in keys:
            await press(pilot, key)
            assert_safe(explorer)
        # out of whatever the keys opened: a search, a help page, a list of bookmarks
        while len(explorer.screen_stack) > 2:
            explorer.pop_screen()
        for _ in range(3):
            await press(pilot, "escape")
        assert_safe(explorer)

    app.go(storm)
