"""Live capture: what runs inside the profiled process and may need torch."""

from __future__ import annotations
