"""The page as text: whole, safe, and honest about what is missing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import pytest

from builders import Row, kernel, launch, op, step, write_trace

pytest.importorskip("bokeh", reason="bokeh is not installed: pip install 'neuron-explorer[html]'")

from neuron_explorer.analyzers import run
from neuron_explorer.cli import main
from neuron_explorer.loading import load
from neuron_explorer.reports.html.facts import facts
from neuron_explorer.reports.html.page import findings_html
from neuron_explorer.reports.html.plots import BOUNDS
from neuron_explorer.reports.judgement import Judgement
from neuron_explorer.reports.overview import overview

MOST_BYTES = 3_000_000
NASTY = '</script><img src=x onerror="document.title=1">&"\'\x1b[31m核心\u2028`' + "N" * 90
FILE = "/srv/<b>net</b>.py"
SOURCES = {
    FILE: {"sha256": "0", "lines": {str(n): f"    y = f({n})  # {NASTY}" for n in range(1, 9)}}
}
WORK = {"flops": 10**9, "read_bytes": 10**8, "write_bytes": 10**8, "family": "elementwise"}


def nasty_rows() -> list[Row]:
    """Two steps of a device whose every name tries to be markup."""
    place = {"source_file": FILE, "source_line": 4, "source_function": NASTY, "module": NASTY}
    rows: list[Row] = [step(0, 0, 10**6), step(1, 10**6, 10**6)]
    for number in range(6):
        at = number * 300_000
        rows += [
            op(at, 900, name=f"aten::{NASTY}", input_dtypes=["float"], **place),
            launch(at + 100, 50, op_id=len(rows)),
            kernel(
                at + 1000,
                50_000 * (number + 1),
                name=f"{number} {NASTY}",
                op_id=len(rows),
                launch_id=len(rows) + 1,
                step=number // 3,
                **place,
                **WORK,
            ),
        ]
    return rows


HEALTH = ["trace_health"]
"""Enough for pages that are looked at for something else than findings."""


def page(
    folder: Path, rows: Sequence[Row], only: Sequence[str] | None = None, **metadata: object
) -> str:
    path = write_trace(folder / "t.parquet", rows, metadata)
    with load(path) as trace:
        return findings_html(
            Judgement(overview(trace, [f"{NASTY}.parquet"]), run(trace, only=only)), facts(trace)
        )


class Outline(HTMLParser):
    """Elements, ids and references of a page; fails where elements do not nest."""

    VOID = frozenset(["meta", "br", "wbr", "img", "link", "input", "hr"])

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self.feed(text)
        assert not self._open, self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, (tag, self.getpos())

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]


@pytest.fixture(scope="module")
def nasty(tmp_path_factory: pytest.TempPathFactory) -> str:
    return page(tmp_path_factory.mktemp("nasty"), nasty_rows(), sources=SOURCES)


def test_a_page_is_one_small_file_that_loads_nothing(nasty: str) -> None:
    assert len(nasty.encode()) < MOST_BYTES
    outline = Outline(nasty)
    loaded = [
        value
        for tag, attrs in outline.tags
        for name, value in attrs.items()
        if name in {"src", "srcset"} or (name == "href" and tag != "a")
    ]
    assert loaded == []
    (policy,) = (
        str(attrs["content"])
        for attrs in outline.named("meta")
        if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "http" not in policy
    assert "unsafe-inline" not in policy.partition("style-src")[0]


def test_no_text_of_a_trace_becomes_markup(nasty: str) -> None:
    outline = Outline(nasty)
    assert outline.named("img") == []
    assert outline.named("b") == []
    assert len(outline.named("script")) == 3
    assert "\x1b" not in nasty
    assert "\\x1b[31m核心" in nasty


def test_every_reference_has_its_target_and_every_table_its_heads(nasty: str) -> None:
    outline = Outline(nasty)
    ids = [attrs["id"] for _, attrs in outline.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    wanted = {
        str(value).removeprefix("#")
        for _, attrs in outline.tags
        for name, value in attrs.items()
        if name == "aria-labelledby" or (name == "href" and str(value).startswith("#"))
    }
    assert wanted <= set(ids)
    assert all(attrs["scope"] == "col" for attrs in outline.named("th"))
    assert [attrs["lang"] for attrs in outline.named("html")] == ["en"]
    assert outline.tags[[tag for tag, _ in outline.tags].index("body") + 1][1]["class"] == "skip"


def test_each_bound_has_a_mark_of_its_own() -> None:
    marks = [mark for _, mark in BOUNDS.values()]
    assert len(set(marks)) == len(marks)


def test_a_page_says_what_the_analyzers_and_the_views_say(nasty: str) -> None:
    assert nasty.count('<details class="card ') >= 2
    assert "2 of 1 ms each" in nasty
    # six kernels of 50, 100, ... us: a row of the table each
    assert all(f">{time}<" in nasty for time in ("50 us", "100 us", "300 us"))


def test_an_empty_trace_says_what_is_missing(tmp_path: Path) -> None:
    text = page(tmp_path, [], HEALTH)
    for said in (
        "No timed work in this trace",
        "so there is no timeline",
        "No chip is known for the devices of this trace",
        "No event of this trace names a source line",
        "There is nothing to list",
        "This trace does not hold everything",
    ):
        assert said in text
    assert Outline(text).named("script")[-1] == {}
    assert len(text) < 100_000, "nothing is drawn, so what draws is not there"


def test_a_trace_without_costs_or_sources_says_so(tmp_path: Path) -> None:
    text = page(tmp_path, [kernel(0, 50), kernel(80, 50)], HEALTH)
    assert "No kernel has both its bytes and its FLOPs" in text
    assert "No event of this trace names a source line" in text
    assert 'id="timeline"' in text


def test_lines_without_text_name_their_function(tmp_path: Path) -> None:
    place = {"source_file": "m.py", "source_line": 3, "source_function": "attend"}
    text = page(tmp_path, [op(0, 5, **place), kernel(9, 50, op_id=0, **place)], HEALTH)
    assert "<em>in attend()</em>" in text
    assert "The trace has no text of this file" in text


def test_the_command_writes_a_page_and_refuses_what_makes_no_sense(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(write_trace(tmp_path / "t.parquet", [kernel(0, 50)]))
    report = tmp_path / "r.html"
    assert main(["analyze", path, "-o", str(report), "--only", "device_idle"]) in {0, 3}
    assert report.read_text("utf-8").startswith("<!DOCTYPE html>")
    assert capsys.readouterr().out == ""
    assert main(["analyze", path, "--format", "html", "--only", "device_idle"]) in {0, 3}
    assert capsys.readouterr().out.startswith("<!DOCTYPE html>")
    assert main(["analyze", path, "--format", "html", "--json"]) == 2
    assert "exclude each other" in capsys.readouterr().err


def test_without_the_extra_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    path = str(write_trace(tmp_path / "t.parquet", [kernel(0, 50)]))
    assert main(["analyze", path, "-o", str(tmp_path / "r.html")]) == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert re.search(r"needs bokeh and jinja2", said[0])
    assert "pip install 'neuron-explorer[html]'" in said[1]
