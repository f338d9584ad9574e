"""Copies, casts, concatenation, padding and other ops that only move elements. No FLOPs."""

from __future__ import annotations

from neuron_explorer.collectors.costs.arguments import Call, Tensor, concrete, normal_dim
from neuron_explorer.collectors.costs.memory_views import viewable
from neuron_explorer.collectors.costs.notes import Missing
from neuron_explorer.collectors.costs.registry import Work, formula

# how many arguments each overload of aten::to has, and where the dtype stands
_TO_DTYPE = {5: 1, 6: 2, 8: 1}


def moved(source: Tensor, output: Tensor) -> Work:
    """Every element of `source` read once, every element of `output` written once."""
    family = "copy" if source.dtype == output.dtype else "cast"
    return Work(0, [source], [output], family=family)


@formula("copy", "copy")
def copy(call: Call) -> Work:
    """In-place copy: the old content of the target is not read."""
    target, source = call.tensor(0), call.tensor(1)
    return moved(source, target.like())


@formula("copy", "clone _copy_from _copy_from_and_resize lift_clone")
def clone(call: Call) -> Work:
    """A new tensor of the same shape; an expanded source becomes a full one."""
    return moved(call.tensor(0), call.tensor(0).like())


@formula("copy", "_to_copy")
def to_copy(call: Call) -> Work:
    """A copy with another dtype, layout or device."""
    source = call.tensor(0)
    return moved(source, source.like(call.dtype(1, source.dtype)))


@formula("copy", "to type_as")
def to(call: Call) -> Work:
    """A cast where the dtype changes; else a view, unless a copy was asked for."""
    source, other = call.tensor(0), call.optional(1)
    if not call.has_values and other is None:
        raise Missing("no_values")
    wanted = call.dtype(_TO_DTYPE.get(len(call.args), 1), source.dtype)
    dtype = other.dtype if other is not None else wanted
    if dtype == source.dtype:
        return Work(0, (), [], outputs=[source], family="view", notes=("may_alias",))
    return moved(source, source.like(dtype))


@formula("copy", "contiguous")
def contiguous(call: Call) -> Work:
    """A copy, unless the tensor is dense already."""
    source = call.tensor(0)
    if source.dense:
        notes = () if source.strides is not None else ("may_alias",)
        return Work(0, (), [], outputs=[source], family="view", notes=notes)
    return moved(source, source.like())


@formula("copy", "reshape reshape_as")
def reshape(call: Call) -> Work:
    """A view where the layout allows it, else a copy."""
    source, other = call.tensor(0), call.optional(1)
    sizes = other.shape if other is not None else call.ints(1)
    output = Tensor(concrete(sizes or (), source.numel), source.dtype)
    alias = viewable(source, output.shape)
    if alias is False:
        return moved(source, output)
    notes = () if alias else ("may_alias",)
    return Work(0, (), [], outputs=[output], family="view", notes=notes)


@formula("copy", "item _local_scalar_dense is_nonzero __bool__")
def item(call: Call) -> Work:
    """One element comes to the host."""
    return Work(0, [Tensor((), call.tensor(0).dtype)], [], outputs=[])


@formula(
    "copy", "flip roll rot90 fliplr flipud channel_shuffle native_channel_shuffle pixel_shuffle_"
)
def same_size(call: Call) -> Work:
    """The same elements in another order."""
    return moved(call.tensor(0), call.tensor(0).like())


@formula("copy", "repeat tile")
def repeat(call: Call) -> Work:
    """The source read once, written as often as asked."""
    source, times = call.tensor(0), call.ints(1) or []
    rank = max(len(times), len(source.shape))
    sizes = (1,) * (rank - len(source.shape)) + source.shape
    factors = [1] * (rank - len(times)) + times
    shape = tuple(n * k for n, k in zip(sizes, factors, strict=True))
    return moved(source, Tensor(shape, source.dtype))


@formula("cat", "cat concat concatenate _cat")
def cat(call: Call) -> Work:
    """Each part read once, the whole written once."""
    parts = [part for part in call.list_at(0) if part.shape != (0,)] or call.list_at(0)
    first = parts[0].shape
    dim = normal_dim(call.integer(1, 0), len(first))
    total = sum(part.shape[dim] for part in parts)
    return _joined(call, parts, (*first[:dim], total, *first[dim + 1 :]))


@formula("cat", "stack _stack")
def stack(call: Call) -> Work:
    """Each part read once, the whole written once."""
    parts = call.list_at(0)
    first = parts[0].shape
    dim = normal_dim(call.integer(1, 0), len(first) + 1)
    return _joined(call, parts, (*first[:dim], len(parts), *first[dim:]))


def _joined(call: Call, parts: list[Tensor], shape: tuple[int, ...]) -> Work:
    target = call.optional(2)
    dtype = parts[0].dtype if target is None else target.dtype
    if target is not None:
        parts = [Tensor(part.shape, dtype, part.strides) for part in parts]
    return Work(0, parts, [Tensor(shape, dtype)])


@formula("cat", "flatten_dense_tensors")
def flatten_dense(call: Call) -> Work:
    """A list flattened into one vector."""
    parts = call.list_at(0)
    total = sum(part.numel for part in parts)
    return Work(0, parts, [Tensor((total,), parts[0].dtype)])


@formula("view", "unflatten_dense_tensors")
def unflatten_dense(call: Call) -> Work:
    """Views into one vector."""
    return Work(0, (), [], outputs=call.list_at(1))


_PADS = "pad constant_pad_nd _pad_circular _pad_enum reflection_pad1d reflection_pad2d"


@formula("pad", f"{_PADS} reflection_pad3d replication_pad1d replication_pad2d replication_pad3d")
def pad(call: Call) -> Work:
    """The source read once, the padded tensor written once."""
    source, widths = call.tensor(0), call.ints(1) or []
    shape = list(source.shape)
    for place in range(len(widths) // 2):
        shape[-1 - place] += widths[2 * place] + widths[2 * place + 1]
    return Work(0, [source], [Tensor(tuple(shape), source.dtype)])


@formula(
    "pad",
    "reflection_pad1d_backward reflection_pad2d_backward reflection_pad3d_backward "
    "replication_pad1d_backward replication_pad2d_backward replication_pad3d_backward",
)
def pad_backward(call: Call) -> Work:
    """Gradient of the source from that of the padded tensor."""
    gradient, source = call.tensor(0), call.tensor(1)
    return Work(gradient.numel, [gradient], [source.like()])


@formula("copy", "unfold_backward slice_backward select_backward diagonal_backward")
def view_backward(call: Call) -> Work:
    """A zeroed tensor of the viewed size, into which the gradient is copied."""
    gradient = call.tensor(0)
    shape = tuple(call.ints(1) or ())
    return Work(0, [gradient], [Tensor(shape, gradient.dtype)])


@formula("copy", "_pin_memory pin_memory")
def pin_memory(call: Call) -> Work:
    """A copy on the host."""
    return moved(call.tensor(0), call.tensor(0).like())


@formula("copy", "im2col col2im")
def columns(call: Call) -> Work:
    """Read once; the size of the result depends on every option, which is not derived."""
    source = call.tensor(0)
    raise Missing("size_not_recorded" if source.shape else "no_shapes")
