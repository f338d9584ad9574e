"""The dry-run device's queues as a source of `profile()`."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from neuron_explorer.collectors.dryrun.device import Device
from neuron_explorer.collectors.dryrun.log import Compilation, Fallback, Launch, QueueEvent
from neuron_explorer.collectors.dryrun.tensor import NAME
from neuron_explorer.collectors.queue_sources import (
    EVENTS,
    LAUNCHES,
    Batch,
    ClockReading,
    QueueKind,
)
from neuron_explorer.collectors.recorded import recorded_table


class DryRunSource:
    """Reads the device's log from where the last window ended."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._from = self._place()
        self.name = f"{NAME} dry run"
        self.device = f"{NAME}:0 ({device.constants.name}, dry run)"
        self.facts: Mapping[str, object] = {
            "constants": dict(device.constants.sources),
            "executes": device.execute,
        }
        self.queues: Mapping[str, QueueKind] = {
            queue.name: _KINDS[queue.kind] for queue in device.queues.values()
        }

    def start(self) -> None:
        """The device logs always; remember where the window begins.

        What was launched before has to be over, or it would be work without a launch.
        """
        self._wait()
        self._from = self._place()

    def stop(self) -> None:
        """Wait for everything submitted, without a trace of it on the modelled timeline."""
        self._wait()

    def _wait(self) -> None:
        if self._device.forked:
            return  # its threads are the parent's
        self._device.flush()
        for queue in self._device.queues.values():
            queue.wait_quietly(queue.given)

    def clock(self) -> ClockReading:
        """The device stamps with this machine's own clock."""
        now = time.time_ns()
        return ClockReading(now, now, 0)

    def drain(self) -> Batch:
        log, begin = self._device.log, self._from
        self._from = self._place()
        host = [_compiled(c) for c in log.compilations[begin["compilations"] :]]
        host += [_fallen_back(f) for f in log.fallbacks[begin["fallbacks"] :]]
        return Batch(
            events=_table(EVENTS, [_event(e) for e in log.events[begin["events"] :]]),
            launches=_table(LAUNCHES, [_launch(x) for x in log.launches[begin["launches"] :]]),
            host=recorded_table(host),
        )

    def _place(self) -> dict[str, int]:
        log = self._device.log
        records: dict[str, Sequence[object]] = {
            "events": log.events,
            "launches": log.launches,
            "compilations": log.compilations,
            "fallbacks": log.fallbacks,
        }
        return {name: len(record) for name, record in records.items()}


_KINDS: dict[str, QueueKind] = {"compute": "compute", "collective": "collective", "copy": "copy"}


def _table(schema: pa.Schema, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema)


def _event(event: QueueEvent) -> dict[str, Any]:
    row = asdict(event)
    row["graph_id"] = event.graph
    row["attributes"] = json.dumps(_modelled(event))
    # an eager program costs what its op does, which is found by formula as on every device
    if event.ops == 1 and event.kind == "kernel" and event.graph is None:
        row["read_bytes"] = row["write_bytes"] = row["flops"] = None
    return {name: row.get(name) for name in EVENTS.names}


def _modelled(event: QueueEvent) -> dict[str, Any]:
    """What the modelled time rests on, for the view `modelled_work`."""
    found: dict[str, Any] = {"reads": event.reads, "writes": event.writes}
    if event.ops > 1:
        found["ops"] = event.ops
    if event.floors is not None:
        moved = (event.read_bytes, event.write_bytes)
        found["modelled_bound"] = event.floors.bound
        found["modelled_bytes"] = None if None in moved else sum(moved)
        found["modelled_flops"] = event.flops
        found |= {f"modelled_{name}": value for name, value in asdict(event.floors).items()}
    return {name: value for name, value in found.items() if value is not None}


def _launch(launch: Launch) -> dict[str, Any]:
    return asdict(launch)


def _compiled(made: Compilation) -> dict[str, Any]:
    return {
        "role": "compiler/recompile" if made.recompilation else "compiler/compile",
        "name": made.name,
        "start_ns": made.start_ns,
        "duration_ns": made.end_ns - made.start_ns,
        "tid": made.tid,
        "graph_id": made.graph,
        "reason": made.reason,
        "attributes": json.dumps({"program": made.key, "backend": NAME, "unit": _unit(made)}),
    }


def _unit(made: Compilation) -> str:
    """What the program is: one eager op, neighbours of adaptive eager, a graph of Dynamo's."""
    if made.graph is not None:
        return "graph"
    return "group" if made.name.endswith(" ops)") else "op"


def _fallen_back(found: Fallback) -> dict[str, Any]:
    return {
        "role": "host/slice",
        "name": f"{found.name} executed via CPU fallback",
        "start_ns": found.start_ns,
        "duration_ns": found.end_ns - found.start_ns,
        "tid": found.tid,
        "attributes": json.dumps({"copied_bytes": found.copied_bytes}),
    }
