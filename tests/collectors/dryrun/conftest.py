"""Scripts run in a process of their own: a device is registered for the life of one."""

from __future__ import annotations

import pytest
from dryrun_scripts import Run, run_script


@pytest.fixture
def script() -> Run:
    """Run a script of `scripts/`."""
    pytest.importorskip("torch")
    return run_script
