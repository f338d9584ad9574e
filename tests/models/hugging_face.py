"""A Llama-like and a BERT-like model of `transformers`, small and at random, one trace each."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from transformers import BertConfig, BertForSequenceClassification, LlamaConfig, LlamaForCausalLM

import neuron_explorer

SMALL: dict[str, Any] = {"vocab_size": 128, "hidden_size": 64, "num_hidden_layers": 2}
SMALL |= {"intermediate_size": 128, "num_attention_heads": 4, "max_position_embeddings": 64}


def llama(layers: int = 2) -> tuple[Any, dict[str, Any]]:
    size = SMALL | {"num_hidden_layers": layers}
    model = LlamaForCausalLM(LlamaConfig(num_key_value_heads=2, **size))
    tokens = torch.randint(0, 128, (4, 32))
    return model, {"input_ids": tokens, "labels": tokens}


def bert() -> tuple[Any, dict[str, Any]]:
    model = BertForSequenceClassification(BertConfig(**SMALL))
    return model, {"input_ids": torch.randint(0, 128, (4, 32)), "labels": torch.zeros(4).long()}


def train(model: Any, batch: dict[str, Any], output: Path) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    plan = torch.profiler.schedule(wait=0, warmup=1, active=2, repeat=1)
    with neuron_explorer.profile(output=output, schedule=plan) as session:
        for _ in range(3):
            loss = model(**batch).loss  # line: forward
            loss.backward()  # line: backward
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # line: clip
            optimizer.step()  # line: optimizer
            optimizer.zero_grad()
            session.step()


if __name__ == "__main__":
    folder, *names = sys.argv[1:]
    torch.manual_seed(0)
    torch.set_num_threads(1)
    for name in names:
        compiled = name == "compiled"
        # layers are alike, and each takes seconds to compile
        model, batch = bert() if name == "bert" else llama(layers=1 if compiled else 2)
        if compiled:
            model.compile()
        train(model, batch, Path(folder, f"{name}.parquet"))
