"""Lines from which Python frames were called, where a capture knows them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuron_explorer.collectors.events import Events, Ints, Sparse
from neuron_explorer.collectors.interning import Codes


@dataclass(frozen=True)
class CallLines:
    """The calling line of Python frames, by when each frame began; sorted by start."""

    start_ns: Ints
    """Unix time."""
    line: Codes
    """Line of the caller's code at that moment."""

    @classmethod
    def of(cls, pairs: list[tuple[int, int]]) -> CallLines:
        """From (start, line) pairs; a start that several frames share names none of them."""
        table = np.array(sorted(pairs), np.int64).reshape(-1, 2)
        start, first, count = np.unique(table[:, 0], return_index=True, return_counts=True)
        alone = count == 1
        return cls(start[alone], table[first[alone], 1].astype(np.int32))

    def of_frames(self, events: Events, base_ns: int) -> Sparse:
        """Lines by row, of the Python frames that began at a known start."""
        rows = np.flatnonzero(events.roles("python/frame"))
        if not len(self.start_ns) or not len(rows):
            return Sparse.joined([])
        start = events.start[rows] + base_ns
        place = np.minimum(np.searchsorted(self.start_ns, start), len(self.start_ns) - 1)
        known = self.start_ns[place] == start
        return Sparse(rows[known].astype(np.int32), self.line[place[known]].astype(np.int64))
