"""How well the analyzers find planted faults, and whether their savings come true.

python tests/benchmarks/score.py [--json] [NAME ...]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pairs import (
    VERIFIABLE,
    Judged,
    Pair,
    Timed,
    healthy,
    judge,
    keep_memory,
    one_thread,
    pairs,
)

PROFILED = 3
"""Captures of a slow script; each bound of its saving is their median."""
LOADED = 3
LEAST_ROUNDS, MOST_ROUNDS, TIMING_S = 5, 25, 1.5
GOALS = {"recall": 0.95, "false_alarms": 0, "inside": 0.80, "median_error": 0.25}


@dataclass(frozen=True)
class Row:
    """One pair: found or not, promised and measured, as shares of the slow step."""

    name: str
    analyzers: tuple[str, ...]
    labels: int
    found: int
    alarms: tuple[str, ...]
    gain: str
    low: float | None = None
    likely: float | None = None
    high: float | None = None
    measured: float | None = None

    @property
    def inside(self) -> bool | None:
        if self.measured is None:
            return None
        if self.low is None or self.high is None:
            return False
        return self.low <= self.measured <= self.high

    @property
    def error(self) -> float | None:
        """Middle of the promise against what was measured; None where nothing is measured."""
        if self.low is None or self.high is None:
            return None if self.measured is None else float("inf")
        return self._error((self.low + self.high) / 2)

    @property
    def error_of_likely(self) -> float | None:
        """What is expected against what was measured: told beside, and no goal."""
        if self.likely is None:
            return None if self.measured is None else float("inf")
        return self._error(self.likely)

    def _error(self, promised: float) -> float | None:
        if self.measured is None:
            return None
        return abs(promised - self.measured) / self.measured if self.measured > 0 else float("inf")


@dataclass(frozen=True)
class Score:
    """All of them."""

    rows: tuple[Row, ...]
    healthy: dict[str, tuple[str, ...]]
    """Alarms by healthy script."""

    def totals(self) -> dict[str, float | int | None]:
        labels = sum(row.labels for row in self.rows)
        timed = [row for row in self.rows if row.measured is not None]
        errors = [row.error for row in timed if row.error is not None]
        expected = [row.error_of_likely for row in timed if row.error_of_likely is not None]
        widths = [row.high / row.low for row in timed if row.low and row.high]
        return {
            "pairs": len(self.rows),
            "analyzers": len({name for row in self.rows for name in row.analyzers}),
            "healthy": len(self.healthy),
            "recall": sum(row.found for row in self.rows) / labels if labels else None,
            "false_alarms": sum(len(row.alarms) for row in self.rows)
            + sum(len(alarms) for alarms in self.healthy.values()),
            "verifiable": len(timed),
            "inside": statistics.fmean(bool(row.inside) for row in timed) if timed else None,
            "median_error": statistics.median(errors) if errors else None,
            "median_error_of_likely": statistics.median(expected) if expected else None,
            "without_low": sum(not row.low for row in timed),
            "median_width": statistics.median(widths) if widths else None,
        }


def alarms(judged: Judged, labelled: Sequence[str] = ()) -> tuple[str, ...]:
    """What is above info, and whatever the mended fault's own analyzer still says."""
    return tuple(
        f"{each.analyzer} at {Path(each.source_file or '-').name}:{each.source_line}"
        for each in judged.report.findings
        if each.severity != "info" or each.analyzer in labelled
    )


def score_pair(pair: Pair) -> Row:
    names = tuple(dict.fromkeys(label.analyzer for label in pair.labels))
    if pair.gain == VERIFIABLE:
        _warm_judged(pair, names)  # the recorder's memory: its pages come at the first touch
    runs = [_warm_judged(pair, names)]
    row = Row(
        name=pair.name,
        analyzers=names,
        labels=len(pair.labels),
        found=sum(runs[0].found(pair.slow, label) for label in pair.labels),
        alarms=alarms(judge(pair.fixed), names),
        gain=pair.gain,
    )
    if pair.gain != VERIFIABLE:
        return row
    runs += [_warm_judged(pair, names) for _ in range(PROFILED - 1)]
    return Row(**{**asdict(row), **_promised(runs, names), "measured": _measured(pair)})


