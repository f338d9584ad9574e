"""Recorded ops in a row as one function: each op takes what the one before it made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from neuron_explorer.analyzers.verify.recorded import CannotReplayError, RecordedOp
from neuron_explorer.analyzers.verify.resolve import Call, resolve
from neuron_explorer.analyzers.verify.tensors import Spec, make

Tensors = list[torch.Tensor]


@dataclass
class Program:
    """A function of fresh tensors that runs the ops."""

    text: str
    """Its Python source."""
    function: Callable[..., Any]
    inputs: Tensors
    written: tuple[int, ...]
    """Inputs that it changes in place."""
    notes: tuple[str, ...]
    kept: Tensors = field(default_factory=list)
    """What the written inputs held at first."""

    def __post_init__(self) -> None:
        self.kept = [self.inputs[place].clone() for place in self.written]

    def reset(self) -> None:
        """Undo what runs in place, so that values neither vanish nor overflow."""
        for place, first in zip(self.written, self.kept, strict=True):
            self.inputs[place].copy_(first)

    def run(self) -> Any:
        return self.function(*self.inputs)


def bytes_needed(ops: Sequence[RecordedOp], device: torch.device) -> int:
    """Bytes of all tensors that the ops take; results are about as much again.

    Raises:
        CannotReplayError: One of them cannot be resolved.
    """
    return sum(each.bytes for op in ops for each in resolve(op, device).specs())


def build(ops: Sequence[RecordedOp], device: torch.device) -> Program:
    """Resolve the ops, make their inputs and write the function.

    What an op made feeds the next where dtype and shape (or, as a view, the number of elements)
    match; every other tensor is fresh. Results that nothing reads are returned.

    Raises:
        CannotReplayError: One of the ops cannot be resolved.
    """
    writer = _Writer(device)
    with torch.no_grad():
        for op in ops:
            writer.add(resolve(op, device))
    return writer.program()


class _Writer:
    """Writes the function op by op, running each once to know what it makes."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._lines: list[str] = []
        self._names: dict[str, Any] = {"torch": torch}
        self._inputs: Tensors = []
        self._written: list[int] = []
        self._notes: dict[str, None] = {}
        self._made: dict[str, torch.Tensor] = {}
        self._unread: dict[str, None] = {}

    def add(self, call: Call) -> None:
        taken = self._feed(call)
        if self._made and taken is None:
            self._notes[f"{call.op.name} takes nothing that the op before it made"] = None
        place = len(self._lines)
        texts: list[str] = []
        values: list[Any] = []
        for number, (name, by_keyword, _) in enumerate(call.arguments):
            text, real = taken[1:] if taken and taken[0] == number else self._fresh(call, number)
            texts.append(f"{name}={text}" if by_keyword else text)
            values.append((name if by_keyword else None, real))
        self._names[f"op{place}"] = call.overload
        self._lines.append(f"v{place} = op{place}({', '.join(texts)})")
        self._notes.update(dict.fromkeys(call.notes))
        plain = [real for name, real in values if name is None]
        named = {name: real for name, real in values if name is not None}
        self._remember(place, _called(call, plain, named))

    def program(self) -> Program:
        parameters = ", ".join(f"x{place}" for place in range(len(self._inputs)))
        body = [*self._lines, f"return ({''.join(f'{name}, ' for name in self._unread)})"]
        text = f"def replayed({parameters}):\n" + "".join(f"    {line}\n" for line in body)
        space = dict(self._names)
        exec(compile(text, "<replayed>", "exec"), space)
        return Program(
            text,
            space["replayed"],
            self._inputs,
            tuple(dict.fromkeys(self._written)),
            tuple(self._notes),
        )

    def _feed(self, call: Call) -> tuple[int, str, torch.Tensor] | None:
        """The argument that takes a result of the op before, as text and as a tensor."""
        slots = list(enumerate(call.arguments))
        if call.op.name == "aten::copy_":
            slots = [*slots[1:], slots[0]]  # what it reads, before what it writes over
        for number, (_, _, value) in slots:
            if not isinstance(value, Spec):
                continue
            for name, made in self._made.items():
                seen = _as_recorded(made, value)
                if seen is not None:
                    self._unread.pop(name, None)
                    text = name if seen is made else f"{name}.view({list(value.shape)})"
                    return number, text, seen
        return None

    def _fresh(self, call: Call, number: int) -> tuple[str, Any]:
        name, _, value = call.arguments[number]
        if isinstance(value, Spec):
            return self._input(value, call, written=name in call.written)
        if isinstance(value, tuple):
            made = [self._input(each, call, written=name in call.written) for each in value]
            return f"[{', '.join(text for text, _ in made)}]", [real for _, real in made]
        return _literal(value, self._names), value

    def _input(self, wanted: Spec, call: Call, *, written: bool) -> tuple[str, torch.Tensor]:
        place = len(self._inputs)
        made = make(wanted, _home(wanted, call, self._device))
        if written:
            self._written.append(place)
        self._inputs.append(made)
        return f"x{place}", made

    def _remember(self, place: int, result: Any) -> None:
        """The results of the op just run, by the text that names each."""
        self._made = {}
        results = result if isinstance(result, (tuple, list)) else [result]
        for number, item in enumerate(results):
            if isinstance(item, torch.Tensor):
                whole = not isinstance(result, (tuple, list))
                name = f"v{place}" if whole else f"v{place}[{number}]"
                self._made[name] = item
                self._unread[name] = None


def _called(call: Call, plain: list[Any], named: dict[str, Any]) -> Any:
    try:
        return call.overload(*plain, **named)
    except (RuntimeError, IndexError, TypeError, ValueError) as error:
        first = str(error).strip().partition("\n")[0]
        raise CannotReplayError(f"{call.op.name} does not run here: {first}") from error


def _home(wanted: Spec, call: Call, device: torch.device) -> torch.device:
    """A Python number in an op (`x * 0.5`) is recorded as a tensor, which lies on the host."""
    others = [each for each in call.specs() if each.shape]
    number = wanted.shape == () and wanted.dtype in {torch.float64, torch.int64}
    if number and any(each.dtype != wanted.dtype for each in others):
        return torch.device("cpu")
    return device


def _as_recorded(made: torch.Tensor, wanted: Spec) -> torch.Tensor | None:
    """The result as the next op saw it, or None where it cannot be what that op took."""
    if made.dtype != wanted.dtype or not made.dim():
        return None
    if tuple(made.shape) == wanted.shape:
        return made
    if made.numel() != Spec(wanted.shape, wanted.strides, wanted.dtype).elements:
        return None
    return made.view(wanted.shape) if made.is_contiguous() and _dense(wanted) else None


def _dense(wanted: Spec) -> bool:
    product = 1
    for size in wanted.shape:
        product *= size
    return wanted.elements == product and list(wanted.strides) == sorted(
        wanted.strides, reverse=True
    )


def _literal(value: Any, names: dict[str, Any]) -> str:
    """Python source of an argument that is no tensor."""
    if isinstance(value, float):
        return f"float({str(value)!r})" if value - value != 0 else repr(value)
    if isinstance(value, torch.device):
        return f"torch.device({str(value)!r})"
    if value is None or isinstance(value, (bool, int, str, list, complex)):
        return repr(value)
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return str(value)
    name = f"c{len(names)}"
    names[name] = value
    return name
