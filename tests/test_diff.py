"""The command `diff`: what it prints, writes and ends with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from step_traces import FILE, Call, Times, made

from builders import op, write_trace
from neuron_explorer.analyzers.compare import Verdict, compare, comparison
from neuron_explorer.analyzers.runner import Report, run
from neuron_explorer.cli import main
from neuron_explorer.findings import Finding
from neuron_explorer.reports import console
from neuron_explorer.reports.diff_json import diff_data
from neuron_explorer.reports.diff_markdown import diff_markdown
from neuron_explorer.reports.diff_text import diff_text
from neuron_explorer.reports.diff_words import Compared
from neuron_explorer.reports.json_report import dump
from neuron_explorer.trace import Trace

NAMES = ("mm", "add", "tanh", "sum", "div", "exp")
CALLS = [Call(line, name) for line, name in enumerate(NAMES, 10)]
EVIL = "x = evil('\x1b[31m|[bold]`<b>`')"
TEXTS = {call.line: f"x = x.{call.name}()" for call in CALLS} | {15: EVIL}


def steps(extra_us: int = 0) -> list[Times]:
    """Ten steps of 3 ms; the line with strange text takes more."""
    return [
        {call: 500 + number % 3 + (extra_us if call.line == 15 else 0) for call in CALLS}
        for number in range(10)
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("diff")


@pytest.fixture(scope="module")
def base(folder: Path) -> Path:
    return made(folder / "base.parquet", steps(), TEXTS)


@pytest.fixture(scope="module")
def slower(folder: Path) -> Path:
    return made(folder / "new.parquet", steps(600), TEXTS)


@pytest.fixture(scope="module")
def compared(base: Path, slower: Path) -> Iterator[Compared]:
    fresh = Finding("a-1", "a", "warning", "Too `much` <b>work</b>", "", "", None, FILE, 15, EVIL)
    reports = Report([], [], [], {}), Report([fresh], [], [], {})
    with Trace.open([base]) as before, Trace.open([slower]) as after:
        yield Compared(compare(before, after, reports), "base.parquet", "new.parquet", 10)


@pytest.mark.parametrize("width", [40, 80, 110])
def test_the_page_names_the_line_and_fits(width: int, compared: Compared) -> None:
    page = diff_text(compared, console.Page(width))
    assert max(map(len, page.splitlines())) <= width
    assert "run/model.py:15" in page
    assert "worse" in page
    assert "+600 us" in page
    assert "\x1b" not in page
    if width >= 80:
        assert "changes: the step is worse, +20.0 % by the program" in page
        assert "500 us -> 1.10 ms" not in page  # the median of 500, 501 and 502 is told as it is
        assert "501 us -> 1.10 ms" in page


def test_the_comment_escapes_what_names_hold(compared: Compared) -> None:
    comment = diff_markdown(compared, ["step_time>5%: step_time 3 ms -> 4 ms, more than 5%"])
    assert "**" in comment
    assert "❌ step\\_time\\>5%" in comment
    assert "| 🔴 worse | +600 us | run/model.py:15 |" in comment
    assert "- 🟡 new: Too `much` \\<b\\>work\\</b\\>" in comment
    assert "\x1b" not in comment


def test_a_finding_of_another_severity_is_worse_or_better(base: Path, slower: Path) -> None:
    """Where nothing at its place has changed it only stepped over a threshold."""

    def report(*severities: str) -> Report:
        places = ((10, "a"), (15, "b"), (15, "c"))
        found = [
            Finding(f"{name}-1", name, severity, f"Waste {name}", "", "", None, FILE, line)
            for (line, name), severity in zip(places, severities, strict=True)
        ]
        return Report(found, [], [], {})

    reports = report("info", "warning", "info"), report("critical", "critical", "info")
    with Trace.open([base]) as before, Trace.open([slower]) as after:
        seen = compare(before, after, reports)
        back = compare(after, before, reports[::-1])
    told = [(each.latest.analyzer, each.verdict, each.was, each.counted) for each in seen.findings]
    assert told == [
        ("b", Verdict.WORSE, "warning", True),
        ("a", Verdict.WORSE, "info", False),
        ("c", Verdict.SAME, None, False),
    ]
    assert [each.verdict for each in back.findings] == ["better", "better", "same"]
    new = {each.name: each.new for each in seen.metrics if each.name.startswith("new_")}
    assert new == {"new_critical": 1, "new_warning": 0, "new_info": 0, "new_findings": 0}
    said = {each.name: each.verdict for each in seen.metrics if each.name.startswith("new_")}
    assert [name for name, verdict in said.items() if verdict != "same"] == ["new_critical"]
    assert said["new_critical"] == "new"
    shown = Compared(seen, "base.parquet", "new.parquet", 10)
    page = diff_text(shown, console.Page(80))
    assert "Waste b (warning -> critical)" in page.partition("near their threshold")[0]
    assert "worse  Waste a (info -> critical)" in page.partition("near their threshold")[2]
    assert "- 🔴 worse: Waste b (warning -> critical)" in diff_markdown(shown)
    data = json.loads(dump(diff_data(shown)))["findings"][0]
    assert (data["verdict"], data["was"], data["new"]["severity"]) == (
        "worse",
        "warning",
        "critical",
    )


def test_equal_traces_have_no_change_and_pass(
    base: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", str(base), str(base), "--fail-on", "step_time>5%"]) == 0
    said = capsys.readouterr()
    assert "\nno change\n" in said.out
    assert said.err == ""


@pytest.fixture(scope="module")
def _few_analyzers() -> Iterator[None]:
    """All of them take seconds, and have tests of their own; one comparison here asks them all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "run", partial(run, only=["trace_health", "python_overhead"]))
        yield


