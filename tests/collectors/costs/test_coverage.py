"""How much of the hardware time of real traces has a cost.

A kernel's op is the innermost one around its launch; where that has no cost, the next one
outwards that has. Kernels whose launch or op the trace lost are not this package's to cost.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest

from neuron_explorer.collectors.costs import Cost, op_cost
from neuron_explorer.collectors.costs.lists import list_dtype

Event: TypeAlias = dict[str, Any]
Texts: TypeAlias = tuple[str | None, str | None, str | None, str | None]

RUNTIME = ("cuda_runtime", "cuda_driver")
HEAVY = re.compile(r"gemm|cijk|xmma|cutlass|nvjet|bmm_|conv|wgrad|dgrad|flash|fmha|attn", re.I)
NOT_HEAVY = re.compile(r"elementwise|nccl|triton_|reduce_kernel|finalize|quantize|vllm::resh", re.I)


class Floor(NamedTuple):
    """Least shares, in percent of the kernel time that has an op."""

    known_bytes: float
    heavy_flops: float


# vLLM's fused experts and paged attention reach weights and caches through a handle, and torch
# records no shape of the indices of `x[i]`: that is what stays unknown.
FLOORS = {
    "h100-qwen-0.5b.json.gz": Floor(100, 100),
    "mi300-resnet-checkpointing.json.gz": Floor(99, 100),
    "b200-eager.json.gz": Floor(39, 17),
    "mi300-diffusion-sd35.json.gz": Floor(99.9, 99.9),
    "b200-moe-forward-rank0of2.json": Floor(95, 100),
    "h100-bert-small.json.gz": Floor(100, 100),
    "mi300-bert-small.json.gz": Floor(100, 100),
    "a100-particle-transformer-memory.json": Floor(98, 100),
}


class Shares(NamedTuple):
    known: float
    explained: float
    heavy: float


def end(event: Event) -> float:
    return float(event["ts"]) + float(event.get("dur", 0))


def chains(events: list[Event]) -> Iterator[tuple[Event, list[Event], list[int]]]:
    """Each kernel, the ops of the launching thread, and which are around it, innermost first."""
    launches = {e["args"].get("correlation"): e for e in events if e.get("cat") in RUNTIME}
    threads: dict[tuple[Any, Any], list[Event]] = defaultdict(list)
    for event in events:
        if event.get("cat") == "cpu_op":
            threads[event["pid"], event["tid"]].append(event)
    launched: dict[tuple[Any, Any], list[tuple[Event, Event]]] = defaultdict(list)
    for event in events:
        launch = launches.get(event.get("args", {}).get("correlation"))
        if event.get("cat") == "kernel" and launch:
            launched[launch["pid"], launch["tid"]].append((launch, event))
    for thread, pairs in launched.items():
        yield from _enclosing(threads[thread], pairs)


def _enclosing(
    ops: list[Event], pairs: list[tuple[Event, Event]]
) -> Iterator[tuple[Event, list[Event], list[int]]]:
    ops.sort(key=lambda op: (float(op["ts"]), -end(op)))
    pairs.sort(key=lambda pair: float(pair[0]["ts"]))
    stack: list[int] = []
    position = 0
    for launch, kernel in pairs:
        while position < len(ops) and float(ops[position]["ts"]) <= float(launch["ts"]):
            stack = [i for i in stack if end(ops[i]) >= float(ops[position]["ts"])]
            stack.append(position)
            position += 1
        stack = [i for i in stack if end(ops[i]) >= float(launch["ts"])]
        yield kernel, ops, stack[::-1]


def cost_of(ops: list[Event], position: int, texts_of: Callable[[Event], Texts]) -> Cost:
    """Cost of an op; the dtype of a list from the ops that follow."""
    name, texts = ops[position]["name"], texts_of(ops[position])
    cost = op_cost(name, *texts)
    if "list_dtype_not_recorded" not in (cost.note or ""):
        return cost
    followers = (texts_of(op)[:2] for op in ops[position + 1 : position + 50])
    return op_cost(name, *texts, list_dtype=list_dtype(cost.output_shapes, followers))


def measure(events: list[Event], texts_of: Callable[[Event], Texts]) -> Shares:
    time: defaultdict[str, float] = defaultdict(float)
    for kernel, ops, stack in chains(events):
        if not stack or "nccl" in kernel["name"]:
            continue  # a collective's kernel carries its own sizes
        costs = [cost_of(ops, position, texts_of) for position in stack]
        cost = next((found for found in costs if found.via), costs[0])
        duration = float(kernel["dur"])
        known = cost.read_bytes is not None and cost.write_bytes is not None
        heavy = bool(HEAVY.search(kernel["name"])) and not NOT_HEAVY.search(kernel["name"])
        time["all"] += duration
        time["known"] += duration * known
        time["explained"] += duration * (known or bool(cost.note))
        time["heavy"] += duration * heavy
        time["flops"] += duration * (heavy and cost.flops is not None)
    every, heavy_time = time["all"] / 100, (time["heavy"] or 1) / 100
    return Shares(time["known"] / every, time["explained"] / every, time["flops"] / heavy_time)


@pytest.mark.parametrize("name", FLOORS)
def test_share_of_hardware_time_with_a_cost(
    name: str,
    traces: Path,
    read_events: Callable[[Path], list[Event]],
    texts_of: Callable[[Event], Texts],
) -> None:
    shares = measure(read_events(traces / "kineto" / name), texts_of)
    assert shares.explained == pytest.approx(100)
    assert shares.known >= FLOORS[name].known_bytes - 1e-6
    assert shares.heavy >= FLOORS[name].heavy_flops - 1e-6
