"""What a reader has on every screen: true help, copies, their editor, bookmarks, colours, SQL."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from terminal_walks import Sitting, page, press, sitting
from textual.binding import Binding
from textual.color import Color
from textual.pilot import Pilot
from textual.widgets import Input

from neuron_explorer.analyzers import analyzers
from neuron_explorer.tui.app import DARK, LIGHT, Explorer
from neuron_explorer.tui.kept import Kept
from neuron_explorer.tui.picture import settled
from neuron_explorer.tui.query_editor import QueryEditor
from neuron_explorer.tui.screen import TraceScreen, key_name
from neuron_explorer.tui.screens import screens
from neuron_explorer.tui.screens.sql import SqlScreen


@pytest.fixture(scope="module")
def app(tiny: Path) -> Iterator[Sitting]:
    few = {name: analyzers()[name] for name in ("device_idle", "trace_health")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LANG", "C.UTF-8")
        for variable in ("NO_COLOR", "LC_ALL", "LC_CTYPE", "VISUAL", "EDITOR"):
            patch.delenv(variable, raising=False)
        patch.setattr("neuron_explorer.tui.judging.analyzers", lambda: few)
        with sitting([tiny], (110, 60)) as opened:
            yield opened


def of_textual(kind: type, key: str) -> set[str]:
    """Actions that Textual itself binds to a key in what our class is made of."""
    return {
        binding.action
        for base in kind.__mro__
        if not base.__module__.startswith("neuron_explorer")
        for binding in vars(base).get("BINDINGS", ())
        if isinstance(binding, Binding) and key in binding.key.split(",")
    }


@pytest.mark.parametrize("name", list(screens()))
def test_the_help_of_a_screen_names_the_keys_that_work_there(app: Sitting, name: str) -> None:
    async def read(pilot: Pilot[int], explorer: Explorer) -> None:
        explorer.action_open(name)
        await settled(pilot)
        screen = explorer.screen
        assert isinstance(screen, TraceScreen)
        working = {
            key: (active.node, active.binding)
            for key, active in screen.active_bindings.items()
            if active.binding.action not in of_textual(type(active.node), key)
        }
        await press(pilot, "f1")
        told = page(explorer)
        await press(pilot, "escape")
        assert " ".join(screen.HELP.split())[:60] in " ".join(told.split())
        assert len(screen.HELP) > 60
        listed: dict[str, str] = {}
        for binding in screen.all_bindings():
            shown = ", ".join(map(key_name, binding.key.split(",")))
            assert f" {shown}  " in told
            assert binding.description in told
            listed |= dict.fromkeys(binding.key.split(","), binding.action)
        for key, action in listed.items():
            node, binding = working[key]
            assert binding.action == action
            holder = explorer if action.startswith("app.") else node
            called = action.removeprefix("app.").partition("(")[0]
            assert hasattr(holder, f"action_{called}"), action
        # and no key of this program works without being listed
        assert {key for key, (_, b) in working.items() if b.description} - set(listed) == set()

    app.go(read)


def test_every_screen_is_in_the_palette_and_under_its_number(app: Sitting) -> None:
    async def look(pilot: Pilot[int], explorer: Explorer) -> None:
        explorer.action_open("overview")
        await settled(pilot)
        entries = {command.title for command in explorer.get_system_commands(explorer.screen)}
        for place, kind in enumerate(explorer.kinds, 1):
            assert kind.TITLE in entries
            explorer.screen.set_focus(None)
            await press(pilot, str(place % 10))
            assert explorer.shown == kind.NAME
        explorer.action_open("overview")
        await press(pilot, "tab")
        assert explorer.shown == explorer.kinds[1].NAME
        await press(pilot, "shift+tab")
        assert explorer.shown == "overview"

    app.go(look)


def test_a_line_is_copied_edited_and_bookmarked(app: Sitting) -> None:
    async def use(pilot: Pilot[int], explorer: Explorer) -> None:
        explorer.action_open("source")
        await press(pilot, "w", "y")
        assert explorer.clipboard == "model.py:12"
        assert "copied, if this terminal lets programs copy: model.py:12" in page(explorer)
        await press(pilot, "e")
        assert "no editor to open model.py:12 in; export EDITOR=vim" in page(explorer)
        await press(pilot, "m")
        assert "bookmarked (M lists them): model.py:12" in page(explorer)
        explorer.action_open("timeline")
        await press(pilot, "a", "m", "1", "M")
        assert "Bookmarks" in page(explorer)
        await press(pilot, "enter")
        assert (explorer.shown, explorer.state.spot) == ("source", ("model.py", 12))
        await press(pilot, "M", "d", "d")
        assert "no bookmark in this trace yet: m sets one" in page(explorer)
        await press(pilot, "escape")
        explorer.action_open("modules")
        await press(pilot, "y")
        assert "no source line is known here that could be copied" in page(explorer)

    app.go(use)


def test_the_editor_gets_the_terminal_and_gives_it_back(
    app: Sitting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a terminal nothing can be left to it, and that is said."""
    monkeypatch.setenv("EDITOR", "vim")
    monkeypatch.setenv("PATH", str(tmp_path) + os.pathsep + os.environ["PATH"])
    (tmp_path / "vim").write_text("#!/bin/sh\n")
    (tmp_path / "vim").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text("x = 1\n")

    async def use(pilot: Pilot[int], explorer: Explorer) -> None:
        explorer.action_open("source")
        await press(pilot, "w", "e")
        assert "this terminal cannot be left to another program" in page(explorer)

    app.go(use)


