"""Two stages of work at once: the next item is made while the caller uses this one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


def ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Yield the items in order, making each on a second thread one ahead of the caller.

    Pays where both sides spend their time outside the interpreter lock.
    """
    with ThreadPoolExecutor(1) as pool:
        try:
            following = pool.submit(next, items, None)
        except RuntimeError:
            # the interpreter exits, and begins no thread any more
            yield from items
            return
        while (item := following.result()) is not None:
            following = pool.submit(next, items, None)
            yield item
