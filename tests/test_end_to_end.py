"""Real models, trained under `profile()` and analyzed as a user does: everything on its line."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from program import program

from neuron_explorer.loading import load

pytestmark = pytest.mark.torch

MODELS = Path(__file__).parent / "models"
needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)
needs_compiler = pytest.mark.skipif(
    shutil.which("g++") is None, reason="g++, which torch.compile needs, is not installed"
)


def run(folder: Path, *command: str) -> None:
    """Run one of the scripts, without a hub and without a compiler cache of other runs."""
    env = {"HF_HUB_OFFLINE": "1", "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor")}
    env |= {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=os.environ | env,
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )


def analyze(trace: Path) -> list[dict[str, Any]]:
    # however little of a tiny model's time it takes
    lenient = ("--param", "compile_opportunities.min_share=0.00001", "--limit", "0")
    result = program("analyze", trace, "--json", "--quiet", *lenient)
    assert result.returncode == 0, result.stderr.decode()
    findings: list[dict[str, Any]] = json.loads(result.stdout)["findings"]
    return findings


def ask(trace: Path, query: str) -> list[dict[str, Any]]:
    with load(trace) as opened:
        rows: list[dict[str, Any]] = opened.sql(query).to_pylist()
        return rows


def line_of(script: str, mark: str) -> int:
    lines = (MODELS / script).read_text(encoding="utf-8").splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.endswith(f"# line: {mark}"))


def text_of(file: str, number: int) -> str:
    """The line of a file that a trace names relative to an entry of `sys.path`."""
    places = [Path(entry or ".", file) for entry in [str(MODELS), *sys.path]]
    found = next(place for place in places if place.is_file())
    return found.read_text(encoding="utf-8").splitlines()[number - 1]


# ---- what holds of every training -----------------------------------------


def check_forward_and_backward(trace: Path) -> None:
    """Every op of the model has a line, and a backward op that of its forward."""
    phases = "('forward', 'backward', 'optimizer', 'input')"
    lost = f"SELECT name, phase FROM ops WHERE source_file IS NULL AND phase IN {phases}"
    assert ask(trace, lost) == []
    pairs = ask(
        trace,
        """
        SELECT count(*) AS pairs, count(*) FILTER (
            b.source_file = f.source_file AND b.source_line = f.source_line
            AND b.source_via = 'forward'
        ) AS same
        FROM events AS b INNER JOIN events AS f ON b.rank = f.rank AND b.forward_id = f.event_id
        WHERE b.phase = 'backward' AND b.kind = 'op' AND NOT b.compiled
        """,
    )
    assert pairs[0]["pairs"] > 0
    assert pairs[0]["same"] == pairs[0]["pairs"]


def check_optimizer(trace: Path, script: str) -> None:
    found = ask(
        trace,
        "SELECT DISTINCT source_file, source_line FROM ops WHERE phase = 'optimizer'",
    )
    places = {(Path(row["source_file"]).name, row["source_line"]) for row in found}
    assert places == {(script, line_of(script, "optimizer"))}


def check_words(trace: Path, words: dict[str, str]) -> None:
    """The source line of each outermost forward op says, in its own words, what ran.

    Args:
        trace: A trace.
        words: What the line says, as a regular expression by name of op.
    """
    names = ", ".join(f"'{name}'" for name in words)
    rows = ask(
        trace,
        f"""
        SELECT DISTINCT o.name, o.source_file, o.source_line
        FROM events AS o LEFT JOIN events AS p ON o.rank = p.rank AND o.parent_id = p.event_id
        WHERE o.name IN ({names}) AND o.phase = 'forward' AND o.kind = 'op'
            AND (p.kind IS DISTINCT FROM 'op' OR p.name NOT LIKE 'aten::%')
        """,
    )
    assert {row["name"] for row in rows} == words.keys()
    wrong = [
        (row, text)
        for row in rows
        if not re.search(
            words[row["name"]], text := text_of(row["source_file"], row["source_line"])
        )
    ]
    assert wrong == []


# ---- Hugging Face ---------------------------------------------------------


@pytest.fixture(scope="module")
def hugging_face(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hugging_face")
    names = ["llama", "bert"] + (["compiled"] if shutil.which("g++") else [])
    run(folder, str(MODELS / "hugging_face.py"), str(folder), *names)
    return folder


LLAMA = {
    "aten::embedding": r"embed_tokens\(",
    "aten::linear": r"(_proj|lm_head)\(",
    "aten::rsqrt": r"torch\.rsqrt\(",
    "aten::pow": r"\.pow\(2\)",
    "aten::mean": r"\.mean\(",
    "aten::cos": r"\.cos\(\)",
    "aten::sin": r"\.sin\(\)",
    "aten::neg": r"-x2",
    "aten::silu": r"silu\(|act_fn\(",
    "aten::scaled_dot_product_attention": r"scaled_dot_product_attention\(",
    "aten::cross_entropy_loss": r"cross_entropy\(",
}
BERT = {
    "aten::embedding": r"embeddings\(",
    "aten::linear": r"(query|key|value|dense|classifier)\b",
    "aten::layer_norm": r"LayerNorm\(",
    "aten::dropout": r"dropout\(",
    "aten::tanh": r"activation\(",
    "aten::scaled_dot_product_attention": r"scaled_dot_product_attention\(",
    "aten::cross_entropy_loss": r"loss_fct\(|cross_entropy\(",
}


@needs_transformers
@pytest.mark.parametrize(("name", "words"), [("llama", LLAMA), ("bert", BERT)])
def test_a_model_of_transformers(hugging_face: Path, name: str, words: dict[str, str]) -> None:
    trace = hugging_face / f"{name}.parquet"
    check_forward_and_backward(trace)
    check_optimizer(trace, "hugging_face.py")
    check_words(trace, words)
    clipped = ask(
        trace, "SELECT DISTINCT source_line FROM ops WHERE name LIKE 'aten::_foreach_norm'"
    )
    assert clipped == [{"source_line": line_of("hugging_face.py", "clip")}]
    own = f"transformers/models/{name}/modeling_{name}.py"
    findings = [found for found in analyze(trace) if (found["source_file"] or "").endswith(own)]
    named = [found for found in findings if found["analyzer"] in TITLED_BY_OPS]
    of = phases(trace)
    forward = [found for found in named if {of[id_] for id_ in found["event_ids"]} == {"forward"}]
    assert forward
    for found in forward:
        assert says_one_of(found["source_text"], found["title"]), found["title"]


TITLED_BY_OPS = {"compile_opportunities", "hbm_bound_eager_ops"}
SAYS = {
    "mul": r"\*|dropout",
    "add": r"\+",
    "rsqrt": r"rsqrt",
    "cat": r"cat\(",
    # a product copies its bias before it adds to it
    "copy_": r"\.to\(|float\(|dense|classifier",
    "cos": r"cos",
    "sin": r"sin",
    "arange": r"arange",
    "neg": r"-x",
    "tanh": r"tanh|activation",
    "gelu": r"act",
    "native_layer_norm": r"LayerNorm",
    "native_dropout": r"dropout",
    "silu": r"act_fn",
    "mean": r"mean",
    "pow": r"pow",
}


def says_one_of(text: str, title: str) -> bool:
    """Whether a line has the text of one of the ops in a finding's title."""
    ops = [op.strip() for op in title.partition(":")[2].split(",")]
    return any(re.search(SAYS[op], text) for op in ops if op in SAYS)


