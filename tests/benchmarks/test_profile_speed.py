"""Step time under `profile()`, against no profiler and torch's own, and the time it writes.

    make bench

All run in one process, one after the other, round by round; of each the best median counts,
so that a busy machine disturbs all alike.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from neuron_explorer.collectors.capture.lines import BY_EVENTS  # noqa: E402
from neuron_explorer.collectors.capture.session import profile  # noqa: E402

pytestmark = pytest.mark.bench

ROUNDS, STEPS, WARM_UP = 4, 20, 3
HOST_BOUND = "tiny, bound by the host"
WIDTHS = {HOST_BOUND: (8, 4), "larger": (256, 64)}
LIMIT = 1.15
"""Against torch's own with shapes (Python >= 3.12), or with stacks too (3.11)."""

Profiler = Callable[[], Any]
PROFILERS: dict[str, Profiler | None] = {
    "plain": None,
    "torch, shapes": lambda: torch.profiler.profile(record_shapes=True),
    "torch, shapes, memory": lambda: torch.profiler.profile(
        record_shapes=True, profile_memory=True
    ),
    "torch, shapes, stacks": lambda: torch.profiler.profile(record_shapes=True, with_stack=True),
    "ours, exact": lambda: profile(source="exact"),
    "ours, exact, no memory": lambda: profile(source="exact", profile_memory=False),
    "ours, call": lambda: profile(source="call"),
    "ours, off": lambda: profile(source="off"),
}


class Block(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up, self.down = torch.nn.Linear(width, width), torch.nn.Linear(width, width)
        self.scale = torch.nn.Parameter(torch.ones(width))

    def forward(self, x: Any) -> Any:
        h = self.up(self.norm(x))
        h = h * torch.sigmoid(h)
        h = self.down(h)
        return x + self.scale * h


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads of kernels would compete with whatever else runs here."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def step_of(width: int, batch: int) -> Callable[[], None]:
    model = torch.nn.Sequential(*[Block(width) for _ in range(4)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(batch, width)

    def step() -> None:
        optimizer.zero_grad()
        difference = model(x) - x
        loss = difference.pow(2).mean()
        loss.backward()
        optimizer.step()

    return step


def median_of_steps(step: Callable[[], None]) -> float:
    seconds = []
    for _ in range(STEPS):
        begin = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds[WARM_UP:])


def measured(step: Callable[[], None], profiler: Profiler | None) -> float:
    if profiler is None:
        return median_of_steps(step)
    with profiler():
        return median_of_steps(step)


@pytest.mark.parametrize("model", WIDTHS)
def test_step_time(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    step = step_of(*WIDTHS[model])
    best = dict.fromkeys(PROFILERS, float("inf"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(ROUNDS):
            for name, profiler in PROFILERS.items():
                best[name] = min(best[name], measured(step, profiler))
    sys.stdout.write(f"\n{model}\n")
    for name, seconds in best.items():
        plain, theirs = seconds / best["plain"], seconds / best["torch, shapes"]
        sys.stdout.write(
            f"  {name:24} {seconds * 1e6:8.0f} us  x{plain:.2f} plain  x{theirs:.2f} torch\n"
        )
    if model != HOST_BOUND:
        return  # the rest is the noise of kernels
    limit = best["torch, shapes" if BY_EVENTS else "torch, shapes, stacks"] * LIMIT
    assert best["ours, exact, no memory"] <= limit


def test_time_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From stop to finished file, against torch's own stop and export, and reading that."""
    monkeypatch.chdir(tmp_path)
    step = step_of(*WIDTHS[HOST_BOUND])
    profilers: dict[str, Callable[[], Any]] = {
        "torch, shapes, memory": PROFILERS["torch, shapes, memory"] or profile
    }
    profilers |= {f"ours, {kind}": partial(profile, source=kind) for kind in ("off", "exact")}
    best = dict.fromkeys(profilers, float("inf"))
    for _ in range(ROUNDS):
        for name, profiler in profilers.items():
            best[name] = min(best[name], us_an_event_to_write(step, profiler))
    sys.stdout.write("\nfrom stop to a file, or to what json.load makes of torch's\n")
    for name, microseconds in best.items():
        sys.stdout.write(f"  {name:24} {microseconds:8.1f} us an event\n")
    assert best["ours, exact"] <= best["torch, shapes, memory"] * LIMIT


def us_an_event_to_write(step: Callable[[], None], profiler: Callable[[], Any]) -> float:
    session = profiler()
    session.start()
    for _ in range(100):
        step()
    begin = time.perf_counter()
    session.stop()
    if isinstance(session, profile):
        seconds = time.perf_counter() - begin
        events = session.trace.sql("SELECT count(*) AS n FROM events")["n"][0].as_py()
    else:
        session.export_chrome_trace("torch.json")
        with Path("torch.json").open(encoding="utf-8") as file:
            events = len(json.load(file)["traceEvents"])
        seconds = time.perf_counter() - begin
    return float(seconds / events * 1e6)
