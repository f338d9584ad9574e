"""The code with which torch.utils.checkpoint runs a forward again."""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType

import torch.utils.checkpoint


def recomputing_code() -> Iterator[CodeType]:
    """Code that torch.utils.checkpoint runs only to run a forward again."""
    found = {
        code.co_qualname: code
        for function in (
            torch.utils.checkpoint.CheckpointFunction.backward,
            torch.utils.checkpoint._checkpoint_without_reentrant_generator,
        )
        for code in _codes(function.__code__)
    }
    for name, code in found.items():
        if name.endswith((".backward", ".recompute_fn")):
            yield code


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
