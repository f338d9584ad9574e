"""What is handed to a queue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from neuron_explorer.collectors.dryrun.queues import Storage

Access = tuple[Storage, int]
"""Memory and how many bytes of it."""


@dataclass
class Job:
    """One task on its way to a queue."""

    name: str
    kind: str
    """kernel, memcpy or collective."""
    reads: list[Access]
    writes: list[Access]
    run: Callable[[], None]
    read_bytes: int | None = None
    write_bytes: int | None = None
    flops: int | None = None
    work_ns: int = 0
    """Modelled time of its work."""
    compute_ns: int = 0
    """The part of it that is arithmetic: FLOPs over the engine's peak."""
    latency_ns: int = 0
    """Modelled time of a collective's hops, besides its launch."""
    known: bool = True
    """Whether the model has a time for it."""
    graph: str | None = None
    key: Any = None
    """Of an eager op's program; None for what cannot be made one program with its neighbours."""
    ops: int = 1
    follow: bool = False
    """Run it although nothing is executed: small whole numbers decide what a script does."""
