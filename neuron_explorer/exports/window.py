"""Which part of a trace is written: a step, a stretch of time, a rank, or all of it."""

from __future__ import annotations

from dataclasses import dataclass

from neuron_explorer.errors import UsageError
from neuron_explorer.trace import Trace

_FACTS = """
SELECT
    min(start_ns) FILTER (WHERE layer <> 'meta') AS first_ns,
    min(start_ns) AS base_ns,
    list(DISTINCT rank ORDER BY rank) AS ranks
FROM events
"""


@dataclass(frozen=True)
class Window:
    """What the caller asked for; all None = the whole trace."""

    step: int | None = None
    from_ns: int | None = None
    """Since the first event of the trace (ns)."""
    to_ns: int | None = None
    rank: int | None = None


@dataclass(frozen=True)
class Part:
    """A window of a certain trace."""

    condition: str
    """SQL over the columns of `events`."""
    base_ns: int
    """Unix time that exported times count from."""
    ranks: tuple[int, ...]
    """Ranks in it."""
    whole: bool
    """Whether no event of these ranks is left out."""


def part_of(trace: Trace, window: Window) -> Part:
    """The window as a condition.

    Raises:
        UsageError: the trace has no such rank, or no such step, or the stretch is empty.
    """
    ((first, base, ranks),) = (row.values() for row in trace.sql(_FACTS).to_pylist())
    ranks = ranks or []
    if window.rank is not None and window.rank not in ranks:
        raise UsageError(f"no rank {window.rank} in this trace", hint=f"it has {_few(ranks)}")
    _check_step(trace, window.step)
    _check_stretch(window)
    terms = ["TRUE"] if window.rank is None else [f"rank = {window.rank}"]
    whole = len(terms)
    if window.step is not None:
        terms.append(f"step = {window.step}")
    if window.from_ns is not None:
        terms.append(f"coalesce(end_ns, start_ns) >= {(first or 0) + window.from_ns}")
    if window.to_ns is not None:
        terms.append(f"start_ns < {(first or 0) + window.to_ns}")
    chosen = ranks if window.rank is None else [window.rank]
    return Part(" AND ".join(terms), base or 0, tuple(chosen), len(terms) == whole)


def _check_step(trace: Trace, step: int | None) -> None:
    if step is None:
        return
    rows = trace.sql("SELECT DISTINCT step FROM steps ORDER BY step").to_pylist()
    known = [row["step"] for row in rows]
    if step not in known:
        said = f"it has {_few(known)}" if known else "it marks no steps: use --from and --to-time"
        raise UsageError(f"no step {step} in this trace", hint=said)


def _check_stretch(window: Window) -> None:
    if window.from_ns is not None and window.to_ns is not None and window.from_ns >= window.to_ns:
        raise UsageError("--from is not before --to-time", hint="write --from 10ms --to-time 20ms")


def _few(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:8]))
    return f"{shown}, ... {numbers[-1]}" if len(numbers) > 8 else shown
