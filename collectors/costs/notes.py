"""What a formula raises where it cannot know: with a code of `neuron_explorer.cost_notes`."""

from __future__ import annotations

from neuron_explorer.cost_notes import ASSUMED, NOTES, WHY_NULL

__all__ = ["ASSUMED", "NOTES", "WHY_NULL", "Missing"]


class Missing(Exception):  # noqa: N818 - a formula says what is missing; it is no failure
    """Raised by a formula that cannot know anything; `code` is one of `WHY_NULL`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code
