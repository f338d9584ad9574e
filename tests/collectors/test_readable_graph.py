"""Graphs as torch prints them: nodes, lines, and the bytes that kernels must move."""

from __future__ import annotations

import pytest

from neuron_explorer.collectors.readable_graph import Place, Traffic, read_graph, type_bytes

NORMED = """class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[8, 64][64, 1]cpu", w: "f32[64][1]cpu", s0: "Sym(s77)"):
        # File: /home/me/net.py:3 in forward, code: y = x.t() * 2; z = y
        permute: "f32[64, 8][1, 64]cpu" = torch.ops.aten.permute.default(x, [1, 0])
        mul: "f32[64, 8][1, 64]cpu" = torch.ops.aten.mul.Tensor(permute, 2);  permute = None

        # File: /home/me/net.py:4 in forward, code: return norm(y)
        permute_1: "f32[8, 64][64, 1]cpu" = torch.ops.aten.permute.default(mul, [1, 0]);  mul = None
        var_mean = torch.ops.aten.var_mean.correction(permute_1, [1], correction = 0)
        getitem: "f32[8, 1][1, 1]cpu" = var_mean[0]
        getitem_1: "f32[8, 1][1, 1]cpu" = var_mean[1];  var_mean = None
        sub: "f32[8, 64][64, 1]cpu" = torch.ops.aten.sub.Tensor(permute_1, getitem_1)

        # No stacktrace found for following nodes
        mul_1: "f32[8, 64][64, 1]cpu" = torch.ops.aten.mul.Tensor(sub, w);  sub = w = None
        return (mul_1, getitem)
"""


def test_nodes_have_their_op_inputs_and_line() -> None:
    graph = read_graph(NORMED)
    assert list(graph.nodes)[:3] == ["x", "w", "s0"]
    assert graph.nodes["mul"].op == "aten::mul"
    assert graph.nodes["mul"].inputs == ("permute",)
    assert graph.nodes["mul"].place == Place("/home/me/net.py", 3, "forward")
    assert graph.nodes["sub"].place == Place("/home/me/net.py", 4, "forward")
    assert graph.nodes["mul_1"].place is None
    assert graph.outputs == {"mul_1", "getitem"}


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("f32[8, 64][64, 1]cpu", 2048),
        ("bf16[8, 64][0, 1]cuda:0", 128),
        ("b8[3][1]cpu", 3),
        ("f8e4m3fn[16][1]cuda:0", 16),
        ("c64[2][1]cpu", 16),
        ("f32[][]cpu", 4),
        ("f32[s77, 4][4, 1]cpu", None),
        ("Sym(s77)", 0),
        ("", None),
    ],
)
def test_bytes_of_an_annotation(text: str, size: int | None) -> None:
    assert type_bytes(text) == size


def test_one_kernel_reads_the_inputs_once_and_writes_the_outputs() -> None:
    graph = read_graph(NORMED)
    kernel = ["mul", "var_mean", "getitem_1", "sub", "mul_1"]
    assert Traffic(graph, [kernel]).of(0) == (2048 + 256, 2048 + 32)


def test_what_another_kernel_uses_is_written_and_read() -> None:
    graph = read_graph(NORMED)
    traffic = Traffic(graph, [["mul"], ["var_mean", "sub", "mul_1"]])
    assert traffic.of(0) == (2048, 2048)
    assert traffic.of(1) == (2048 + 256, 2048 + 32)


def test_what_every_user_works_out_again_is_not_written() -> None:
    graph = read_graph(NORMED)
    traffic = Traffic(graph, [["mul", "sub", "mul_1"], ["mul", "var_mean"]])
    assert traffic.of(0)[1] == 2048
    assert traffic.of(1) == (2048, 64)


def test_a_reduction_in_two_kernels_and_unknown_nodes_say_nothing() -> None:
    graph = read_graph(NORMED)
    split = Traffic(graph, [["mul", "var_mean"], ["var_mean", "sub", "mul_1"]])
    assert split.of(0) == split.of(1) == (None, None)
    assert Traffic(graph, [["gone"]]).of(0) == (None, None)
    assert Traffic(graph, [[]]).of(0) == (None, None)


def test_bytes_that_depend_on_values_are_unknown() -> None:
    text = NORMED.replace("aten.sub.Tensor", "aten.gather.default")
    assert Traffic(read_graph(text), [["sub", "mul_1"]]).of(0) == (None, None)
