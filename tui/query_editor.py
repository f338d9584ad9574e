"""The box where a query is written: it ends words that have begun, and steps through old ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from textual.widgets import TextArea

from neuron_explorer.tui.sql_words import candidates, completed, word_before


class QueryEditor(TextArea):
    """A text area that knows the views and their columns."""

    def __init__(self, text: str = "", **others: Any) -> None:
        super().__init__(text, **others)
        self._place = 0
        """How many queries back; 0 = the one being written."""
        self._draft = ""

    def on_mount(self) -> None:
        # a picture must not depend on the moment it is taken
        self.cursor_blink = not self.app.is_headless

    def candidates(self) -> Sequence[str]:
        """How the word before the cursor may end."""
        return candidates(self._before, self.text)

    def complete(self) -> bool:
        """Put in what all candidates share, or the first; whether there was any."""
        found = self.candidates()
        if not found:
            return False
        row, column = self.cursor_location
        start = (row, column - len(word_before(self._before)))
        self.replace(completed(self._before, found), start, (row, column))
        return True

    def step_back(self, queries: Sequence[str], by: int) -> bool:
        """Show the query before (`by` < 0) or after; whether there is one."""
        place = self._place - by
        while 0 < place <= len(queries) and queries[-place] == self.text:
            place -= by
        if not 0 <= place <= len(queries):
            return False
        if self._place == 0:
            self._draft = self.text
        self._place = place
        self.text = queries[-place] if place else self._draft
        self.move_cursor(self.document.end)
        return True

    def forget_place(self) -> None:
        """The query that was run is the newest now."""
        self._place = 0

    @property
    def _before(self) -> str:
        return self.get_text_range((0, 0), self.cursor_location)
