from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from neuron_explorer import cli
from neuron_explorer.analyzers import analyzers
from neuron_explorer.commands.tui import DEFAULT_SIZE, screen_size
from neuron_explorer.errors import UsageError

FEW = {name: analyzers()[name] for name in ("device_idle", "hbm_bound_eager_ops", "trace_health")}


@pytest.fixture(autouse=True)
def _few_analyzers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What all of them find is not what these tests look at."""
    for place in ("analyzers.runner", "commands.analyze", "tui.judging"):
        monkeypatch.setattr(f"neuron_explorer.{place}.analyzers", lambda: FEW)


def test_a_pipe_gets_the_plain_report(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["tui", str(tiny)]) == cli.main(["analyze", str(tiny)])
    out, err = capsys.readouterr()
    shown, again = out[: len(out) // 2], out[len(out) // 2 :]
    assert shown == again
    assert err == "stdout is no terminal: here is the plain report of neuron-explorer analyze\n"


def test_a_screen_is_drawn_without_a_terminal(tiny: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.svg"
    asked = ["tui", str(tiny), "--screenshot", "timeline", "-o", str(output), "--size", "90x20"]
    assert cli.main(asked) == 0
    text = "".join(ET.parse(output).getroot().itertext()).replace("\xa0", " ")
    assert "stream 7 work" in text
    assert "compute" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--screenshot", "nothing", "-o", "x.svg"], "there is no screen 'nothing'"),
        (["--screenshot", "overview"], "--screenshot needs a file to draw into"),
        (["--screenshot", "overview", "-o", "x.svg", "--size", "big"], "--size 'big' is no size"),
    ],
)
def test_wrong_wishes_are_refused(
    tiny: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["tui", str(tiny), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_sizes() -> None:
    assert screen_size(None) == DEFAULT_SIZE
    assert screen_size("80x24") == (80, 24)
    with pytest.raises(UsageError):
        screen_size("5x5")
