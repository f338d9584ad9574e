"""The page in Chromium: silent, off the network, usable by keyboard, readable everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from reports import browser

pytest.importorskip("bokeh", reason="bokeh is not installed: pip install 'neuron-explorer[html]'")

from reports.test_html import HEALTH, MOST_BYTES, SOURCES, nasty_rows, page

from builders import kernel
from neuron_explorer.cli import main

pytestmark = pytest.mark.skipif(
    browser.program() is None, reason="Chromium is not installed: apt-get install chromium"
)

SCREENS = {"phone": (390, 844), "desktop": (1280, 900)}

CONTRAST = """
(() => {
  const bright = (channel) => {
    const part = channel / 255;
    return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  };
  const parsed = (color) => {
    const [r, g, b, a = 1] = color.match(/[\\d.]+/g).map(Number);
    return [r, g, b, a];
  };
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3]));
  const ground = (element) => {
    const layers = [];
    for (let each = element; each; each = each.parentElement) {
      layers.push(parsed(getComputedStyle(each).backgroundColor));
    }
    return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255]);
  };
  const light = ([r, g, b]) => 0.2126 * bright(r) + 0.7152 * bright(g) + 0.0722 * bright(b);
  const weak = new Set();
  for (const element of document.querySelectorAll("body *")) {
    const words = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!words || element.closest(".unseen, script, noscript, .plot") || !element.offsetParent) {
      continue;
    }
    const under = ground(element);
    const [a, b] = [light(over(parsed(getComputedStyle(element).color), under)), light(under)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) weak.add(`${element.tagName}.${element.className} ${ratio.toFixed(2)}`);
  }
  return [...weak];
})()
"""


@pytest.fixture(scope="module")
def tab() -> Iterator[browser.Page]:
    with browser.chromium() as page_:
        yield page_


@pytest.fixture(scope="module")
def nasty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    path = folder / "nasty.html"
    path.write_text(page(folder, nasty_rows(), sources=SOURCES), "utf-8")
    return path


def column(tab: browser.Page, table: str, number: int) -> list[str]:
    cells = f"document.querySelectorAll('[aria-labelledby={table}-title] tbody tr')"
    found: list[str] = tab.value(f"[...{cells}].map((row) => row.cells[{number}].innerText.trim())")
    return found


@pytest.mark.parametrize(
    ("screen", "scheme"), [("phone", "light"), ("phone", "dark"), ("desktop", "dark")]
)
def test_a_page_is_silent_complete_and_fits(
    screen: str, scheme: str, tab: browser.Page, nasty: Path
) -> None:
    tab.said.clear()
    tab.requests.clear()
    width, height = SCREENS[screen]
    tab.show(nasty, width=width, height=height, dark=scheme == "dark")
    assert tab.said == []
    elsewhere = [url for url in tab.requests if not url.startswith(("data:", nasty.as_uri()))]
    assert elsewhere == []
    assert tab.value("document.title").endswith(": neuron_explorer")
    assert tab.value("document.documentElement.scrollWidth") == width
    assert tab.value("Bokeh.documents.length") == 2
    assert tab.value(CONTRAST) == []
    picture = tab.picture()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 50_000


def test_the_policy_stops_scripts_and_requests(tab: browser.Page, nasty: Path) -> None:
    tab.show(nasty, width=1280, height=900)
    tab.said.clear()
    tab.value(
        """(() => {
            const script = document.createElement("script");
            script.textContent = "window.reached = true";
            document.body.append(script);
            return fetch("https://example.com/").catch(() => null);
        })()"""
    )
    assert tab.value("window.reached === undefined") is True
    assert any("Content Security Policy" in said for said in tab.said)


def test_tables_sort_by_keyboard(tab: browser.Page, nasty: Path) -> None:
    tab.show(nasty, width=1280, height=900)
    tab.value("document.querySelector('[aria-labelledby=kernels-title] th button').focus()")
    times = column(tab, "kernels", 1)
    assert times == ["300 us", "250 us", "200 us", "150 us", "100 us", "50 us"]
    tab.press("Tab")
    tab.press("Enter")
    head = "document.activeElement.closest('th')"
    assert tab.value(f"{head}.innerText").startswith("time")
    assert tab.value(f"{head}.ariaSort") == "ascending"
    assert column(tab, "kernels", 1) == times[::-1]
    assert tab.value("document.getElementById('sorted').textContent") == (
        "sorted by time, smallest first"
    )
    tab.press("Enter")
    assert column(tab, "kernels", 1) == times


def test_the_first_tab_leads_past_the_links_to_the_findings(tab: browser.Page, nasty: Path) -> None:
    tab.show(nasty, width=390, height=844)
    tab.press("Tab")
    assert tab.value("document.activeElement.className") == "skip"
    assert tab.value("document.activeElement.getBoundingClientRect().left") == 0
    tab.press("Enter")
    assert tab.value("location.hash") == "#findings"


def test_bars_under_one_another_begin_at_one_place(tab: browser.Page, tmp_path: Path) -> None:
    """Whatever stands beside them: 91 % and 10.0 ms, or <1 % and 5.00 us."""
    spans = [(0, 10_000_000, "a.py"), (10_000_000, 987_000, "b.py"), (11_000_000, 5_000, "c.py")]
    rows = [kernel(at, long, name=f, source_file=f, source_line=1) for at, long, f in spans]
    report = tmp_path / "bars.html"
    report.write_text(page(tmp_path, rows, HEALTH), "utf-8")
    tab.show(report, width=1280, height=900)
    for bars in (".file .meter", "[aria-labelledby=kernels-title] .meter"):
        found = f"[...document.querySelectorAll('{bars}')]"
        lefts = tab.value(f"{found}.map((bar) => Math.round(bar.getBoundingClientRect().left))")
        assert len(lefts) == 3
        assert len(set(lefts)) == 1, (bars, lefts)


# of the pictures that stand for the plots on paper: how dark the darkest ink is, 0 = black
DARKEST = """
[...document.querySelectorAll(".printed")].map((canvas) => {
  const { width, height } = canvas;
  const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
  let least = 255;
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3] === 255) least = Math.min(least, Math.max(data[i], data[i + 1], data[i + 2]));
  }
  return least;
})
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_prints(scheme: str, tab: browser.Page, nasty: Path) -> None:
    tab.show(nasty, width=1280, height=900, dark=scheme == "dark")
    assert tab.pdf().startswith(b"%PDF")
    tab.call("Emulation.setEmulatedMedia", media="print")
    paper = {"width": 700, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    tab.call("Emulation.setDeviceMetricsOverride", **paper)
    tab.value("window.dispatchEvent(new Event('beforeprint'))")
    wide = "(each) => each.getBoundingClientRect().right > innerWidth"
    assert (
        tab.value(f"[...document.querySelectorAll('.printed, .code')].filter({wide}).length") == 0
    )
    assert tab.value("document.querySelectorAll('.plot > .bk-Figure').length") == 2
    shown = "[...document.querySelectorAll('.plot > .bk-Figure')].filter((e) => e.offsetHeight)"
    assert tab.value(f"{shown}.length") == 0
    inks = tab.value(DARKEST)
    assert len(inks) == 2
    assert max(inks) < 90
    # a time stands on one line, whatever the code beside it needs
    times = "[...document.querySelectorAll('.card .code td.time')].filter((cell) => cell.innerText)"
    tall = tab.value(
        f"{times}.map((cell) => {{ const range = document.createRange();"
        " range.selectNodeContents(cell); return range.getClientRects().length; })"
    )
    assert set(tall) == {1}
    tab.value("window.dispatchEvent(new Event('afterprint'))")
    assert tab.value("document.querySelectorAll('.printed').length") == 0
    tab.call("Emulation.setEmulatedMedia", media="")


def test_a_real_trace_fits_too(
    traces: Path, tmp_path: Path, tab: browser.Page, shown: Callable[[Path], Any]
) -> None:
    report = tmp_path / "report.html"
    source = str(traces / "kineto" / "h100-bert-small.json.gz")
    assert main(["analyze", source, "-o", str(report), "-q", "--only", "tiny_kernels"]) == 0
    assert report.stat().st_size < MOST_BYTES
    shown(report)
    assert tab.value("document.querySelectorAll('.file').length") >= 1
    assert tab.value("document.querySelector('#roofline > *').offsetHeight") > 300


@pytest.fixture
def shown(tab: browser.Page) -> Callable[[Path], None]:
    def show(report: Path) -> None:
        tab.said.clear()
        tab.show(report, width=390, height=844)
        assert tab.said == []
        assert tab.value("document.documentElement.scrollWidth") == 390

    return show
