"""Hand-made traces whose steps take exactly the times a test says, line by line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from builders import Row, kernel, launch, op, step, write_trace

US = 1_000
FILE = "/srv/run/model.py"
STEP_NS = 10_000 * US
"""From one step's start to the next one's."""


@dataclass(frozen=True)
class Call:
    """An op that a line calls once a step."""

    line: int
    name: str = "aten::mul"
    shapes: str = "[[8,8]]"
    function: str = "forward"
    file: str = FILE
    module: str = "net"
    write_bytes: int | None = None


Times = Mapping[Call, int]
"""Microseconds of each call of one step, in order."""


def made(
    path: Path,
    steps: Sequence[Times],
    texts: Mapping[int, str] | None = None,
    *,
    file: str = FILE,
    ranks: int = 1,
    device: bool = False,
    tail_us: int = 0,
) -> Path:
    """A trace whose steps are `steps`; with `device` each call launches a kernel as long as it.

    Args:
        path: Where it goes.
        steps: Their calls.
        texts: Of the lines.
        file: Whose lines they are.
        ranks: How many.
        device: Whether there is one.
        tail_us: How long each step goes on behind its last call.

    Returns:
        `path`; with several ranks the folder that it becomes.
    """
    if ranks > 1:
        for rank in range(ranks):
            made_rank(path / f"rank={rank}.parquet", steps, texts, file, device=device, rank=rank)
        return path
    return made_rank(path, steps, texts, file, device=device, tail_us=tail_us)


def made_rank(
    path: Path,
    steps: Sequence[Times],
    texts: Mapping[int, str] | None,
    file: str,
    *,
    device: bool,
    rank: int = 0,
    tail_us: int = 0,
) -> Path:
    rows: list[Row] = []
    for number, times in enumerate(steps):
        at = number * STEP_NS
        rows.append({**step(number, at, (sum(times.values()) + tail_us) * US), "rank": rank})
        for call, us in times.items():
            rows += _rows(call, at, us * US, number, len(rows), device=device, rank=rank)
            at += us * US
    lines = {str(number): text for number, text in (texts or {}).items()}
    sources = {file: {"sha256": "0", "lines": lines}} if lines else {}
    summary = {"rank": rank, "events": len(rows)}
    return write_trace(path, rows, {"sources": sources, "summary": summary})


def _rows(
    call: Call, at: int, ns: int, number: int, first: int, *, device: bool, rank: int
) -> list[Row]:
    place = {
        "source_file": call.file,
        "source_line": call.line,
        "source_function": call.function,
        "module": call.module,
        "step": number,
        "phase": "forward",
        "rank": rank,
    }
    shaped = place | {"input_shapes": call.shapes, "input_dtypes": '["float"]'}
    host = ns // 2 if device else ns
    found = [op(at, host, name=call.name, self_ns=host, write_bytes=call.write_bytes, **shaped)]
    if device:
        found.append(launch(at + 1, 0, self_ns=0, op_id=first, **place))
        found.append(kernel(at + 2, ns, name=call.name, op_id=first, launch_id=first + 1, **shaped))
    return found


def around(us: int, spread: Sequence[int]) -> list[int]:
    """`us`, and what each step has more or less of it."""
    return [us + each for each in spread]
