"""Scaled dot-product attention, forward and backward, of every vendor.

FLOPs as `torch.utils.flop_counter` counts: two products forward, five backward; a causal mask
counts in full, the softmax not at all. Query heads may outnumber key heads (grouped queries).
For the inner ops of layout (batch, length, heads, width) that counter mistakes length for heads;
here they count as the op around them.
Bytes are those of query, key, value, mask and result: the scores never leave the chip.
"""

from __future__ import annotations

from typing import NamedTuple

from neuron_explorer.collectors.costs.arguments import Call, Tensor
from neuron_explorer.collectors.costs.notes import Missing
from neuron_explorer.collectors.costs.registry import Work, formula


class Sizes(NamedTuple):
    """batch * heads, queries, keys, width of query and key, width of value."""

    heads: int
    queries: int
    keys: int
    width: int
    value_width: int

    def forward_flops(self) -> int:
        return 2 * self.heads * self.queries * self.keys * (self.width + self.value_width)

    def backward_flops(self) -> int:
        product = 2 * self.heads * self.queries * self.keys
        return product * (3 * self.width + 2 * self.value_width)


def heads_first(query: Tensor, key: Tensor, value: Tensor) -> Sizes:
    """Sizes of tensors laid out as batch, heads, length, width; batch may be any or none."""
    *lead, queries, width = query.shape
    heads = 1
    for size in lead:
        heads *= size
    return Sizes(heads, queries, key.shape[-2], width, value.shape[-1])


def length_first(query: Tensor, key: Tensor, value: Tensor) -> Sizes:
    """Sizes of tensors laid out as batch, length, heads, width; 3-d ones have no batch."""
    *batch, queries, heads, width = query.shape
    groups = batch[0] if batch else 1
    return Sizes(groups * heads, queries, key.shape[-3], width, value.shape[-1])


def packed(sizes: Sizes, sequences: int, longest: tuple[int, int]) -> Sizes:
    """Sizes of packed sequences, each as long as the longest."""
    return sizes._replace(heads=sizes.heads * sequences, queries=longest[0], keys=longest[1])


def _result(query: Tensor, value: Tensor) -> Tensor:
    return Tensor((*query.shape[:-1], value.shape[-1]), query.dtype)


def _causal(call: Call, place: int) -> tuple[str, ...]:
    return ("causal_counted_full",) if call.text(place) == "True" else ()


@formula("attention", "scaled_dot_product_attention _scaled_dot_product_attention_math")
def attention(call: Call) -> Work:
    """The public function and its fallback; the fallback's inner products carry their own."""
    query, key, value = (call.tensor(i) for i in range(3))
    mask = call.optional(3)
    reads = [query, key, value, *([] if mask is None else [mask])]
    flops = heads_first(query, key, value).forward_flops()
    return Work(flops, reads, [_result(query, value)], notes=_causal(call, 5))


