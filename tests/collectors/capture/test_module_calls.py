"""Modules by their names in the model, and forwards that ran again, on real torch."""

from __future__ import annotations

import gc
import importlib
import json
import linecache
import sys
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from pyarrow import parquet

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from neuron_explorer.collectors.capture.recomputation import recomputing_code  # noqa: E402
from neuron_explorer.collectors.capture.session import profile  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore:Guards may run slower:RuntimeWarning"),
]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


class MLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(4, 8), nn.Linear(8, 4)

    def forward(self, x: Any) -> Any:
        return self.down(torch.relu(self.up(x)))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([MLP(), MLP()])
        self.head = nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return self.head(nn.Tanh()(x))

    def encode(self, x: Any) -> Any:
        return self.layers[1](x)


NET = {"Net": "Net", "layers.0": "MLP", "layers.1": "MLP", "head": "Linear", "Tanh": "Tanh"}
NET |= {f"layers.{n}.{part}": "Linear" for n in (0, 1) for part in ("up", "down")}

X = torch.ones(3, 4)


def calls(session: profile) -> Counter[tuple[str, str]]:
    """How often each module (name, class) was called."""
    query = "SELECT name, module_class FROM events WHERE layer = 'framework' AND kind = 'module'"
    rows = session.trace.sql(query).to_pylist()
    return Counter((row["name"], row["module_class"]) for row in rows)


def names(session: profile) -> set[str]:
    return {name for name, _ in calls(session)}


def recorded(work: Callable[[], object], **options: Any) -> profile:
    session = profile(source="exact", **options)
    with session:
        work()
    return session


def test_modules_have_the_names_of_the_model() -> None:
    net = Net()
    session = recorded(lambda: [net(X).sum().backward() for _ in range(3)])
    assert calls(session) == dict.fromkeys(NET.items(), 3)
    query = "SELECT DISTINCT name, module, phase FROM events WHERE name LIKE '%mm' ORDER BY ALL"
    said = session.trace.sql(query).to_pylist()
    linears = sorted(name for name, cls in NET.items() if cls == "Linear")
    assert [row["module"] for row in said if row["name"] == "aten::addmm"] == linears
    backward = {row["module"] for row in said if row["phase"] == "backward"}
    assert backward == set(linears)


def test_every_op_that_ran_in_a_call_has_it_for_an_ancestor_and_keeps_its_own_parent() -> None:
    net = Net()
    session = recorded(lambda: [net(X).sum().backward() for _ in range(3)])
    query = """
    WITH RECURSIVE above AS (
        SELECT event_id, parent_id AS ancestor FROM events WHERE parent_id IS NOT NULL
        UNION ALL
        SELECT a.event_id, e.parent_id FROM above AS a JOIN events AS e ON a.ancestor = e.event_id
        WHERE e.parent_id IS NOT NULL
    )
    SELECT m.name, e.name AS op FROM events AS m JOIN events AS e
    ON e.tid = m.tid AND e.start_ns BETWEEN m.start_ns AND m.end_ns AND e.event_id <> m.event_id
    AND NOT (e.kind = 'module' AND e.start_ns = m.start_ns)
    WHERE m.kind = 'module' AND e.layer IN ('framework', 'memory') AND {}
    (SELECT * FROM above AS a WHERE a.event_id = e.event_id AND a.ancestor = m.event_id)
    """
    assert session.trace.sql(query.format("NOT EXISTS")).to_pylist() == []
    assert session.trace.sql(query.format("EXISTS")).num_rows > 100
    query = """
    SELECT p.name, count(*) AS n FROM events AS e JOIN events AS p ON e.parent_id = p.event_id
    WHERE e.name = 'aten::addmm' GROUP BY p.name
    """
    assert session.trace.sql(query).to_pylist() == [{"name": "aten::linear", "n": 15}]


def test_the_view_adds_up_by_module() -> None:
    net = Net()
    session = recorded(lambda: [net(X).sum().backward() for _ in range(3)])
    rows = {row["module"]: row for row in session.trace.sql("FROM modules").to_pylist()}
    assert set(rows) == set(NET)
    up = rows["layers.0.up"]
    assert (up["calls"], up["module_class"]) == (3, "Linear")
    assert up["host_ns"] == up["forward_host_ns"] + up["backward_host_ns"]
    assert up["device_ns"] == up["forward_device_ns"] + up["backward_device_ns"]
    assert min(up["forward_device_ns"], up["backward_device_ns"]) > 0
    assert rows["Net"]["call_ns"] > rows["layers.0"]["call_ns"] > up["call_ns"]
    query = "SELECT sum(host_ns) AS n FROM modules UNION ALL SELECT sum(self_ns) FROM ops WHERE {}"
    ours, theirs = session.trace.sql(query.format("module IS NOT NULL")).to_pylist()
    assert ours == theirs


