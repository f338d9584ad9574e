from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

TRACES = Path(__file__).parents[2] / "shared" / "traces"

settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("local", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture(scope="session")
def traces() -> Path:
    """Folder of real traces beside the checkout; they are too large to live in it."""
    if not TRACES.is_dir():
        pytest.skip(f"no real traces: {TRACES} does not exist")
    return TRACES
