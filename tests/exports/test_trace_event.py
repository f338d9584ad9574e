from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exports.conftest import events_of, export
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import kernel, launch, op, row, step, write_trace
from neuron_explorer.errors import UsageError
from neuron_explorer.exchange import KEY
from neuron_explorer.exports import event_json
from neuron_explorer.exports.tracks import Lanes, Track
from neuron_explorer.exports.window import Window


def slices(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["ph"] == "X"]


def ns(event: dict[str, Any], key: str = "ts") -> int:
    """Decimal microseconds of a number that JSON made a float: three places are exact here."""
    return round(float(event[key]) * 1000)


@given(
    spans=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=30).map(
        lambda found: sorted(found, key=lambda span: (span[0], -span[1]))
    )
)
@settings(max_examples=60)
def test_slices_of_one_track_only_nest(spans: list[tuple[int, int]]) -> None:
    lanes = Lanes([{"pid": 1, "tid": 2}], {"queue": Track(1, 2, "cuda:0", "stream 7")})
    drawn: dict[int | str, list[tuple[int, int]]] = defaultdict(list)
    for start, length in spans:
        drawn[lanes.thread("queue", start, start + length)].append((start, start + length))
    assert sum(map(len, drawn.values())) == len(spans)
    for found in drawn.values():
        for place, (begin, end) in enumerate(found):
            for start, stop in found[place + 1 :]:
                assert start >= end or (begin <= start and stop <= end)