def test_colours_are_kept_for_the_next_session(
    app: Sitting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    async def switch(pilot: Pilot[int], explorer: Explorer) -> None:
        explorer.kept = Kept.of_user()
        explorer.action_open("overview")
        await press(pilot, "D")
        assert explorer.theme == LIGHT
        assert not explorer.ink.dark
        assert Explorer(["t"], kept=Kept.of_user()).theme == LIGHT
        await press(pilot, "D")
        assert Explorer(["t"], kept=Kept.of_user()).theme == DARK
        explorer.kept = Kept()

    app.go(switch)


def test_all_text_can_be_read_in_both_themes(app: Sitting) -> None:
    async def look(pilot: Pilot[int], explorer: Explorer) -> None:
        for theme in (LIGHT, DARK):
            explorer.theme = theme
            for name in ("overview", "source", "timeline", "ops", "roofline", "evidence"):
                explorer.action_open(name)
                await settled(pilot)
                assert not faint(explorer), (theme, name)

    app.go(look)


def faint(explorer: Explorer) -> list[tuple[str, float]]:
    """Text with less contrast to its ground than 3 to 1, which WCAG asks of large text."""
    found = []
    for strip in explorer.screen._compositor.render_strips():
        for text, style, _ in strip:
            if text.strip() and not set(text) <= set(" /─·│"):
                assert style is not None
                assert style.color is not None, text
                assert style.bgcolor is not None, text
                ink, ground = (Color.from_rich_color(c) for c in (style.color, style.bgcolor))
                ratio = contrast(ink, ground)
                if ratio < LEAST_CONTRAST:
                    found.append((text, round(ratio, 2)))
    return found


def contrast(one: Color, other: Color) -> float:
    """Ratio of relative luminances, 1 to 21, as WCAG 2 defines it."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(color: Color) -> float:
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color.normalized]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


LEAST_CONTRAST = 3.0


def test_the_mouse_opens_screens_and_rows(app: Sitting) -> None:
    async def click(pilot: Pilot[int], explorer: Explorer) -> None:
        explorer.action_open("overview")
        await settled(pilot)
        tabs = page(explorer).splitlines()[1]
        await pilot.click("TopBar", offset=(tabs.index("Ops") + 1, 1))
        await settled(pilot)
        assert explorer.shown == "ops"
        await pilot.click("Grid", offset=(20, 2))
        await pilot.click("Grid", offset=(20, 2))
        await settled(pilot)
        assert explorer.shown == "timeline"

    app.go(click)


def test_words_history_export_and_clipboard_of_sql(app: Sitting, tmp_path: Path) -> None:
    async def ask(pilot: Pilot[int], explorer: Explorer) -> None:
        explorer.action_open("sql")
        await settled(pilot)
        screen = explorer.screen
        assert isinstance(screen, SqlScreen)
        editor = screen.query_one(QueryEditor)
        editor.focus()
        editor.text = ""
        await press(pilot, *"select name from kern")
        assert "tab: kernels" in page(explorer)
        await press(pilot, "tab")
        assert editor.text == "select name from kernels"
        await press(pilot, "ctrl+r")
        assert " rows" in page(explorer)
        editor.text = "SELECT 1 AS one"
        await press(pilot, "ctrl+r", "ctrl+up")
        assert editor.text == "select name from kernels"
        await press(pilot, "ctrl+down", "tab", "c")
        assert editor.text == "SELECT 1 AS one"
        assert explorer.clipboard == "one\n1\n"
        await press(pilot, "x")
        screen.query_one(Input).value = str(tmp_path / "rows.parquet")
        await press(pilot, "enter")
        assert (tmp_path / "rows.parquet").is_file()
        assert "wrote 1 rows" in page(explorer)
        await press(pilot, "x")
        screen.query_one(Input).value = "rows.txt"
        await press(pilot, "enter")
        assert "rows.txt is neither .csv nor .parquet" in page(explorer)

    app.go(ask)


def test_a_query_that_takes_too_long_is_ended_by_a_key(app: Sitting) -> None:
    endless = (
        "SELECT count(*) FROM range(10000000) AS a, range(10000000) AS b WHERE a.range < b.range"
    )

    async def ask(pilot: Pilot[int], explorer: Explorer) -> None:
        explorer.action_open("sql")
        await settled(pilot)
        screen = explorer.screen
        assert isinstance(screen, SqlScreen)
        screen.editor.text = endless
        screen.action_run_query()
        while not explorer.at_work:
            await pilot.pause(0.02)
        assert "running ... escape ends it" in page(explorer)
        screen.action_go_back()
        await settled(pilot)
        assert "ended: it gave no rows" in page(explorer)
        assert explorer.shown == "sql"
        screen.editor.text = "SELECT 41 + 1 AS answer"
        screen.action_run_query()
        await settled(pilot)
        assert "answer" in page(explorer)

    app.go(ask)
