"""What a collective takes over the links between chips: the ring algorithm's bytes and hops.

Of n ranks each sends (n-1)/n of the data once around the ring, an all-reduce twice (a
reduce-scatter, then an all-gather); each hop has a latency. All ranks are taken to arrive together.
"""

from __future__ import annotations

from dataclasses import dataclass

from neuron_explorer.collectors.dryrun.constants import Constants

_TWICE = frozenset({"allreduce_", "allreduce_coalesced_"})
_IN_PARTS = frozenset(
    {
        "allgather_",
        "_allgather_base_",
        "allgather_coalesced_",
        "allgather_into_tensor_coalesced_",
        "reduce_scatter_",
        "_reduce_scatter_base_",
        "reduce_scatter_tensor_coalesced_",
        "gather_",
        "scatter_",
        "alltoall_",
        "alltoall_base_",
    }
)
"""A rank's own part stays where it is."""
_WHOLE = frozenset({"broadcast_", "reduce_"})
"""All of it goes along the ring, in chunks that follow each other."""
_ONE_HOP = frozenset({"send", "recv_", "recv_any_source_"})
_NOTHING = frozenset({"barrier", "monitored_barrier_"})


@dataclass(frozen=True)
class LinkCost:
    """What one rank's part of a collective takes, without its launch."""

    nbytes: int
    """Bytes that each rank sends."""
    hops: int
    latency_ns: int
    """Of all hops."""
    transfer_ns: int
    """Bytes over the link's bandwidth."""


def link_cost(
    constants: Constants, name: str, read_bytes: int, write_bytes: int, ranks: int
) -> LinkCost | None:
    """Modelled cost of a collective; None for one whose algorithm is not known here.

    Args:
        constants: Of the device.
        name: Op of torch.distributed without its namespace: `allreduce_`.
        read_bytes: Bytes of the tensors that this rank gives.
        write_bytes: Bytes of the tensors that it gets.
        ranks: Size of the process group.
    """
    found = _bytes_and_hops(name, max(read_bytes, write_bytes), ranks)
    if found is None:
        return None
    nbytes, hops = found
    transfer = nbytes / constants.collective_bytes_per_ns
    return LinkCost(nbytes, hops, hops * constants.collective_hop_ns, round(transfer))


def _bytes_and_hops(name: str, whole: int, ranks: int) -> tuple[int, int] | None:
    others = ranks - 1
    if name in _TWICE:
        return round(2 * whole * others / ranks), 2 * others
    if name in _IN_PARTS:
        return round(whole * others / ranks), others
    if name in _WHOLE:
        return whole if others else 0, others
    if name in _ONE_HOP:
        return whole, 1
    return (0, 2 * others) if name in _NOTHING else None
