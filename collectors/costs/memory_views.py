"""Ops that compute and move nothing: views, allocations, questions about a tensor."""

from __future__ import annotations

import math
from collections.abc import Callable

from neuron_explorer.collectors.costs.arguments import Call, Shape, Tensor, concrete, normal_dim
from neuron_explorer.collectors.costs.notes import Missing
from neuron_explorer.collectors.costs.registry import Work, formula

_VIEWS = (
    "alias as_strided detach diagonal expand expand_as flatten unflatten lift_fresh lift "
    "movedim moveaxis narrow permute select slice split split_with_sizes chunk tensor_split "
    "hsplit vsplit dsplit squeeze unsqueeze swapaxes swapdims t transpose numpy_T mT mH H "
    "adjoint unbind unfold view view_as view_as_real view_as_complex real imag conj _conj "
    "_neg_view "
    "resolve_conj resolve_neg _unsafe_view _reshape_alias broadcast_tensors broadcast_to meshgrid "
    "atleast_1d atleast_2d atleast_3d ravel unsafe_split unsafe_chunk unsafe_split_with_sizes "
    "values indices crow_indices col_indices _values _indices   "
    "_reshape_from_tensor _nested_view_from_buffer _nested_view_from_jagged "
    "_nested_get_values _nested_get_offsets "
)
_ALLOCATIONS = (
    "empty empty_like empty_strided empty_permuted new_empty new_empty_strided resize resize_as "
    "set _efficientzerotensor _empty_affine_quantized empty_quantized "
)
_QUESTIONS = (
    "size stride numel sym_size sym_stride sym_numel sym_storage_offset storage_offset dim "
    "is_contiguous is_floating_point is_complex is_same_size result_type can_cast "
    "promote_types requires_grad_ retain_grad record_stream set_data output_nr _version is_leaf "
    "_has_compatible_shallow_copy_type _backward is_pinned  data "
    "is_signed is_inference _is_zerotensor is_neg is_conj _debug_has_internal_overlap "
    " _use_cudnn_ctc_loss _use_miopen_ctc_loss "
    "_nnpack_available cudnn_is_acceptable _assert_async _functional_assert_async "
    "_assert_tensor_metadata qscheme q_scale q_zero_point  _coalesced is_coalesced "
    "_dimI _dimV sparse_dim dense_dim _fused_sdp_choice  "
    "_shape_as_tensor sym_constrain_range refine_names rename"
)


def _shape(call: Call) -> Shape | None:
    """The shape a view has, where the recorded arguments say it."""
    source = call.tensor(0)
    name = call.name.rpartition("::")[2].rstrip("_")
    try:
        return _SHAPES[name](call, source) if name in _SHAPES else None
    except (Missing, ValueError):
        return None


def _viewed(call: Call, source: Tensor) -> Shape | None:
    sizes = call.ints(1)
    return None if sizes is None else concrete(sizes, source.numel)


def _transposed(call: Call, source: Tensor) -> Shape:
    rank = len(source.shape)
    one, other = (normal_dim(call.integer(i, 0), rank) for i in (1, 2))
    order = list(source.shape)
    order[one], order[other] = order[other], order[one]
    return tuple(order)


def _permuted(call: Call, source: Tensor) -> Shape | None:
    order = call.ints(1)
    rank = len(source.shape)
    return None if order is None else tuple(source.shape[normal_dim(d, rank)] for d in order)


def _expanded(call: Call, source: Tensor) -> Shape | None:
    sizes = call.ints(1)
    if sizes is None:
        return None
    padded = (1,) * (len(sizes) - len(source.shape)) + source.shape
    return tuple(old if new == -1 else new for new, old in zip(sizes, padded, strict=True))


def _unsqueezed(call: Call, source: Tensor) -> Shape:
    dim = normal_dim(call.integer(1, 0), len(source.shape) + 1)
    return (*source.shape[:dim], 1, *source.shape[dim:])


def _selected(call: Call, source: Tensor) -> Shape:
    dim = normal_dim(call.integer(1, 0), len(source.shape))
    return source.shape[:dim] + source.shape[dim + 1 :]


def _sliced(call: Call, source: Tensor) -> Shape:
    dim = normal_dim(call.integer(1, 0), len(source.shape))
    size = source.shape[dim]
    bounds = slice(call.integer(2, 0), call.integer(3, size), call.integer(4, 1))
    taken = len(range(*bounds.indices(size)))
    return (*source.shape[:dim], taken, *source.shape[dim + 1 :])


def _reversed(_: Call, source: Tensor) -> Shape:
    return source.shape[::-1]


def _same(_: Call, source: Tensor) -> Shape:
    return source.shape


_SHAPES: dict[str, Callable[[Call, Tensor], Shape | None]] = {
    "view": _viewed,
    "_unsafe_view": _viewed,
    "_reshape_alias": _viewed,
    "as_strided": _viewed,
    "transpose": _transposed,
    "permute": _permuted,
    "expand": _expanded,
    "unsqueeze": _unsqueezed,
    "select": _selected,
    "slice": _sliced,
    "t": _reversed,
    "numpy_T": _reversed,
    "alias": _same,
    "detach": _same,
    "lift_fresh": _same,
}


@formula("view", _VIEWS)
@formula("view", "detach detach_ inductor::_reinterpret_tensor", namespace="")
def view(call: Call) -> Work:
    """Another look at the same memory: nothing moves."""
    shape = _shape(call) if call.tensors() else None
    outputs = None if shape is None else [Tensor(shape, call.tensor(0).dtype)]
    return Work(0, (), [], outputs=outputs)


@formula("view", _ALLOCATIONS)
def allocation(call: Call) -> Work:
    """Memory is reserved, none of it is touched."""
    return Work(0, (), [], outputs=call.tensors(stop=1))


@formula("other", _QUESTIONS)
def question(call: Call) -> Work:  # noqa: ARG001 - the arguments do not matter
    """Answered from the tensor's description on the host."""
    return Work(0, (), [], outputs=[])


def viewable(source: Tensor, shape: Shape) -> bool | None:
    """Whether a tensor can be seen with another shape without a copy; None = not recorded.

    The rule is that of `Tensor.view`: dimensions that go together must be laid out as one.
    """
    if source.strides is None:
        return None
    if source.numel <= 1 or source.dense:
        return True
    blocks = _blocks(source)
    wanted = [size for size in shape if size != 1]
    for size in blocks:
        taken = 1
        while wanted and taken < size:
            taken *= wanted.pop()
        if taken != size:
            return False
    return not wanted


def _blocks(source: Tensor) -> list[int]:
    """Sizes of the runs of dimensions laid out as one, innermost first."""
    pairs = zip(reversed(source.shape), reversed(source.strides or ()), strict=True)
    blocks: list[int] = []
    next_stride = math.nan
    for size, stride in pairs:
        if size == 1:
            continue
        if blocks and stride == next_stride:
            blocks[-1] *= size
        else:
            blocks.append(size)
        next_stride = stride * size
    return blocks
