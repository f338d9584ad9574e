"""Matrix products: 2 * M * N * K, as `torch.utils.flop_counter` counts; a bias adds nothing."""

from __future__ import annotations

from neuron_explorer.collectors.costs.arguments import Call, Shape, Tensor, Text, broadcast
from neuron_explorer.collectors.costs.notes import Missing
from neuron_explorer.collectors.costs.registry import Work, formula


def product(left: Tensor, right: Tensor, *, dtype: str | None = None) -> tuple[int, Tensor]:
    """FLOPs and result of a product of matrices or of batches of the same number of them.

    Raises:
        Missing: The inner sizes differ.
    """
    *batch, rows, inner = left.shape
    *other_batch, depth, columns = right.shape
    if inner != depth:
        raise Missing("shapes_mismatch")
    lead = broadcast([tuple(batch), tuple(other_batch)])
    output = Tensor((*lead, rows, columns), left.dtype if dtype is None else dtype)
    return 2 * output.numel * inner, output


@formula("matmul", "mm bmm")
def mm(call: Call) -> Work:
    """Two matrices, or two batches of them."""
    left, right = call.tensor(0), call.tensor(1)
    flops, output = product(left, right, dtype=call.dtype(2, left.dtype))
    return Work(flops, [left, right], [output])


@formula("matmul", "addmm baddbmm addbmm _addmm_activation")
def addmm(call: Call) -> Work:
    """A product added to a bias, which may be a broadcast row."""
    bias, left, right = (call.tensor(i) for i in range(3))
    flops, output = product(left, right)
    if "addbmm" in call.name and "baddbmm" not in call.name:
        output = Tensor(output.shape[1:], output.dtype)
    return Work(flops, [bias, left, right], [output])


@formula("matmul", "addmv mv")
def mv(call: Call) -> Work:
    """A matrix times a vector."""
    *bias, matrix, vector = call.tensors(stop=3 if "addmv" in call.name else 2)
    rows, inner = matrix.shape
    output = Tensor((rows,), matrix.dtype)
    return Work(2 * rows * inner, [*bias, matrix, vector], [output])


@formula("matmul", "dot vdot inner")
def dot(call: Call) -> Work:
    """Sum of products over the last dimension."""
    left, right = call.tensor(0), call.tensor(1)
    shape = left.shape[:-1] + right.shape[:-1]
    output = Tensor(shape, left.dtype)
    return Work(2 * output.numel * left.shape[-1], [left, right], [output])


@formula("matmul", "outer ger addr")
def outer(call: Call) -> Work:
    """Every product of two vectors."""
    *bias, left, right = call.tensors(stop=3 if "addr" in call.name else 2)
    output = Tensor((left.numel, right.numel), left.dtype)
    return Work(output.numel * (1 + len(bias)), [*bias, left, right], [output])


@formula("matmul", "linear mkldnn_linear _mkl_linear mkl_linear")
def linear(call: Call) -> Work:
    """Rows times a transposed weight, plus a bias."""
    source, weight = call.tensor(0), call.tensor(1)
    inner = weight.shape[-1]
    if not source.shape or source.shape[-1] != inner:
        raise Missing("shapes_mismatch")
    output = Tensor(source.shape[:-1] + weight.shape[:-1], source.dtype)
    return Work(2 * output.numel * inner, call.tensors(stop=3), [output])


@formula("matmul", "linear_backward")
def linear_backward(call: Call) -> Work:
    """Gradients of input and weight: two products as large as the forward one."""
    source, gradient, weight = (call.tensor(i) for i in range(3))
    writes = [source.like(), weight.like(), Tensor(weight.shape[:1], weight.dtype)]
    notes = ("mask_not_recorded",)
    return Work(4 * source.numel * weight.shape[0], [source, gradient, weight], writes, notes=notes)


