"""Programs (NEFFs) of the device: one for each op and its shapes and types, built on first use."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from neuron_explorer.collectors.costs import op_cost
from neuron_explorer.collectors.dryrun.arguments import map_tensors, mutated_flags, tensors_in
from neuron_explorer.collectors.dryrun.constants import Constants
from neuron_explorer.collectors.dryrun.log import Compilation, DeviceLog
from neuron_explorer.collectors.linking.frames import parse_frame

Key = tuple[Any, ...]

_TYPE_NAMES = {
    torch.float32: "float",
    torch.float64: "double",
    torch.float16: "c10::Half",
    torch.bfloat16: "c10::BFloat16",
    torch.int64: "long int",
    torch.int32: "int",
    torch.int16: "short int",
    torch.int8: "signed char",
    torch.uint8: "unsigned char",
    torch.bool: "bool",
}
"""As Kineto writes them, which is what the cost formulas read."""
_PEAKS = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32"}
MATRIX = frozenset({"matmul", "convolution", "attention"})


@dataclass(frozen=True)
class Program:
    """What is known of a program once it is built."""

    name: str
    outputs: Any
    """Meta tensors of what the op returns, in its own structure."""
    read_bytes: int
    write_bytes: int
    flops: int | None
    work_ns: int
    """Modelled time of its work, without the launch: the larger of its two floors."""
    compute_ns: int = 0
    """The floor that its FLOPs make."""
    graph: str | None = None
    key: Key | None = None
    """Of an eager op's program."""


def sizes(constants: Constants, tensors: Iterator[torch.Tensor]) -> int:
    """Bytes of tensors as the device keeps them."""
    return sum(_nbytes(constants, tensor) for tensor in tensors)


def _nbytes(constants: Constants, tensor: torch.Tensor) -> int:
    narrowed = constants.narrowed.get(str(tensor.dtype).removeprefix("torch."))
    dtype = getattr(torch, narrowed) if narrowed else tensor.dtype
    # an expanded dimension is stored once
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    stored = [size for size, stride in pairs if stride or size == 0]
    count = 1
    for size in stored:
        count *= size
    return count * dtype.itemsize


def key_of(value: Any) -> Any:
    """What of an argument decides a program: shapes, types, whole numbers; no float's value."""
    if isinstance(value, torch.Tensor):
        return (tuple(value.shape), value.stride(), value.dtype)
    if isinstance(value, tuple | list):
        return tuple(key_of(item) for item in value)
    if isinstance(value, dict):
        return tuple((name, key_of(item)) for name, item in value.items())
    if isinstance(value, float | complex):
        return type(value).__name__
    return value if isinstance(value, int | str | None | torch.dtype) else str(value)


