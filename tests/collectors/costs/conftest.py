"""Two ways to get an op as a trace records it, each with what it truly costs."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import pytest

from neuron_explorer.collectors.costs import op_cost

KINETO = {
    "float32": "float",
    "float64": "double",
    "int64": "long int",
    "int32": "int",
    "uint8": "unsigned char",
    "int8": "signed char",
    "bool": "bool",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "float8_e4m3fn": "c10::Float8_e4m3fn",
}
ENUM = {
    "uint8": 0,
    "int32": 3,
    "int64": 4,
    "float16": 5,
    "float32": 6,
    "float64": 7,
    "bfloat16": 15,
}


@dataclass(frozen=True)
class Recorded:
    """One op call as JSON texts, and its measured truth."""

    name: str
    texts: tuple[str, str, str, str]
    flops: int = 0
    inputs: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)


def _flat(value: Any) -> list[Any]:
    if hasattr(value, "element_size"):
        return [value]
    if isinstance(value, list | tuple):
        return [found for item in value for found in _flat(item)]
    return []


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def read_events(path: Path) -> list[dict[str, Any]]:
    """Events of a Chrome trace, plain or gzipped."""
    raw = path.read_bytes()
    data = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    return list(data if isinstance(data, list) else data["traceEvents"])


def texts_of(event: dict[str, Any]) -> tuple[str | None, str | None, str | None, str | None]:
    """Shapes, dtypes, strides and values of a Kineto event as the event table keeps them."""
    args = event.get("args", {})
    keys = ("Input Dims", "Input dims"), ("Input type",), ("Input Strides",), ("Concrete Inputs",)
    found = [next((args[key] for key in group if key in args), None) for group in keys]
    shapes, types, strides, values = (None if v is None else _compact(v) for v in found)
    return shapes, types, strides, values


@pytest.fixture(name="read_events")
def _read_events() -> Callable[[Path], list[dict[str, Any]]]:
    return read_events


@pytest.fixture(name="texts_of")
def _texts_of() -> Callable[
    [dict[str, Any]], tuple[str | None, str | None, str | None, str | None]
]:
    return texts_of


@pytest.fixture
def profiled(tmp_path: Path) -> Callable[..., Recorded]:
    """Runs an op on the CPU under torch.profiler and reads it back from the exported trace."""
    torch = pytest.importorskip("torch")
    counter = pytest.importorskip("torch.utils.flop_counter")

    def run(name: str, call: Callable[..., Any], inputs: Sequence[Any]) -> Recorded:
        activities = [torch.profiler.ProfilerActivity.CPU]
        with torch.profiler.profile(activities=activities, record_shapes=True) as profiler:
            result = call(*inputs)
        path = tmp_path / "trace.json"
        profiler.export_chrome_trace(str(path))
        events = [e for e in read_events(path) if e.get("cat") == "cpu_op" and e["name"] == name]
        assert events, f"the profiler recorded no {name}"
        first = min(events, key=lambda event: float(event["ts"]))
        meta = [tensor.to("meta") for tensor in _flat(list(inputs))]
        with counter.FlopCounterMode(display=False) as flops:
            call(*meta)
        shapes, types, strides, values = texts_of(first)
        assert shapes
        assert types
        assert strides
        assert values
        texts = (shapes, types, strides, values)
        return Recorded(name, texts, flops.get_total_flops(), _flat(list(inputs)), _flat(result))

    return run


def _stored(tensor: Any) -> int:
    """Bytes of distinct elements of a real tensor."""
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    elements: int = prod(size for size, stride in pairs if stride or not size)
    return elements * int(tensor.element_size())


@pytest.fixture
def agrees(profiled: Callable[..., Recorded]) -> Callable[..., None]:
    """Checks the cost of an op, as the profiler recorded it, against real tensors."""

    def check(
        op: str,
        call: Callable[..., Any],
        inputs: tuple[Any, ...],
        family: str,
        read: int | None = None,
        written: int | None = None,
    ) -> None:
        recorded = profiled(op, call, inputs)
        cost = op_cost(op, *recorded.texts, list_dtype="float" if family == "cat" else None)
        counted = sum(t.numel() * t.element_size() for t in recorded.outputs)
        reads = sum(map(_stored, inputs)) if read is None else read
        assert cost.read_bytes == reads, cost
        assert cost.write_bytes == (counted if written is None else written), cost
        assert cost.output_shapes == _compact([list(t.shape) for t in recorded.outputs])
        assert (cost.family, cost.via) == (family, "formula")
        assert not recorded.flops or cost.flops == recorded.flops

    return check


def _shape_text(value: Any, attribute: Callable[[Any], list[int]]) -> list[Any]:
    if hasattr(value, "element_size"):
        return attribute(value)
    if isinstance(value, list) and value and hasattr(value[0], "element_size"):
        return [attribute(item) for item in value]
    return []


def _type_text(value: Any) -> str:
    if hasattr(value, "element_size"):
        return KINETO[str(value.dtype).removeprefix("torch.")]
    if value is None:
        return ""
    if isinstance(value, list):
        return "TensorList" if value and hasattr(value[0], "element_size") else "ScalarList"
    return "Scalar"


def _value_text(value: Any) -> str:
    if value is None or _flat(value):
        return ""
    if type(value).__name__ == "dtype":
        return str(ENUM[str(value).removeprefix("torch.")])
    return str(value)


def describe(args: Sequence[Any]) -> tuple[str, str, str, str]:
    """Arguments in the form Kineto records them."""
    shapes = [_shape_text(value, lambda t: list(t.shape)) for value in args]
    strides = [_shape_text(value, lambda t: list(t.stride())) for value in args]
    types = [_type_text(value) for value in args]
    values = [_value_text(value) for value in args]
    return _compact(shapes), _compact(types), _compact(strides), _compact(values)


@pytest.fixture
def described() -> Callable[..., tuple[str, str, str, str]]:
    """Arguments in the form Kineto records them."""
    return describe


@pytest.fixture
def dispatched() -> Callable[..., Recorded]:
    """Runs an overload on meta tensors and describes its arguments as Kineto would.

    For ops that no CPU runs: the flash, cudnn and fused variants.
    """
    torch = pytest.importorskip("torch")
    counter = pytest.importorskip("torch.utils.flop_counter")

    def run(overload: str, args: Sequence[Any]) -> Recorded:
        packet, _, variant = overload.partition(".")
        op = getattr(getattr(torch.ops.aten, packet), variant or "default")
        schema = op._schema.arguments
        full = [*args, *(a.default_value for a in schema[len(args) :])]
        positional = [v for a, v in zip(schema, full, strict=True) if not a.kwarg_only]
        named = {a.name: v for a, v in zip(schema, full, strict=True) if a.kwarg_only}
        with counter.FlopCounterMode(display=False) as flops:
            result = op(*positional, **named)
        texts = describe(full)
        total = flops.get_total_flops()
        return Recorded(f"aten::{packet}", texts, total, _flat(list(full)), _flat(result))

    return run