def phases(trace: Path) -> dict[int, str]:
    """The phase of each event."""
    return {
        row["event_id"]: row["phase"] for row in ask(trace, "SELECT event_id, phase FROM events")
    }


COMPILED = """
SELECT DISTINCT name, phase, sources, json_extract_string(attributes, '$.aten_ops[*]') AS ops
FROM events
WHERE starts_with(attributes ->> '$.aten_ops[0]', 'aten::') AND layer = 'framework' AND compiled
"""
# what a line of the forward says, by the operator that it gives to a compiled kernel
SAID = {
    "_log_softmax": r"cross_entropy\(",
    "_scaled_dot_product_flash_attention_for_cpu": r"scaled_dot_product_attention\(",
    "add": r"\+",
    "arange": r"arange\(",
    "cat": r"cat\(",
    "constant_pad_nd": r"pad\(",
    "cos": r"cos\(\)",
    "embedding": r"embed_tokens\(",
    "mean": r"\.mean\(",
    "mm": r"(_proj|lm_head)\(",
    "mul": r"\*",
    "neg": r"-x2",
    "nll_loss_forward": r"cross_entropy\(",
    "pow": r"\.pow\(",
    "rsqrt": r"rsqrt\(",
    "silu": r"silu\(|act_fn\(",
    "sin": r"sin\(\)",
}
LAID_OUT = r"view|reshape|contiguous|transpose|unsqueeze|\[|\.to\(|_proj\(|lm_head\("
"""Of copies and views, which no kernel is without."""


