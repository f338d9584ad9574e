"""The Textual app: one screen a file."""

from __future__ import annotations
