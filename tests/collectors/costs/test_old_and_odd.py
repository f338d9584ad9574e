"""Degrading honestly: old traces, cut lists, wrappers, vendor ops, collectives."""

from __future__ import annotations

import json
from typing import Any

import pytest

from neuron_explorer.collectors.costs import Cost, op_cost
from neuron_explorer.collectors.costs.lists import list_dtype

BF16 = "c10::BFloat16"


def compact(value: Any) -> str | None:
    return None if value is None else json.dumps(value, separators=(",", ":"))


def cost(
    name: str, shapes: Any, dtypes: Any = None, values: Any = None, strides: Any = None
) -> Cost:
    return op_cost(name, compact(shapes), compact(dtypes), compact(strides), compact(values))


def figures(result: Cost) -> tuple[int | None, int | None, int | None]:
    return result.flops, result.read_bytes, result.write_bytes


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("autograd::engine::evaluate_function: AddmmBackward0", "wrapper"),
        ("AddmmBackward0", "wrapper"),
        ("torch::autograd::AccumulateGrad", "wrapper"),
        ("Optimizer.step#Adam.step", "wrapper"),
        ("ProfilerStep#3", "wrapper"),
        ("Torch-Compiled Region: 0/0", "compiled_region"),
        ("CompiledFunctionBackward", "compiled_region"),
        ("model.py(12): forward", "no_formula"),
        ("mylib::custom_op", "no_formula"),
        ("", "no_formula"),
    ],
)
def test_what_is_no_op_says_so(name: str, note: str) -> None:
    assert cost(name, [[4]]) == Cost(None, None, None, None, None, None, note)


def test_without_shapes_nothing_is_known() -> None:
    result = op_cost("aten::mm", None, None, None, None)
    assert result == Cost(None, None, None, None, "matmul", None, "no_shapes")


def test_without_dtypes_flops_and_shapes_remain() -> None:
    result = cost("aten::mm", [[4, 8], [8, 2]])
    assert figures(result) == (128, None, None)
    assert result.output_shapes == "[[4,2]]"
    assert result.note == "no_dtypes"
    assert result.via == "formula"


def test_without_strides_tensors_count_as_dense() -> None:
    result = cost("aten::mm", [[4, 8], [8, 2]], ["float", "float"])
    assert figures(result) == (128, 4 * (32 + 16), 4 * 8)
    assert result.note == "dense_assumed"


def test_without_values_a_reduction_still_reads() -> None:
    result = cost("aten::sum", [[4, 8], [], [], []], ["float", "ScalarList", "Scalar", ""])
    assert figures(result) == (32, 128, None)
    assert result.note is not None
    assert "no_values" in result.note


def test_without_values_a_convolution_is_unknown_but_its_backward_is_not() -> None:
    shapes: list[list[int]] = [[32, 3, 224, 224], [64, 3, 7, 7], *[[]] * 7]
    assert cost("aten::cudnn_convolution", shapes, ["float", "float"]).note == "no_values"
    shapes = [[32, 512, 7, 7], [32, 2048, 7, 7], [2048, 512, 1, 1], *[[]] * 8]
    result = cost("aten::cudnn_convolution_backward", shapes, ["float"] * 3)
    assert result.flops == 2 * (2 * 32 * 49 * 2048 * 512)
    assert result.note == "mask_not_recorded; dense_assumed"


def test_half_a_convolution_backward_leaves_the_cost_to_the_whole() -> None:
    shapes: list[list[int]] = [[], [32, 2048, 7, 7], [2048, 512, 1, 1], *[[]] * 7]
    result = cost(
        "aten::cudnn_convolution_backward_input", shapes, ["GenericList", "float", "float"]
    )
    assert result.via is None
    assert result.note == "no_values"


@pytest.mark.parametrize(
    "name", ["aten::_foreach_add_", "aten::_fused_adamw_", "aten::_foreach_mul_", "aten::cat"]
)
def test_a_list_that_torch_cut_is_null_never_zero(name: str) -> None:
    result = cost(name, [[], [], []], ["TensorList", "TensorList", "Scalar"], ["", "", "1"])
    assert figures(result) == (None, None, None)
    assert result.note == "shape_list_truncated"
    assert result.via is None