def test_a_method_of_the_model_names_what_it_calls() -> None:
    net = Net()
    session = recorded(lambda: net.encode(X))
    assert names(session) == {"layers.1", "layers.1.up", "layers.1.down"}


def test_several_models_are_told_apart() -> None:
    first, second, mlp, loss = Net(), Net(), MLP(), nn.MSELoss()

    def work() -> None:
        loss(mlp(first(X) @ torch.ones(2, 4)), mlp(second(X) @ torch.ones(2, 4)))

    found = calls(recorded(work))
    assert found["Net_0.layers.0.up", "Linear"] == found["Net_1.layers.0.up", "Linear"] == 1
    assert found["MLP.up", "Linear"] == found["MLP", "MLP"] == 2
    assert found["MSELoss", "MSELoss"] == 1


def test_a_part_that_runs_alone_first_belongs_to_the_whole() -> None:
    net = Net()
    assert names(recorded(lambda: (net.layers[0](X), net(X)))) == set(NET)


def test_modules_made_anew_for_each_call_share_a_name() -> None:
    assert calls(recorded(lambda: [nn.ReLU()(X) for _ in range(50)])) == {("ReLU", "ReLU"): 50}


def test_a_model_that_is_gone_is_named_and_was_not_kept() -> None:
    seen: list[weakref.ref[Any]] = []

    def work() -> None:
        net = Net()
        net(X)
        seen.append(weakref.ref(net))

    with profile(source="exact") as session:
        work()
        gc.collect()
        assert seen[0]() is None
    assert names(session) == set(NET)


def test_wrappers_have_no_part_in_names() -> None:
    net = Net()
    wrapped = nn.DataParallel(net)
    assert calls(recorded(lambda: (wrapped(X), wrapped(X)))) == dict.fromkeys(NET.items(), 2)


def test_a_compiled_model_is_named_and_not_compiled_again() -> None:
    compiled: list[int] = []

    def backend(graph: Any, _inputs: Any) -> Any:
        compiled.append(1)
        return graph.forward

    net = torch.compile(Net(), backend=backend)
    net(X)
    before = len(compiled)
    session = recorded(lambda: (net(X), net(X)))
    net(X)
    assert len(compiled) == before
    assert calls(session)["Net", "Net"] == 2
    query = "SELECT DISTINCT module FROM events WHERE name = 'aten::addmm'"
    assert session.trace.sql(query).to_pylist() == [{"module": "Net"}]


class Failing(nn.Module):
    def forward(self, x: Any) -> Any:
        raise ValueError(x.shape)


def test_a_call_that_fails_ends_there() -> None:
    failing, net = Failing(), Net()

    def work() -> None:
        with pytest.raises(ValueError, match="Size"):
            failing(X)
        net(X)

    session = recorded(work)
    query = "SELECT name, parent_id, end_ns FROM events WHERE kind = 'module' AND name = '{}'"
    (failed,) = session.trace.sql(query.format("Failing")).to_pylist()
    (later,) = session.trace.sql(query.format("Net")).to_pylist()
    assert failed["end_ns"] < later["end_ns"]
    assert later["parent_id"] == failed["parent_id"]


class Odd(nn.Module):
    """Its children cannot be looked at while it is armed."""

    armed = False

    def __getattribute__(self, name: str) -> Any:
        if name == "_modules" and Odd.armed:
            raise RuntimeError("not now")
        return super().__getattribute__(name)

    def forward(self, x: Any) -> Any:
        return x + 1


def test_a_module_that_cannot_be_named_runs_on_and_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    odd, net = Odd(), Net()
    monkeypatch.setattr(Odd, "armed", True)
    with profile(source="exact") as session:
        result = odd(X)
        net(X)
    assert torch.equal(result, X + 1)
    assert names(session) == {*NET, "unknown"}
    query = "SELECT kind, count, example FROM import_issues"
    said = {"kind": "module_unnamed", "count": 1, "example": "RuntimeError: not now"}
    assert said in session.trace.sql(query).to_pylist()


