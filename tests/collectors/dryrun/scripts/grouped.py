"""Adaptive eager: neighbouring ops become one program."""

from __future__ import annotations

from typing import Any

import torch
from process_checks import check, run_all
from torch import nn

import neuron_explorer
from neuron_explorer.collectors.dryrun.log import QueueEvent

device = neuron_explorer.dryrun("trn2", adaptive=True)
neuron: Any = torch.get_device_module("neuron")
LIMIT = device.constants.adaptive_ops


def programs() -> list[QueueEvent]:
    """Programs since the last call."""
    neuron.synchronize()
    found = [event for event in device.log.events if event.kind == "kernel"]
    device.log.clear()
    return found


@check
def neighbours_are_one_program() -> None:
    x = torch.ones(100, 10).to("neuron")
    programs()
    y = (x * 2).relu().sum(1)
    (ran,) = programs()
    assert ran.ops == 3
    assert ran.name == "aten::mul ... aten::sum (3 ops)", ran.name
    # x comes from outside, y is all that is left
    assert (ran.read_bytes, ran.write_bytes) == (4000, 400)
    assert y.tolist() == [20.0] * 100


@check
def what_is_still_alive_is_written() -> None:
    x = torch.ones(100, 10).to("neuron")
    programs()
    between = x * 2
    y = between + x
    (ran,) = programs()
    assert (ran.read_bytes, ran.write_bytes) == (4000, 8000)
    x.add_(1)
    (ran,) = programs()
    assert (ran.ops, ran.name) == (1, "aten::add_")
    assert (ran.read_bytes, ran.write_bytes) == (4000, 4000)
    assert y[0, 0].item() == 3
    assert between[0, 0].item() == 2


@check
def waits_and_copies_end_a_group() -> None:
    x = torch.ones(4).to("neuron")
    programs()
    y = x * 2
    assert y.sum().item() == 8
    z = y + torch.ones(4).to("neuron")
    event = neuron.Event()
    w = z * 2
    event.record()
    (w + 1).cpu()
    assert [ran.ops for ran in programs()] == [2, 2, 1]


@check
def a_group_has_a_limit() -> None:
    x = torch.ones(4).to("neuron")
    programs()
    for _ in range(LIMIT + 5):
        x = x + 1
    assert [ran.ops for ran in programs()] == [LIMIT, 5]
    assert x[0].item() == LIMIT + 6


@check
def views_in_between() -> None:
    x = torch.arange(12.0).to("neuron")
    programs()
    y = (x + 1).view(3, 4).t()[1]
    z = y * 2
    y.unsqueeze_(0)
    w = y.add_(1)
    assert z.tolist() == [4.0, 12.0, 20.0]
    assert w.tolist() == [[3.0, 7.0, 11.0]]


@check
def deterministic_algorithms_switch_it_off() -> None:
    x = torch.ones(4).to("neuron")
    programs()
    torch.use_deterministic_algorithms(mode=True)
    try:
        x = x * 2 + 1
        assert [ran.ops for ran in programs()] == [1, 1]
    finally:
        torch.use_deterministic_algorithms(mode=False)


@check
def a_group_is_built_once() -> None:
    device.log.clear()
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)).to("neuron")

    def step(rows: int) -> int:
        x = torch.ones(rows, 8).to("neuron")
        before = len(device.log.compilations)
        for parameter in model.parameters():
            parameter.grad = None
        model(x).sum().backward()
        neuron.synchronize()
        return len(device.log.compilations) - before

    assert step(4) > 0
    step(4)
    assert step(4) == 0
    assert step(6) > 0


@check
def fewer_submissions() -> None:
    torch.manual_seed(0)
    model = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True).to("neuron")
    x = torch.randn(2, 8, 32).to("neuron")
    programs()
    model(x).sum().backward()
    grouped = programs()
    model.zero_grad()
    single = neuron_explorer.dryrun("trn2")
    model(x).sum().backward()
    neuron.synchronize()
    alone = [event for event in single.log.events if event.kind == "kernel"]
    assert sum(ran.ops for ran in grouped) == len(alone)
    assert len(grouped) <= len(alone) / 20
    moved = [
        sum((event.read_bytes or 0) + (event.write_bytes or 0) for event in events)
        for events in (grouped, alone)
    ]
    assert moved[0] < moved[1] / 2, moved


run_all()