def test_overlapping_kernels_of_a_queue_lie_on_tracks_beside_it(tmp_path: Path) -> None:
    rows = [kernel(0, 100, name="a"), kernel(50, 100, name="b"), kernel(60, 10, name="c")]
    events = events_of(export(write_trace(tmp_path / "t.parquet", rows), "perfetto"))
    threads = {event["name"]: event["tid"] for event in slices(events)}
    assert threads["a"] == threads["c"] != threads["b"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert names == {threads["a"]: "stream 7", threads["b"]: "stream 7 (2)"}


def test_launches_lead_to_their_kernels_and_forward_ops_to_backward_ones(tmp_path: Path) -> None:
    rows = [
        op(0, 50, name="aten::mm"),
        launch(10, 5, op_id=0),
        kernel(100, 20, launch_id=1, op_id=0, name="gemm"),
        op(200, 50, name="MmBackward0", forward_id=0),
    ]
    events = events_of(export(write_trace(tmp_path / "t.parquet", rows), "perfetto"))
    place = {e["name"]: e for e in slices(events)}
    ends = {(e["cat"], e["ph"]): e for e in events if e["ph"] in "sf"}
    for flow, source, target in (
        ("launch", "cudaLaunchKernel", "gemm"),
        ("forward", "aten::mm", "MmBackward0"),
    ):
        start, end = ends[flow, "s"], ends[flow, "f"]
        assert start["id"] == end["id"]
        for mark, name in ((start, source), (end, target)):
            assert (mark["pid"], mark["tid"], ns(mark)) == (
                place[name]["pid"],
                place[name]["tid"],
                ns(place[name]),
            )


def test_a_device_is_a_process_and_says_what_bounds_its_kernels(tmp_path: Path) -> None:
    work = {"flops": 10**6, "read_bytes": 4 * 10**9, "write_bytes": 0, "family": "elementwise"}
    rows = [
        op(0, 50, input_dtypes=["float"]),
        kernel(100, 2_000_000, op_id=0, source_file="核.py", source_line=3, **work),
    ]
    events = events_of(export(write_trace(tmp_path / "t.parquet", rows), "perfetto"))
    (found,) = (e for e in slices(events) if e["name"] == "kernel")
    told = found["args"][KEY]
    assert (told["source_file"], told["source_line"], told["bound"]) == ("核.py", 3, "memory")
    assert told["read_bytes"] == 4 * 10**9
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names[found["pid"]] == "cuda:0"
    assert sorted(names.values()) == ["cuda:0", "process 1"]


def test_memory_is_a_counter(tmp_path: Path) -> None:
    rows = [
        row("memory", "alloc", at, None, device="cuda:0", device_allocated=size, alloc_bytes=5)
        for at, size in ((10, 5), (20, 9))
    ]
    events = events_of(export(write_trace(tmp_path / "t.parquet", rows), "perfetto"))
    counted = [(e["name"], ns(e), e["args"]) for e in events if e["ph"] == "C"]
    assert counted == [
        ("memory cuda:0", 0, {"allocated": 5}),
        ("memory cuda:0", 10, {"allocated": 9}),
    ]


def test_names_stay_as_given(tmp_path: Path) -> None:
    names = ['</script>"\\', "\x1b[31m", "核心 é", "a\nb", "\u2028"]
    rows = [op(i * 10, 5, name=name) for i, name in enumerate(names)]
    for form in ("chrome", "perfetto"):
        path = export(write_trace(tmp_path / "t.parquet", rows), form)
        assert [event["name"] for event in slices(events_of(path))] == names


def test_chrome_has_the_ids_that_torch_gives(tmp_path: Path) -> None:
    rows = [op(0, 5, pid=12, tid=34), kernel(10, 5, device="cuda:1", stream=20, queue="stream 20")]
    events = events_of(export(write_trace(tmp_path / "t.parquet", rows), "chrome"))
    assert [(e["pid"], e["tid"]) for e in slices(events)] == [(12, 34), (1, 20)]
    assert slices(events)[1]["args"]["stream"] == 20


def test_times_are_exact_in_every_digit(tmp_path: Path) -> None:
    begin = 1_768_554_939_862_757_064
    path = write_trace(tmp_path / "t.parquet", [op(begin, 87_412_863), op(begin + 1, 999)])
    text = export(path, "perfetto").read_text()
    assert f'"baseTimeNanoseconds":{begin}' in text.replace(" ", "")
    assert '"ts":0.000,"dur":87412.863' in text
    assert '"ts":0.001,"dur":0.999' in text


def test_a_step_and_a_stretch_cut_out_what_belongs_to_them(tmp_path: Path) -> None:
    rows = [
        step(1, 0, 100),
        op(10, 20, step=1, name="first"),
        step(2, 200, 100),
        op(210, 20, step=2, name="second"),
        kernel(330, 50, step=2, name="late"),
    ]
    path = write_trace(tmp_path / "t.parquet", rows)

    def shown(window: Window) -> list[str]:
        return [e["name"] for e in slices(events_of(export(path, "perfetto", window)))]

    assert shown(Window(step=2)) == ["ProfilerStep#2", "second", "late"]
    assert shown(Window(from_ns=25, to_ns=205)) == ["ProfilerStep#1", "first", "ProfilerStep#2"]
    for window, said in ((Window(step=7), "step 7"), (Window(rank=3), "rank 3")):
        with pytest.raises(UsageError, match=said):
            export(path, "perfetto", window)


def test_slices_of_one_thread_share_its_tracks_whatever_they_are_of(tmp_path: Path) -> None:
    """Events of one thread may differ in what else says where they are."""
    rows = [
        op(0, 100, name="a", pid=1, tid=2),
        op(50, 100, name="b", pid=1, tid=2, device="cpu"),
        op(60, 10, name="c", pid=1, tid=2),
    ]
    events = events_of(export(write_trace(tmp_path / "t.parquet", rows), "perfetto"))
    threads = {event["name"]: event["tid"] for event in slices(events)}
    assert threads["a"] == threads["c"] == 2 != threads["b"]
    labels = [e["tid"] for e in events if e["name"] == "thread_name"]
    assert sorted(labels) == sorted({2, threads["b"]})


def test_what_a_dry_run_models_lies_on_tracks_that_say_so(tmp_path: Path) -> None:
    told = {"device": "neuron:0 (trn2, dry run)", "queue": "compute 0", "stream": None}
    rows = [
        step(1, 0, 900),
        kernel(100, 5, name="first", modelled_start_ns=70, modelled_duration_ns=40, **told),
        kernel(
            110,
            90,
            name="second",
            modelled_start_ns=110,
            modelled_duration_ns=600,
            attributes={"modelled_bound": "memory", "modelled_memory_ns": 500},
            **told,
        ),
        kernel(300, 5, name="unknown", modelled_start_ns=110, modelled_duration_ns=None, **told),
    ]
    path = export(write_trace(tmp_path / "t.parquet", rows), "perfetto")
    events = events_of(path)
    process = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    thread = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    found = [e for e in slices(events) if e.get("cat") == "modelled"]
    # the modelled clock begins with the measured start of what it begins with
    assert [(e["name"], ns(e), ns(e, "dur")) for e in found] == [
        ("first", 100, 40),
        ("second", 140, 600),
    ]
    assert {process[e["pid"]] for e in found} == {"modelled: neuron:0 (trn2, dry run)"}
    assert {thread[e["pid"], e["tid"]] for e in found} == {"compute 0 (modelled)"}
    assert found[1]["args"] == {
        "figures": "modelled",
        "event_id": 2,
        "modelled_start_ns": 110,
        "bound": "memory",
        "memory_floor_ns": 500,
    }
    measured = {e["name"]: ns(e, "dur") for e in slices(events) if e.get("cat") != "modelled"}
    assert measured == {"ProfilerStep#1": 900, "first": 5, "second": 90, "unknown": 5}
    part = events_of(export(tmp_path / "t.parquet", "perfetto", Window(from_ns=105)))
    drawn = [(e["name"], ns(e)) for e in part if e.get("cat") == "modelled"]
    assert drawn[0] == ("first", 100)
    chrome = events_of(export(tmp_path / "t.parquet", "chrome"))
    assert [e for e in slices(chrome) if e.get("cat") == "modelled"] == []


class Viewer:
    """Takes slices and flows as Perfetto's trace processor does.

    In the order of time, then of the file. A slice closes those of its track that have ended, and
    is left out unless it then lies within the one that is open. An end of a flow binds to the slice
    that is open on its track, and is left out where there is none (src/trace_processor/importers/
    common/slice_tracker.cc and flow_tracker.cc).
    """

    def __init__(self, events: list[dict[str, Any]]) -> None:
        self.drawn: list[dict[str, Any]] = []
        self.left_out: list[dict[str, Any]] = []
        self.flows: dict[tuple[str, int], dict[str, dict[str, Any]]] = defaultdict(dict)
        """The slices that each joins, by its category and id."""
        self._open: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
        for event in sorted((e for e in events if e["ph"] in "Xsf"), key=ns):
            stack = self._open[event["pid"], event["tid"]]
            if event["ph"] == "X":
                self._slice(event, stack)
            else:
                self._flow(event, stack)

    def _slice(self, event: dict[str, Any], stack: list[dict[str, Any]]) -> None:
        while stack and _end(stack[-1]) <= ns(event):
            stack.pop()
        if stack and _end(event) > _end(stack[-1]):
            self.left_out.append(event)
            return
        stack.append(event)
        self.drawn.append(event)

    def _flow(self, event: dict[str, Any], stack: list[dict[str, Any]]) -> None:
        joined = self.flows[event["cat"], event["id"]]
        bound_to_what_encloses_it = event["ph"] == "s" or event.get("bp") == "e"
        if not stack or event["ph"] in joined or not bound_to_what_encloses_it:
            self.left_out.append(event)
        else:
            joined[event["ph"]] = stack[-1]["args"][KEY]


def _end(event: dict[str, Any]) -> int:
    return ns(event) + ns(event, "dur")


@pytest.mark.parametrize(
    ("name", "kernels"),
    [
        ("rocm-vllm-decode-graph", 434),
        ("a100-event-sync-multi-stream", None),
        ("mi300-compiled-triton", None),
        ("h100-bert-small", None),
    ],
)
def test_perfetto_draws_every_slice_and_arrow_of_a_real_trace(
    name: str, kernels: int | None, shared: Callable[[str], Path]
) -> None:
    events = events_of(export(shared(name), "perfetto"))
    seen = Viewer(events)
    assert seen.left_out == []
    work = [e for e in seen.drawn if e["args"][KEY]["layer"] == "hardware"]
    assert kernels in {None, len(work)}
    assert seen.flows
    for (flow, _), joined in seen.flows.items():
        source, target = joined["s"], joined["f"]
        cause = target.get("launch_id", target.get("op_id"))
        assert source["event_id"] == (cause if flow == "launch" else target["forward_id"])
    launched = [e for e in work if "launch_id" in e["args"][KEY]]
    assert sum(flow == "launch" for flow, _ in seen.flows) >= len(launched) > 0
    assert all(isinstance(e[key], int) for e in events if e["ph"] != "M" for key in ("pid", "tid"))


def test_many_stretches_are_written_as_one(
    shared: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory holds one of them at a time; what comes out is the same."""
    path = shared("mi300-compiled-triton")
    for form in ("perfetto", "chrome"):
        whole = export(path, form).read_bytes()
        with monkeypatch.context() as patch:
            patch.setattr(event_json, "STRETCH_ROWS", 7)
            assert export(path, form).read_bytes() == whole


def test_a_counter_keeps_its_row_and_draws_its_numbers(tmp_path: Path) -> None:
    counted = {"value": 3, "unit": "W", "on": False, KEY: 4}
    rows = [row("host", "counter", 5, None, name="power", attributes=counted, pid=1, tid=1)]
    for form in ("chrome", "perfetto"):
        events = events_of(export(write_trace(tmp_path / "t.parquet", rows), form))
        assert [(e["name"], e["args"]) for e in events if e["ph"] == "C"] == [
            ("power", {"value": 3})
        ]
        carried = [e for e in events if KEY in e.get("args", {})]
        assert json.dumps(carried[0]["args"][KEY]["name"]) == '"power"'
