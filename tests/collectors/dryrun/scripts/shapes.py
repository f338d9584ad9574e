"""A dry run that follows shapes only."""

from __future__ import annotations

import math
import resource
import time
from typing import Any

import torch
from process_checks import check, message_of, run_all
from torch import nn

import neuron_explorer

device = neuron_explorer.dryrun("trn2", execute=False)
neuron: Any = torch.get_device_module("neuron")


@check
def floats_are_unknown() -> None:
    x = torch.randn(4, 4).to("neuron")
    assert math.isnan((x @ x).sum().item())
    assert (x @ x).cpu().isnan().all()


@check
def whole_numbers_are_followed_where_they_are_known() -> None:
    x = torch.arange(6, device="neuron") * 2
    assert x.sum().item() == 30
    assert bool((x >= 0).all())
    assert x.tolist() == [0, 2, 4, 6, 8, 10]


@check
def what_depends_on_unknown_values_is_refused() -> None:
    x = torch.randn(4, 4).to("neuron")
    for action in (
        lambda: bool((x > 0).all()),
        lambda: x.argmax().item(),
        lambda: x.argmax().cpu(),
        lambda: torch.equal(x, x),
        lambda: x[x > 0],
    ):
        assert "execute=True" in message_of(action)


@check
def events_have_no_end() -> None:
    device.log.clear()
    model = nn.Linear(4, 4).to("neuron")
    model(torch.ones(2, 4, device="neuron")).sum().backward()
    assert device.log.events
    assert all(event.end_ns is None for event in device.log.events)
    assert all(event.modelled_duration_ns for event in device.log.events)


@check
def seven_billion_parameters() -> None:
    try:
        from transformers import LlamaConfig, LlamaForCausalLM  # noqa: PLC0415 - may be missing
    except ImportError:
        return
    begin = time.monotonic()
    with torch.device("neuron"):
        model: Any = LlamaForCausalLM(LlamaConfig(vocab_size=32000))
    model.to(torch.bfloat16)
    parameters = sum(p.numel() for p in model.parameters())
    assert 6.5e9 < parameters < 7e9
    ids = torch.full((1, 512), 5).to("neuron")
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    neuron.synchronize()
    assert math.isnan(loss.item())
    assert time.monotonic() - begin < 120
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2 << 20
    # parameters and gradients, two bytes each
    assert 4 * parameters < neuron.memory_allocated() < 4.2 * parameters


run_all()
