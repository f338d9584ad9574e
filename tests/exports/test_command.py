from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from builders import kernel, op, step, write_trace
from neuron_explorer.cli import main
from neuron_explorer.commands.export import nanoseconds
from neuron_explorer.errors import UsageError

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("export")
    return str(write_trace(folder / "t.parquet", [step(1, 0, 90), op(5, 5), kernel(20, 5)]))


@pytest.mark.parametrize("form", ["perfetto", "chrome", "csv", "speedscope", "otlp-json"])
def test_without_a_file_the_export_goes_to_stdout(form: str, trace: str, capfd: Capture) -> None:
    assert main(["export", trace, "--to", form, "-o", "-"]) == 0
    told = capfd.readouterr()
    assert told.err == ""
    if form == "csv":
        assert told.out.startswith("event_id,")
    else:
        json.loads(told.out)


def test_a_name_that_ends_in_gz_is_packed_the_same_way_each_time(
    trace: str, tmp_path: Path, capfd: Capture
) -> None:
    for name in ("a.json.gz", "b.json.gz"):
        assert main(["export", trace, "--to", "perfetto", "-o", str(tmp_path / name)]) == 0
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()
    json.loads(gzip.decompress((tmp_path / "a.json.gz").read_bytes()))
    said = capfd.readouterr().err.splitlines()
    assert "3 events" in said[0]
    assert said[1] == "next: open it at https://ui.perfetto.dev"


def test_json_tells_what_was_written(trace: str, tmp_path: Path, capfd: Capture) -> None:
    output = tmp_path / "t.json"
    assert main(["export", trace, "--to", "chrome", "-o", str(output), "--json"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert told["schema"] == "neuron_explorer.export/1"
    assert (told["format"], told["output"]) == ("chrome", str(output))
    assert told["bytes"] == output.stat().st_size
    assert told["written"] == {"events": 3, "flows": 0, "counters": 0}
    assert told["whole"] is True


def test_findings_go_out_as_sarif(trace: str, capfd: Capture) -> None:
    assert main(["export", trace, "--to", "sarif"]) in {0, 3}
    assert json.loads(capfd.readouterr().out)["version"] == "2.1.0"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--to", "perfetto", "--json"], "name one with -o"),
        (["--to", "perfetto", "--view", "lines"], "--view is for --to csv"),
        (["--to", "csv", "--root", "."], "--root is for --to sarif"),
        (["--to", "sarif", "--step", "1"], "findings are of the whole trace"),
        (["--to", "csv", "--view", "nothing"], "no view nothing"),
        (["--to", "csv", "--step", "8"], "no step 8"),
        (["--to", "csv", "--rank", "8"], "no rank 8"),
        (["--to", "csv", "--from", "soon"], "--from 'soon' is no time"),
        (["--to", "csv", "--from", "2ms", "--to-time", "1ms"], "--from is not before"),
        (["--to", "nothing"], "nothing"),
        ([], "--to"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(
    arguments: list[str], said: str, trace: str, capfd: Capture
) -> None:
    assert main(["export", trace, *arguments]) == 2
    told = capfd.readouterr()
    assert told.out == ""
    assert said in told.err.splitlines()[0]


def test_a_failed_export_leaves_the_old_file_alone(
    trace: str, tmp_path: Path, capfd: Capture
) -> None:
    old = tmp_path / "old.csv"
    old.write_text("mine")
    assert main(["export", trace, "--to", "csv", "--view", "nothing", "-o", str(old)]) == 2
    assert main(["export", trace, "--to", "csv", "-o", trace]) == 2
    assert main(["export", trace, "--to", "csv", "-o", str(tmp_path / "no" / "t.csv")]) == 1
    assert "cannot be written" in capfd.readouterr().err
    assert old.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["old.csv"]


@pytest.mark.parametrize("form", ["perfetto", "csv"])
def test_a_reader_that_leaves_has_what_it_wanted(
    form: str, trace: str, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w", closefd=False) as closed:
        monkeypatch.setattr("sys.stdout", closed)
        assert main(["export", trace, "--to", form]) == 0
    monkeypatch.undo()
    os.close(write)
    assert capfd.readouterr().err == ""


def test_torchs_form_holds_one_rank(tmp_path: Path, capfd: Capture) -> None:
    for rank in (0, 1):
        write_trace(tmp_path / f"rank={rank}.parquet", [op(0, 5, rank=rank)])
    assert main(["export", str(tmp_path), "--to", "chrome"]) == 2
    assert "--rank 0" in capfd.readouterr().err
    assert main(["export", str(tmp_path), "--to", "chrome", "--rank", "1"]) == 0
    assert '"rank":1' in capfd.readouterr().out


@pytest.mark.parametrize(
    ("text", "ns"), [("7ns", 7), ("1.5us", 1500), ("12.5 ms", 12_500_000), ("0.000000001s", 1)]
)
def test_a_time_has_a_unit(text: str, ns: int) -> None:
    assert nanoseconds(text, "--from") == ns
    with pytest.raises(UsageError):
        nanoseconds(text.rstrip("nums"), "--from")
