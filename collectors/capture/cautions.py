"""What a session says at its end about files that are fewer, or more, than one would think."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def short_schedule(steps: int | None, windows: int, *, early: bool) -> str:
    """That a schedule did not come to its end; empty where it did.

    Args:
        steps: How often `step()` was called; None without a schedule.
        windows: How many were written.
        early: Whether the session ended while it recorded.
    """
    if steps is None or windows > 1 or (windows and not early):
        return ""
    if steps == 0:
        said = "a schedule was given, but step() was called 0 times"
    else:
        said = f"step() was called {steps} times, which is less than the schedule asks"
    return f"{said}: {'the window is incomplete' if windows else 'nothing was recorded'}"


def files_of_earlier_runs(files: Sequence[Path]) -> str:
    """That files of an earlier run lie beside the new ones; empty without such files."""
    if not files:
        return ""
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return (
        f"{files[0]}{more}: of an earlier run that had more windows or ranks; remove them before "
        "you read the folder as one run"
    )
