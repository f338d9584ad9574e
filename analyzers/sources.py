"""The text of a source line, from the trace itself or from the very same file on disk."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import Any

from neuron_explorer.disk_sources import source_bytes
from neuron_explorer.trace import Trace


class SourceTexts:
    """Source lines as they were when the trace was captured.

    A file on disk counts only while its SHA-256 is the one the trace recorded: a line of
    another version would be a lie with a line number.
    """

    def __init__(self, trace: Trace) -> None:
        query = "SELECT value FROM trace_metadata WHERE key = $key ORDER BY rank, file"
        rows = trace.rows(query, {"key": "sources"})
        self._files: dict[str, dict[str, Any]] = {}
        for row in rows:
            self._files.update(json.loads(row["value"]))

    def line(self, file: str | None, number: int | None) -> str | None:
        """The line without its indent; None where neither the trace nor the disk has it."""
        recorded = self._files.get(file or "")
        if file is None or number is None or recorded is None:
            return None
        text = recorded.get("lines", {}).get(str(number))
        if text is None:
            lines = _lines_on_disk(file, recorded.get("sha256"))
            text = lines[number - 1] if 0 < number <= len(lines) else None
        return None if text is None else text.strip()

    def known(self, file: str) -> frozenset[str]:
        """Every line of the file that the trace or the disk has, without its indent."""
        recorded = self._files.get(file) or {}
        lines = [*recorded.get("lines", {}).values()]
        return frozenset(
            text.strip() for text in (*lines, *_lines_on_disk(file, recorded.get("sha256")))
        )


@lru_cache(maxsize=64)
def _lines_on_disk(file: str, sha256: str | None) -> tuple[str, ...]:
    content = None if sha256 is None else source_bytes(file)
    if content is None or hashlib.sha256(content).hexdigest() != sha256:
        return ()
    return tuple(content.decode("utf-8", errors="replace").splitlines())
