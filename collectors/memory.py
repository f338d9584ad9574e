"""Memory that is free inside the process, handed back to the system."""

from __future__ import annotations

import ctypes

import pyarrow as pa


def give_back() -> None:
    """Return free heap pages, so that one stage's peak does not add to the next one's.

    glibc keeps what arrays below 32 MiB leave free, and a large file leaves hundreds of
    them behind; where there is no glibc only Arrow's pool is emptied.
    """
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