@needs_transformers
@needs_compiler
def test_a_compiled_model_of_transformers(hugging_face: Path) -> None:
    """Each kernel has lines; forward, each line says an operator, and each is said by a line."""
    trace = hugging_face / "compiled.parquet"
    check_optimizer(trace, "hugging_face.py")
    kernels = ask(trace, COMPILED)
    assert {row["phase"] for row in kernels} == {"forward", "backward"}
    assert [row["name"] for row in kernels if not row["sources"]] == []
    for row in (row for row in kernels if row["phase"] == "forward"):
        ops = {op.removeprefix("aten::") for op in row["ops"]} & SAID.keys()
        places = (place.rpartition(":") for place in row["sources"])
        texts = [text_of(file, int(number)) for file, _, number in places]
        assert ops, row["name"]
        for op in ops:
            assert any(re.search(SAID[op], text) for text in texts), (row["name"], op)
        words = "|".join([LAID_OUT, *(SAID[op] for op in ops)])
        assert [text for text in texts if not re.search(words, text)] == [], row["name"]
    lost = "SELECT * FROM import_issues WHERE kind = 'compiled_without_sources'"
    assert ask(trace, lost) == []


def check_compiled(trace: Path, file: str, right: Callable[[str], object]) -> None:
    """Compiled kernels are there; those whose lines are known name lines of the compiled code."""
    kernels = ask(
        trace, "SELECT name, sources, source_file FROM events WHERE name LIKE '%cpp_fused%'"
    )
    assert kernels
    for place in (place for row in kernels for place in row["sources"] or []):
        name, _, number = place.rpartition(":")
        assert Path(name).name == file
        assert right(text_of(name, int(number))), place


# ---- a CNN ----------------------------------------------------------------


@pytest.fixture(scope="module")
def cnn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cnn")
    run(folder, str(MODELS / "convolutions.py"), str(folder / "eager.parquet"))
    return folder / "eager.parquet"


CNN = {
    "aten::conv2d": "conv",
    "aten::batch_norm": "conv",
    "aten::tanh": "tanh",
    "aten::max_pool2d": "pool",
    "aten::linear": "head",
    "aten::cross_entropy_loss": "loss",
    "aten::item": "item",
}


