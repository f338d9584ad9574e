"""`torch.compile(model, backend="neuron")` in a dry run: one program a graph.

As documented for TorchNeuron: Dynamo and AOTAutograd make the graphs, forward and backward are
programs of their own, graph breaks split them, each new shape is compiled again, and
`dynamic=True` is refused.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

import torch

from neuron_explorer.collectors.costs import op_cost
from neuron_explorer.collectors.dryrun.arguments import (
    device_tensors,
    map_leaves,
    snapshot,
    tensors_in,
    values,
)
from neuron_explorer.collectors.dryrun.constants import Constants
from neuron_explorer.collectors.dryrun.device import Device
from neuron_explorer.collectors.dryrun.jobs import Job
from neuron_explorer.collectors.dryrun.programs import (
    MATRIX,
    Program,
    argument_texts,
    compute_ns,
    in_work_ns,
    key_of,
    sizes,
    to_meta,
)
from neuron_explorer.collectors.dryrun.seeds import draw, is_random
from neuron_explorer.collectors.dryrun.tensor import NAME, NeuronTensor
from neuron_explorer.errors import UsageError


def register(current: Callable[[], Device]) -> None:
    """Make the back end known to Dynamo, and let it take the device's tensors as plain ones."""
    from torch._dynamo import register_backend, trace_rules
    from torch._dynamo.variables.builder import VariableBuilder

    VariableBuilder._type_dispatch()[NeuronTensor] = VariableBuilder.wrap_tensor
    torch._dynamo.config.traceable_tensor_subclasses.add(NeuronTensor)
    trace_rules.add("neuron_explorer")
    # as documented, a second shape is a second program, not a dynamic one
    torch._dynamo.config.automatic_dynamic_shapes = False

    # constants of a graph (`torch.tensor(..., device=)`) are then made on the host and moved by
    # the graph itself; a real tensor of the device could not become part of it
    fake_tensor: Any = torch._subclasses.fake_tensor
    fake_tensor._is_privateuse1_backend_available = lambda: False

    def neuron(graph: torch.fx.GraphModule, inputs: list[Any], **_options: Any) -> Any:
        return _compile(current(), graph, inputs)

    register_backend(neuron, name=NAME)


