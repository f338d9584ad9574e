from __future__ import annotations

import json
from dataclasses import replace

import pytest
from rich.cells import cell_len

from neuron_explorer.analyzers import NotApplicable, Report
from neuron_explorer.errors import ExitCode
from neuron_explorer.findings import Combined, Finding
from neuron_explorer.reports import console
from neuron_explorer.reports.evidence import device_names
from neuron_explorer.reports.info import info_markdown, info_text
from neuron_explorer.reports.json_report import findings_json, info_json
from neuron_explorer.reports.judgement import Judgement
from neuron_explorer.reports.markdown import findings_markdown
from neuron_explorer.reports.overview import Overview, Recorded, Steps
from neuron_explorer.reports.text import findings_text

FINDING = Finding(
    id="hbm_bound_eager_ops-0123456789",
    analyzer="hbm_bound_eager_ops",
    severity="warning",
    title="Memory-bound eager ops: mul, add",
    message="24 launches of mul move 1.2 GB in 3.1 ms: 48 % of the roof. More words.",
    advice="Put torch.compile on `gelu`.",
    source_file="/opt/lib/python3/site-packages/models/gelu.py",
    source_line=42,
    source_text="return x * 0.5 * (1.0 + torch.erf(x / 1.41))",
    device_time_ns=3_100_000,
    share=0.25,
    saving_low_ns=800_000,
    saving_high_ns=1_920_000,
    evidence={"bytes": 1_200_000_000},
    event_ids=(3, 5),
    sql="SELECT 1",
)
HOSTILE = replace(
    FINDING,
    title="[bold]x[/red] \x1b[31m\t中文",
    source_file="/src/" + "long" * 1_250 + ".py",
    source_text="y = '[/]' # \x1b]0;title\x07",
    module="layers.[red]3",
    advice="`a` * <script> | b",
)
DEVICE = {
    "rank": 0,
    "device": "cuda:0",
    "chip": "h100-sxm",
    "busy_ns": 61,
    "span_ns": 100,
    "idle_ns": 39,
}
CHECK = {
    "rank": 0,
    "check_name": "truncated",
    "status": "bad",
    "value": 1.0,
    "threshold": 0.0,
    "message": "the file ends early",
}
ISSUE = {
    "rank": 0,
    "file": "a.json",
    "kind": "negative_duration",
    "count": 3,
    "first_position": 1234,
    "example": "[x]\x1b",
    "action": "set to unknown",
}
SEEN = Overview(
    files=["trace.parquet"],
    tool="kineto",
    truncated=False,
    devices=[DEVICE],
    steps=Steps(3, 12_300_000, 12_000_000, 12_600_000),
    health=[CHECK | {"status": "ok"}],
    layers=[{"layer": "hardware", "kind": "kernel", "events": 1_234, "duration_ns": 5}],
    issues=[ISSUE],
    recorded=[
        Recorded("ops", 480, "activities=[ProfilerActivity.CPU, ...]", "the op"),
        Recorded("shapes", 479, "record_shapes=True", "bytes"),
        Recorded("lines", 0, "with_stack=True", "the source line of every op"),
        Recorded("memory", 0, "profile_memory=True", "peak memory"),
    ],
    capture={"record_shapes": True, "with_stack": False, "profile_memory": True},
    recorded_ns=36_900_000,
)


def judged(*findings: Finding, seen: Overview = SEEN, limit: int | None = None) -> Judgement:
    skipped = [NotApplicable("host_syncs", "no runtime events in this trace")]
    return Judgement(seen, Report(list(findings), skipped, ["hbm_bound_eager_ops"], {}), limit)


def test_the_page_says_device_steps_busy_health_then_the_finding() -> None:
    page = findings_text(judged(FINDING), console.Page(80))
    assert page == (
        "trace.parquet\n"
        "device  cuda:0  h100-sxm\n"
        "steps   3 of 12.3 ms each\n"
        "busy    ██████████████████▎░░░░░░░░░░░ 61 %\n"
        "health  ok, 1 of 1 checks\n"
        "\n"
        " 1 ▲ saves 0.80-1.92 ms of 36.9 ms  Memory-bound eager ops: mul, add\n"
        "     models/gelu.py:42  return x * 0.5 * (1.0 + torch.erf(x / 1.41))\n"
        "     ██▌░░░░░░░ 25 % of device time. 24 launches of mul move 1.2 GB in 3.1 ms:\n"
        "     48 % of the roof.\n"
        "     → Put torch.compile on `gelu`.\n"
        "\n"
        "not applicable\n"
        "  host_syncs: no runtime events in this trace\n"
        "\n"
        "next\n"
        '  neuron-explorer sql trace.parquet "SELECT * FROM lines"\n'
    )


@pytest.mark.parametrize("limit", [10, None])
def test_many_reasons_why_analyzers_do_not_apply_are_told_on_demand(limit: int | None) -> None:
    skipped = [NotApplicable(f"analyzer_{i}", f"no thing {i // 2} in it") for i in range(8)]
    report = Report([FINDING], skipped, ["hbm_bound_eager_ops"], {})
    page = findings_text(Judgement(SEEN, report, limit), console.Page(80))
    short = "not applicable  8 of 9 analyzers: --limit 0 says why\n"
    assert (short in page) is (limit is not None)
    assert ("  analyzer_6, analyzer_7: no thing 3 in it\n" in page) is (limit is None)


@pytest.mark.parametrize("width", [20, 40, 80, 110])
@pytest.mark.parametrize("finding", [FINDING, HOSTILE])
def test_no_line_is_wider_than_the_page(finding: Finding, width: int) -> None:
    page = findings_text(judged(finding), console.Page(width))
    assert max(map(cell_len, page.splitlines())) <= width


