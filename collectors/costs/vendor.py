"""Ops of serving and training libraries: vLLM, aiter, Transformer Engine, Liger, fbgemm.

FLOP conventions are those of the families they belong to.
"""

from __future__ import annotations

from neuron_explorer.collectors.costs.arguments import Call, Tensor
from neuron_explorer.collectors.costs.elementwise import GATE
from neuron_explorer.collectors.costs.gathers import taken
from neuron_explorer.collectors.costs.matmul import product
from neuron_explorer.collectors.costs.norm import MEAN_NORM, RMS_NORM
from neuron_explorer.collectors.costs.notes import Missing
from neuron_explorer.collectors.costs.registry import Work, formula


@formula("norm", "_C::rms_norm aiter::rms_norm_out aiter::rmsnorm2d_fwd_out", namespace="")
def rms_norm_out(call: Call) -> Work:
    """Result first: out, input, weight."""
    result, source, weight = (call.tensor(i) for i in range(3))
    return Work(source.numel * RMS_NORM, [source, weight], [result.like()])


@formula(
    "norm",
    "aiter::rms_norm aiter::rmsnorm2d_fwd aiter::rms_norm_cu fb::rms_norm vllm::rms_norm _RMSNorm "
    "vllm_ir::rms_norm transformer_engine::rmsnorm tex::rmsnorm_fwd LigerRMSNormFunction "
    "quack::_rmsnorm_fwd",
    namespace="",
)
def rms_norm(call: Call) -> Work:
    """Input, weight."""
    source = call.tensor(0)
    return Work(source.numel * RMS_NORM, call.tensors(stop=2), [source.like()])


@formula("norm", "_C::fused_add_rms_norm vllm::fused_add_rms_norm", namespace="")
def fused_add_rms_norm(call: Call) -> Work:
    """Input and residual are both read and rewritten."""
    source, residual, weight = (call.tensor(i) for i in range(3))
    writes = [source.like(), residual.like()]
    return Work(source.numel * (RMS_NORM + 1), [source, residual, weight], writes)


@formula(
    "norm",
    "_C::rms_norm_static_fp8_quant _C::rms_norm_dynamic_per_token_quant",
    namespace="",
)
def rms_norm_quant(call: Call) -> Work:
    """Result first, then input and weight; the result is of a small dtype."""
    result, source, weight = (call.tensor(i) for i in range(3))
    return Work(source.numel * (RMS_NORM + 2), [source, weight], [result.like()])


@formula("norm", "_C::fused_add_rms_norm_static_fp8_quant", namespace="")
def fused_add_rms_norm_quant(call: Call) -> Work:
    """Result, input, residual, weight; the residual is rewritten."""
    result, source, residual, weight = (call.tensor(i) for i in range(4))
    flops = source.numel * (RMS_NORM + 3)
    return Work(flops, [source, residual, weight], [result.like(), residual.like()])


@formula("norm", "aiter::_groupnorm_run aiter::groupnorm*", namespace="")
def group_norm(call: Call) -> Work:
    """Input, groups, weight, bias."""
    source = call.tensor(0)
    return Work(source.numel * MEAN_NORM, call.tensors(stop=4), [source.like()])


@formula("norm", "aiter::layernorm2d_fwd tex::layernorm_fwd aiter::layer_norm", namespace="")
def layer_norm(call: Call) -> Work:
    """Input, weight, bias."""
    source = call.tensor(0)
    return Work(source.numel * MEAN_NORM, call.tensors(stop=3), [source.like()])


@formula(
    "elementwise",
    "_C::silu_and_mul _C::gelu_and_mul _C::gelu_tanh_and_mul _C::mul_and_silu _C::fatrelu_and_mul "
    "_C::swigluoai_and_mul _C::silu_and_mul_quant aiter::silu_and_mul aiter::gelu_and_mul "
    "aiter::scaled_silu_and_mul",
    namespace="",
)
def gated(call: Call) -> Work:
    """Result first: half of the input gates the other half."""
    result, source = call.tensor(0), call.tensor(1)
    return Work(result.numel * GATE, [source], [result.like()])


