"""The profiler for Lightning's Trainer, in both packages that Lightning ships."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from neuron_explorer.trace import Trace  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    # what Lightning warns of is not tested here
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(params=["lightning.pytorch", "pytorch_lightning"])
def library(request: pytest.FixtureRequest) -> Any:
    return pytest.importorskip(request.param, exc_type=ImportError)


def model(library: Any, fails_at: int = -1) -> Any:
    class Model(library.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(8, 8)

        def training_step(self, batch: Any, index: int) -> Any:
            if index == fails_at:
                raise RuntimeError("the user's own")
            return torch.nn.functional.mse_loss(self.layer(batch), batch)

        def test_step(self, batch: Any, index: int) -> None:  # noqa: ARG002
            self.layer(batch)

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    return Model()


def trainer(library: Any, profiler: Any, **options: Any) -> Any:
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    return library.Trainer(
        max_epochs=1,
        accelerator="cpu",
        devices=1,
        profiler=profiler,
        enable_model_summary=False,
        **quiet,
        **options,
    )


def loader() -> Any:
    return torch.utils.data.DataLoader(torch.ones(24, 8), batch_size=2)


def profiler(path: Path, **options: Any) -> Any:
    from neuron_explorer.integrations.lightning import NeuronExplorerProfiler  # noqa: PLC0415

    return NeuronExplorerProfiler(path, source="off", **options)


def test_a_step_is_whole_however_many_batches_it_takes(library: Any, tmp_path: Path) -> None:
    ours = profiler(tmp_path / "t.parquet", active=2)
    trainer(library, ours, accumulate_grad_batches=3).fit(model(library), loader())
    assert ours.paths == [tmp_path / "t.parquet"]
    with Trace.open(ours.paths) as trace:
        found = trace.sql("""
            SELECT step,
                count(*) FILTER (name = 'aten::mse_loss') AS forwards,
                count(*) FILTER (name = 'MseLossBackward0') AS backwards,
                count(*) FILTER (starts_with(name, 'Optimizer.step')) AS optimizers,
                count(*) FILTER (kind = 'input_wait') > 0 AS waits
            FROM events WHERE step IS NOT NULL GROUP BY step ORDER BY step
        """).to_pylist()
    whole = {"forwards": 3, "backwards": 3, "optimizers": 1, "waits": True}
    assert found == [{"step": step} | whole for step in (2, 3)]


def test_fit_and_test_write_a_trace_each(library: Any, tmp_path: Path) -> None:
    ours = profiler(tmp_path / "t.parquet", wait=0, active=1)
    run = trainer(library, ours)
    run.fit(model(library), loader())
    run.test(model(library), loader(), verbose=False)
    assert [path.name for path in ours.paths] == ["t.parquet", "t.test.parquet"]
    with Trace.open([ours.paths[1]]) as trace:
        found = trace.sql("SELECT name FROM ops WHERE name = 'aten::addmm'").to_pylist()
    assert len(found) == 1


def test_a_failed_training_still_writes(library: Any, tmp_path: Path) -> None:
    ours = profiler(tmp_path / "t.parquet", wait=0, active=50)
    with pytest.raises(RuntimeError, match="the user's own"):
        trainer(library, ours).fit(model(library, fails_at=4), loader())
    assert ours.paths == [tmp_path / "t.parquet"]
    with Trace.open(ours.paths) as trace:
        assert trace.sql("SELECT max(step) AS last FROM events").to_pylist() == [{"last": 4}]
