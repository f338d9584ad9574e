"""Three training steps of several models on the device and on the CPU, from the same start."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import neuron_explorer

Loss = Callable[[nn.Module, torch.Tensor, torch.Tensor], torch.Tensor]


class Transformer(nn.Module):
    """Two encoder layers over tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, 50)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        mask = torch.ones(tokens.shape[1], tokens.shape[1], device=tokens.device).triu(1).bool()
        out: torch.Tensor = self.head(self.body(self.embed(tokens), mask=mask))
        return out


def cnn() -> nn.Module:
    """Convolutions with batch norm."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, stride=2),
        nn.GroupNorm(4, 16),
        nn.GELU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 10),
    )


def by_class(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = model(x)
    return nn.functional.cross_entropy(out.flatten(0, -2), y.flatten())


def tokens(count: int = 50) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.randint(0, count, (2, 12))
    return ids, ids.roll(-1, 1)


def images() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(4, 3, 16, 16), torch.randint(0, 10, (4,))


def optimizers(kind: str) -> Callable[[Any], torch.optim.Optimizer]:
    return {
        "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=False),
        "sgd foreach": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=True),
        "adamw": lambda p: torch.optim.AdamW(p, lr=1e-2, foreach=False),
        "adamw foreach": lambda p: torch.optim.AdamW(p, lr=1e-2, foreach=True),
    }[kind]


def steps(
    model: nn.Module, batches: list[Any], optimizer: str, device: str, *, amp: bool, clip: bool
) -> list[float]:
    model = copy.deepcopy(model).to(device)
    update = optimizers(optimizer)(model.parameters())
    losses = []
    for x, y in batches:
        with torch.autocast(device, dtype=torch.bfloat16, enabled=amp):
            loss = by_class(model, x.to(device), y.to(device))
        loss.backward()  # type: ignore[no-untyped-call]
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        update.step()
        update.zero_grad()
        losses.append(loss.item())
    return losses


def compare(
    model: nn.Module,
    batch: Callable[[], Any],
    optimizer: str,
    *,
    amp: bool = False,
    clip: bool = False,
) -> list[list[float]]:
    batches = [batch() for _ in range(3)]
    return [
        steps(model, batches, optimizer, device, amp=amp, clip=clip) for device in ("neuron", "cpu")
    ]


def llama() -> list[list[float]]:
    """A Hugging Face model, with its own loss."""
    from transformers import LlamaConfig, LlamaForCausalLM  # noqa: PLC0415 - may be missing

    config = LlamaConfig(
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=100,
    )
    start = LlamaForCausalLM(config)
    batches = [tokens(100)[0] for _ in range(3)]
    found = []
    for device in ("neuron", "cpu"):
        model: Any = copy.deepcopy(start)
        model.to(device)
        update = torch.optim.AdamW(model.parameters(), lr=1e-3)
        losses = []
        for ids in batches:
            here = ids.to(device)
            loss = model(input_ids=here, labels=here).loss
            loss.backward()
            update.step()
            update.zero_grad()
            losses.append(loss.item())
        found.append(losses)
    return found


def main() -> None:
    adaptive = "adaptive" in sys.argv
    neuron_explorer.dryrun("trn2", adaptive=adaptive)
    kinds = ["sgd foreach"] if adaptive else ["sgd", "sgd foreach", "adamw", "adamw foreach"]
    torch.manual_seed(0)
    found = {
        f"{name} {kind}": compare(model, batch, kind)
        for name, model, batch in (("transformer", Transformer(), tokens), ("cnn", cnn(), images))
        for kind in kinds
    }
    found["transformer clipped"] = compare(Transformer(), tokens, "adamw", clip=True)
    amp = {
        "transformer": compare(Transformer(), tokens, "adamw", amp=True),
        "cnn": compare(cnn(), images, "sgd", amp=True),
    }
    if "llama" in sys.argv:
        found["llama"] = llama()
    print(json.dumps({"fp32": found, "bf16": amp}))  # noqa: T201


main()
