"""The guide: its worked queries run, and what it teaches is enough to answer plain questions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from raw_kineto import RawKineto, duration, start, union

from neuron_explorer.cli import main
from neuron_explorer.loading import load
from neuron_explorer.reports.guide import guide_markdown, worked_queries
from neuron_explorer.trace import Trace
from neuron_explorer.view_files import views

Capture = pytest.CaptureFixture[str]
Rows = list[tuple[object, ...]]

BERT, SMALL, COMPILED = "h100-bert-small", "mi250-rocm62", "mi300-compiled-triton"
WORKED = {query.question: query for query in worked_queries()}


@pytest.fixture(scope="module")
def opened(traces: Path) -> Iterator[dict[str, Trace]]:
    kineto = traces / "kineto"
    found = {name: load(kineto / f"{name}.json.gz") for name in (BERT, SMALL, COMPILED)}
    yield found
    for trace in found.values():
        trace.close()


@cache
def raw(folder: Path, name: str) -> RawKineto:
    return RawKineto(folder / "kineto" / f"{name}.json.gz")


# ---- the command ----------------------------------------------------------


def test_guide_is_printed_as_it_ships(capsys: Capture) -> None:
    assert main(["guide"]) == 0
    assert capsys.readouterr().out == guide_markdown()


def test_guide_as_json_has_every_query(capsys: Capture) -> None:
    assert main(["guide", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "neuron_explorer.guide/1"
    assert [query["question"] for query in told["queries"]] == list(WORKED)
    assert {"What the views mean", "Pitfalls", "Ten worked queries"} <= told["sections"].keys()


def test_device_time_of_ops_adds_up_as_the_guide_says(opened: dict[str, Trace]) -> None:
    """That of the work an op caused itself: nothing counts for the ops around it as well."""
    assert "`device_time_ns` is of the work the op caused itself" in guide_markdown()
    of_ops = "SELECT sum(device_time_ns) AS ns FROM ops"
    of_work = """SELECT sum(duration_ns) AS ns FROM work
        WHERE op_id IS NOT NULL AND phase IS DISTINCT FROM 'compile'"""
    for trace in opened.values():
        assert trace.query(of_ops).rows == trace.query(of_work).rows


def test_guide_names_views_that_are_there() -> None:
    meaning = guide_markdown().partition("## What the views mean")[2].partition("## Pitfalls")[0]
    listed = [line.partition(":")[0] for line in meaning.splitlines() if line.startswith("- `")]
    named = {word for line in listed for word in line.split("`")[1::2]}
    assert len(named) > 20
    assert named <= views().keys()


# ---- ten worked queries ---------------------------------------------------


def test_there_are_ten() -> None:
    assert len(WORKED) == 10
    assert guide_markdown().count("```sql") == 10


@pytest.mark.parametrize("question", list(WORKED))
def test_worked_query_runs_on_every_trace(opened: dict[str, Trace], question: str) -> None:
    for name, trace in opened.items():
        result = trace.query(WORKED[question].sql, timeout_s=20)
        # a healthy trace has no complaint; without stacks there are no lines
        may_be_empty = {"1.": True, "3.": name != BERT}
        number = f"{list(WORKED).index(question) + 1}."
        assert result.rows or may_be_empty.get(number), f"no row for {name}"


# ---- ten questions that the guide does not ask ----------------------------

Fact = Callable[[RawKineto], Rows]


def kernels_and_time(trace: RawKineto) -> Rows:
    kernels = trace.of("kernel")
    return [(len(kernels), sum(map(duration, kernels)))]


def longest_kernel(trace: RawKineto) -> Rows:
    total: Counter[str] = Counter()
    for unit in trace.work:
        total[unit["name"]] += duration(unit)
    ((name, most),) = total.most_common(1)
    return [(name, most, round(most / total.total(), 6))]


def idle(trace: RawKineto) -> Rows:
    ends = [start(unit) + duration(unit) for unit in trace.work]
    span = max(ends) - min(map(start, trace.work))
    return [(span - union(trace.work),)]


def steps(trace: RawKineto) -> Rows:
    marks = [e for e in trace.of("user_annotation") if e["name"].startswith("ProfilerStep#")]
    return sorted((int(e["name"].partition("#")[2]), duration(e)) for e in marks)


def op_with_most_units(trace: RawKineto) -> Rows:
    counts = Counter(op["name"] for op in trace.op_of_work.values())
    return [counts.most_common(1)[0]]


def costliest_line(trace: RawKineto) -> Rows:
    def of_the_model(name: str) -> bool:
        return name.startswith("transformers/") and ".py(" in name

    total: Counter[str] = Counter()
    for place, frame in trace.frame_of_work(of_the_model).items():
        total[frame] += duration(trace.work[place])
    (frame, most), *_ = total.most_common(1)
    file, _, rest = frame.partition("(")
    return [(file, int(rest.partition(")")[0]), most)]


def peak_on_device(trace: RawKineto) -> Rows:
    marks = [e["args"] for e in trace.of("cpu_instant_event") if e["name"] == "[memory]"]
    return [(max(a["Total Allocated"] for a in marks if a["Device Type"] == 1),)]


def waits(trace: RawKineto) -> Rows:
    calls = [e for e in trace.of("cuda_runtime") if e["name"].endswith("Synchronize")]
    total: Counter[str] = Counter()
    for call in calls:
        total[call["name"]] += duration(call)
    return sorted(total.items())


def compiled_share(trace: RawKineto) -> Rows:
    made = [duration(unit) for unit in trace.work if unit["name"].startswith("triton_")]
    return [(len(made), round(sum(made) / sum(map(duration, trace.work)), 6))]


def longest_wait_for_a_launch(trace: RawKineto) -> Rows:
    units = sorted(trace.work, key=start)
    gaps, end = [], start(units[0])
    for place, unit in enumerate(units):
        gaps.append((start(unit) - end, place))
        end = max(end, start(unit) + duration(unit))
    longest, place = max(gaps)
    op = trace.op_of_work[trace.work.index(units[place])]
    return [(longest, units[place]["name"], op["name"])]


QUESTIONS: list[tuple[str, str, str, Fact]] = [
    (
        "How many kernels ran, and how long did they take in all?", BERT,
        "SELECT count(*), sum(duration_ns) FROM work WHERE kind = 'kernel'", kernels_and_time,
    ),
    (
        "Which kernel costs most, and what share of the device time is that?", BERT,
        """SELECT name, sum(total_ns) AS total_ns,
            round(sum(total_ns) / sum(sum(total_ns)) OVER (), 6)
        FROM kernels GROUP BY name ORDER BY total_ns DESC LIMIT 1""", longest_kernel,
    ),
    (
        "How long did the device do nothing between its first and its last work?", SMALL,
        "SELECT sum(idle_ns) FROM devices", idle,
    ),
    (
        "How long did each training step take?", SMALL,
        "SELECT step, duration_ns FROM steps ORDER BY step", steps,
    ),
    (
        "Which op launches most units of work, and how many?", BERT,
        """SELECT op_name, count(*) AS units FROM work WHERE op_name IS NOT NULL
        GROUP BY op_name ORDER BY units DESC LIMIT 1""", op_with_most_units,
    ),
    (
        "Which line of the model costs the device most?", BERT,
        """SELECT source_file, source_line, device_ns FROM lines
        WHERE source_file LIKE 'transformers/%' ORDER BY device_ns DESC NULLS LAST LIMIT 1""",
        costliest_line,
    ),
    (
        "How much memory of the device was in use at most?", BERT,
        "SELECT max(live_bytes) FROM allocations WHERE device <> 'cpu'", peak_on_device,
    ),
    (
        "In which calls did the host wait for the device, and for how long?", BERT,
        "SELECT name, sum(wait_ns) FROM syncs GROUP BY name ORDER BY name", waits,
    ),
    (
        "How many kernels did Triton make, and what part of the device time is theirs?", COMPILED,
        """SELECT sum(events)::BIGINT, round(sum(total_ns) / (SELECT sum(total_ns) FROM kernels), 6)
        FROM kernels WHERE name LIKE 'triton\\_%' ESCAPE '\\'""", compiled_share,
    ),
    (
        "What ended the longest idle stretch of the device: which kernel, of which op?", BERT,
        """SELECT g.duration_ns, w.name, w.op_name FROM gaps AS g
        JOIN work AS w ON g.rank = w.rank AND g.after_event_id = w.event_id
        ORDER BY g.duration_ns DESC LIMIT 1""", longest_wait_for_a_launch,
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "sql", "fact"), [case[1:] for case in QUESTIONS], ids=[case[0] for case in QUESTIONS]
)
def test_question_gets_the_answer_that_the_json_gives(
    opened: dict[str, Trace], traces: Path, name: str, sql: str, fact: Fact
) -> None:
    assert opened[name].query(sql).rows == fact(raw(traces, name))


def test_there_are_ten_questions() -> None:
    assert len(QUESTIONS) == 10