@pytest.fixture(scope="module")
def told(_few_analyzers: None, base: Path, slower: Path, folder: Path) -> Mapping[str, Any]:
    output = folder / "diff.json"
    arguments = ["diff", str(base), str(slower), "-q", "--fail-on", "step_time>5%,kernels>0"]
    assert main([*arguments, "-o", str(output)]) == 4
    found: Mapping[str, Any] = json.loads(output.read_text("utf-8"))
    return found


def test_json_holds_all_of_it(told: Mapping[str, Any], base: Path) -> None:
    assert told["schema"] == "neuron_explorer.diff/1"
    assert told["base"]["file"] == str(base)
    assert (told["base"]["steps"], told["changed"], told["exit_code"]) == (10, True, 4)
    assert told["step"]["verdict"] == "worse"
    assert told["step"]["program_ns"] == 600_000
    first = told["rows"][0]
    assert (first["kind"], first["verdict"], first["delta_ns"]) == ("line", "worse", 600_000)
    assert first["line"]["new"]["number"] == 15
    assert {row["kind"] for row in told["rows"]} == {"line", "module", "op", "rest"}
    assert {each["name"]: each["new"] for each in told["metrics"]}["launches"] is None


def test_gates_are_in_the_json_and_one_that_is_unknown_is_not_hidden_by_one_that_failed(
    told: Mapping[str, Any],
) -> None:
    outcomes = {each["gate"]: each["outcome"] for each in told["gates"]}
    assert outcomes == {"step_time>5%": "failed", "kernels>0": "unknown"}


@pytest.mark.usefixtures("_few_analyzers")
def test_a_gate_that_nothing_can_judge_exits_with_3(
    base: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = write_trace(folder / "one.parquet", [op(0, 10, self_ns=10)])
    assert main(["diff", str(base), str(one), "-q", "--fail-on", "step_time>5%", "--json"]) == 3
    said = capsys.readouterr()
    assert json.loads(said.out)["step"]["verdict"] == "unknown"
    (line,) = said.err.splitlines()
    assert line.startswith("neuron-explorer: --fail-on step_time>5%: step_time is unknown")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["no-such.parquet"], 1, "no trace at no-such.parquet"),
        ([], 2, "Missing argument 'NEW'"),
        (["{base}", "--fail-on", "stp>5%"], 2, "there are: step_time, same_work"),
        (["{base}", "-o", "{base}"], 2, "is an input and would be overwritten"),
        (["{base}", "--json", "--format", "md"], 2, "exclude each other"),
    ],
)
def test_wrong_use_is_one_line(
    arguments: list[str], code: int, said: str, base: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [each.format(base=base) for each in arguments]
    assert main(["diff", str(base), *given]) == code
    told = capsys.readouterr()
    assert told.out == ""
    assert said in told.err
    assert len(told.err.splitlines()) <= 2


def test_analyze_fails_on_a_severity(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing in this trace waits; that it has no runtime calls is no pass for launches."""
    arguments = ["analyze", str(base), "-q", "--json", "--only", "host_syncs,launch_overhead"]
    assert main([*arguments, "--fail-on", "critical,host_syncs"]) == 0
    assert capsys.readouterr().err == ""
    assert main([*arguments, "--fail-on", "launch_overhead"]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("neuron-explorer: --fail-on launch_overhead: launch_overhead could not")
