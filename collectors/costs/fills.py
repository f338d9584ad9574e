"""Ops that write without reading: fills, ranges, and random numbers.

A fill has no FLOPs. A random number counts as `RANDOM` operations (a Philox round's share).
"""

from __future__ import annotations

import math

from neuron_explorer.collectors.costs.arguments import Call, Tensor, Text
from neuron_explorer.collectors.costs.notes import Missing
from neuron_explorer.collectors.costs.registry import Work, formula

RANDOM = 10


def _written(call: Call, output: Tensor, flops: int = 0) -> Work:
    del call
    return Work(output.numel * flops, (), [output])


@formula("fill", "fill zero zeros_like ones_like full_like new_full_like fill_diagonal")
def fill(call: Call) -> Work:
    """Every element written, none read."""
    source = call.tensor(0)
    dtype = source.dtype if call.name.rstrip("_").endswith(("fill", "zero")) else _like(call)
    return _written(call, source.like(dtype))


def _like(call: Call) -> str:
    place = 2 if "full_like" in call.name else 1
    return call.dtype(place, call.tensor(0).dtype)


@formula("fill", "zeros ones")
def zeros(call: Call) -> Work:
    """A new tensor of a recorded size; float by default."""
    target = call.tensors()
    shape = tuple(call.ints(0) or ())
    return _written(call, Tensor(shape, target[0].dtype if target else call.dtype(1, "float")))


@formula("fill", "full")
def full(call: Call) -> Work:
    """A new tensor of a recorded size; its dtype is the number's by default."""
    value = call.text(1)
    default = "float" if any(c in value for c in ".en") else "long int"
    default = "bool" if value in ("True", "False") else default
    return _written(call, Tensor(tuple(call.ints(0) or ()), call.dtype(2, default)))


@formula("fill", "new_zeros new_ones")
def new_zeros(call: Call) -> Work:
    """A new tensor of a recorded size and another tensor's dtype."""
    dtype = call.dtype(2, call.tensor(0).dtype)
    return _written(call, Tensor(tuple(call.ints(1) or ()), dtype))


@formula("fill", "new_full")
def new_full(call: Call) -> Work:
    """A new tensor of a recorded size and another tensor's dtype."""
    dtype = call.dtype(3, call.tensor(0).dtype)
    return _written(call, Tensor(tuple(call.ints(1) or ()), dtype))


@formula("fill", "scalar_tensor")
def scalar_tensor(call: Call) -> Work:
    """One element."""
    return _written(call, Tensor((), call.dtype(1, "float")))


@formula("fill", "arange range")
def arange(call: Call) -> Work:
    """Evenly spaced numbers; an out= may still have the size it is about to get."""
    if not call.has_values:
        raise Missing("no_values")
    target = call.tensors()
    texts = _leading_numbers(call)
    bounds = [float(text) for text in texts]
    start, stop, step = _range(bounds)
    count = max(0, math.ceil((stop - start) / step)) if step else 0
    whole = not any(mark in text for text in texts for mark in ".en")
    default = target[0].dtype if target else "long int" if whole else "float"
    return _written(call, Tensor((count,), call.dtype(len(bounds), default)), 1)


def _leading_numbers(call: Call) -> list[str]:
    overloads = {4: 3, 5: 1, 6: 2, 7: 3}
    limit = overloads.get(len(call.args), 1)
    texts = [arg.value for arg in call.args[:limit] if isinstance(arg, Text)]
    return [text for text in texts if text]


def _range(bounds: list[float]) -> tuple[float, float, float]:
    if not bounds:
        raise Missing("no_values")
    start, stop = (0.0, bounds[0]) if len(bounds) == 1 else (bounds[0], bounds[1])
    return start, stop, bounds[2] if len(bounds) > 2 else 1.0


@formula("fill", "linspace logspace")
def linspace(call: Call) -> Work:
    """A recorded number of points."""
    return _written(call, Tensor((call.integer(2, 100),), call.dtype(3, "float")), 2)


@formula("fill", "eye")
def eye(call: Call) -> Work:
    """A diagonal of ones."""
    rows = call.integer(0, 0)
    square = len(call.args) == 5
    shape = (rows, rows if square else call.integer(1, rows))
    return _written(call, Tensor(shape, call.dtype(1 if square else 2, "float")))


