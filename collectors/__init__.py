"""Everything that makes events, and nothing that judges them."""

from __future__ import annotations
