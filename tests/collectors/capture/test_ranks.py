"""A process knows its rank, whoever started it."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from torch import distributed
from torch.testing._internal.distributed.fake_pg import FakeStore

from neuron_explorer.collectors.capture.outputs import rank_of_environment

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(("size", "rank", "found"), [(4, 3, 3), (1, 0, None)])
def test_the_process_group_tells_where_the_environment_does_not(
    monkeypatch: pytest.MonkeyPatch, size: int, rank: int, found: int | None
) -> None:
    for variable in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(variable, raising=False)
    assert rank_of_environment() is None
    distributed.init_process_group("fake", rank=rank, world_size=size, store=FakeStore())
    try:
        assert rank_of_environment() == found
    finally:
        distributed.destroy_process_group()


def test_the_environment_of_torchrun_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "8")
    monkeypatch.setenv("RANK", "5")
    assert rank_of_environment() == 5