def test_threads_have_modules_of_their_own() -> None:
    first, second = Net(), MLP()
    config = torch._C._profiler._ExperimentalConfig(verbose=True, profile_all_threads=True)

    def work() -> None:
        threads = [Thread(target=model, args=(X,)) for model in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    session = recorded(work, experimental_config=config)
    query = "SELECT count(DISTINCT tid) AS n FROM events WHERE kind = 'module'"
    assert session.trace.sql(query).to_pylist() == [{"n": 2}]
    query = "SELECT DISTINCT module FROM events WHERE name = 'aten::addmm'"
    modules = {row["module"] for row in session.trace.sql(query).to_pylist()}
    parts = {f"layers.{n}.{part}" for n in (0, 1) for part in ("up", "down")} | {"head"}
    assert modules == {*(f"Net.{part}" for part in parts), "MLP.up", "MLP.down"}


def test_every_window_names_anew() -> None:
    net, mlp = Net(), MLP()
    plan = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=2)
    with profile(source="exact", schedule=plan, output="runs") as session:
        for model in (net, net, mlp, mlp):
            model(X)
            session.step()
    first, second = (session.trace.open([path]) for path in session.paths)
    query = "SELECT DISTINCT module FROM events WHERE name = 'aten::addmm'"
    assert {row["module"] for row in second.sql(query).to_pylist()} == {"up", "down"}
    assert first.sql(query).num_rows == 5


@pytest.mark.skipif(sys.version_info < (3, 12), reason="watched only beside line events")
def test_modules_beside_torchs_own_tracer() -> None:
    net = Net()
    with profile(source="call") as session:
        for _ in range(3):
            net(X)
    assert calls(session) == dict.fromkeys(NET.items(), 3)
    # torch's frames of the same calls stay around what they called
    query = "SELECT DISTINCT source_line, source_via FROM events WHERE name = 'aten::linear'"
    said = {(row["source_line"], row["source_via"]) for row in session.trace.sql(query).to_pylist()}
    lines = [f.__code__.co_firstlineno for f in (MLP.forward, Net.forward)]
    assert said == {(lines[0] + 1, "call"), (lines[1] + 3, "call")}


# ---- whose code -------------------------------------------------------------


LIBRARY = """
import torch

def wrapped(x):
    return inner(x)

def inner(x):
    return x + 1
"""


CALLED = ("test_module_calls.py", "work", "test_module_calls.py")


