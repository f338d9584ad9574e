"""A small training step with planted waste, profiled: what `neuron-explorer demo` looks at.

The waste, for the analyzers to find:
- `hand_written_gelu` is a chain of elementwise operators: every intermediate tensor travels to
  memory and back, where one fused kernel would read once and write once.
- `.item()` in the loop makes the host wait for the device in every step.
- Everything runs in fp32, where bf16 would move half the bytes.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.profiler import schedule

from neuron_explorer.collectors.capture.session import profile

BATCH, LENGTH, WIDTH, HEADS, BLOCKS = 16, 256, 256, 4, 2
STEPS = 3
"""Steps that are recorded, after one that warms up."""


def hand_written_gelu(x: Tensor) -> Tensor:
    cubed = x * x * x
    inner = 0.7978845608 * (x + 0.044715 * cubed)
    return 0.5 * x * (1.0 + torch.tanh(inner))


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        heads = self.project(x).unflatten(-1, (3, HEADS, WIDTH // HEADS)).permute(2, 0, 3, 1, 4)
        query, key, value = heads.unbind(0)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return torch.as_tensor(self.out(mixed.transpose(1, 2).flatten(2)))


class Block(nn.Module):
    """A transformer block that scales and adds by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.widen = nn.Linear(WIDTH, 4 * WIDTH)
        self.narrow = nn.Linear(4 * WIDTH, WIDTH)
        self.scale = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.scale * self.attention(self.norm(x))
        hidden = hand_written_gelu(self.widen(self.norm(x)))
        return x + self.scale * torch.as_tensor(self.narrow(hidden))


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, batch: Tensor) -> Tensor:
    optimizer.zero_grad()
    loss = functional.mse_loss(model(batch), batch)
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return loss


def record(output: Path) -> str:
    """Profile the training step.

    Args:
        output: Where the trace goes.

    Returns:
        The device it ran on: `cpu`, `cuda`, ...

    Raises:
        OutputError: The output cannot be written.
    """
    torch.manual_seed(0)
    device = _device()
    model = nn.Sequential(*[Block() for _ in range(BLOCKS)]).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
    batch = torch.randn(BATCH, LENGTH, WIDTH, device=device)
    train_step(model, optimizer, batch)
    plan = schedule(wait=0, warmup=1, active=STEPS, repeat=1)
    with profile(output=output, schedule=plan) as profiler:
        losses = []
        for _ in range(STEPS + 1):
            losses.append(train_step(model, optimizer, batch).item())
            profiler.step()
    return device.type


def _device() -> torch.device:
    if torch.accelerator.is_available():
        return torch.accelerator.current_accelerator() or torch.device("cpu")
    return torch.device("cpu")