@formula("elementwise", "_C::gelu_fast _C::gelu_new _C::gelu_quick _C::relu_squared", namespace="")
def activation(call: Call) -> Work:
    """Result first."""
    result, source = call.tensor(0), call.tensor(1)
    return Work(result.numel * GATE, [source], [result.like()])


@formula("elementwise", "LigerSiLUMulFunction", namespace="")
def silu_mul(call: Call) -> Work:
    """Two inputs of the same shape."""
    source = call.tensor(0)
    return Work(source.numel * GATE, call.tensors(stop=2), [source.like()])


@formula("rope", "_C::rotary_embedding aiter::rotary_embedding_fwd vllm::rotary*", namespace="")
def rotary(call: Call) -> Work:
    """Positions, query, key; the rows of the cache that the positions pick. In place."""
    positions, query, key = call.tensor(0), call.tensor(1), call.optional(2)
    cache = next((t for t in call.tensors(start=3) if len(t.shape) == 2), None)
    rotated = [query, *([] if key is None else [key])]
    reads = [positions, *rotated]
    if cache is not None:
        reads.append(taken(cache, positions.numel * cache.shape[1]))
    flops = 3 * sum(tensor.numel for tensor in rotated)
    return Work(flops, reads, [t.like() for t in rotated], notes=("rows_read_once",))


@formula("rope", "aiter::rope_* FusedRoPEFunc LigerRopeFunction", namespace="")
def rope(call: Call) -> Work:
    """Tensors rotated by angles: each moved once, the first one written."""
    tensors = call.tensors()
    first = call.tensor(0)
    return Work(3 * first.numel, tensors, [first.like()], notes=("tensors_moved_once",))


@formula(
    "quantize",
    "_C::static_scaled_fp8_quant _C::dynamic_scaled_fp8_quant _C::static_scaled_int8_quant "
    "_C::dynamic_per_token_scaled_fp8_quant _C::dynamic_scaled_int8_quant _C::scaled_fp4_quant "
    "_C::per_token_group_fp8_quant aiter::dynamic_per_token_scaled_quant "
    "aiter::static_per_tensor_quant aiter::dynamic_per_tensor_quant",
    namespace="",
)
def quantize(call: Call) -> Work:
    """Result first: out, input, scale."""
    result, source = call.tensor(0), call.tensor(1)
    scales = call.tensors(start=2)
    dynamic = "static" not in call.name
    reads = [source] if dynamic else [source, *scales]
    writes = [result.like(), *(scales if dynamic else [])]
    return Work(2 * source.numel, reads, writes, outputs=[result.like()])


@formula(
    "scatter",
    "_C_cache_ops::reshape_and_cache _C_cache_ops::reshape_and_cache_flash "
    "aiter::reshape_and_cache* vllm::reshape_and_cache*",
    namespace="",
)
def reshape_and_cache(call: Call) -> Work:
    """New keys and values into their slots of the caches: as many elements, the caches' dtype."""
    key, value, key_cache, value_cache, slots = (call.tensor(i) for i in range(5))
    writes = [Tensor(key.shape, key_cache.dtype), Tensor(value.shape, value_cache.dtype)]
    return Work(0, [key, value, slots], writes, outputs=[])


@formula("matmul", "_C::cutlass_scaled_mm _C::cutlass_scaled_mm_azp", namespace="")
def cutlass_scaled_mm(call: Call) -> Work:
    """Result first, then the two operands, scales and bias."""
    result, left, right = (call.tensor(i) for i in range(3))
    flops, _ = product(left, right)
    return Work(flops, call.tensors(start=1), [result.like()])


