"""Two blocks of a Llama: RMSNorm and attention as one op each, fused AdamW."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention, silu

import neuron_explorer


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, 3 * width, bias=False)
        self.up = nn.Linear(width, 3 * width, bias=False)
        self.down = nn.Linear(3 * width, width, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        batch, length, width = hidden.shape
        query, key, value = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.qkv(self.before_attention(hidden)).chunk(3, dim=-1)
        )
        mixed = scaled_dot_product_attention(query, key, value, is_causal=True)
        hidden = hidden + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        normed = self.before_mlp(hidden)
        out: Tensor = hidden + self.down(silu(self.gate(normed)) * self.up(normed))
        return out


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*[Block(512, 8) for _ in range(2)])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    tokens = torch.randn(4, 512, 512)
    with neuron_explorer.profile() as profiler:
        for _ in range(3):
            optimizer.zero_grad()
            torch.autograd.backward(model(tokens).square().mean())
            optimizer.step()
            profiler.step()


if __name__ == "__main__":
    main()