def _compile(device: Device, graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
    from torch._functorch.aot_autograd import aot_module_simplified

    if any(isinstance(value, torch.SymInt) for value in inputs):
        raise UsageError(
            "backend='neuron' compiles static shapes only: without dynamic=True and "
            "mark_dynamic() each new shape is compiled again"
        )
    return aot_module_simplified(
        graph,
        inputs,
        fw_compiler=lambda gm, _: _Graph(device, gm, "forward"),
        bw_compiler=lambda gm, _: _Graph(device, gm, "backward"),
        inference_compiler=lambda gm, _: _Graph(device, gm, "forward"),
    )


class _Graph:
    """One compiled graph: called with its inputs in a list, it submits one program."""

    _boxed_call = True

    def __init__(self, device: Device, graph: torch.fx.GraphModule, phase: str) -> None:
        self._device = device
        self._graph, self._random = _on_host(graph)
        self._id = _compile_id()
        self._name = f"graph {self._id} {phase}"
        self._outputs = _outputs(graph)
        ops, self._flops, self._intermediate = _measure(device.constants, graph)
        self._matrix = any(family in MATRIX for family in ops)

    def __call__(self, inputs: list[Any]) -> list[Any]:
        given = list(inputs)
        inputs.clear()
        device = self._device
        key = (self, key_of(given))
        program = device.programs.find(self._name, key, lambda: self._program(given))
        made = [self._made(output, given) for output in program.outputs]
        fresh = [m for m, o in zip(made, program.outputs, strict=True) if _is_new(o)]
        targets = [m.cell for m in fresh]
        cells = snapshot(given)
        drawn = [device.generator.next_seed() for _ in range(self._random)]

        def run() -> None:
            _seeds.left = list(drawn)
            found = self._graph(*values(cells))
            results = [r for r, o in zip(found, program.outputs, strict=True) if _is_new(o)]
            for target, value in zip(targets, results, strict=True):
                target.value = device.narrowed(value)

        device.submit(
            ("compute", 0),
            Job(
                name=self._name,
                kind="kernel",
                reads=device.accesses(device_tensors(given)),
                writes=device.accesses(fresh),
                run=run,
                read_bytes=program.read_bytes,
                write_bytes=program.write_bytes,
                flops=program.flops,
                work_ns=program.work_ns,
                graph=self._id,
            ),
        )
        return made

    def _made(self, output: Any, given: list[Any]) -> Any:
        if isinstance(output, int):
            return given[output]
        return None if output is None else self._device.output(output, 0)

    def _program(self, given: list[Any]) -> Program:
        constants = self._device.constants
        spilled = max(0, self._intermediate - constants.on_chip_bytes)
        read = sizes(constants, tensors_in(given)) + spilled
        write = sizes(constants, tensors_in(self._outputs)) + spilled
        dtype = next((t.dtype for t in tensors_in(given) if t.is_floating_point()), torch.float32)
        compute = compute_ns(constants, self._flops, dtype, matrix=self._matrix)
        work = in_work_ns(constants, read + write, compute)
        return Program(
            self._name, self._outputs, read, write, self._flops, work, compute, graph=self._id
        )


def _is_new(output: Any) -> bool:
    return isinstance(output, torch.Tensor)


def _compile_id() -> str | None:
    found = torch._guards.CompileContext.current_compile_id()
    return None if found is None else str(found)


class _Seeds(threading.local):
    """Seeds of the random ops of the graph that runs on this thread."""

    left: list[int]


_seeds = _Seeds()


def _drawn(func: Any) -> Any:
    """A random op that takes its seed when the graph runs."""

    def run(*args: Any, **kwargs: Any) -> Any:
        return draw(func, args, kwargs, _seeds.left.pop(0))

    run.__name__ = func.__name__
    return run


def _on_host(graph: torch.fx.GraphModule) -> tuple[torch.fx.GraphModule, int]:
    """The same graph making its constants on the host, where values are computed.

    And how many of its ops draw random numbers.
    """
    changed = copy.copy(graph)
    changed.graph = copy.deepcopy(graph.graph)
    random = 0
    for node in changed.graph.nodes:
        node.args, node.kwargs = map_leaves(_host, node.args), map_leaves(_host, node.kwargs)
        if isinstance(node.target, torch._ops.OpOverload) and is_random(node.target):
            random += 1
            node.target = _drawn(node.target)
    changed.recompile()
    return changed, random


def _host(value: Any) -> Any:
    on_device = isinstance(value, torch.device) and value.type == NAME
    return torch.device("cpu") if on_device else value


def _outputs(graph: torch.fx.GraphModule) -> list[Any]:
    """Each output: meta tensor, number of the input that it is, or None."""
    inputs = [node for node in graph.graph.nodes if node.op == "placeholder"]
    result = next(node for node in graph.graph.nodes if node.op == "output").args[0]
    found: list[Any] = []
    for node in result:
        if node in inputs:
            found.append(inputs.index(node))
        else:
            found.append(None if node is None else to_meta(node.meta["val"]))
    return found


def _measure(
    constants: Constants, graph: torch.fx.GraphModule
) -> tuple[list[str | None], int, int]:
    """Families and FLOPs of a graph's ops, and the most bytes of intermediates alive at once."""
    families: list[str | None] = []
    flops = alive = most = 0
    last_use = {user: node for node in graph.graph.nodes for user in node.all_input_nodes}
    ends: dict[Any, list[Any]] = {}
    for tensor, node in last_use.items():
        ends.setdefault(node, []).append(tensor)
    for node in graph.graph.nodes:
        if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
            continue
        values = _with_values([*node.args, *node.kwargs.values()])
        cost = op_cost(node.target._schema.name, *argument_texts(values))
        families.append(cost.family)
        flops += cost.flops or 0
        if not node.target.is_view:
            alive += sizes(constants, tensors_in(node.meta.get("val")))
            most = max(most, alive)
        for done in ends.get(node, ()):
            if done.op == "call_function" and not getattr(done.target, "is_view", False):
                alive -= sizes(constants, tensors_in(done.meta.get("val")))
    return families, flops, most


def _with_values(value: Any) -> Any:
    """Arguments of a node with the tensors that its input nodes stand for."""
    if isinstance(value, torch.fx.Node):
        return value.meta.get("val")
    if isinstance(value, tuple | list):
        return type(value)(_with_values(item) for item in value)
    return value