@formula("fill", "tril_indices triu_indices")
def triangle_indices(call: Call) -> Work:
    """Row and column numbers of a triangle."""
    rows, columns, offset = (call.integer(i, 0) for i in range(3))
    below = _triangle(rows + offset, columns) - _triangle(offset, columns)
    strict = _triangle(rows + offset - 1, columns) - _triangle(offset - 1, columns)
    count = below if "tril" in call.name else rows * columns - strict
    return _written(call, Tensor((2, count), call.dtype(3, "long int")))


def _triangle(rows: int, columns: int) -> int:
    """Elements on or below the diagonal of the first rows of a matrix."""
    slanted = max(0, min(rows, columns))
    return slanted * (slanted + 1) // 2 + max(0, rows - columns) * columns


@formula("random", "normal uniform random exponential cauchy log_normal geometric")
def random_inplace(call: Call) -> Work:
    """Random numbers written over a tensor."""
    if call.tensors():
        return _written(call, call.tensor(0).like(), RANDOM)
    raise Missing("size_not_recorded")


@formula("random", "rand_like randn_like randint_like")
def random_like(call: Call) -> Work:
    """Random numbers in another tensor's shape."""
    source = call.tensor(0)
    place = {"rand_like": 1, "randn_like": 1}.get(call.name.rpartition("::")[2], len(call.args) - 5)
    return _written(call, source.like(call.dtype(place, source.dtype)), RANDOM)


@formula("random", "rand randn")
def rand(call: Call) -> Work:
    """A new tensor of random numbers; float by default."""
    place = 2 if len(call.args) in (3, 6) else 1
    return _written(call, Tensor(tuple(call.ints(0) or ()), call.dtype(place, "float")), RANDOM)


@formula("random", "randint")
def randint(call: Call) -> Work:
    """Random whole numbers below a bound, or between two."""
    values = [arg.value for arg in call.args[:3] if isinstance(arg, Text)]
    place = next((i for i, text in enumerate(values) if text.startswith("[")), None)
    if place is None:
        raise Missing("no_values")
    dtype = call.dtype(place + 1, "long int")
    return _written(call, Tensor(tuple(call.ints(place) or ()), dtype), RANDOM)


@formula("random", "randperm")
def randperm(call: Call) -> Work:
    """A permutation of a recorded size."""
    return _written(call, Tensor((call.integer(0, 0),), "long int"), RANDOM)


@formula("random", "bernoulli")
def bernoulli(call: Call) -> Work:
    """0 or 1 by a probability: one number, or one an element."""
    source = call.tensor(0)
    chances = call.optional(1) if call.inplace else source
    reads = [] if chances is None or not chances.shape else [chances]
    return Work(source.numel * RANDOM, reads, [source.like()])


@formula("random", "multinomial")
def multinomial(call: Call) -> Work:
    """Rows of weights read, samples written."""
    source = call.tensor(0)
    samples = Tensor((*source.shape[:-1], call.integer(1, 1)), "long int")
    return Work(source.numel + samples.numel * RANDOM, [source], [samples])


@formula("random", "dropout feature_dropout alpha_dropout")
def dropout(call: Call) -> Work:
    """Elements dropped and the rest scaled; nothing in evaluation."""
    source = call.tensor(0)
    if call.has_values and (not call.flag(2) or float(call.text(1) or 0) == 0):
        return Work(0, (), [], outputs=[source], family="view")
    return Work(source.numel * (RANDOM + 1), [source], [source.like()])


@formula("random", "native_dropout _fused_dropout")
def native_dropout(call: Call) -> Work:
    """Dropout that also writes its mask, one byte an element."""
    source = call.tensor(0)
    writes = [source.like(), source.like("bool")]
    return Work(source.numel * (RANDOM + 1), [source], writes)


@formula("elementwise", "native_dropout_backward _masked_scale")
def native_dropout_backward(call: Call) -> Work:
    """Gradient times mask times scale."""
    gradient = call.tensor(0)
    return Work(2 * gradient.numel, call.tensors(stop=2), [gradient.like()])
