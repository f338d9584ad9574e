"""Modules, loaders, streams and errors on the device."""

from __future__ import annotations

import copy
import io
import tempfile
import time
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from process_checks import check, message_of, run_all
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import neuron_explorer
from neuron_explorer.collectors.dryrun.jobs import Job

device = neuron_explorer.dryrun("trn2")
neuron: Any = torch.get_device_module("neuron")


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))


def values(module: nn.Module) -> list[torch.Tensor]:
    return [tensor.detach().cpu() for tensor in module.state_dict().values()]


def equal(one: nn.Module, other: nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(values(one), values(other), strict=True))


@check
def there_and_back() -> None:
    first, moved = model(), model()
    assert moved.to("neuron") is moved
    assert {p.device.type for p in moved.parameters()} == {"neuron"}
    assert all(hasattr(p, "_is_param") and p.is_leaf for p in moved.parameters())
    assert equal(first, moved)
    moved.to(torch.bfloat16)
    assert {p.dtype for p in moved.parameters()} == {torch.bfloat16}
    moved.float().cpu()
    assert {type(p) for p in moved.parameters()} == {nn.Parameter}
    assert {p.device.type for p in moved.parameters()} == {"cpu"}


@check
def deep_copies() -> None:
    moved = model().to("neuron")
    moved(torch.ones(3, 4, device="neuron")).sum().backward()
    copied = copy.deepcopy(moved)
    assert equal(moved, copied)
    with torch.no_grad():
        next(copied.parameters()).add_(1)
    assert not equal(moved, copied)
    assert all(p.grad is not None for p in copied.parameters())


@check
def saved_and_loaded() -> None:
    moved = model().to("neuron")
    update = torch.optim.AdamW(moved.parameters())
    moved(torch.ones(3, 4, device="neuron")).sum().backward()
    update.step()
    kept = io.BytesIO()
    torch.save({"model": moved.state_dict(), "update": update.state_dict()}, kept)
    kept.seek(0)
    found = torch.load(kept)
    other = model().to("neuron")
    other.load_state_dict(found["model"])
    assert equal(moved, other)
    again = torch.optim.AdamW(other.parameters())
    again.load_state_dict(found["update"])
    state = again.state[next(other.parameters())]
    assert state["exp_avg"].device.type == "neuron"
    kept.seek(0)
    on_host = torch.load(kept, map_location="cpu")["model"]
    assert {tensor.device.type for tensor in on_host.values()} == {"cpu"}
    with tempfile.TemporaryDirectory() as folder:
        torch.save(moved.cpu().state_dict(), Path(folder) / "model.pt")
        other.load_state_dict(torch.load(Path(folder) / "model.pt"))
    assert {p.device.type for p in other.parameters()} == {"neuron"}


@check
def loaders() -> None:
    data = TensorDataset(torch.arange(32.0).reshape(16, 2), torch.arange(16))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two workers on one core, pinned memory of no use
        choices: list[dict[str, Any]] = [{}, {"num_workers": 2}, {"pin_memory": True}]
        for options in choices:
            seen = []
            for x, y in DataLoader(data, batch_size=4, **options):
                there = x.to("neuron", non_blocking=True)
                x.zero_()  # the copy was taken before
                assert there.sum().item() > 0
                seen += y.to("neuron", non_blocking=True).tolist()
            assert seen == list(range(16)), options