def _warm_judged(pair: Pair, names: Sequence[str]) -> Judged:
    """What the first run in a process pays once is no part of a real program's window."""
    if pair.gain == VERIFIABLE:
        Timed(pair.slow).step_s()
    return judge(pair.slow, list(names))


def _promised(runs: Sequence[Judged], names: Sequence[str]) -> dict[str, float]:
    promised = [saving for run in runs if (saving := run.saving(names[0])) is not None]
    if not promised:
        return {}
    bounds = zip(("low", "likely", "high"), zip(*promised, strict=True), strict=True)
    return {name: statistics.median(values) for name, values in bounds}


def _measured(pair: Pair) -> float:
    """Share of the slow step that the fixed one does not need: unprofiled, in turn, medians.

    Each time is compared with the one beside it, since a machine's speed drifts, and both scripts
    are loaded anew in between, since where their tensors happen to lie matters too.
    """
    loaded = [statistics.median(_gains(pair)) for _ in range(LOADED)]
    return statistics.median(loaded)


def _gains(pair: Pair) -> list[float]:
    slow, fixed = Timed(pair.slow), Timed(pair.fixed)
    slow.step_s(), fixed.step_s()
    gains: list[float] = []
    until = time.perf_counter() + TIMING_S
    while len(gains) < LEAST_ROUNDS or (len(gains) < MOST_ROUNDS and time.perf_counter() < until):
        order = (slow, fixed) if len(gains) % 2 else (fixed, slow)
        taken = {script: script.step_s() for script in order}
        gains.append(1 - taken[fixed] / taken[slow])
    return gains


def score(names: Sequence[str] = ()) -> Score:
    chosen = [pair for pair in pairs() if not names or pair.name in names]
    fine = [path for path in healthy() if not names or path.stem in names]
    if not keep_memory():
        hint = "memory is not locked, so times vary more; with glibc, be root or raise `ulimit -l`"
        print(hint, file=sys.stderr)  # noqa: T201 - progress
    with one_thread():
        rows = tuple(_said(score_pair(pair)) for pair in chosen)
        calm = {path.stem: alarms(judge(path)) for path in fine}
    return Score(rows, calm)


def _said(row: Row) -> Row:
    """Each as it comes: the whole takes minutes."""
    print(render(row), file=sys.stderr, flush=True)  # noqa: T201 - progress
    return row


def render(row: Row) -> str:
    found = f"{row.found}/{row.labels}"
    if row.measured is None:
        gain = f"not measured: {row.gain.removeprefix('not measured: ')}"
    else:
        low, likely, high = (
            "?" if v is None else f"{v:.1%}" for v in (row.low, row.likely, row.high)
        )
        error = "" if row.error is None else f"error {row.error:.0%}"
        verdict = "inside" if row.inside else "OUTSIDE"
        gain = f"[{low}, {high}] likely {likely}, measured {row.measured:.1%} {verdict} {error}"
    noise = f"  ALARM {'; '.join(row.alarms)}" if row.alarms else ""
    return f"{row.name:<34} found {found}  {gain}{noise}"


def table(scored: Score) -> str:
    lines = [render(row) for row in scored.rows]
    lines += [
        f"healthy/{name:<26} {'ALARM ' + '; '.join(found) if found else 'quiet'}"
        for name, found in scored.healthy.items()
    ]
    totals = scored.totals()
    lines += ["", *(f"{name:<22} {_number(value)}" for name, value in totals.items())]
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3g}"


def reached(totals: dict[str, float | int | None]) -> bool:
    recall, inside = totals["recall"] or 0, totals["inside"] or 0
    error = totals["median_error"]
    return (
        recall >= GOALS["recall"]
        and totals["false_alarms"] == GOALS["false_alarms"]
        and inside >= GOALS["inside"]
        and error is not None
        and error <= GOALS["median_error"]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="rows and totals as JSON")
    parser.add_argument("names", nargs="*", help="pairs or healthy scripts; all without")
    arguments = parser.parse_args()
    scored = score(arguments.names)
    totals = scored.totals()
    if arguments.json:
        rows = [asdict(row) | {"inside": row.inside, "error": row.error} for row in scored.rows]
        print(json.dumps({"totals": totals, "pairs": rows, "healthy": scored.healthy}, indent=1))  # noqa: T201 - the result
    else:
        print(table(scored))  # noqa: T201 - the result
    return 0 if arguments.names or reached(totals) else 1


if __name__ == "__main__":
    sys.exit(main())
