"""The pytest fixture `neuron_trace`: capture a step in a test, and say what it must not do.

pytest loads this module for every test run of everybody who has the package, so it imports neither
torch nor a query engine until a test asks for the fixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from neuron_explorer.integrations.captured_step import CapturedStep


@pytest.fixture
def neuron_trace(tmp_path: Path) -> Iterator[CapturedStep]:
    """Record steps of a test, then make assertions on them.

    `with neuron_trace() as profiler:` records, into `tmp_path`; `neuron_trace.trace` is what was
    recorded, for SQL and everything else.
    """
    from neuron_explorer.integrations.captured_step import CapturedStep  # noqa: PLC0415 - see above

    captured = CapturedStep(tmp_path)
    try:
        yield captured
    finally:
        captured.close()
