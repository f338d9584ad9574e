"""The Textual app: one screen a file."""

from __future__ import annotations

import os

# Textual paints on a clock of 60 a second unless told otherwise before it is imported: an answer
# that just missed a tick waited 16 ms. Nothing is painted where nothing changed.
os.environ.setdefault("TEXTUAL_FPS", "120")
