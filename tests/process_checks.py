"""Checks of one process: each a function; what failed is printed as JSON."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable

Check = Callable[[], None]
_all: list[Check] = []


def check(function: Check) -> Check:
    """Make a function one of the checks."""
    _all.append(function)
    return function


def message_of(action: Callable[[], object]) -> str:
    """What an action's error says.

    Raises:
        AssertionError: It raises none.
    """
    try:
        action()
    except Exception as error:  # noqa: BLE001 - the kind is not the point
        return str(error)
    raise AssertionError("no error was raised")


def run_all() -> None:
    """Run them in their order and print the names of all, with what went wrong."""
    found: dict[str, str | None] = {}
    for function in _all:
        try:
            function()
            found[function.__name__] = None
        except Exception:  # noqa: BLE001 - told to the test
            found[function.__name__] = traceback.format_exc()[-1500:]
    print(json.dumps(found))  # noqa: T201