@formula(
    "matmul",
    "aiter::gemm_a8w8* aiter::gemm_a16w16* aiter::tgemm* _rocm_C::wvSplitK* _rocm_C::LLMM1 "
    "vllm::rocm_unquantized_gemm* vllm::apply_fp8_linear deep_gemm::fp8_gemm_nt*",
    namespace="",
)
def transposed_gemm(call: Call) -> Work:
    """Rows times a weight stored one row an output; the result's dtype may be an argument."""
    left, right = call.tensors()[:2]
    if left.shape[-1] != right.shape[-1]:
        raise Missing("shapes_mismatch")
    shape = (*left.shape[:-1], right.shape[0])
    result = next((t for t in call.tensors(start=2) if t.shape == shape), None)
    output = Tensor(shape, "c10::BFloat16" if result is None else result.dtype)
    reads = [tensor for tensor in call.tensors() if tensor is not result]
    notes = ("out_dtype_assumed",) if result is None else ()
    return Work(2 * output.numel * left.shape[-1], reads, [output], notes=notes)


@formula(
    "matmul",
    "vllm::inplace_fused_experts vllm::outplace_fused_experts vllm::fused_experts "
    "aiter::fused_moe* vllm::rocm_aiter_fused_moe*",
    namespace="",
)
def fused_experts(call: Call) -> Work:
    """Tokens through their experts: tokens, up and down weights, routing weights, routes."""
    tokens, up, down, routes = (call.tensor(i) for i in range(4))
    pairs = routes.numel
    share = min(pairs, up.shape[0])
    read = [taken(weight, share * (weight.numel // weight.shape[0])) for weight in (up, down)]
    flops = 2 * pairs * (up.numel // up.shape[0] + down.numel // down.shape[0])
    notes = ("all_experts_read",)
    return Work(flops, [tokens, *read, *call.tensors(3, 5)], [tokens.like()], notes=notes)


@formula("matmul", "vllm::moe_forward vllm::moe_forward_shared", namespace="")
def moe_forward(call: Call) -> Work:
    """Reaches its expert weights by the layer's name: neither their size nor count is visible."""
    call.tensor(0)
    raise Missing("weights_not_recorded")


@formula("sort", "_moe_C::topk_softmax", namespace="")
def topk_softmax(call: Call) -> Work:
    """Routing weights, routes, source rows; then the router's scores."""
    scores = call.tensor(3)
    return Work(scores.numel * 9, [scores], [t.like() for t in call.tensors(stop=3)])


@formula("reduction", "_moe_C::moe_sum", namespace="")
def moe_sum(call: Call) -> Work:
    """Sum over the experts of a token: input, result."""
    source, result = call.tensor(0), call.tensor(1)
    return Work(source.numel, [source], [result.like()])


@formula("scan", "fbgemm::asynchronous_*_cumsum fb::asynchronous_*_cumsum", namespace="")
def cumsum(call: Call) -> Work:
    """Running sums; the complete one has an element more."""
    source = call.tensor(0)
    longer = 1 if "complete" in call.name else 0
    shape = (*source.shape[:-1], source.shape[-1] + longer)
    return Work(source.numel, [source], [Tensor(shape, source.dtype)])


@formula("copy", "fbgemm::permute_pooled_embs*", namespace="")
def permute_pooled(call: Call) -> Work:
    """Columns in another order."""
    source = call.tensor(0)
    return Work(0, call.tensors(), [source.like()])


@formula(
    "embedding",
    "fbgemm::split_embedding_* fbgemm::bounds_check_indices fbgemm::block_bucketize* "
    "fbgemm::permute_*sparse* fbgemm::jagged_* fb::*",
    namespace="",
)
def table_batched(call: Call) -> Work:
    """Jagged tables: how many rows of which width are read is in the data."""
    raise Missing("data_dependent" if call.tensors() else "no_shapes")


@formula("norm", "fb::layer_norm", namespace="")
def fb_layer_norm(call: Call) -> Work:
    """Input, weight, bias."""
    source = call.tensor(0)
    return Work(source.numel * MEAN_NORM, call.tensors(stop=3), [source.like()])
