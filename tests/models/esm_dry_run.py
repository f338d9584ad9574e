"""The forward of an ESM-2 model by its configuration on a dry run's device, shapes only.

Prints as JSON what one forward takes, eager and compiled, and what flat adds of fp32 take.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import torch
from transformers import EsmConfig, EsmForMaskedLM

import neuron_explorer

LAYERS, WIDTH, HEADS, TOKENS = map(int, sys.argv[1:5])
ADDS, ELEMENTS = 147, 1_030_000_000


def measure(device: Any, run: Any) -> dict[str, Any]:
    """What the second call takes: the first one compiles."""
    run()
    torch.neuron.synchronize()  # type: ignore[attr-defined]
    device.log.clear()
    begin = device.modelled.host_ns
    run()
    torch.neuron.synchronize()  # type: ignore[attr-defined]
    programs = [event for event in device.log.events if event.kind == "kernel"]
    return {
        "submissions": len(programs),
        "modelled_ns": device.modelled.host_ns - begin,
        "memory_floor_ns": sum(event.floors.memory_ns for event in programs),
        "fallbacks": len(device.log.fallbacks),
    }


def forward(device: Any) -> dict[str, Any]:
    config = EsmConfig(
        vocab_size=33,
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=4 * WIDTH,
        max_position_embeddings=1026,
        position_embedding_type="rotary",
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        token_dropout=True,
        pad_token_id=1,
        mask_token_id=32,
    )
    with torch.device("neuron"):
        model: Any = EsmForMaskedLM(config)
    model.eval()
    tokens = torch.full((1, TOKENS), 5).to("neuron")
    mask = torch.ones(1, TOKENS, dtype=torch.long).to("neuron")
    compiled: Any = torch.compile(model, backend="neuron", dynamic=False)
    with torch.no_grad():
        return {
            "parameters": sum(p.numel() for p in model.parameters()),
            "eager": measure(device, lambda: model(tokens, attention_mask=mask)),
            "compiled": measure(device, lambda: compiled(tokens, attention_mask=mask)),
        }


def adds(device: Any) -> dict[str, Any]:
    each = ELEMENTS // ADDS
    pairs = [[torch.empty(each, device="neuron") for _ in range(2)] for _ in range(ADDS)]
    one = [torch.empty(each * ADDS, device="neuron") for _ in range(2)]

    def separate() -> None:
        for a, b in pairs:
            a.add_(b)

    return {
        "separate": measure(device, separate),
        "flat": measure(device, lambda: one[0].add_(one[1])),
    }


def main() -> None:
    device = neuron_explorer.dryrun("trn2", execute=False)
    sys.stdout.write(json.dumps(forward(device) | {"adds": adds(device)}) + "\n")


main()
