"""Queues of a pretended vendor: links, a clock that drifts, losses, and sources that fail."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

torch = pytest.importorskip("torch")

import acme_card  # noqa: E402
from acme_card import Card  # noqa: E402

import neuron_explorer  # noqa: E402
from neuron_explorer.collectors import queue_sources  # noqa: E402
from neuron_explorer.collectors.queue_sources import (  # noqa: E402
    EVENTS,
    LAUNCHES,
    Batch,
    ClockReading,
    register_queue_source,
)
from neuron_explorer.errors import UsageError  # noqa: E402

pytestmark = pytest.mark.torch

DOCS = Path(__file__).parents[3] / "docs" / "queue-sources.md"
JITTER_NS = 500
OPS = ("acme_mul", "acme_sin", "acme__to_copy", "acme__to_copy", "acme_add")


@pytest.fixture(autouse=True)
def _no_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_sources, "_sources", {})


def register_from_docs(card: Card, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the source that the documentation shows, with a card as the vendor's library."""
    (code,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert 30 <= len([line for line in code.splitlines() if line.strip()]) <= 45
    monkeypatch.setitem(sys.modules, "acme_runtime", card)
    exec(compile(code, str(DOCS), "exec"), {"__name__": "docs"})


class Source:
    """A source around a card, some member of which may do as a test likes."""

    def __init__(self, card: Card, name: str = "acme", **members: Callable[..., Any]) -> None:
        self.card, self.name, self.device = card, name, f"{name}:0"
        self.queues: dict[str, Any] = {
            "compute 0": "compute",
            "compute 1": "compute",
            "copy": "copy",
        }
        for member, does in members.items():
            setattr(self, member, does)

    def start(self) -> None:
        self.card.trace_on()

    def stop(self) -> None:
        self.card.trace_off()

    def clock(self) -> ClockReading:
        now = time.time_ns()
        return ClockReading(now, self.card.at(now), 0)

    def drain(self) -> Batch:
        records, calls, lost = self.card.take()
        events = [
            {"queue": r.queue, "name": r.name, "start_ns": r.start, "end_ns": r.end}
            | {"correlation": r.correlation, "flops": r.flops, "graph_id": r.graph}
            | {"read_bytes": r.read, "write_bytes": r.written}
            for r in records
        ]
        launches = [
            {"kind": c.kind, "name": c.name, "correlation": c.correlation, "tid": c.tid}
            | {"start_ns": c.start, "end_ns": c.end}
            for c in calls
        ]
        return Batch(
            pa.Table.from_pylist(events, EVENTS),
            pa.Table.from_pylist(launches, LAUNCHES),
            dropped=lost,
        )


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Records a job and gives its trace."""
    opened = []

    def recorded(job: Callable[[Any], Any], **options: Any) -> Any:
        with neuron_explorer.profile(output=tmp_path / "trace.parquet", **options) as session:
            job(session)
        opened.append(session.trace)
        return session.trace

    yield recorded
    for trace in opened:
        trace.close()


def rows(trace: Any, query: str) -> list[dict[str, Any]]:
    return list(trace.sql(query).to_pylist())


def line_of(op: str) -> int:
    text = Path(acme_card.__file__).read_text(encoding="utf-8").splitlines()
    return next(n for n, line in enumerate(text, 1) if line.endswith(f"# acme: {op}"))


def issues(trace: Any) -> dict[str, dict[str, Any]]:
    return {row["kind"]: row for row in rows(trace, "SELECT * FROM import_issues")}


def facts(trace: Any, source: str = "acme") -> dict[str, Any]:
    (row,) = rows(trace, "SELECT value FROM trace_metadata WHERE key = 'capture'")
    return dict(json.loads(row["value"])["queue_sources"][source])


def test_the_documented_source_links_every_event_and_reports_drift_and_losses(
    record: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    card = Card(drift_ppm=50.0, drop_every=100, jitter_ns=JITTER_NS)
    register_from_docs(card, monkeypatch)

    def job(session: Any) -> None:
        acme_card.job(card, 40, session.step)
        card.report_late("compute 0", by_ns=10_000_000_000)

    trace = record(job)
    found = rows(
        trace,
        """
        SELECT h.name, h.device, h.queue, h.queue_kind, h.kind, h.step, h.start_ns, h.duration_ns,
            h.user_line, h.source_file, h.source_line, o.name AS op, l.name AS launch,
            h.start_ns - l.start_ns AS delay_ns, l.kind AS launch_kind
        FROM events AS h
        LEFT JOIN events AS l ON h.launch_id = l.event_id
        LEFT JOIN events AS o ON h.op_id = o.event_id
        WHERE h.layer = 'hardware' AND h.name <> 'late' ORDER BY h.start_ns
        """,
    )
    launched = len(card.launched)
    assert launched == 40 * len(OPS)
    lost = len(range(1, launched + 1, 100))
    assert len(found) == launched - lost
    kept = [n for n in range(1, launched + 1) if n % 100 != 1]
    for number, row in zip(kept, found, strict=True):
        assert row["name"] == OPS[(number - 1) % len(OPS)]
        assert row["op"] is not None
        assert row["launch"] is not None
        assert row["source_file"].endswith("acme_card.py")
        assert row["step"] == (number - 1) // len(OPS)
        copies = row["name"] == "acme__to_copy"
        assert (row["kind"], row["queue_kind"]) == (
            ("memcpy", "copy") if copies else ("kernel", "compute")
        )
        assert row["launch_kind"] == ("copy" if copies else "launch")
        if not copies:
            assert row["source_line"] == line_of(row["name"])
        assert row["device"] == "acme:0"

    told = facts(trace)
    seconds = 40 * 0.01
    # a reading may be off by the jitter at either end, and by what its two host stamps leave open
    off_ppm = 2 * told["clock_uncertainty_ns"] / (seconds * 1e9) * 1e6
    assert told["clock_drift_ppm"] == pytest.approx(50.0, abs=off_ppm)
    assert off_ppm < 25
    for number, row in zip(kept, found, strict=True):
        truth = card.true_start_ns[number] - card.launched[number].start
        assert abs(row["delay_ns"] - truth) <= told["clock_uncertainty_ns"] + 1
        assert abs(row["duration_ns"] - 4_000) <= 2

    assert sum(told["dropped"].values()) == lost
    assert told["outside_window"] == 1
    noted = issues(trace)
    assert noted["queue_events_dropped"]["count"] == lost
    assert noted["queue_events_outside"]["count"] == 1
    assert noted["queue_events_dropped"]["action"]
    (check,) = rows(trace, "SELECT * FROM health WHERE check_name = 'dropped'")
    assert check["status"] == "warn"
    assert "acme" in check["message"]


def test_a_clock_without_the_correction_would_be_off() -> None:
    # what the test above would see if drift were not corrected: 50 ppm of 0.4 s
    card = Card(drift_ppm=50.0)
    later = card.origin_ns + 400_000_000
    assert card.at(later) - card.at(card.origin_ns) - 400_000_000 == 20_000


@pytest.mark.parametrize("member", ["clock", "start", "stop", "drain"])
def test_a_source_that_raises_harms_nothing_and_is_recorded(
    member: str, record: Callable[..., Any]
) -> None:
    card, good = Card(), Card()

    def broken() -> None:
        raise OSError("the card fell off the bus")

    register_queue_source(Source(card, "broken", **{member: broken}))
    register_queue_source(Source(good, "good"))
    results = []
    trace = record(lambda session: results.append(acme_card.job(good, 2, session.step)))
    assert torch.equal(results[0], acme_card.job(Card(), 2))
    (issue,) = issues(trace).values()
    assert (issue["kind"], issue["count"]) == ("queue_source_failed", 1)
    assert issue["example"].startswith("broken: ")
    assert "fell off the bus" in issue["example"]
    devices = rows(trace, "SELECT DISTINCT device FROM events WHERE layer = 'hardware'")
    assert devices == [{"device": "good:0"}]


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"queue": ["copy"], "name": ["x"], "start_ns": ["soon"]}),
        pa.table({"queue": ["copy"], "name": ["x"], "start_ns": pa.array([None], pa.int64())}),
        pa.table({"name": ["x"], "start_ns": [1]}),
        None,
        "events",
    ],
    ids=["text for a time", "no time", "no queue", "no table", "a text"],
)
def test_a_wrong_table_is_recorded(table: Any, record: Callable[..., Any]) -> None:
    register_queue_source(Source(Card(), drain=lambda: Batch(table)))
    trace = record(lambda _: torch.ones(2).add(1))
    assert issues(trace)["queue_source_failed"]["example"].startswith("acme: ")
    assert rows(trace, "SELECT * FROM events WHERE layer = 'hardware'") == []
    assert rows(trace, "SELECT count(*) AS n FROM ops")[0]["n"] > 0


def test_equal_correlation_ids_of_two_sources_do_not_mix(record: Callable[..., Any]) -> None:
    one, two = Card(), Card(offset_ns=99)
    register_queue_source(Source(one, "one"))
    register_queue_source(Source(two, "two"))

    def job(_: Any) -> None:
        with acme_card.computing_on(one):
            torch.ones(4).mul(2.0)
        with acme_card.computing_on(two):
            torch.ones(4).sin()

    trace = record(job)
    found = rows(
        trace,
        """
        SELECT h.device, h.name, o.name AS op, h.correlation, l.correlation AS by_call
        FROM events AS h
        INNER JOIN events AS o ON h.op_id = o.event_id
        INNER JOIN events AS l ON h.launch_id = l.event_id
        WHERE h.layer = 'hardware' AND h.name IN ('acme_mul', 'acme_sin') ORDER BY h.device
        """,
    )
    assert [(r["device"], r["name"], r["op"]) for r in found] == [
        ("one:0", "acme_mul", "aten::mul"),
        ("two:0", "acme_sin", "aten::sin"),
    ]
    assert {r["correlation"] for r in found} == {2}
    assert {r["by_call"] for r in found} == {2}


def test_what_the_device_counts_itself_comes_before_any_formula(
    record: Callable[..., Any],
) -> None:
    card = Card()
    register_queue_source(Source(card))

    def job(_: Any) -> None:
        with acme_card.computing_on(card):
            torch.ones(4).mul(2.0)
        card.launch("compute 0", "graph", read=100, written=20, flops=7_000, graph="3/0")

    trace = record(job)
    costs = {
        row["name"]: row
        for row in rows(
            trace,
            "SELECT name, flops, read_bytes, write_bytes, cost_via, cost_note, graph_id, family"
            " FROM events WHERE layer = 'hardware'",
        )
    }
    graph, eager = costs["graph"], costs["acme_mul"]
    assert (graph["flops"], graph["read_bytes"], graph["write_bytes"]) == (7_000, 100, 20)
    assert (graph["cost_via"], graph["cost_note"], graph["graph_id"]) == ("reported", None, "3/0")
    assert (eager["read_bytes"], eager["write_bytes"], eager["cost_via"]) == (16, 16, "formula")


def test_an_end_before_its_start_and_an_unknown_end_are_unknown_durations(
    record: Callable[..., Any],
) -> None:
    card = Card()

    def drain() -> Batch:
        at = card.at(time.time_ns())
        named = {"queue": ["copy"] * 3, "name": ["back", "open", "whole"]}
        times = {"start_ns": [at, at, at], "end_ns": [at - 5, None, at + 5]}
        return Batch(pa.table(named | times))

    register_queue_source(Source(card, drain=drain))
    trace = record(lambda _: torch.ones(2).add(1))
    durations = rows(trace, "SELECT name, duration_ns FROM events WHERE layer = 'hardware'")
    assert {r["name"]: r["duration_ns"] for r in durations} == {
        "back": None,
        "open": None,
        "whole": 5,
    }
    assert issues(trace)["queue_events_reversed"]["count"] == 1
    assert [r["name"] for r in rows(trace, "SELECT name FROM work")] == ["whole"]


def test_a_registered_source_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="lacks queues, start"):
        register_queue_source(SimpleNamespace(name="x", device="x:0"))
    source = Source(Card())
    source.queues = {"compute 0": "tensor"}
    with pytest.raises(UsageError, match="unknown kind 'tensor'"):
        register_queue_source(source)


def test_the_same_name_replaces_a_source(record: Callable[..., Any]) -> None:
    old, new = Card(), Card()
    register_queue_source(Source(old))
    register_queue_source(Source(new))

    def job(_: Any) -> None:
        for card in (old, new):
            card.launch("compute 0", "kernel")

    assert len(rows(record(job), "SELECT * FROM events WHERE layer = 'hardware'")) == 1
