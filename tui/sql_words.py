"""What a query may go on with: views, columns of the views it names, and words of SQL."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from neuron_explorer.view_files import views

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*$")
_AFTER_SOURCE = re.compile(r"\b(from|join|describe|summarize)\s+[A-Za-z0-9_]*$", re.IGNORECASE)
_WORDS = """
SELECT FROM WHERE GROUP BY ORDER LIMIT OFFSET HAVING JOIN LEFT ON USING WITH AS DISTINCT DESCRIBE
SUMMARIZE CASE WHEN THEN ELSE END AND OR NOT NULL IS IN BETWEEN LIKE DESC ASC
count sum avg min max round coalesce arg_max quantile
"""


def word_before(text: str) -> str:
    """The unfinished word at the end of what stands before the cursor; empty = none."""
    found = _WORD.search(text)
    return found[0] if found else ""


def candidates(before: str, whole: str) -> Sequence[str]:
    """How the word before the cursor may end: after FROM and JOIN a view, else columns first.

    Args:
        before: The query up to the cursor.
        whole: All of it: a view after the cursor has its columns before it as well.
    """
    word = word_before(before)
    if not word:
        return ()
    if _AFTER_SOURCE.search(before):
        return _beginning(word, sorted(views()))
    named = [column for view in _named(whole) for column in views()[view].columns]
    return _beginning(word, [*sorted(named), *sorted(views()), *_WORDS.split()])


def completed(before: str, found: Sequence[str]) -> str:
    """What to put in place of the word: what all have in common, or at once the first."""
    word, first = word_before(before), found[0]
    shared = len(first)
    for other in found[1:]:
        while first[:shared].lower() != other[:shared].lower():
            shared -= 1
    return first[:shared] if shared > len(word) else first


def _named(query: str) -> Iterable[str]:
    """Views that stand in the query."""
    words = set(re.findall(r"\w+", query.lower()))
    return [name for name in views() if name in words]


def _beginning(word: str, names: Iterable[str]) -> list[str]:
    low = word.lower()
    return [n for n in dict.fromkeys(names) if n.lower().startswith(low) and n.lower() != low]
