"""`torch.autocast("neuron")`: which ops run in the lower precision, which in fp32.

The lists are those PyTorch applies to accelerators (`aten/src/ATen/autocast_mode.h`, its
lower-precision and fp32 lists), by the names that model code reaches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from neuron_explorer.collectors.dryrun.arguments import map_tensors
from neuron_explorer.collectors.dryrun.tensor import NAME

LOWER = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d.input",
    "conv_transpose3d.input",
    "convolution",
    "mm",
    "bmm",
    "addmm",
    "addmv",
    "addr",
    "addbmm",
    "baddbmm",
    "matmul",
    "mv",
    "linear",
    "einsum",
    "scaled_dot_product_attention",
    "prelu",
    "gru_cell",
    "lstm_cell",
]
FP32 = [
    "exp",
    "log",
    "log2",
    "log10",
    "log1p",
    "expm1",
    "pow.Tensor_Scalar",
    "pow.Tensor_Tensor",
    "pow.Scalar",
    "rsqrt",
    "reciprocal",
    "softplus",
    "layer_norm",
    "native_layer_norm",
    "group_norm",
    "rms_norm",
    "cosine_similarity",
    "nll_loss",
    "nll_loss_nd",
    "cross_entropy_loss",
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "kl_div",
    "binary_cross_entropy_with_logits",
    "cumsum",
    "cumprod",
    "sum",
    "sum.dim_IntList",
    "prod",
    "softmax.int",
    "log_softmax.int",
    "norm.Scalar",
    "norm.ScalarOpt_dim",
    "dist",
    "renorm",
    "erfinv",
    "sinh",
    "cosh",
    "tan",
    "asin",
    "acos",
]
_KEY = "AutocastPrivateUse1"


def register() -> list[Any]:
    """Register the lists; returns what must live as long as the process."""
    others: Any = torch.library.Library("_", "IMPL", _KEY)  # type: ignore[no-untyped-call]
    others.fallback(torch.library.fallthrough_kernel)
    library: Any = torch.library.Library("aten", "IMPL", _KEY)  # type: ignore[no-untyped-call]
    for names, dtype in ((LOWER, None), (FP32, torch.float32)):
        for name in names:
            library.impl(name, _cast(name, dtype))
    return [others, library]


def _cast(name: str, dtype: torch.dtype | None) -> Callable[..., Any]:
    base, _, overload = name.partition(".")
    func = getattr(getattr(torch.ops.aten, base), overload or "default")
    excluded = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, _KEY))

    def run(*args: Any, **kwargs: Any) -> Any:
        wanted = dtype or torch.get_autocast_dtype(NAME)

        def change(tensor: torch.Tensor) -> torch.Tensor:
            narrow = tensor.is_floating_point() and tensor.dtype is not torch.float64
            return tensor.to(wanted) if narrow and tensor.device.type == NAME else tensor

        with torch._C._ExcludeDispatchKeyGuard(excluded):
            return func(*map_tensors(change, args), **map_tensors(change, kwargs))

    return run