@formula("matmul", "matmul __rmatmul__ linalg_matmul")
def matmul(call: Call) -> Work:
    """Vectors, matrices and batches by the rules of `torch.matmul`."""
    left, right = call.tensor(0), call.tensor(1)
    if not left.shape or not right.shape:
        raise Missing("shapes_mismatch")
    wide = Tensor((1, *left.shape), left.dtype) if len(left.shape) == 1 else left
    tall = Tensor((*right.shape, 1), right.dtype) if len(right.shape) == 1 else right
    flops, output = product(wide, tall)
    rows = output.shape[-2:-1] if wide is left else ()
    columns = output.shape[-1:] if tall is right else ()
    shape = output.shape[:-2] + rows + columns
    return Work(flops, [left, right], [Tensor(shape, left.dtype)])


@formula("matmul", "_scaled_mm _scaled_mm_v2")
def scaled_mm(call: Call) -> Work:
    """Low-precision product with scales; the output dtype is an argument."""
    left, right = call.tensor(0), call.tensor(1)
    place = 6 if len(call.args) >= 7 else len(call.args) - 1
    dtype = call.dtype(place, left.dtype)
    flops, output = product(left, right, dtype=dtype)
    notes = () if call.text(place) else ("out_dtype_assumed",)
    return Work(flops, call.tensors(stop=place), [output], notes=notes)


@formula("matmul", "_int_mm")
def int_mm(call: Call) -> Work:
    """8-bit integers into 32-bit ones."""
    left, right = call.tensor(0), call.tensor(1)
    flops, output = product(left, right, dtype="int")
    return Work(flops, [left, right], [output])


@formula("matmul", "_weight_int8pack_mm _weight_int4pack_mm")
def packed_mm(call: Call) -> Work:
    """Product with an 8-bit weight of one row an output, or a packed 4-bit one."""
    source, weight = call.tensor(0), call.tensor(1)
    inner = source.shape[-1]
    columns = weight.shape[0] * (1 if "int8" in call.name else 8)
    output = Tensor((*source.shape[:-1], columns), source.dtype)
    return Work(2 * output.numel * inner, call.tensors(), [output])


@formula("matmul", "_grouped_mm _scaled_grouped_mm")
def grouped_mm(call: Call) -> Work:
    """Groups of rows, each times its own matrix; offsets say where a group ends."""
    left, right = call.tensor(0), call.tensor(1)
    two, other = len(left.shape) == 2, len(right.shape) == 2
    groups = [tensor.shape[0] for tensor in call.tensors(start=2) if len(tensor.shape) == 1]
    dtype = "c10::BFloat16" if "scaled" in call.name else left.dtype
    rows, inner, columns = left.shape[-2], left.shape[-1], right.shape[-1]
    shape: Shape = (rows, columns)
    if two and other:
        shape = (groups[-1] if groups else 1, rows, columns)
        flops = 2 * rows * inner * columns
    elif two or other:
        flops = 2 * rows * inner * columns
    else:
        shape = (left.shape[0], rows, columns)
        flops = 2 * left.shape[0] * rows * inner * columns
    notes = () if not (two or other) else ("dense_routing_assumed",)
    return Work(flops, call.tensors(), [Tensor(shape, dtype)], notes=notes)


@formula("matmul", "einsum")
def einsum(call: Call) -> Work:
    """Two operands: twice the product of all index sizes, where the equation was recorded."""
    operands = call.lists()
    equation = next((a.value for a in call.args if isinstance(a, Text) and "," in a.value), "")
    if not operands or not operands[0] or "->" not in equation or "." in equation:
        raise Missing("no_values")
    left, _, right = equation.replace(" ", "").strip("'\"").partition("->")
    terms = left.split(",")
    sizes: dict[str, int] = {}
    for term, operand in zip(terms, operands[0], strict=True):
        sizes |= dict(zip(term, operand.shape, strict=True))
    output = Tensor(tuple(sizes[letter] for letter in right), operands[0][0].dtype)
    flops = 2 if len(terms) > 1 else 1
    for size in sizes.values():
        flops *= size
    return Work(flops, operands[0], [output])


@formula("matmul", "cdist _cdist_forward")
def cdist(call: Call) -> Work:
    """Distances of every pair of rows: a difference, a square and a sum for each element."""
    left, right = call.tensor(0), call.tensor(1)
    lead = broadcast([left.shape[:-2], right.shape[:-2]])
    output = Tensor((*lead, left.shape[-2], right.shape[-2]), left.dtype)
    return Work(3 * output.numel * left.shape[-1], [left, right], [output])
