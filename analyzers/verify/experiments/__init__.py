"""One kind of change a file, found by its place.

Each module says

    ANALYZERS   the analyzers whose findings it can replay
    plan(case)  what to run before and after

or, where nothing can be replayed by nature, `REASONS`: why, by analyzer. `REASONS` needs no torch.
"""

from __future__ import annotations