@pytest.mark.parametrize(
    ("source", "options", "expected"),
    [
        ("exact", {}, ("lib.py", "inner", "test_module_calls.py")),
        ("exact", {"mine": ["ours"]}, ("lib.py", "inner", "lib.py")),
        ("exact", {"plumbing": ["ours.lib"]}, CALLED),
        # one entry may stand for itself
        ("call", {"mine": "ours"}, ("lib.py", "inner", "lib.py")),
        ("call", {"plumbing": "ours.lib"}, CALLED),
    ],
)
def test_mine_and_plumbing_decide_whose_line_it_is(
    source: Any,
    options: dict[str, Any],
    expected: tuple[str, str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "lib" / "python3.11" / "site-packages"
    (folder / "ours").mkdir(parents=True)
    (folder / "ours" / "lib.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(folder)
    for name in ("ours", "ours.lib"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    library = importlib.import_module("ours.lib")

    def work() -> None:
        library.wrapped(X)

    with profile(source=source, **options) as session:
        work()
    query = "SELECT source_file, source_function, user_file FROM events WHERE name = 'aten::add'"
    (row,) = session.trace.sql(query).to_pylist()
    found = (Path(row["source_file"]).name, row["source_function"], Path(row["user_file"]).name)
    assert found == expected


def test_a_notebooks_cell_is_the_users_and_its_lines_are_kept() -> None:
    source, name = "import torch\nx = torch.ones(2)\ny = x.exp()\n", "<ipython-input-9-abc>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    session = recorded(lambda: exec(compile(source, name, "exec"), {}))
    query = "SELECT user_file, user_line FROM events WHERE name = 'aten::exp'"
    assert session.trace.sql(query).to_pylist() == [{"user_file": name, "user_line": 3}]
    metadata = parquet.read_metadata(session.paths[0]).metadata
    assert metadata is not None
    kept = json.loads(metadata[b"neuron_explorer.sources"])
    assert kept[name]["lines"]["3"] == "y = x.exp()"


# ---- activation checkpointing ----------------------------------------------


def test_torch_has_the_code_that_recomputes() -> None:
    assert {code.co_name for code in recomputing_code()} == {"backward", "recompute_fn"}


def block(x: Any) -> Any:
    y = x.sin()
    y = y * y.cos()
    return y.tanh()


AGAIN = {"aten::sin": 1, "aten::cos": 1, "aten::mul": 1, "aten::tanh": 1}
LINEARS = {"aten::linear": 2, "aten::relu": 1, "aten::addmm": 2}


def recomputed(session: profile) -> dict[str, int]:
    """How often each op ran in a recomputation, bookkeeping and parts of ops left out."""
    query = "SELECT name, phase FROM events WHERE recomputed AND kind = 'op'"
    rows = session.trace.sql(query).to_pylist()
    assert {row["phase"] for row in rows} <= {"backward"}
    return Counter(row["name"] for row in rows if row["name"] in {**AGAIN, **LINEARS})


def step(work: Callable[[Any], Any], *, reentrant: bool) -> Callable[[], None]:
    def run() -> None:
        x = torch.ones(3, 4, requires_grad=True)
        checkpoint(work, x, use_reentrant=reentrant).sum().backward()

    return run


@pytest.mark.parametrize("source", ["exact", "call"])
@pytest.mark.parametrize("reentrant", [True, False])
def test_a_recomputed_function_is_told_from_forward_and_backward(
    source: Any, *, reentrant: bool
) -> None:
    with profile(source=source) as session:
        step(block, reentrant=reentrant)()
    # what is not needed for a gradient is not recomputed: here all is, tanh saves its result
    assert recomputed(session) == AGAIN
    query = "SELECT name, recomputed, phase FROM events WHERE name IN ('aten::sin', 'aten::cos')"
    rows = session.trace.sql(query).to_pylist()
    # cos: in the forward, again, and as the gradient of sin; sin likewise
    assert Counter((r["name"], r["recomputed"], r["phase"]) for r in rows) == {
        (name, again, phase): 1
        for name in ("aten::sin", "aten::cos")
        for again, phase in ((False, "forward"), (True, "backward"), (False, "backward"))
    }


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_recomputed_module_keeps_its_name_and_lines(*, reentrant: bool) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mlp = MLP()

        def forward(self, x: Any) -> Any:
            return checkpoint(self.mlp, x, use_reentrant=reentrant) * 2

    model, x = Model(), torch.ones(3, 4, requires_grad=True)
    session = recorded(lambda: model(x).sum().backward())
    # the last linear's result is no gradient's: its own part is left out early, or runs in vain
    assert recomputed(session) == LINEARS
    query = """
    SELECT module, source_line, count(*) AS n FROM events
    WHERE name = 'aten::linear' AND recomputed GROUP BY ALL ORDER BY module
    """
    line = MLP.forward.__code__.co_firstlineno + 1
    assert session.trace.sql(query).to_pylist() == [
        {"module": "mlp.down", "source_line": line, "n": 1},
        {"module": "mlp.up", "source_line": line, "n": 1},
    ]
    assert calls(session)["mlp.up", "Linear"] == 2


@pytest.mark.parametrize(("reentrant", "module"), [(True, "Outer"), (False, None)])
def test_a_module_is_told_only_where_it_is_known(reentrant: Any, module: str | None) -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tanh = nn.Tanh()

        def inner(self, x: Any) -> Any:
            return self.tanh(x.cos())

        def forward(self, x: Any) -> Any:
            return checkpoint(self.inner, x, use_reentrant=reentrant)

    outer, x = Outer(), torch.ones(3, 4, requires_grad=True)
    session = recorded(lambda: outer(x).sum().backward())
    query = "SELECT name, module FROM events WHERE recomputed AND name IN ({}) ORDER BY name"
    rows = session.trace.sql(query.format("'aten::cos', 'aten::tanh'")).to_pylist()
    expected = [("aten::cos", module), ("aten::tanh", "tanh")]
    assert [(row["name"], row["module"]) for row in rows] == expected


def test_without_checkpoints_nothing_is_recomputed() -> None:
    net = Net()
    session = recorded(lambda: net(X).sum().backward())
    query = "SELECT DISTINCT recomputed FROM events WHERE phase IS NOT NULL"
    assert session.trace.sql(query).to_pylist() == [{"recomputed": False}]
    query = "SELECT count(*) AS n FROM events WHERE phase IS NULL AND recomputed IS NOT NULL"
    assert session.trace.sql(query).to_pylist() == [{"n": 0}]
