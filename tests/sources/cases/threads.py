"""Other threads, begun before and during the recording."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor


def work(x: Tensor) -> Tensor:
    y = x * 2  # op: mul*4
    return y.sin()  # op: sin*4


def main() -> None:
    x = torch.ones(4)  # op: ones
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(work, [x, x, x]))
    found[0].cos()  # op: cos
    thread = threading.Thread(target=lambda: work(x).exp())  # op: exp
    thread.start()
    thread.join()
    x.neg()  # op: neg