def test_names_are_text_not_markup_and_control_characters_are_escaped() -> None:
    page = findings_text(judged(HOSTILE), console.Page(110))
    assert "[bold]x[/red] \\x1b[31m\\t中文" in page
    assert "y = '[/]' # \\x1b]0;title\\x07" in page
    assert "\x1b" not in page


def test_colour_only_where_the_page_has_it() -> None:
    assert "\x1b[" not in findings_text(judged(FINDING), console.Page(80))
    assert "\x1b[" in findings_text(judged(FINDING), console.Page(80, "standard"))


def test_a_saving_from_zero_on_reads_up_to() -> None:
    page = findings_text(judged(replace(FINDING, saving_low_ns=0)), console.Page(80))
    assert "saves up to 1.92 ms of 36.9 ms" in page


def test_an_unknown_saving_is_not_zero() -> None:
    unknown = replace(FINDING, saving_low_ns=None, saving_high_ns=None)
    assert "saving unknown" in findings_text(judged(unknown), console.Page(80))
    assert "saving unknown" in findings_markdown(judged(unknown))


def test_a_modelled_saving_says_so() -> None:
    modelled = replace(FINDING, figures="modelled")
    assert "36.9 ms (modelled)" in findings_text(judged(modelled), console.Page(80))


def test_what_all_findings_are_worth_is_said_once() -> None:
    report = Report([FINDING], [], [], {}, [Combined(2_000_000, 9_000_000, 36_900_000, 1, 2)])
    told = Judgement(SEEN, report)
    said = "at most 9 ms (24 % of the steps' 36.9 ms), at least 2 ms; 2 more unknown"
    assert f"together {said}" in " ".join(findings_text(told, console.Page(120)).split())
    assert json.loads(findings_json(told))["combined"][0]["high_ns"] == 9_000_000


def test_nothing_found_is_said_with_what_could_not_be_judged() -> None:
    page = findings_text(judged(), console.Page(80))
    assert "No waste found by the analyzers that could judge this trace." in page
    assert "host_syncs: no runtime events" in page


def test_a_limit_hides_but_counts() -> None:
    page = findings_text(judged(FINDING, FINDING, FINDING, limit=1), console.Page(80))
    assert "and 2 more: --limit 0 shows all" in page


def test_a_bad_trace_is_called_bad_everywhere() -> None:
    seen = replace(SEEN, health=[CHECK])
    judgement = judged(FINDING, seen=seen)
    assert judgement.exit_code is ExitCode.UNTRUSTED
    assert "do not trust these numbers" in findings_text(judgement, console.Page(80))
    assert "**health: bad**" in findings_markdown(judgement)
    assert json.loads(findings_json(judgement))["exit_code"] == 3


def test_a_truncated_trace_is_not_trusted() -> None:
    seen = replace(SEEN, truncated=True)
    assert seen.exit_code is ExitCode.UNTRUSTED
    assert "the trace is cut short" in findings_text(judged(seen=seen), console.Page(80))


def test_json_has_the_stable_keys_and_whole_numbers() -> None:
    text = findings_json(judged(FINDING))
    told = json.loads(text)
    assert list(told) == sorted(told)
    assert set(told) == {
        "schema",
        "tool_version",
        "files",
        "device",
        "steps",
        "modelled",
        "health",
        "summary",
        "findings",
        "not_applicable",
        "combined",
        "raw_times",
        "exit_code",
    }
    assert told["schema"] == "neuron_explorer.findings/1"
    assert told["findings"][0]["saving_low_ns"] == 800_000
    assert told["findings"][0]["event_ids"] == [3, 5]
    assert told["not_applicable"] == [
        {"analyzer": "host_syncs", "reason": "no runtime events in this trace"}
    ]
    assert text == findings_json(judged(FINDING))


def test_markdown_keeps_code_and_escapes_the_rest() -> None:
    page = findings_markdown(judged(HOSTILE))
    assert "`a` \\* \\<script\\> \\| b" in page
    assert "<summary>1. [bold]x[/red] \\x1b[31m\\t中文" in page
    assert "<script>" not in page


def test_a_fence_is_longer_than_the_backticks_inside() -> None:
    page = findings_markdown(judged(replace(FINDING, source_text="x = '````'")))
    assert "`````python\nx = '````'\n`````" in page


@pytest.mark.parametrize("width", [40, 80])
def test_info_says_what_an_option_would_give(width: int) -> None:
    page = info_text(SEEN, console.Page(width))
    flat = " ".join(page.split())
    assert "shapes 479 of 480 ops" in flat
    assert "lines none: with_stack=True gives the source line of every op" in flat
    assert "memory none, although profile_memory=True was set" in flat
    assert "3 x negative_duration: set to unknown, such as [x]\\x1b (first at 1,234)" in flat
    assert max(map(cell_len, page.splitlines())) <= width


def test_info_as_markdown_and_json_says_the_same() -> None:
    told = json.loads(info_json(SEEN))
    assert told["schema"] == "neuron_explorer.info/1"
    assert told["layers"][0]["events"] == 1_234
    page = info_markdown(SEEN)
    assert "| hardware | kernel | 1,234 |" in page
    assert "- health: **ok**" in page


@pytest.mark.parametrize("name", ["cuda:0", "cuda:{}"])
def test_the_devices_of_many_ranks_are_counted_by_chip(name: str) -> None:
    ranks = [DEVICE | {"rank": rank, "device": name.format(rank)} for rank in range(8)]
    assert device_names(replace(SEEN, devices=ranks)) == "8 x h100-sxm"
    other = DEVICE | {"device": "cpu", "chip": None}
    two = "cuda:0 (h100-sxm), cpu (chip unknown)"
    assert device_names(replace(SEEN, devices=[DEVICE, other])) == two
    assert device_names(replace(SEEN, devices=[])) == "none"
