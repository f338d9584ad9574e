"""What records beside torch's profiler: one interface, so that a session need not know which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from neuron_explorer.collectors.capture.clock import Alignment
from neuron_explorer.collectors.recorded import RECORDED

Remark = tuple[str, str, int]
"""(kind, example, count) of something that could not be recorded, for `import_issues`."""


class Companion(Protocol):
    """Records one window after the other, never harming the job."""

    def start(self) -> None:
        """Begin a window; torch records already."""

    def stop(self) -> None:
        """End it; torch still records. Harmless where nothing began."""

    def rows(self, clock: Alignment) -> pa.Table:
        """Rows of `RECORDED` of the window that has ended, on torch's clock; asked for once."""

    def facts(self) -> Mapping[str, object]:
        """What is to be said of the recording, for the metadata key `capture`."""

    def remarks(self) -> Sequence[Remark]:
        """What could not be recorded in the window that has ended."""


def rows_of(companions: Sequence[Companion], clock: Alignment) -> pa.Table:
    """All their rows in one table."""
    return pa.concat_tables([RECORDED.empty_table(), *(c.rows(clock) for c in companions)])
