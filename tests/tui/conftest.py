from __future__ import annotations

from pathlib import Path

import pytest

from neuron_explorer.collectors.importers import import_file

DATA = Path(__file__).parents[1] / "data"
CHECKPOINTING = "kineto/mi300-resnet-checkpointing.json.gz"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-pictures",
        action="store_true",
        help="draw tests/tui/golden/*.svg anew (pytest tests/tui ...)",
    )


@pytest.fixture(autouse=True)
def _usual_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test draws must not depend on where it runs."""
    monkeypatch.setenv("LANG", "C.UTF-8")
    for name in ("NO_COLOR", "LC_ALL", "LC_CTYPE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One step with three kernels, all from line 12 of a `model.py` that nobody has."""
    output = tmp_path_factory.mktemp("tiny") / "tiny.parquet"
    import_file(DATA / "tiny.kineto.json", output)
    return output


@pytest.fixture(scope="session")
def checkpointing(traces: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real trace: three steps on an MI300X, with source places but not their text."""
    output = tmp_path_factory.mktemp("checkpointing") / "trace.parquet"
    import_file(traces / CHECKPOINTING, output)
    return output
