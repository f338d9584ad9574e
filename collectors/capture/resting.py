"""Trace functions rest while torch compiles, also where nobody wants to know of compilations.

A compilation makes millions of calls and runs no model code. torch says when one begins and ends
in its structured trace, which it writes to a logger once somebody listens there.
"""

from __future__ import annotations

import logging
import threading
import warnings
from typing import Any

from neuron_explorer.collectors.capture.line_trace import rest, resume

LOGGER = "torch.__trace"
BACKWARD = '"entire_backward_compile"'
_COMPILATIONS = ('"entire_frame_compile"', BACKWARD)


def compilation_edge(event: str) -> int:
    """1 where a compilation begins, -1 where it ends, else 0.

    Args:
        event: Text of a chromium event: torch's own JSON, one key a line.
    """
    head = event[:120]
    if not any(name in head for name in _COMPILATIONS):
        return 0
    return ('"ph": "B"' in event) - ('"ph": "E"' in event)


class Resting(logging.Handler):
    """Listens to nothing but where compilations begin and end."""

    def __init__(self) -> None:
        super().__init__()
        self._here = threading.local()
        self._failed = False

    def listen(self) -> None:
        """Begin, before the first window."""
        logger = logging.getLogger(LOGGER)
        # as torch means it: its records have no text, and would end on the user's screen
        logger.propagate = False
        if self not in logger.handlers:
            logger.addHandler(self)

    def leave(self) -> None:
        """End."""
        logging.getLogger(LOGGER).removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Called by torch in the middle of a compilation: nothing may escape."""
        try:
            self._follow(record)
        except Exception as error:  # noqa: BLE001 - a fault of ours must not end a compilation
            if not self._failed:
                self._failed = True
                warnings.warn(f"lines are traced in compilations too: {error!r}", stacklevel=2)

    def _follow(self, record: logging.LogRecord) -> None:
        metadata: dict[str, Any] = getattr(record, "metadata", {})
        if "chromium_event" not in metadata:
            return
        edge = compilation_edge(getattr(record, "payload", None) or "")
        depth = getattr(self._here, "depth", 0)
        if edge > 0 and not depth:
            self._here.traced_by = rest()
        elif edge < 0 and depth == 1:
            resume(self._here.traced_by)
        self._here.depth = max(depth + edge, 0)
