"""Elementwise ops, their backwards and fused gates, with broadcasting, in-place and out=.

Operations an output element: arithmetic, comparison and logic 1; a selection 0; a function such
as exp, log or sin 4 (`FUNCTION`); a gate such as gelu or silu 6 (one function and two products).
"""

from __future__ import annotations

from neuron_explorer.collectors.costs import dtypes
from neuron_explorer.collectors.costs.arguments import Call, Shape, Tensor, Text, broadcast
from neuron_explorer.collectors.costs.notes import Missing
from neuron_explorer.collectors.costs.registry import Formula, Work, add, formula

FUNCTION = 4
GATE = 6

# operands: how many leading arguments may be tensors; a tensor after them is an out=
_OPS: dict[tuple[int, int], str] = {
    (1, 0): "tril triu conj_physical",
    (1, 1): "abs neg negative sign sgn signbit ceil floor round trunc frac relu relu6 leaky_relu "
    "hardtanh square reciprocal bitwise_not logical_not isnan isinf isfinite isposinf isneginf "
    "nan_to_num threshold rrelu rad2deg deg2rad positive absolute fix "
    "hardshrink softshrink",
    (1, FUNCTION): "exp exp2 expm1 log log1p log2 log10 sin cos tan asin acos atan sinh cosh tanh "
    "asinh acosh atanh sqrt rsqrt erf erfc erfinv lgamma digamma sigmoid logit sinc i0 angle "
    "special_erf special_expit mvlgamma polygamma",
    (1, GATE): "gelu silu elu celu selu softplus mish hardswish hardsigmoid log_sigmoid",
    (2, 0): "",
    (2, 1): "add sub rsub subtract mul multiply div divide true_divide floor_divide remainder fmod "
    "maximum minimum fmax fmin eq ne lt le gt ge not_equal less less_equal greater "
    "greater_equal bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift "
    "__and__ __or__ __xor__ __iand__ __ior__ __ixor__ __lshift__ __rshift__ logical_and "
    "logical_or logical_xor clamp_min clamp_max threshold_backward hardtanh_backward copysign "
    "leaky_relu_backward heaviside isclose prelu _prelu_kernel ldexp nextafter "
    "hardshrink_backward softshrink_backward gcd lcm complex",
    (2, FUNCTION): "pow float_power atan2 arctan2 hypot xlogy logaddexp logaddexp2 polar "
    "sigmoid_backward tanh_backward logit_backward special_xlogy special_xlog1py",
    (2, GATE): "gelu_backward silu_backward elu_backward softplus_backward mish_backward "
    "hardswish_backward hardsigmoid_backward",
    (3, 0): "where masked_fill _where",
    (3, 1): "clamp clip prelu_backward rrelu_with_noise_backward",
    (3, 3): "addcmul addcdiv lerp",
    (3, GATE): "log_sigmoid_backward",
}

_BOOL_NAMES = (
    "eq ne lt le gt ge not_equal less less_equal greater greater_equal logical_and logical_or "
    "logical_xor logical_not isnan isinf isfinite isposinf isneginf isclose signbit"
)
_BOOL = frozenset(_BOOL_NAMES.split())
_ALWAYS_FLOAT = frozenset(
    (
        "div divide true_divide reciprocal atan2 arctan2 float_power logaddexp xlogy "
        + _OPS[1, FUNCTION]
    ).split()
)


def _is_number(tensor: Tensor, shape: Shape) -> bool:
    """A Python number that torch wrapped: 0-dim on the host, passed by value."""
    return not tensor.shape and bool(shape) and tensor.dtype in ("double", "long int", "bool")


def _number_dtypes(call: Call, operands: int) -> list[str]:
    texts = [arg.value for arg in call.args[:operands] if isinstance(arg, Text) and arg.value]
    return ["double" if any(c in text for c in ".en") else "long int" for text in texts]


def result_dtype(call: Call, operands: list[Tensor], positions: int) -> str:
    """Dtype of an elementwise result by torch's promotion rules; "" = unknown."""
    base = call.name.rpartition("::")[2].partition(".")[0].rstrip("_")
    if base in _BOOL:
        return "bool"
    used = operands[1:] if base in ("where", "_where") else operands
    sized = [tensor.dtype for tensor in used if tensor.shape]
    numbers = [tensor.dtype for tensor in used if not tensor.shape]
    if base == "masked_fill":
        return used[0].dtype
    result = dtypes.promote(sized, numbers + _number_dtypes(call, positions))
    as_float = base in _ALWAYS_FLOAT and result and dtypes.kind(result) < dtypes.FLOAT
    return "float" if as_float else result


def elementwise(call: Call, operands: int, flops: int) -> Work:
    """Cost of an op that computes each output element from broadcast operands."""
    inputs = call.tensors(stop=operands)
    target = call.tensors(start=operands)
    if not inputs:
        call.tensor(0)
    if len(target) > 1:  # torch sometimes records the arguments of several calls as one
        raise Missing("bad_arguments")
    shape = broadcast([tensor.shape for tensor in inputs])
    if call.inplace:
        output = Tensor(call.tensor(0).shape, call.tensor(0).dtype)
    elif target:
        output = Tensor(shape, target[0].dtype)
    else:
        output = Tensor(shape, result_dtype(call, inputs, operands))
    reads = [tensor for tensor in inputs if not _is_number(tensor, shape)]
    return Work(output.numel * flops, reads, [output])


def _bind(operands: int, flops: int) -> Formula:
    def bound(call: Call) -> Work:
        return elementwise(call, operands, flops)

    return bound


for (_operands, _flops), _names in _OPS.items():
    _bound = _bind(_operands, _flops)
    for _name in _names.split():
        add(f"aten::{_name}", "elementwise", _bound)


@formula("elementwise", "glu")
def glu(call: Call) -> Work:
    """Half of the input gates the other half."""
    source = call.tensor(0)
    dim = call.integer(1, -1) % max(len(source.shape), 1)
    shape = tuple(n // 2 if i == dim else n for i, n in enumerate(source.shape))
    output = Tensor(shape, source.dtype)
    return Work(output.numel * GATE, [source], [output])


@formula("elementwise", "glu_backward")
def glu_backward(call: Call) -> Work:
    """Gradient of both halves from the gradient of the gated one."""
    source = call.tensor(1)
    return Work(source.numel * GATE, call.tensors(stop=2), [source.like()])


@formula("elementwise", "log_sigmoid_forward")
def log_sigmoid_forward(call: Call) -> Work:
    """Log-sigmoid; the buffer for the backward is only used on the CPU."""
    source = call.tensor(0)
    return Work(source.numel * GATE, [source], [source.like()])


@formula("elementwise", "rrelu_with_noise")
def rrelu_with_noise(call: Call) -> Work:
    """Leaky relu with a random slope, which it also writes."""
    source = call.tensor(0)
    return Work(source.numel, [source], [source.like(), source.like()])


@formula("elementwise", "equal")
def equal(call: Call) -> Work:
    """Compares two tensors into one host flag."""
    inputs = call.tensors(stop=2)
    return Work(inputs[0].numel, inputs, [], outputs=[])