@formula(
    "attention",
    "_scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_for_cpu "
    "_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention "
    "_scaled_dot_product_fused_attention_overrideable _scaled_dot_product_attention_math_for_mps "
    "_cudnn_attention_forward_dense",
)
def fused(call: Call) -> Work:
    """One fused kernel; also writes the log-sum-exp of each row, in float."""
    query, key, value = (call.tensor(i) for i in range(3))
    saved = Tensor(query.shape[:-1], "float")
    if "efficient" in call.name:  # its rows are padded to a warp
        saved = Tensor((*query.shape[:-2], -(-query.shape[-2] // 32) * 32), "float")
    result = _result(query, value)
    reads = [query, key, value, *_mask(call)]
    flops = heads_first(query, key, value).forward_flops()
    notes = _causal(call, _CAUSAL.get(call.name, 4))
    return Work(flops, reads, [result, saved], outputs=[result], notes=notes)


_CAUSAL = {
    "aten::_scaled_dot_product_efficient_attention": 6,
    "aten::_scaled_dot_product_cudnn_attention": 6,
    "aten::_scaled_dot_product_fused_attention_overrideable": 5,
}


def _mask(call: Call) -> list[Tensor]:
    mask = call.optional(3)
    return [] if mask is None or len(mask.shape) < 2 else [mask]


@formula(
    "attention",
    "_scaled_dot_product_flash_attention_backward _scaled_dot_product_cudnn_attention_backward "
    "_scaled_dot_product_efficient_attention_backward "
    "_scaled_dot_product_flash_attention_for_cpu_backward "
    "_scaled_dot_product_fused_attention_overrideable_backward",
)
def fused_backward(call: Call) -> Work:
    """Gradients of query, key and value; reads the result and log-sum-exp of the forward."""
    gradient, query, key, value = (call.tensor(i) for i in range(4))
    flops = heads_first(query, key, value).backward_flops()
    return _backward(call, (gradient, query, key, value), flops)


def _backward(call: Call, tensors: tuple[Tensor, Tensor, Tensor, Tensor], flops: int) -> Work:
    saved = [tensor for tensor in call.tensors(start=4) if len(tensor.shape) > 2]
    writes = [tensor.like() for tensor in tensors[1:]]
    return Work(flops, [*tensors, *saved], writes)


@formula("attention", "_flash_attention_forward _flash_attention_forward_no_dropout_inplace")
def flash(call: Call) -> Work:
    """Batch, length, heads, width; or packed with cumulated lengths."""
    query, key, value = (call.tensor(i) for i in range(3))
    return _length_first(call, (query, key, value), lengths=3, longest=5, causal=8)


@formula("attention", "_efficient_attention_forward")
def efficient(call: Call) -> Work:
    """Batch, length, heads, width; or packed with cumulated lengths."""
    query, key, value = (call.tensor(i) for i in range(3))
    return _length_first(call, (query, key, value), lengths=4, longest=6)


def _length_first(
    call: Call,
    tensors: tuple[Tensor, Tensor, Tensor],
    *,
    lengths: int,
    longest: int,
    causal: int = 99,
) -> Work:
    query, key, value = tensors
    sizes, notes = _sizes(call, tensors, lengths, longest)
    saved = Tensor(query.shape[:-1], "float")
    result = _result(query, value)
    reads = [query, key, value, *(_mask(call) if lengths > 3 else [])]
    notes += _causal(call, causal)
    return Work(sizes.forward_flops(), reads, [result, saved], outputs=[result], notes=notes)


def _sizes(
    call: Call, tensors: tuple[Tensor, Tensor, Tensor], lengths: int, longest: int
) -> tuple[Sizes, tuple[str, ...]]:
    """Sizes of a call whose sequences may be packed: cumulated lengths at `lengths`."""
    sizes = length_first(*tensors)
    cumulated = call.optional(lengths)
    if cumulated is None:
        return sizes, ()
    limits = call.integer(longest, 0), call.integer(longest + 1, 0)
    if not all(limits):
        raise Missing("data_dependent")
    return packed(sizes, cumulated.numel - 1, limits), ("max_length_assumed",)


@formula("attention", "_flash_attention_backward")
def flash_backward(call: Call) -> Work:
    """Backward of `flash`: cumulated lengths at 6, the longest ones at 8."""
    gradient, query, key, value = (call.tensor(i) for i in range(4))
    sizes, notes = _sizes(call, (query, key, value), 6, 8)
    work = _backward(call, (gradient, query, key, value), sizes.backward_flops())
    return Work(work.flops, work.reads, work.writes, notes=notes)


@formula("attention", "_efficient_attention_backward")
def efficient_backward(call: Call) -> Work:
    """Backward of `efficient`: cumulated lengths at 6, the longest ones at 8."""
    gradient, query, key, value = (call.tensor(i) for i in range(4))
    sizes, notes = _sizes(call, (query, key, value), 6, 8)
    work = _backward(call, (gradient, query, key, value), sizes.backward_flops())
    return Work(work.flops, work.reads, work.writes, notes=notes)


@formula(
    "attention",
    "FlashAttnFunc flash_attn::_flash_attn_forward flash_attn_3::fwd "
    "flash_attn_3::_flash_attn_forward "
    "flash_attn_2_cuda::fwd xformers::efficient_attention_forward_cutlass "
    "xformers::efficient_attention_forward_ck xformers_flash::flash_fwd xformers_flash3::flash_fwd "
    "aiter::fmha_v3_fwd aiter::mha_fwd FusedAttnFunc",
    namespace="",
)
def library(call: Call) -> Work:
    """Attention of a library: batch, length, heads, width."""
    query, key, value = call.tensors()[:3]
    if len(query.shape) != 4:
        raise Missing("data_dependent")
    result = _result(query, value)
    saved = Tensor(query.shape[:-1], "float")
    flops = length_first(query, key, value).forward_flops()
    return Work(flops, [query, key, value], [result, saved], outputs=[result])


@formula(
    "attention",
    "FlashAttnFuncBackward flash_attn::_flash_attn_backward flash_attn_3::bwd "
    "xformers::efficient_attention_backward_cutlass xformers::efficient_attention_backward_ck "
    "xformers_flash::flash_bwd aiter::fmha_v3_bwd aiter::mha_bwd",
    namespace="",
)
def library_backward(call: Call) -> Work:
    """Backward of a library's attention: gradient, query, key, value come first."""
    tensors = call.tensors()
    if len(tensors) < 4 or len(tensors[1].shape) != 4:
        raise Missing("data_dependent")
    gradient, query, key, value = tensors[:4]
    flops = length_first(query, key, value).backward_flops()
    return _backward(call, (gradient, query, key, value), flops)


@formula(
    "attention",
    "FlashAttnVarlenFunc flash_attn::_flash_attn_varlen_forward aiter::mha_varlen_fwd "
    "aiter::fmha_v3_varlen_fwd flash_attn::_flash_attn_varlen_backward FlashAttnVarlenFuncBackward",
    namespace="",
)
def varlen(call: Call) -> Work:
    """Packed sequences: the moved bytes are known, FLOPs by the longest where it was recorded."""
    tensors = [tensor for tensor in call.tensors() if len(tensor.shape) == 3]
    back = "ackward" in call.name or "bwd" in call.name
    query, key, value = tensors[1:4] if back else tensors[:3]
    writes = [t.like() for t in (query, key, value)] if back else [_result(query, value)]
    flops, notes = _varlen_flops(call, (query, key, value), back=back)
    return Work(flops, [query, key, value, *tensors[:1]][: 3 + back], writes, notes=notes)


def _varlen_flops(
    call: Call, tensors: tuple[Tensor, Tensor, Tensor], *, back: bool
) -> tuple[int | None, tuple[str, ...]]:
    cumulated = [tensor for tensor in call.tensors() if len(tensor.shape) == 1]
    texts = [call.text(place) for place in range(len(call.args))]
    longest = [int(text) for text in texts if text.isdigit() and int(text) > 1][:2]
    if not cumulated or len(longest) < 2:
        return None, ("data_dependent",)
    sizes = packed(length_first(*tensors), cumulated[0].numel - 1, (longest[0], longest[1]))
    flops = sizes.backward_flops() if back else sizes.forward_flops()
    return flops, ("max_length_assumed",)


@formula("attention", "FlashAttnQKVPackedFunc", namespace="")
def qkv_packed(call: Call) -> Work:
    """Query, key and value in one tensor: batch, length, 3, heads, width."""
    source = call.tensor(0)
    batch, length, _, heads, width = source.shape
    part = Tensor((batch, length, heads, width), source.dtype)
    return Work(length_first(part, part, part).forward_flops(), [source], [part])


@formula(
    "attention",
    "vllm::unified_attention vllm::unified_attention_with_output vllm::unified_mla_attention* "
    "_C::paged_attention* _rocm_C::paged_attention* aiter::paged_attention* aiter::pa_fwd* "
    "_vllm_fa2_C::varlen_fwd _vllm_fa3_C::fwd aiter::mla_* vllm::mla_*",
    namespace="",
)
def paged(call: Call) -> Work:
    """Attention over a paged cache: how much of it is read is in the block tables."""
    call.tensor(0)
    raise Missing("data_dependent")
