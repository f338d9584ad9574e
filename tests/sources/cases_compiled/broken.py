"""A graph break, shapes that change, and lines on both sides of the break."""

from __future__ import annotations

import torch
from torch.nn import functional

SEEN: list[int] = []


@torch.compiler.disable  # type: ignore[untyped-decorator]
def remember(x: torch.Tensor) -> None:
    SEEN.append(len(x))


def around(x: torch.Tensor) -> torch.Tensor:
    h = functional.leaky_relu(x)  # own: leaky_relu
    h = h.cos()  # own: cos
    remember(h)
    h = functional.elu(h)  # own: elu
    return h.erf()  # own: erf


def main() -> None:
    compiled = torch.compile(around)
    with torch.no_grad():
        compiled(torch.ones(4, 4))
        compiled(torch.ones(5, 5, 5))
