from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from builders import Row, write_trace
from neuron_explorer.trace import Trace

OpenTrace = Callable[..., Trace]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite tests/analyzers/golden/*/expected.json (pytest tests/analyzers ...)",
    )


@pytest.fixture
def open_trace(tmp_path: Path) -> OpenTrace:
    """Opens rows of `builders` as a trace."""

    def opened(rows: Iterable[Row], metadata: Mapping[str, object] | None = None) -> Trace:
        return Trace.open([write_trace(tmp_path / "trace.parquet", rows, metadata)])

    return opened
