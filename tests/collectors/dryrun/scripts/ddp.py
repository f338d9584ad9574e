"""One rank of a training over two processes: `ddp.py RANK STORE DEVICE`."""

from __future__ import annotations

import gc
import json
import sys
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import neuron_explorer
from neuron_explorer.collectors.dryrun.log import DeviceLog


def train(rank: int, device: str) -> list[float]:
    torch.manual_seed(rank)  # DDP makes the ranks equal
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))
    wrapped = DistributedDataParallel(model.to(device), bucket_cap_mb=1)
    update = torch.optim.SGD(wrapped.parameters(), lr=0.1, momentum=0.9)
    torch.manual_seed(100 + rank)
    losses = []
    for _ in range(3):
        loss = wrapped(torch.randn(6, 8).to(device)).pow(2).mean()
        loss.backward()
        update.step()
        update.zero_grad()
        losses.append(loss.item())
    return losses


def collectives(rank: int, device: str) -> list[object]:
    x = torch.full((3,), float(rank + 1), device=device)
    dist.all_reduce(x)
    found: list[object] = [x.tolist()]
    y = torch.arange(2, device=device) + 10 * rank
    gathered = [torch.empty(2, dtype=torch.long, device=device) for _ in range(2)]
    dist.all_gather(gathered, y)
    found.append([g.tolist() for g in gathered])
    whole = torch.empty(4, dtype=torch.long, device=device)
    work = dist.all_gather_into_tensor(whole, y, async_op=True)
    assert work is not None
    work.wait()
    found.append(whole.tolist())
    z = torch.full((2,), float(rank), device=device)
    dist.broadcast(z, src=1)
    dist.reduce(z, dst=0, op=dist.ReduceOp.MAX)
    found.append(z.tolist() if rank == 0 else None)
    dist.barrier()
    objects: list[object] = [None, None]
    dist.all_gather_object(objects, {"rank": rank})
    found.append(objects)
    return found


def modelled(log: DeviceLog) -> dict[str, Any]:
    """What the log says of collectives, and whether what reads their results comes after them."""
    talks = [event for event in log.events if event.kind == "collective"]
    compute = [event for event in log.events if event.kind == "kernel"]
    late = []
    for talk in talks:
        results = {number for number, _ in talk.writes}
        readers = [e for e in compute if results & {number for number, _ in e.reads}]
        after = [e for e in readers if e.correlation > talk.correlation]
        end = talk.modelled_start_ns + (talk.modelled_duration_ns or 0)
        late += [e.modelled_start_ns >= end for e in after]
    return {
        "names": sorted({event.name for event in talks}),
        "queues": sorted({event.queue for event in talks}),
        "costs": [
            (e.name, e.read_bytes, e.write_bytes, e.modelled_duration_ns)
            for e in sorted(talks, key=lambda e: e.correlation)
        ],
        "late": late,
    }


def only_shapes(rank: int, store: str) -> dict[str, Any]:
    """Losses are unknown, but what would run and what it would take is not."""
    device = neuron_explorer.dryrun("trn2", execute=False)
    connect(rank, store, "gloo", "shapes")
    train(rank, "neuron")
    dist.destroy_process_group()
    return modelled(device.log)


def connect(rank: int, store: str, backend: str, name: str = "") -> None:
    dist.init_process_group(
        backend,
        init_method=f"file://{store} {backend}{name}",
        rank=rank,
        world_size=2,
        timeout=timedelta(seconds=60),
    )


def main() -> None:
    rank, store, device = int(sys.argv[1]), *sys.argv[2:]
    dry = neuron_explorer.dryrun("trn2") if device == "neuron" else None
    connect(rank, store, "gloo")
    found: dict[str, Any] = {
        "losses": train(rank, device),
        "collectives": collectives(rank, device),
    }
    dist.destroy_process_group()
    if dry is not None:
        found |= modelled(dry.log)
        connect(rank, store, "neuron")
        found["by the device's back end"] = collectives(rank, device)
        links = dry.transfers._collectives._links
        found["links"] = [len(links)]
        dist.destroy_process_group()
        gc.collect()
        found["links"].append(len(links))
        found["shapes"] = only_shapes(rank, store)
    print(json.dumps(found), flush=True)  # noqa: T201


main()
