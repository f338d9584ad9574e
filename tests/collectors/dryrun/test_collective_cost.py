"""Modelled collectives against rings that are walked hop by hop."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from neuron_explorer.collectors.dryrun.collective_cost import link_cost
from neuron_explorer.collectors.dryrun.constants import load_constants

pytestmark = pytest.mark.torch

CONSTANTS = load_constants("trn2")
CHUNK = 1 << 20
GB_PER_S, HOP_NS = 128, 1500


def walked(ranks: int) -> tuple[int, int]:
    """Bytes that rank 0 sends, and hops, until every rank has all parts of every other."""
    # what each rank holds of each chunk: the ranks whose part is in it
    held = [[{rank} for _ in range(ranks)] for rank in range(ranks)]
    sent = hops = 0
    everything = set(range(ranks))
    while any(part != everything for rank in held for part in rank):
        # every rank hands the chunk on that it got last, its own first
        moves = [(rank, (rank - hops) % ranks) for rank in range(ranks)]
        parts = {move: set(held[move[0]][move[1]]) for move in moves}
        for (rank, chunk), part in parts.items():
            held[(rank + 1) % ranks][chunk] |= part
        sent += CHUNK
        hops += 1
    return sent, hops


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_an_all_reduce_goes_around_the_ring_twice(ranks: int) -> None:
    sent, hops = walked(ranks)
    found = link_cost(CONSTANTS, "allreduce_", ranks * CHUNK, ranks * CHUNK, ranks)
    assert found is not None
    assert (found.nbytes, found.hops) == (sent, hops)
    assert found.latency_ns == hops * HOP_NS
    assert found.transfer_ns == pytest.approx(sent / GB_PER_S, abs=1)


@pytest.mark.parametrize(
    ("name", "given", "got", "nbytes", "hops"),
    [
        ("_allgather_base_", 1, 4, 3, 3),
        ("_reduce_scatter_base_", 4, 1, 3, 3),
        ("alltoall_base_", 4, 4, 3, 3),
        ("broadcast_", 4, 4, 4, 3),
        ("send", 4, 0, 4, 1),
        ("barrier", 0, 0, 0, 6),
    ],
)
def test_what_four_ranks_send(name: str, given: int, got: int, nbytes: int, hops: int) -> None:
    found = link_cost(CONSTANTS, name, given * CHUNK, got * CHUNK, 4)
    assert found is not None
    assert (found.nbytes, found.hops) == (nbytes * CHUNK, hops)


def test_alone_nothing_is_sent_and_an_unknown_one_has_no_time() -> None:
    found = link_cost(CONSTANTS, "allreduce_", CHUNK, CHUNK, 1)
    assert found is not None
    assert (found.nbytes, found.hops, found.latency_ns, found.transfer_ns) == (0, 0, 0, 0)
    assert link_cost(CONSTANTS, "shuffle_", CHUNK, CHUNK, 2) is None