@dataclass
class ProgramCache:
    """Programs by op and key; says which call sites made it build again."""

    constants: Constants
    log: DeviceLog
    programs: dict[Key, Program] = field(default_factory=dict)
    generation: int = 0
    """Optimizer steps so far."""
    _keys_at: dict[Key, tuple[Key, int]] = field(default_factory=dict)
    """Last key of each op at each call site, and the generation that it first ran in."""
    _run_site: CallSite | None = None
    _run: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, quiet: bool = False
    ) -> Program:
        """The program of an op, built where there is none yet; `quiet` logs no compilation.

        Raises:
            NotImplementedError: The op has no meta kernel, or the shape of its result
                depends on values.
        """
        key = (func, key_of(args), key_of(kwargs))
        if not quiet:
            return self.find(func._schema.name, key, lambda: self._build(key, args, kwargs))
        with self._lock:
            if key not in self.programs:
                self.programs[key] = self._build(key, args, kwargs)
            return self.programs[key]

    def find(self, name: str, key: Key, build: Callable[[], Program]) -> Program:
        """The program of a key, built and logged where there is none yet."""
        site = call_site()
        with self._lock:
            name_here = (name, self._turn(name, site))
            before, since = self._keys_at.get((name_here, site), (None, self.generation))
            program = self.programs.get(key)
            if program is None:
                start = time.time_ns()
                program = self.programs[key] = build()
                again = before is not None and describe(before[1:]) != describe(key[1:])
                again = (
                    again and site is not None and not (site.in_loop and since == self.generation)
                )
                self._log(name, key, before if again else None, start, program.graph)
            self._keys_at[name_here, site] = (key, since)
        return program

    def _turn(self, name: str, site: CallSite | None) -> int:
        """Which turn of the op it is in one call that runs it several times.

        An attention runs two products from one line; between them it runs something else.
        """
        if site != self._run_site:
            self._run_site, self._run = site, []
        if not self._run or self._run[-1] != name:
            self._run.append(name)
        return self._run.count(name)

    def _log(
        self, name: str, key: Key, before: Key | None, start_ns: int, graph: str | None
    ) -> None:
        self.log.compilations.append(
            Compilation(
                name=name,
                key=describe(key[1:]),
                recompilation=before is not None,
                reason=None if before is None else difference(before, key),
                start_ns=start_ns,
                end_ns=time.time_ns(),
                tid=threading.get_native_id(),
                graph=graph,
            )
        )

    def _build(self, key: Key, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
        func = key[0]
        outputs = meta_call(func, args, kwargs)
        constants = self.constants
        read, write, flops, family = _work(constants, func, args, kwargs, outputs)
        dtype = next((t.dtype for t in tensors_in([args, kwargs])), torch.float32)
        compute = compute_ns(constants, flops, dtype, matrix=family in MATRIX)
        work = in_work_ns(constants, read + write, compute)
        name = func._schema.name
        return Program(name, outputs, read, write, flops, work, compute, key=key)


def compute_ns(constants: Constants, flops: int | None, dtype: torch.dtype, *, matrix: bool) -> int:
    """Modelled time of arithmetic: FLOPs over the engine's peak; an unknown number is none."""
    engine = constants.flops_per_ns.get(_PEAKS.get(dtype, "fp32"), 0.0)
    peak = engine if matrix and engine else constants.vector_flops_per_ns
    return round((flops or 0) / peak)


def in_work_ns(constants: Constants, moved: int, compute: int) -> int:
    """Modelled time of a program's work: bytes over bandwidth or its arithmetic if longer."""
    return max(round(moved / constants.bytes_per_ns), compute)


def meta_call(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What an op returns, as meta tensors."""
    changed = {**kwargs, "device": torch.device("meta")} if kwargs.get("device") else kwargs
    return func(*map_tensors(to_meta, args), **map_tensors(to_meta, changed))


def to_meta(tensor: torch.Tensor) -> torch.Tensor:
    """A meta tensor of the same shape, strides and type."""
    if tensor.device.type == "cpu" and tensor.dim() == 0:
        return tensor
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")


def _work(
    constants: Constants, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], outputs: Any
) -> tuple[int, int, int | None, str | None]:
    """Bytes read and written, FLOPs and family; by formula, else every tensor once."""
    values = [*args, *kwargs.values()]
    cost = op_cost(func._schema.name, *argument_texts(values))
    read, write = cost.read_bytes, cost.write_bytes
    if read is None or write is None or constants.narrowed:
        read = sizes(constants, tensors_in(values))
        written = [a for a, mutated in zip(values, mutated_flags(func), strict=False) if mutated]
        write = sizes(constants, tensors_in(written or outputs))
    return read, write, cost.flops, cost.family


def argument_texts(values: list[Any]) -> tuple[str, str, str, str]:
    """Shapes, dtypes, strides and scalars of arguments as a trace records them."""
    return (
        json.dumps([_shape(v) for v in values]),
        json.dumps([_dtype(v) for v in values]),
        json.dumps([_stride(v) for v in values]),
        json.dumps([_scalar(v) for v in values]),
    )


def _shape(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return list(value.shape)
    return [_shape(v) for v in tensors_in(value)] if isinstance(value, tuple | list) else []


def _stride(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return list(value.stride())
    return [_stride(v) for v in tensors_in(value)] if isinstance(value, tuple | list) else []


def _dtype(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return _TYPE_NAMES.get(value.dtype, str(value.dtype))
    if isinstance(value, tuple | list) and any(True for _ in tensors_in(value)):
        return "TensorList"
    return "ScalarList" if isinstance(value, tuple | list) else "Scalar"


def _scalar(value: Any) -> str:
    return "" if any(True for _ in tensors_in(value)) else str(value)


_CALL = torch.nn.Module._call_impl.__code__
_LOOPS = ("/torch/optim/", "/torch/nn/utils/", "/torch/amp/", "/torch/nn/modules/module.py")
"""Code of torch that goes over tensors of all shapes from one line of the caller."""


@dataclass(frozen=True)
class CallSite:
    """From where an op was called, so precisely that one key belongs to it."""

    calls: tuple[tuple[str, int, int], ...]
    """File, line and position of each model frame, out to the innermost module's forward."""
    module: int
    """Identity of that module; 0 outside of all."""
    in_loop: bool
    """Whether torch itself goes over many tensors there."""


def call_site() -> CallSite | None:
    """The call site of the running op; None where only torch runs, as in a backward."""
    frame: FrameType | None = sys._getframe(1)
    calls: list[tuple[str, int, int]] = []
    in_loop = False
    while frame is not None:
        code = frame.f_code
        if code is _CALL:
            return CallSite(tuple(calls), id(frame.f_locals["self"]), in_loop)
        if _is_model(code.co_filename):
            calls.append((code.co_filename, frame.f_lineno, frame.f_lasti))
        elif not calls:
            in_loop = in_loop or any(part in code.co_filename for part in _LOOPS)
        frame = frame.f_back
    return CallSite(tuple(calls), 0, in_loop) if calls else None


_OWN = (f"{Path(__file__).parents[1]}{os.sep}", f"{Path(__file__).resolve().parents[1]}{os.sep}")
"""Where the collectors lie, as frames may name it: in a checkout by way of a link."""
_model_files: dict[str, bool] = {}


def _is_model(file: str) -> bool:
    if file not in _model_files:
        frame = parse_frame(f"{file}(1): f")
        _model_files[file] = bool(frame and frame.model) and not file.startswith(_OWN)
    return _model_files[file]


def describe(key: Any) -> str:
    """A key as people read it: `4x8 float32, 16x8 float32`."""
    found: list[str] = []

    def walk(part: Any) -> None:
        if isinstance(part, tuple) and len(part) == 3 and isinstance(part[2], torch.dtype):
            shape = "x".join(map(str, part[0])) or "scalar"
            found.append(f"{shape} {str(part[2]).removeprefix('torch.')}")
        elif isinstance(part, tuple):
            for item in part:
                walk(item)

    walk(key)
    return ", ".join(found)


def difference(before: Key, now: Key) -> str:
    """How a key differs from the one before it at the same call site."""
    return f"{describe(before[1:])} -> {describe(now[1:])}"
