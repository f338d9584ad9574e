"""The Trainer's callback: whole training steps, also with accumulated gradients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from neuron_explorer.errors import OutputError  # noqa: E402
from neuron_explorer.trace import Trace  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    # what transformers and accelerate warn of is not tested here
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def transformers() -> Any:
    pytest.importorskip("accelerate", reason="the Trainer needs accelerate")
    return pytest.importorskip("transformers", exc_type=ImportError)


class Numbers(torch.utils.data.Dataset):  # type: ignore[misc, name-defined]
    def __init__(self, fails_at: int = -1) -> None:
        self.fails_at = fails_at

    def __len__(self) -> int:
        return 32

    def __getitem__(self, index: int) -> dict[str, Any]:
        if index == self.fails_at:
            raise RuntimeError("the user's own")
        return {"x": torch.ones(8), "labels": torch.ones(8)}


class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)

    def forward(self, x: Any, labels: Any) -> dict[str, Any]:
        return {"loss": torch.nn.functional.mse_loss(self.layer(x), labels)}


def trainer(library: Any, folder: Path, callback: Any, data: Any, **options: Any) -> Any:
    arguments = library.TrainingArguments(
        str(folder / "out"),
        per_device_train_batch_size=2,
        max_steps=6,
        data_seed=0,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
        disable_tqdm=True,
        **options,
    )
    return library.Trainer(Model(), arguments, train_dataset=data, callbacks=[callback])


def test_a_step_is_whole_however_many_batches_it_takes(transformers: Any, tmp_path: Path) -> None:
    from neuron_explorer.integrations.transformers import ProfileCallback  # noqa: PLC0415

    callback = ProfileCallback(tmp_path / "t.parquet", active=2, source="off")
    trainer(transformers, tmp_path, callback, Numbers(), gradient_accumulation_steps=2).train()
    assert callback.paths == [tmp_path / "t.parquet"]
    trainer(transformers, tmp_path, callback, Numbers()).train()
    assert callback.paths == [tmp_path / "t.parquet", tmp_path / "t.window=001.parquet"]
    with Trace.open(callback.paths[:1]) as trace:
        found = trace.sql("""
            SELECT step,
                count(*) FILTER (name = 'aten::mse_loss') AS forwards,
                count(*) FILTER (name = 'MseLossBackward0') AS backwards,
                count(*) FILTER (starts_with(name, 'Optimizer.step')) AS optimizers,
                count(*) FILTER (kind = 'input_wait') > 0 AS waits
            FROM events WHERE step IS NOT NULL GROUP BY step ORDER BY step
        """).to_pylist()
    whole = {"forwards": 2, "backwards": 2, "optimizers": 1, "waits": True}
    assert found == [{"step": step} | whole for step in (2, 3)]


def test_a_failed_training_leaves_a_trace_and_room_for_the_next(
    transformers: Any, tmp_path: Path
) -> None:
    from neuron_explorer.integrations.transformers import ProfileCallback  # noqa: PLC0415

    callback = ProfileCallback(
        tmp_path / "runs", wait=0, warmup=0, active=50, source="off", profile_memory=False
    )
    broken = trainer(transformers, tmp_path, callback, Numbers(fails_at=8))
    broken.args.train_sampling_strategy = "sequential"
    with pytest.raises(RuntimeError, match="the user's own"):
        broken.train()
    assert callback.paths == []
    trainer(transformers, tmp_path, callback, Numbers()).train()
    assert len(callback.paths) == 2


def test_what_cannot_be_written_is_said_before_the_training(
    transformers: Any, tmp_path: Path
) -> None:
    from neuron_explorer.integrations.transformers import ProfileCallback  # noqa: PLC0415

    (tmp_path / "file").touch()
    callback = ProfileCallback(tmp_path / "file" / "t.parquet")
    with pytest.raises(OutputError):
        trainer(transformers, tmp_path, callback, Numbers()).train()
