from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from neuron_explorer.collectors.importers import import_file
from neuron_explorer.exports.sink import open_sink
from neuron_explorer.exports.trace_event import write_chrome, write_perfetto
from neuron_explorer.exports.window import Window, part_of
from neuron_explorer.loading import load

WRITERS = {"chrome": write_chrome, "perfetto": write_perfetto}

Export = Callable[..., Path]


def export(trace: Path, form: str, window: Window | None = None) -> Path:
    """The trace as JSON, beside it."""
    output = trace.with_name(f"{trace.stem}.{form}.json")
    with load(trace) as opened, open_sink(output) as out:
        WRITERS[form](opened, part_of(opened, window or Window()), out)
    return output


def events_of(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["traceEvents"]
    return found


def imported(path: Path) -> Path:
    """A file of another tool as Parquet, beside it."""
    output = path.with_name(f"{path.name}.parquet")
    import_file(path, output)
    return output


@pytest.fixture(scope="session")
def shared(traces: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A real trace by name, imported once."""
    folder, made = tmp_path_factory.mktemp("shared"), dict[str, Path]()

    def of(name: str) -> Path:
        if name not in made:
            (source,) = (traces / "kineto").glob(f"{name}.json*")
            made[name] = folder / f"{name}.parquet"
            import_file(source, made[name])
        return made[name]

    return of
