"""The FX graphs that torch.compile prints: each node's op, inputs, bytes and source line.

torch writes them into its structured trace as Python code with a comment before the nodes of
each source line: `# File: model.py:12 in forward, code: h = self.a(x)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple


class Place(NamedTuple):
    """A line of the compiled code."""

    file: str
    line: int
    function: str


FRAME = re.compile(
    r'^ *File "(?P<file>.+)", line (?P<line>\d+), in (?P<function>.+)$', re.MULTILINE
)
"""A frame of a printed stack."""


def place_of(found: re.Match[str]) -> Place:
    """The place that a pattern with the groups `file`, `line` and `function` has found."""
    return Place(found["file"], int(found["line"]), found["function"])


@dataclass(frozen=True)
class Node:
    """One node of a graph."""

    op: str | None
    """`aten::mul`; None for inputs and for what is no operator."""
    inputs: tuple[str, ...]
    bytes: int | None
    """Size of its distinct elements; None where it is no tensor or has symbolic sizes."""
    place: Place | None
    call: str = ""
    """As it is printed, with its arguments."""

    @property
    def is_number(self) -> bool:
        """Whether it is a tensor of one number that the code does not compute."""
        return bool(_NUMBER.match(self.call))


@dataclass
class Graph:
    """Nodes by name, in order."""

    nodes: dict[str, Node] = field(default_factory=dict)
    outputs: frozenset[str] = frozenset()

    def places(self) -> dict[str, Place]:
        """Line of each node that has one."""
        return {name: node.place for name, node in self.nodes.items() if node.place}


_COMMENT = re.compile(
    r"^\s*# File: (?P<file>.+?):(?P<line>\d+) in (?P<function>.+?), code:", re.MULTILINE
)
_NO_PLACE = "# No stacktrace found"
_NODE = re.compile(r'^\s+(?P<name>\w+)(?:\s*:\s*"(?P<type>[^"]*)")? = (?P<call>[^;]+)')
_INPUT = re.compile(r'(\w+): "([^"]*)"')
_OPERATOR = re.compile(r"^torch\.ops\.(\w+)\.(\w+)")
_NUMBER = re.compile(r"^torch\.ops\.aten\.(full\.default\(\[\]|scalar_tensor\.)")
_ITEM = re.compile(r"^(\w+)\[\d+\]$")
_WORD = re.compile(r"[A-Za-z_]\w*")
_TYPE = re.compile(r"^(?P<dtype>[a-z]+[0-9]+\w*)\[(?P<size>[^\]]*)\](?:\[(?P<stride>[^\]]*)\])?")
_BITS = re.compile(r"\d+")

VIEWS = frozenset(
    [
        "alias",
        "as_strided",
        "detach",
        "diagonal",
        "expand",
        "permute",
        "reshape",
        "select",
        "slice",
        "split",
        "split_with_sizes",
        "squeeze",
        "t",
        "transpose",
        "unbind",
        "unfold",
        "unsqueeze",
        "view",
    ]
)
"""Operators whose result is another look at the same memory."""
_BY_INDEX = frozenset(
    [
        "embedding",
        "embedding_dense_backward",
        "gather",
        "index",
        "index_add",
        "index_copy",
        "index_fill",
        "index_put",
        "index_select",
        "masked_scatter",
        "scatter",
        "scatter_add",
        "scatter_reduce",
        "take",
        "_unsafe_index",
        "_unsafe_index_put",
        "_unsafe_masked_index",
    ]
)
"""Operators that touch as much memory as the values of their indices say."""
_REDUCING = frozenset(
    [
        "all",
        "amax",
        "amin",
        "any",
        "argmax",
        "argmin",
        "cumsum",
        "max",
        "mean",
        "min",
        "norm",
        "prod",
        "std",
        "sum",
        "var",
        "var_mean",
        "native_layer_norm",
        "_softmax",
        "_log_softmax",
        "logsumexp",
    ]
)


def read_graph(text: str) -> Graph:
    """The graph that a readable print of a GraphModule shows."""
    graph, place = Graph(), None
    head, _, body = text.partition("def forward(")[2].partition("):\n")
    for name, kind in _INPUT.findall(head):
        graph.nodes[name] = Node(None, (), type_bytes(kind), None)
    lines = body.split("\n")
    for number, line in enumerate(lines):
        if found := _COMMENT.match(line):
            place = place_of(found)
        elif _NO_PLACE in line:
            place = None
        elif line.lstrip().startswith("return"):
            words = _WORD.findall("\n".join(lines[number:]))
            graph.outputs = frozenset(words) & graph.nodes.keys()
            break
        elif found := _NODE.match(line):
            graph.nodes[found["name"]] = _node(found, graph, place)
    return graph


def _node(found: re.Match[str], graph: Graph, place: Place | None) -> Node:
    call = found["call"].strip()
    operator = _OPERATOR.match(call)
    named = operator and f"{operator[1]}::{operator[2]}"
    item = _ITEM.match(call)
    words = [item[1]] if item else _WORD.findall(call.partition("(")[2] or call)
    inputs = tuple(dict.fromkeys(word for word in words if word in graph.nodes))
    return Node("item" if item else named, inputs, type_bytes(found["type"] or ""), place, call)


def type_bytes(text: str) -> int | None:
    """Bytes of a tensor that is annotated `f32[8, 64][64, 1]cpu`; repeated elements count once.

    None where a size is a symbol or there is no tensor; 0 for a number such as `Sym(s77)`.
    """
    if text.startswith("Sym"):
        return 0
    found = _TYPE.match(text)
    bits = found and _BITS.search(found["dtype"])
    if not found or not bits:
        return None
    sizes, strides = _numbers(found["size"]), _numbers(found["stride"] or "")
    if sizes is None or strides is None:
        return None
    if len(strides) == len(sizes):
        sizes = [size for size, stride in zip(sizes, strides, strict=True) if stride]
    # a bool is annotated b8, a complex number by the bits of both its parts
    return prod(sizes) * int(bits[0]) // 8


def _numbers(text: str) -> list[int] | None:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    return [int(part) for part in parts] if all(part.isdecimal() for part in parts) else None


class Traffic:
    """What each kernel of a graph must read and write.

    A kernel reads what its nodes take from outside of it, and writes what others take from
    it. A cheap node may lie in several kernels; each then works it out for itself, and it is
    written only where a kernel uses it that has it not.

    Args:
        graph: The graph after all passes.
        kernels: Names of the nodes of each kernel, in the order of their calls.
    """

    def __init__(self, graph: Graph, kernels: Sequence[Iterable[str]]) -> None:
        self._nodes = graph.nodes
        self._kernels = [self._with_items(set(names)) for names in kernels]
        self._outputs = {self._base(name) for name in graph.outputs}
        self._users: dict[str, set[str]] = {}
        for name, node in graph.nodes.items():
            if not self._is_view(node):
                for given in node.inputs:
                    self._users.setdefault(self._base(given), set()).add(name)

    def of(self, number: int) -> tuple[int | None, int | None]:
        """Bytes read and written by a kernel; None where they cannot be told."""
        kernel = self._kernels[number]
        if not kernel or any(self._unclear(name, number) for name in kernel):
            return None, None
        read, write = _total(self._reads(kernel)), _total(self._writes(number))
        # a kernel that writes nothing for others is half of a split that the nodes do not show
        return (read, write) if write else (None, None)

    def _unclear(self, name: str, number: int) -> bool:
        node = self._nodes.get(name)
        if node is None:
            return True
        op = (node.op or "").partition("::")[2]
        shared = any(name in k for place, k in enumerate(self._kernels) if place != number)
        return op in _BY_INDEX or (shared and op in _REDUCING)

    def _reads(self, kernel: set[str]) -> dict[str, int | None]:
        found: dict[str, int | None] = {}
        for name in kernel:
            node = self._nodes[name]
            # what copy_ overwrites is not read
            given = node.inputs[1:] if (node.op or "").endswith("::copy_") else node.inputs
            for looked_at in given:
                base = self._base(looked_at)
                if base in kernel:
                    continue
                size = self._seen(looked_at)
                known = found.get(base, 0)
                whole = self._nodes[base].bytes
                both = None if size is None or known is None else size + known
                found[base] = both if both is None or whole is None else min(both, whole)
        return found

    def _writes(self, number: int) -> dict[str, int | None]:
        kernel = self._kernels[number]
        found = {}
        for name in kernel:
            node = self._nodes[name]
            if self._is_view(node) or not self._leaves(name, number):
                continue
            found[name] = node.bytes
        return found

    def _leaves(self, name: str, number: int) -> bool:
        """Whether this kernel is the first of those that work a node out, and others use it."""
        node = self._nodes[name]
        if (node.op or "").endswith("::copy_"):
            return True
        if any(name in kernel for kernel in self._kernels[:number]):
            return False
        users = self._users.get(name, set())
        if all(self._nodes[user].op == "item" for user in users) and users:
            return False
        return name in self._outputs or any(self._outside(name, user) for user in users)

    def _outside(self, name: str, user: str) -> bool:
        having = [kernel for kernel in self._kernels if user in kernel]
        return not having or any(name not in kernel for kernel in having)

    def _with_items(self, names: set[str]) -> set[str]:
        items = {n for n, v in self._nodes.items() if v.op == "item" and v.inputs[0] in names}
        return names | items

    def _is_view(self, node: Node) -> bool:
        return (node.op or "").partition("::")[2] in VIEWS

    def _base(self, name: str) -> str:
        while self._is_view(self._nodes[name]) and self._nodes[name].inputs:
            name = self._nodes[name].inputs[0]
        return name

    def _seen(self, name: str) -> int | None:
        """Bytes that are left of a tensor after the views down to a name."""
        sizes = [self._nodes[name].bytes]
        while self._is_view(self._nodes[name]) and self._nodes[name].inputs:
            name = self._nodes[name].inputs[0]
            sizes.append(self._nodes[name].bytes)
        known = [size for size in sizes if size is not None]
        return min(known) if len(known) == len(sizes) else None


def _total(sizes: Mapping[str, int | None]) -> int | None:
    known = [size for size in sizes.values() if size is not None]
    return sum(known) if len(known) == len(sizes) else None
