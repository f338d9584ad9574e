"""`torch.compile(backend="neuron")` in a dry run."""

from __future__ import annotations

import copy
from typing import Any

import torch
from process_checks import check, message_of, run_all
from torch import nn

import neuron_explorer

device = neuron_explorer.dryrun("trn2")
neuron: Any = torch.get_device_module("neuron")


def ran() -> list[str]:
    """Names of the programs since the last call."""
    neuron.synchronize()
    found = [event.name for event in device.log.events if event.kind == "kernel"]
    device.log.clear()
    return found


def compiled(function: Any, **options: Any) -> Any:
    torch._dynamo.reset()
    ran()
    return torch.compile(function, backend="neuron", **options)


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))


@check
def one_program_a_graph() -> None:
    model = compiled(net().to("neuron"))
    x = torch.ones(4, 8, device="neuron")
    model(x).sum().backward()
    ran()
    loss = model(x).sum()
    names = ran()
    assert len([name for name in names if name.startswith("graph")]) == 1, names
    assert names[0].endswith("forward")
    loss.backward()
    names = [name for name in ran() if name.startswith("graph")]
    assert len(names) == 1, names
    assert names[0].endswith("backward")


@check
def training_gives_the_cpus_losses() -> None:
    start = net()
    losses = []
    for where in ("neuron", "cpu"):
        model = copy.deepcopy(start).to(where)
        run = compiled(model) if where == "neuron" else model
        update = torch.optim.AdamW(model.parameters(), lr=1e-2)
        torch.manual_seed(1)
        here = []
        for _ in range(3):
            loss = run(torch.randn(4, 8).to(where)).pow(2).mean()
            loss.backward()
            update.step()
            update.zero_grad()
            here.append(loss.item())
        losses.append(here)
    torch.testing.assert_close(*losses)


@check
def a_graph_break_splits_it() -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        y = x.sin() + 1
        torch._dynamo.graph_break()
        return y.cos() * 2

    run = compiled(broken)
    x = torch.ones(4, device="neuron")
    run(x)
    ran()
    assert len({*ran()}) == 0
    result = run(x)
    names = ran()
    assert len(names) == 2, names
    torch.testing.assert_close(result.cpu(), broken(torch.ones(4)))


@check
def each_shape_is_compiled() -> None:
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return (x * 2).relu()

    run = compiled(doubled)
    for size in (4, 5, 6, 4):
        assert run(torch.ones(size, device="neuron")).tolist() == [2.0] * size
    built = [made for made in device.log.compilations if made.graph]
    assert len(built) == 3, built
    assert len({made.graph for made in built}) == 3


@check
def dynamic_shapes_are_refused() -> None:
    run = compiled(lambda x: x * 2, dynamic=True)
    said = message_of(lambda: run(torch.ones(4, device="neuron")))
    assert "backend='neuron' compiles static shapes only" in said, said


@check
def constants_are_part_of_a_graph() -> None:
    def scaled(x: torch.Tensor) -> torch.Tensor:
        scale = torch.tensor([1.0, 2.0], device=x.device)
        return x * scale + torch.tensor(3, device=x.device) + torch.arange(2, device=x.device)

    run = compiled(scaled)
    for _ in range(2):
        assert run(torch.ones(2, device="neuron")).tolist() == [4.0, 6.0]
    assert len([name for name in ran() if name.startswith("graph")]) == 2
    assert not device.log.fallbacks


@check
def random_numbers_of_a_graph() -> None:
    run = compiled(lambda x: nn.functional.dropout(x, 0.5) + torch.rand_like(x))
    x = torch.ones(50, device="neuron")
    found = []
    host = torch.get_rng_state()
    for seed in (3, 3, 4):
        neuron.manual_seed(seed)
        found.append(run(x).cpu())
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])
    assert torch.equal(host, torch.get_rng_state())


@check
def inputs_changed_in_place() -> None:
    def add(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x * 2

    run = compiled(add)
    x = torch.ones(3, device="neuron")
    assert run(x).tolist() == [4.0] * 3
    assert x.tolist() == [2.0] * 3


@check
def outputs_that_are_views() -> None:
    run = compiled(lambda x: (x.t(), x[0], x + 1))
    x = torch.arange(6.0, device="neuron").reshape(2, 3)
    turned, row, more = run(x)
    assert turned.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    row.mul_(10)
    assert x.tolist()[0] == [0.0, 10.0, 20.0]
    assert more.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


@check
def autocast_inside() -> None:
    model = net().to("neuron")

    def run(x: torch.Tensor) -> Any:
        with torch.autocast("neuron", dtype=torch.bfloat16):
            return model(x)

    x = torch.randn(4, 8).to("neuron")
    plain = run(x)
    made = compiled(run)(x)
    assert made.dtype == plain.dtype
    torch.testing.assert_close(made.cpu(), plain.cpu(), rtol=2e-2, atol=2e-2)


@check
def a_language_model_with_its_cache() -> None:
    try:
        from transformers import LlamaConfig, LlamaForCausalLM  # noqa: PLC0415 - may be missing
    except ImportError:
        return
    config = LlamaConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=50,
        use_cache=True,
    )
    model: Any = LlamaForCausalLM(config)
    ids = torch.randint(0, 50, (2, 8))
    expected = model(input_ids=ids, labels=ids).loss.item()
    model.to("neuron")
    run = compiled(model)
    there = ids.to("neuron")
    for _ in range(2):
        loss = run(input_ids=there, labels=there).loss
        assert abs(loss.item() - expected) < 1e-5
        loss.backward()
    graphs = {name for name in ran() if name.startswith("graph")}
    assert len(graphs) == 2, graphs


run_all()
