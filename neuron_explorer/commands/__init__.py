"""What a command does between its options and its report, one module a subject."""

from __future__ import annotations