def test_a_convolutional_network(cnn: Path) -> None:
    check_forward_and_backward(cnn)
    check_optimizer(cnn, "convolutions.py")
    names = ", ".join(f"'{name}'" for name in CNN)
    rows = ask(cnn, f"SELECT DISTINCT name, source_line FROM ops WHERE name IN ({names})")
    expected = {(name, line_of("convolutions.py", mark)) for name, mark in CNN.items()}
    assert {(row["name"], row["source_line"]) for row in rows} == expected
    findings = {
        (found["analyzer"], Path(found["source_file"]).name, found["source_line"])
        for found in analyze(cnn)
    }
    for analyzer, mark in (("compile_opportunities", "inner"), ("host_syncs", "item")):
        assert (analyzer, "convolutions.py", line_of("convolutions.py", mark)) in findings


def test_a_step_of_it_waits_for_its_loader(cnn: Path) -> None:
    steps = ask(cnn, "SELECT duration_ns, input_wait_ns FROM steps")
    assert len(steps) == 2
    assert all(0 < step["input_wait_ns"] < step["duration_ns"] for step in steps)
    waits = ask(cnn, "SELECT DISTINCT source_line FROM events WHERE kind = 'input_wait'")
    assert waits == [{"source_line": line_of("convolutions.py", "input")}]
    # a loader without workers loads in the loop's own thread
    inside = ask(
        cnn,
        """
        SELECT count(*) AS ops, max(w.duration_ns - w.self_ns) AS ops_ns
        FROM events AS w INNER JOIN events AS o ON w.event_id = o.parent_id
        WHERE w.kind = 'input_wait' AND o.kind = 'op' AND o.phase = 'input'
        """,
    )
    assert inside[0]["ops"] > 0
    assert inside[0]["ops_ns"] > 0


@pytest.mark.deep
@needs_compiler
def test_a_compiled_activation(tmp_path: Path) -> None:
    trace = tmp_path / "compiled.parquet"
    run(tmp_path, str(MODELS / "convolutions.py"), str(trace), "compiled")
    check_forward_and_backward(trace)
    check_optimizer(trace, "convolutions.py")
    check_compiled(trace, "convolutions.py", lambda text: text.endswith(("inner", "tanh")))


# ---- two ranks ------------------------------------------------------------


def test_two_ranks_on_gloo(tmp_path: Path) -> None:
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    run(tmp_path, *command, str(MODELS / "two_ranks.py"), str(tmp_path / "trace.parquet"))
    traces = tmp_path / "trace"
    assert sorted(path.name for path in traces.iterdir()) == ["rank=0.parquet", "rank=1.parquet"]
    check_forward_and_backward(traces)
    check_optimizer(traces, "two_ranks.py")
    found = ask(
        traces,
        """
        SELECT DISTINCT c.rank, step, source_line AS line, op_name, bytes, dtype, group_size
        FROM collectives AS c WHERE collective = 'all_reduce' ORDER BY ALL
        """,
    )
    bucket = 4 * (64 * 256 + 256 + 256 * 8 + 8)
    asked: dict[str, object] = {"op_name": "c10d::allreduce_", "dtype": "float", "group_size": 2}
    assert found == [
        {"rank": rank, "step": step, "line": line_of("two_ranks.py", mark), "bytes": size} | asked
        for rank in (0, 1)
        for step in (1, 2)
        for mark, size in (("backward", bucket), ("all_reduce", 4))
    ]
    linked = """
        SELECT count(*) AS links, count(o.event_id) AS found FROM events AS e
        LEFT JOIN events AS o ON e.rank = o.rank AND e.parent_id = o.event_id AND e.tid = o.tid
        WHERE e.parent_id IS NOT NULL
    """
    links = ask(traces, linked)[0]
    assert links["links"] == links["found"] > 0
    findings = {
        (found["analyzer"], Path(found["source_file"] or "").name, found["source_line"])
        for found in analyze(traces)
    }
    wasteful = ("compile_opportunities", "two_ranks.py", line_of("two_ranks.py", "forward"))
    assert wasteful in findings
    steps = (line_of("two_ranks.py", mark) for mark in ("forward", "backward", "optimizer"))
    assert {line for analyzer, _, line in findings if analyzer == wasteful[0]} <= set(steps)