def test_fused_adam_rewrites_parameters_and_both_moments() -> None:
    group = [[4, 8], [8]]
    shapes = [group, group, group, group, [], [[], []], *[[]] * 6]
    types = ["TensorList"] * 6 + ["Scalar"] * 6
    text = compact(shapes), compact(types), None, None
    result = op_cost("aten::_fused_adamw_", *text, list_dtype="float")
    assert result.read_bytes == 4 * 160
    assert result.write_bytes == 3 * 160
    assert result.flops == 14 * 40


def test_a_neighbour_tells_the_dtype_of_a_list() -> None:
    parts = [[[1, 559, 32], [1, 559, 32]], []]
    blind = cost("aten::cat", parts, ["TensorList", "Scalar"], ["", "-1"])
    assert blind.note == "list_dtype_not_recorded"
    before = compact([[1, 559, 32]]), compact(["long int"])
    after = compact([[], [1, 559, 64]]), compact(["double", BF16])
    found = list_dtype(blind.output_shapes, [before, (None, None), ("{", "["), after])
    assert found == BF16
    assert list_dtype(None, [after]) is None
    assert list_dtype("[[7]]", [after]) is None
    texts = compact(parts), compact(["TensorList", "Scalar"]), None, compact(["", "-1"])
    told = op_cost("aten::cat", *texts, list_dtype=found)
    assert told.read_bytes == told.write_bytes == 559 * 64 * 2
    assert told.note == "dense_assumed; list_dtype_inferred"


def test_merged_arguments_of_several_calls_are_refused() -> None:
    shapes = [[2048, 512]] * 9
    assert cost("aten::add", shapes, ["float"] * 9).note == "bad_arguments"


def test_indices_are_not_recorded_but_values_are() -> None:
    assert cost("aten::index", [[8, 4], []], ["float", ""]).note == "indices_not_recorded"
    types = [BF16, "", BF16, "Scalar", "Scalar"]
    values = ["", "", "", "False", "False"]
    shapes: list[list[int]] = [[8193, 7168], [], [8196, 7168], [], []]
    result = cost(
        "aten::_index_put_impl_", shapes, types, values, [[7168, 1], [], [7168, 1], [], []]
    )
    assert figures(result) == (0, 8196 * 7168 * 2, 8196 * 7168 * 2)
    assert result.note == "indices_not_counted; self_not_updated"


def test_data_decides_the_size_of_nonzero() -> None:
    result = cost("aten::nonzero", [[8]], ["bool"], [""], [[1]])
    assert figures(result) == (0, 8, None)
    assert result.note == "data_dependent"


def test_embedding_reads_rows_not_the_table() -> None:
    types = [BF16, "long int", "Scalar"]
    result = cost("aten::embedding", [[50000, 512], [1, 141], []], types, ["", "", "0"])
    assert result.read_bytes == 141 * 8 + 141 * 512 * 2
    assert result.output_shapes == "[[1,141,512]]"


def test_expanded_indices_of_a_gather_count_once() -> None:
    shapes: list[list[int]] = [[49408, 768], [], [77, 768], [], [77, 768]]
    types = [BF16, "Scalar", "long int", "Scalar", BF16]
    strides: list[list[int]] = [[768, 1], [], [1, 0], [], [768, 1]]
    result = cost("aten::gather", shapes, types, ["", "0", "", "False", ""], strides)
    assert result.write_bytes == 77 * 768 * 2
    assert result.read_bytes == 77 * 8 + 77 * 2


def test_triton_kernels_move_each_tensor_once() -> None:
    shapes: list[list[int]] = [[8, 4096, 8192], [32768, 8192], []]
    result = cost("triton_poi_fused_mul_silu_2", shapes, [BF16, BF16, "Scalar"], ["", "", "9"])
    assert result.read_bytes == result.write_bytes == 32768 * 8192 * 2
    assert (result.flops, result.family) == (None, "triton")
    assert result.note is not None
    assert result.note.startswith("tensors_moved_once; flops_unknown")
    product = cost("triton_tem_fused_mm_0", [[64, 32], [32, 16], [64, 16]], [BF16] * 3)
    assert product.flops == 2 * 64 * 32 * 16


