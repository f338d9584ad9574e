from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

TRACES = Path(__file__).parents[2] / "shared" / "traces"

settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("local", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")


LONGEST = (
    "test_end_to_end.py",
    "sources/test_compiled.py",
    "capture/test_compiler.py",
    "sources/test_sources.py",
    "dryrun/test_device.py",
    "capture/test_demo.py",
    "importers/test_damage.py",
)
"""Files that take longest. Begun last, one of them would keep a single core busy at the end."""


def pytest_configure() -> None:
    """A job in the background ignores Ctrl-C, and what it starts would ignore it as well."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.path.as_posix().endswith(LONGEST))


def pytest_make_parametrize_id(val: object) -> str | None:
    """Packed bytes are no name: the time stamp in a gzip header differs between workers."""
    if isinstance(val, bytes) and (len(val) > 80 or not val.isascii()):
        return "packed"
    return None


@pytest.fixture(autouse=True, scope="session")
def no_roof_of_this_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Figures must not depend on whether somebody has calibrated this machine."""
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
            patch.setenv(variable, str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="session")
def traces() -> Path:
    """Folder of real traces beside the checkout; they are too large to live in it."""
    if not TRACES.is_dir():
        pytest.skip(f"no real traces: {TRACES} does not exist")
    return TRACES