class _OnDevice(torch.utils.data.Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 2

    def __getitem__(self, place: int) -> torch.Tensor:
        return torch.ones(2).to("neuron")


@check
def workers_cannot_use_the_parents_device() -> None:
    torch.ones(2, device="neuron").add_(1)
    said = message_of(lambda: list(DataLoader(_OnDevice(), num_workers=1)))
    assert "forked process" in said, said
    assert "spawn" in said, said


@check
def streams_and_events() -> None:
    stream, begin, end = neuron.Stream(), *(neuron.Event(enable_timing=True) for _ in range(2))
    x = torch.randn(300, 300, device="neuron")
    begin.record()
    with neuron.stream(stream):
        for _ in range(20):
            x = x @ x / 300
    end.record(stream)
    stream.wait_event(begin)
    end.synchronize()
    assert end.query()
    assert begin.elapsed_time(end) > 0
    neuron.current_stream().wait_stream(stream)
    stream.synchronize()
    assert stream.query()
    assert "enable_timing" in message_of(lambda: neuron.Event().elapsed_time(end))


@check
def streams_share_the_compute_queue() -> None:
    x = torch.ones(4, device="neuron")
    neuron.synchronize()
    device.log.clear()
    first, second = neuron.Stream(), torch.get_device_module().Stream()
    with first:
        y = x * 2
    with neuron.stream(second):
        z = x * 3
    torch.accelerator.set_stream(first)
    y.record_stream(second)
    neuron.synchronize()
    assert (y + z).tolist() == [5.0] * 4
    one, two, _ = (event for event in device.log.events if event.kind == "kernel")
    assert {one.queue, two.queue} == {"compute 0"}
    assert two.modelled_start_ns >= one.modelled_start_ns + (one.modelled_duration_ns or 0)


class _Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(10, 4), nn.Linear(4, 10, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.head(self.embed(tokens))
        return found


@check
def tied_weights_stay_tied() -> None:
    for watched in (False, True):
        tied, tokens = _Tied(), torch.ones(2, dtype=torch.long)
        # a profiler that records shapes holds the parameters that it has seen
        with torch.profiler.profile(record_shapes=True) if watched else nullcontext():
            tied(tokens)
            tied.to("neuron")
            tied(tokens.to("neuron")).sum().backward()
        assert tied.head.weight is tied.embed.weight, watched
        assert [p.device.type for p in tied.parameters()] == ["neuron"]
        assert tied.embed.weight.grad is not None
        tied.cpu()
        assert tied.head.weight is tied.embed.weight, watched


@check
def accelerator() -> None:
    found = torch.accelerator.current_accelerator()
    assert found is not None
    assert found.type == "neuron"
    assert torch.accelerator.memory_allocated() == neuron.memory_allocated()
    assert torch.accelerator.max_memory_allocated() >= torch.accelerator.memory_allocated()
    assert torch.accelerator.is_available()
    assert torch.accelerator.device_count() == 1
    x = torch.ones(3, device=found)
    torch.accelerator.synchronize()
    assert x.sum().item() == 3
    assert torch.ones(1).to("neuron:0").device == torch.device("neuron", 0)
    assert "no 1" in message_of(lambda: neuron.set_device(1))
    with neuron.device(0):
        assert neuron.current_device() == 0


@check
def work_is_asynchronous() -> None:
    x = torch.randn(1200, 1200, device="neuron")
    neuron.synchronize()
    begin = time.perf_counter()
    y = x
    for _ in range(10):
        y = y @ x
    submitted = time.perf_counter() - begin
    neuron.synchronize()
    assert submitted < (time.perf_counter() - begin) / 3


@check
def errors_show_at_the_next_wait() -> None:
    table = torch.ones(4, 2, device="neuron")
    row = torch.tensor([9], device="neuron")
    out = nn.functional.embedding(row, table)
    (out * 2).sum()
    said = message_of(neuron.synchronize)
    assert "aten::embedding failed on queue 'compute 0'" in said, said
    neuron.synchronize()
    assert table.sum().item() == 8
    again = nn.functional.embedding(row, table)
    said = message_of(lambda: again.sum().item())
    assert "aten::embedding failed" in said, said
    neuron.synchronize()


@check
def queues_keep_their_order() -> None:
    order: list[int] = []
    for number in range(50):
        job = Job("mark", "kernel", [], [], lambda n=number: order.append(n))  # type: ignore[misc]
        device.submit(("compute", 0), job)
    neuron.synchronize()
    assert order == list(range(50))


@check
def a_second_device() -> None:
    before = torch.full((3,), 2.0, device="neuron")
    again = neuron_explorer.dryrun("trn2")
    assert again is not device
    assert (before * 3).tolist() == [6.0] * 3
    assert len(again.log.events) == 2, again.log.events
    neuron.synchronize()


run_all()