VENDOR: list[tuple[str, list[Any], list[str], tuple[int | None, int, int]]] = [
    ("_C::rms_norm", [[8, 64], [8, 64], [64], []], [BF16] * 3, (2048, 1024 + 128, 1024)),
    ("_C::fused_add_rms_norm", [[8, 64], [8, 64], [64], []], [BF16] * 3, (2560, 2176, 2048)),
    ("_C::silu_and_mul", [[8, 32], [8, 64]], [BF16] * 2, (1536, 1024, 512)),
    (
        "_C::static_scaled_fp8_quant",
        [[8, 64], [8, 64], [1]],
        ["c10::Float8_e4m3fn", BF16, "float"],
        (1024, 1028, 512),
    ),
    (
        "_C_cache_ops::reshape_and_cache_flash",
        [[8, 1, 64], [8, 1, 64], [99, 16, 1, 64], [99, 16, 1, 64], [8]],
        [BF16, BF16, "unsigned char", "unsigned char", "long int"],
        (0, 2048 + 64, 1024),
    ),
    (
        "_C::rotary_embedding",
        [[8], [8, 512], [8, 64], [], [131072, 64], []],
        ["long int", BF16, BF16, "Scalar", BF16, "Scalar"],
        (3 * 8 * 576, 64 + 8 * 576 * 2 + 8 * 64 * 2, 8 * 576 * 2),
    ),
    (
        "aiter::_groupnorm_run",
        [[1, 8, 4, 4], [], [8], [8], []],
        [BF16, "Scalar", BF16, BF16, "Scalar"],
        (1024, 256 + 32, 256),
    ),
    (
        "vllm::outplace_fused_experts",
        [[8, 64], [4, 32, 64], [4, 64, 16], [8, 2], [8, 2]],
        [BF16, BF16, BF16, "float", "int"],
        (2 * 16 * (32 * 64 + 64 * 16), 1024 + 4 * 3072 * 2 + 64 + 64, 1024),
    ),
    ("flash_attn::_flash_attn_forward", [[2, 16, 4, 8]] * 3, [BF16] * 3, (65536, 6144, 2560)),
    ("vllm::all_reduce", [[8, 64], []], [BF16, ""], (0, 1024, 1024)),
    ("c10d::_allgather_base_", [[16, 64], [8, 64], []], [BF16, BF16, ""], (0, 1024, 2048)),
]


@pytest.mark.parametrize(
    ("name", "shapes", "dtypes", "expected"), VENDOR, ids=lambda v: str(v)[:30]
)
def test_library_ops(
    name: str, shapes: Any, dtypes: Any, expected: tuple[int | None, int, int]
) -> None:
    dtypes = [*dtypes, *["Scalar"] * (len(shapes) - len(dtypes))]
    assert figures(cost(name, shapes, dtypes)) == expected


def test_what_a_library_hides_is_null_with_its_reason() -> None:
    moe = cost("vllm::moe_forward", [[888, 3072], [888, 128], []], [BF16, BF16, ""])
    assert (figures(moe), moe.note) == ((None, None, None), "weights_not_recorded")
    paged = cost("vllm::unified_attention_with_output", [[888, 8, 64]] * 4, [BF16] * 4)
    assert (figures(paged), paged.note) == ((None, None, None), "data_dependent")
    comms = cost("record_param_comms", [[1, 25136]], [BF16])
    assert (comms.family, comms.via, comms.note) == ("collective", None, "see_enclosing_op")


def test_functional_all_gather_scales_with_the_group() -> None:
    types = [BF16, "Scalar", ""]
    values = ["", "8", ""]
    name = "_c10d_functional::all_gather_into_tensor"
    result = cost(name, [[4, 6], [], []], types, values)
    assert result.output_shapes == "[[32,6]]"
    assert (result.read_bytes, result.write_bytes) == (48, 384)


def test_einsum_without_its_equation_is_unknown() -> None:
    operands = [[2, 3], [3, 4]]
    types = ["", "TensorList", ""]
    assert cost("aten::einsum", [[], operands, []], types, ["", "", ""]).note == "no_values"
    told = cost("aten::einsum", [[], operands, []], types, ["ij,jk->ik", "", ""])
    assert (told.flops, told.output_shapes) == (48, "[[2,4]]")
