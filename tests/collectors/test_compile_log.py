"""The structured trace of torch.compile as rows and compiled graphs, from written-down records."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from neuron_explorer.collectors.compile_log import CompileLog
from neuron_explorer.collectors.compile_notes import Note, note_of
from neuron_explorer.collectors.linking.frames import USUAL
from neuron_explorer.collectors.linking.kernels import CompiledGraph, CompiledKernel, in_force

BREAK = """Graph break in user code at /home/me/train.py:29
Graph Break Reason: Encountered graph break when attempting to trace CALL

Failed to trace builtin operator
  Explanation: Dynamo does not know how to trace `print`
  Hint: Avoid calling it.

User code traceback:
  File "/home/me/train.py", line 33, in <module>
    g(x)
  File "/home/me/train.py", line 29, in g
    print('here')

Traceback (most recent call last):
  File "/venv/site-packages/torch/_dynamo/symbolic_convert.py", line 1076, in wrapper
"""
METRICS = {
    "co_name": "g",
    "co_filename": "/home/me/train.py",
    "co_firstlineno": 27,
    "stack_trace": [
        "Line: 33, Name: <module>, Filename: /home/me/train.py",
        "Line: 27, Name: g, Filename: /home/me/train.py",
    ],
    "start_time_us": 1_000,
    "duration_us": 500,
    "inductor_cumulative_compile_time_us": 300,
    "guard_count": 7,
    "inductor_fx_local_cache_hit_count": 1,
    "inductor_fx_local_cache_miss_count": 0,
}


def note(text: str | None = None, *, compile_id: int = 0, **metadata: Any) -> Note:
    found = note_of({**metadata, "frame_id": 1, "frame_compile_id": compile_id}, text, 42, 7)
    assert found is not None
    return found


def artifact(name: str, text: object, compile_id: int = 0) -> Note:
    written = text if isinstance(text, str) else json.dumps(text)
    return note(written, artifact={"name": name}, compile_id=compile_id)


def graph_text(lines: Mapping[str, int], function: str = "f") -> str:
    """Nodes `sin` and `mul` at lines of a file."""
    text = 'class G(Module):\n    def forward(self, x: "f32[4][1]cpu"):\n'
    given = "x"
    for op, line in lines.items():
        text += f"        # File: /home/me/net.py:{line} in {function}, code: ...\n"
        text += f'        {op}: "f32[4][1]cpu" = torch.ops.aten.{op}.default({given})\n'
        given = op
    return text + f"        return ({given},)\n"


def trace(line: int, function: str = "f") -> str:
    return f'  File "/home/me/net.py", line {line}, in {function}\n    ...\n'


def compiled(state: str, **fresh: Note) -> list[Note]:
    """One graph whose kernel came from lines 3 and 4 when it was compiled."""
    nodes = {"cpp_fused_mul_sin_0:1": ["sin", "mul"]}
    mapping = {"cppCodeToPost": nodes, "postToPre": {"sin": ["s"], "mul": ["m"]}}
    return [
        *fresh.values(),
        artifact("inductor_post_grad_graph", graph_text({"sin": 3, "mul": 4})),
        artifact("inductor_provenance_tracking_node_mappings", mapping),
        artifact(
            "inductor_provenance_tracking_kernel_stack_traces",
            {"cpp_fused_mul_sin_0:1": [trace(3), trace(4)]},
        ),
        artifact(f"fx_graph_cache_{state}", {"key": "fkey"}),
    ]


def lines_of(graph: CompiledGraph) -> list[int]:
    return [stack.source.line for stack in graph.kernels[0].stacks(USUAL)]


def test_a_kernel_has_lines_operators_and_bytes() -> None:
    log = CompileLog(vocabulary={"mul", "sin"})
    log.add(compiled("miss"))
    (graph,) = log.graphs()
    assert (graph.graph_id, graph.key) == ("1/0", "fkey")
    kernel = graph.kernels[0]
    assert sorted(lines_of(graph)) == [3, 4]
    assert kernel.ops == ("aten::mul", "aten::sin")
    assert (kernel.read_bytes, kernel.write_bytes) == (16, 16)


def test_lines_from_a_cache_are_those_of_this_graph() -> None:
    log = CompileLog()
    fresh = note(graph_text({"sin": 13, "mul": 15}, "g"), aot_inference_graph={})
    log.add(compiled("hit", fresh=fresh))
    (graph,) = log.graphs()
    assert sorted(lines_of(graph)) == [13, 15]
    assert {s.source.function for s in graph.kernels[0].stacks(USUAL)} == {"g"}


def test_where_all_comes_from_a_cache_dynamos_graph_knows_the_lines() -> None:
    log = CompileLog()
    traced = graph_text({"s": 23, "m": 24}).replace("aten.s.", "aten.sin.")
    old = note(graph_text({"sin": 3, "mul": 4}), aot_inference_graph={})
    notes = compiled("hit", fresh=note(traced, dynamo_output_graph={}), old=old)
    log.add([*notes, artifact("aotautograd_cache_hit", {"key": "akey"})])
    assert sorted(lines_of(log.graphs()[0])) == [23, 24]


def test_lines_from_a_cache_that_nothing_confirms_are_left_out() -> None:
    log = CompileLog()
    log.add(compiled("hit"))
    assert lines_of(log.graphs()[0]) == []


def test_two_old_lines_that_became_one_are_that_one() -> None:
    log = CompileLog()
    log.add(compiled("hit", fresh=note(graph_text({"sin": 9, "mul": 9}), aot_inference_graph={})))
    assert lines_of(log.graphs()[0]) == [9]


def test_kernels_left_from_another_backward_are_no_part_of_a_graph() -> None:
    log = CompileLog()
    code = note("# [Provenance debug handles] cpp_fused_mul_sin_0:1\n", inductor_output_code={})
    notes = compiled("miss")
    left = {"cpp_fused_mul_sin_0:1": [trace(3), trace(99)], "extern_kernels.mm:2": [trace(99)]}
    notes[2] = artifact("inductor_provenance_tracking_kernel_stack_traces", left)
    log.add([code, *notes])
    (graph,) = log.graphs()
    assert [kernel.name for kernel in graph.kernels] == ["cpp_fused_mul_sin_0"]
    assert lines_of(graph) == [3]


def graph_of(
    nodes: str, traces: Mapping[str, list[str]], names: Mapping[str, list[str]]
) -> dict[str, CompiledKernel]:
    """The kernels of one graph, each with lines and nodes."""
    log, last = CompileLog(), re.findall(r"^ +(\w+): ", nodes, re.MULTILINE)[-1]
    head = 'class G(Module):\n    def forward(self, x: "f32[4][1]cpu"):\n'
    text = f"{head}{nodes}        return ({last},)"
    log.add(
        [
            artifact("inductor_post_grad_graph", text),
            artifact("inductor_provenance_tracking_node_mappings", {"cppCodeToPost": names}),
            artifact("inductor_provenance_tracking_kernel_stack_traces", traces),
            artifact("fx_graph_cache_miss", {"key": "fkey"}),
        ]
    )
    return {kernel.name: kernel for kernel in log.graphs()[0].kernels}


def node(name: str, call: str, line: int | None) -> str:
    at = f"File: /home/me/net.py:{line} in f, code: ..." if line else "No stacktrace found"
    return f'        # {at}\n        {name}: "f32[4][1]cpu" = torch.ops.aten.{call}\n'


def test_a_librarys_kernel_is_not_what_its_inputs_were_made_of() -> None:
    nodes = node("sin", "sin.default(x)", 3) + node("mm", "mm.default(sin, x)", 4)
    kernels = graph_of(
        nodes,
        {"cpp_fused_sin_0:1": [trace(3)], "extern_kernels.mm:2": [trace(3), trace(4)]},
        {"cpp_fused_sin_0:1": ["sin"], "extern_kernels.mm:2": ["sin", "mm"]},
    )
    product = kernels["extern_kernels.mm"]
    assert [stack.source.line for stack in product.stacks(USUAL)] == [4]
    assert product.ops == ("aten::mm",)
    # the result of the other kernel and x
    assert product.read_bytes == 32


@pytest.mark.parametrize("number", ["full.default([], 0.0)", "scalar_tensor.default(0.0)"])
def test_a_number_gives_its_line_to_no_kernel(number: str) -> None:
    nodes = node("zero", number, 9) + node("le", "le.Tensor(x, zero)", 3)
    kernels = graph_of(
        nodes,
        {"cpp_fused_le_0:1": [trace(9), trace(3)], "cpp_fused_full_1:2": [trace(9)]},
        {"cpp_fused_le_0:1": ["zero", "le"], "cpp_fused_full_1:2": ["zero"]},
    )
    assert [s.source.line for s in kernels["cpp_fused_le_0"].stacks(USUAL)] == [3]
    assert [s.source.line for s in kernels["cpp_fused_full_1"].stacks(USUAL)] == [9]


@pytest.mark.parametrize("before", ["aot_inference_graph", "aot_joint_graph"])
def test_what_a_pass_has_put_anew_has_the_line_of_the_same_call_before(before: str) -> None:
    log = CompileLog()
    lost, metadata = "# No stacktrace found", dict[str, Any]({before: {}})
    fresh = graph_text({"sin": 3, "mul": 4})
    anew = fresh.replace("mul:", "mul_tensor:").replace("(mul,)", "(mul_tensor,)")
    notes = compiled("miss", fresh=note(fresh, **metadata))
    nodes = {"cpp_fused_mul_sin_0:1": ["sin", "mul_tensor"]}
    notes[1:] = [
        artifact("inductor_post_grad_graph", re.sub("# File: .*:4 .*", lost, anew)),
        artifact("inductor_provenance_tracking_node_mappings", {"cppCodeToPost": nodes}),
        artifact(
            "inductor_provenance_tracking_kernel_stack_traces",
            {"cpp_fused_mul_sin_0:1": [trace(3)]},
        ),
        artifact("fx_graph_cache_miss", {"key": "fkey"}),
    ]
    log.add(notes)
    assert sorted(lines_of(log.graphs()[0])) == [3, 4]


def test_after_a_reset_graphs_without_a_key_are_told_apart_by_time() -> None:
    log = CompileLog()
    ended = note(compilation_metrics=METRICS)
    first = note(graph_text({"s": 1}), dynamo_output_graph={})
    again = note(graph_text({"s": 8}), dynamo_output_graph={})._replace(at_ns=1_000)
    log.add([first, *compiled("miss")[:-1], ended, again, *compiled("miss")[:-1], ended])
    graphs = log.graphs()
    assert [(graph.key, graph.since_ns) for graph in graphs] == [(None, 42), (None, 1_000)]
    for at_ns, graph in ((41, 0), (42, 0), (999, 0), (1_000, 1), (5_000, 1)):
        assert in_force(graphs, at_ns) == [graphs[graph]]
    assert in_force([], 5) == []
    assert not any(graph.backward for graph in graphs)


def test_graph_breaks_recompilations_and_compilations_are_rows() -> None:
    rows = CompileLog().add(
        [
            artifact("recompile_reasons", "1/0: tensor 'x' rank mismatch. expected 2, actual 1", 1),
            artifact("dynamo_graph_break_reason", BREAK, 1),
            artifact("fx_graph_cache_hit", {"key": "fkey"}, 1),
            note(compilation_metrics=METRICS, compile_id=1),
        ]
    )
    again, broken, looked, made = rows
    assert {row["graph_id"] for row in rows} == {"1/1"}
    assert again["role"] == "compiler/recompile"
    assert again["reason"].startswith("1/0: tensor 'x' rank")
    assert broken["role"] == "compiler/graph_break"
    assert broken["stack"].splitlines()[-1] == "/home/me/train.py(29): g"
    assert "Dynamo does not know how to trace `print`" in broken["reason"]
    assert "Hint" not in broken["reason"]
    assert looked["reason"] == "hit"
    assert made["stack"] == again["stack"] == looked["stack"]
    assert made["stack"].splitlines()[-1] == "/home/me/train.py(27): g"
    assert (made["start_ns"], made["duration_ns"]) == (1_000_000, 500_000)
    said = json.loads(made["attributes"])
    assert (said["inductor_ns"], said["guards"], said["cache"]) == (300_000, 7, "warm")


def test_after_a_reset_the_same_number_is_another_compilation() -> None:
    log = CompileLog()
    ended = note(compilation_metrics=METRICS)
    log.add([*compiled("miss", fresh=note(graph_text({"s": 1}), dynamo_output_graph={})), ended])
    log.add([note(graph_text({"s": 8}), dynamo_output_graph={}), *compiled("hit")])
    # nothing of the first compilation may confirm lines of the second
    assert lines_of(log.graphs()[0]) == []


@pytest.mark.parametrize("metadata", [{"str": ["a.py", 0]}, {"describe_tensor": {}}])
def test_other_records_are_passed_over(metadata: dict[str, Any]) -> None:
    assert note_of(metadata, "x", 1, 1) is None
