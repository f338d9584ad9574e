"""`profile()` takes what torch's takes, with the same meaning."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from neuron_explorer.collectors.capture.session import profile  # noqa: E402

pytestmark = pytest.mark.torch

OTHER_DEFAULTS = {"record_shapes", "profile_memory", "with_stack", "experimental_config"}
"""Documented; and still overridden by whoever names them."""
GIVEN: dict[str, Any] = {
    "record_shapes": False,
    "profile_memory": False,
    "with_stack": True,
    "with_flops": True,
    "with_modules": True,
    "acc_events": True,
    "custom_trace_id_callback": lambda: "42",
    "post_processing_timeout_s": 5.0,
    "on_trace_ready": print,
    "activities": [torch.profiler.ProfilerActivity.CPU],
    "schedule": torch.profiler.schedule(wait=1, warmup=1, active=1),
    "execution_trace_observer": torch.profiler.ExecutionTraceObserver(),
    "experimental_config": torch._C._profiler._ExperimentalConfig(),
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def arguments() -> dict[str, inspect.Parameter]:
    found = dict(inspect.signature(torch.profiler.profile.__init__).parameters)
    del found["self"]
    return found


def test_every_argument_is_tried() -> None:
    assert arguments().keys() - {"use_cuda"} == GIVEN.keys()


def test_defaults_are_torchs() -> None:
    ours, theirs = profile(source="off"), torch.profiler.profile()
    for name in arguments().keys() - OTHER_DEFAULTS - {"use_cuda", "schedule"}:
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.schedule is theirs.schedule
    assert ours.activities == torch.profiler.supported_activities()


@pytest.mark.parametrize("name", sorted(GIVEN))
def test_each_argument_arrives(name: str) -> None:
    ours = profile(source="off", **{name: GIVEN[name]})
    theirs = torch.profiler.profile(**{name: GIVEN[name]})
    assert getattr(ours, name) == getattr(theirs, name)


def test_every_argument_is_documented_or_torchs() -> None:
    own = inspect.signature(profile.__init__).parameters.keys() - {"self", "kwargs"}
    assert all(f"{name}: " in (profile.__doc__ or "") for name in own)


def test_a_trace_id_and_accumulated_events() -> None:
    plan = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=2)
    session: Any = profile(acc_events=True, custom_trace_id_callback=lambda: "42", schedule=plan)
    with session:
        for _ in range(4):
            torch.ones(2)
            session.step()
    assert session.get_trace_id() == "42"
    assert len(session.paths) == 2
    assert sum(event.name == "aten::ones" for event in session.events()) == 2


def test_torchs_own_answers_are_still_there() -> None:
    with profile(with_flops=True) as session:
        torch.ones(4, 4) @ torch.ones(4, 4)
    averages = {row.key: row for row in session.key_averages()}
    assert averages["aten::mm"].flops == 2 * 4**3
    assert "aten::mm" in {event.name for event in session.events()}
    assert session.trace.sql("SELECT * FROM ops WHERE name = 'aten::mm'").num_rows == 1


def test_stacks_give_lines_of_nearly_every_op() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.LayerNorm(8))
    optimizer = torch.optim.AdamW(model.parameters())
    with profile(with_stack=True, source="call") as session:
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.ones(2, 8)).sum().backward()
            optimizer.step()
    query = "SELECT count(*) AS n, count(source_line) AS known FROM ops"
    (found,) = session.trace.sql(query).to_pylist()
    assert found["n"] > 100
    assert found["known"] >= 0.95 * found["n"]
