"""Listening to torch.compile: settings come back, nothing escapes, caches are seen through."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from neuron_explorer.collectors.capture import compiler  # noqa: E402
from neuron_explorer.collectors.capture.lines import BY_EVENTS  # noqa: E402
from neuron_explorer.collectors.capture.resting import Resting  # noqa: E402
from neuron_explorer.collectors.capture.session import profile  # noqa: E402

pytestmark = pytest.mark.torch

PROGRAM = """
import sys, torch, neuron_explorer
def f(x):
    return (x.sin() + 1).cos()
def twin(x):

    return (x.sin() + 1).cos()
compiled, other, x = torch.compile(f), torch.compile(twin), torch.ones(8, 8)
if "early" in sys.argv:
    neuron_explorer.enable_compile_sources()
if "before" in sys.argv:
    compiled(x), other(x)
with neuron_explorer.profile(output="trace.parquet") as session:
    compiled(x), other(x)
import torch._inductor.config as config
assert config.trace.provenance_tracking_level == 0 and not config.cpp.enable_kernel_profile
sql = session.trace.sql
print([s.rpartition(":")[2] for r in sql(
    "SELECT sources FROM events WHERE sources IS NOT NULL ORDER BY start_ns").to_pylist()
    for s in r["sources"]])
print(sql("SELECT count(*) AS n FROM compilations WHERE kind = 'compile'").to_pylist()[0]["n"])
print(sum(r["count"] for r in sql("SELECT count FROM import_issues "
    "WHERE kind = 'compiled_without_sources'").to_pylist()))
"""


def run(folder: Path, text: str, *arguments: str) -> list[str]:
    (folder / "program.py").write_text(text)
    environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "program.py", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip().splitlines()[-3:]


@pytest.mark.deep
@pytest.mark.skipif(not shutil.which("g++"), reason="Inductor needs a C++ compiler")
def test_lines_survive_caches_edits_and_twins(tmp_path: Path) -> None:
    assert run(tmp_path, PROGRAM) == ["['4', '7']", "2", "0"]
    # from the cache on disk, after an edit that moved every line
    assert run(tmp_path, "\n\n" + PROGRAM) == ["['6', '9']", "2", "0"]
    assert run(tmp_path, PROGRAM, "before", "early") == ["['4', '7']", "2", "0"]
    # compiled before anybody listened
    assert run(tmp_path, PROGRAM, "before") == ["[]", "0", "2"]


def test_a_fault_of_ours_is_said_once_and_ends_nothing() -> None:
    listener = compiler._Listener()
    record = logging.LogRecord("torch.__trace", logging.DEBUG, "", 0, "", (), None)
    record.metadata = {"artifact": None}
    with pytest.warns(UserWarning, match="not fully recorded"):
        listener.emit(record)
    listener.emit(record)
    assert listener.drain() == []


def test_enabling_twice_listens_once() -> None:
    logger = logging.getLogger("torch.__trace")
    known = compiler._Compilations()
    known.listen_always()
    known.listen_always()
    assert logger.handlers.count(known._listener) == 1
    known.leave()
    assert known._listener not in logger.handlers


@pytest.mark.skipif(BY_EVENTS, reason="lines come from events here, not from a trace function")
@pytest.mark.parametrize("compile_sources", [True, False])
def test_a_trace_function_rests_while_torch_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, compile_sources: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    seen: list[object] = []

    def backend(graph: Any, _inputs: Any) -> Any:
        seen.append(sys.gettrace())
        return graph.forward

    def doubled(x: Any) -> Any:
        return x + x

    compiled, x = torch.compile(doubled, backend=backend), torch.ones(3)
    with profile(source="exact", compile_sources=compile_sources) as session:
        compiled(x)
        before, line = sys.gettrace(), sys._getframe().f_lineno + 1
        x.neg()
    assert seen == [None]
    assert before is not None
    query = "SELECT source_line FROM events WHERE name = 'aten::neg'"
    assert session.trace.sql(query).to_pylist() == [{"source_line": line}]
    assert not any(isinstance(h, Resting) for h in logging.getLogger("torch.__trace").handlers)
