"""Renderers of the same findings: text, markdown, JSON. None of them computes a number."""

from __future__ import annotations
