"""Ops of a finding, as the trace recorded them: shapes, dtypes, strides, scalar arguments."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from neuron_explorer.trace import Trace

Shape = tuple[int, ...]


class CannotReplayError(Exception):
    """What a finding talks about cannot be run again; the message says why, in one line."""


@dataclass(frozen=True)
class Slot:
    """One argument of a recorded op."""

    dtype: str
    """As Kineto writes it: `float`, `Scalar`, `TensorList`; empty for None and what is unknown."""
    shape: Any = ()
    """List of sizes; for a list of tensors a list of such lists."""
    strides: Any = None
    """The same of strides; None where the trace has none."""
    value: str = ""
    """Text of a scalar argument; empty where it was not recorded."""


@dataclass(frozen=True)
class RecordedOp:
    """One op of the trace."""

    event_id: int
    name: str
    slots: tuple[Slot, ...]
    duration_ns: int
    """Its time on the device; on a CPU its own duration."""

    @property
    def signature(self) -> tuple[object, ...]:
        """Equal for ops that do the same work."""
        return (self.name, *(repr(slot) for slot in self.slots))

    @property
    def label(self) -> str:
        """`mul [16,256,1024]`: the op and its largest tensor."""
        shapes = [slot.shape for slot in self.slots if _is_plain_shape(slot.shape)]
        largest: Shape = max(shapes, key=_count, default=())
        said = f" [{','.join(map(str, largest))}]" if largest else ""
        return f"{self.name.removeprefix('aten::')}{said}"


_OPS = """
SELECT
    o.event_id,
    o.name,
    o.input_shapes,
    o.input_dtypes,
    o.input_strides,
    o.input_values,
    coalesce(o.device_time_ns, o.duration_ns) AS duration_ns
FROM ops AS o
WHERE o.rank = $rank AND o.event_id IN (SELECT unnest($ids::BIGINT[]))
ORDER BY o.start_ns ASC, o.event_id ASC
"""

_OPS_OF_WORK = """
SELECT DISTINCT op_id
FROM work
WHERE rank = $rank AND op_id IS NOT NULL AND event_id IN (SELECT unnest($ids::BIGINT[]))
"""


def ops_by_id(trace: Trace, rank: int, op_ids: Iterable[int]) -> dict[int, RecordedOp]:
    """Recorded ops by event id, in order of their start."""
    rows = trace.sql(_OPS, {"rank": rank, "ids": list(op_ids)}).to_pylist()
    return {row["event_id"]: _op(row) for row in rows}


def ops_of_work(trace: Trace, rank: int, event_ids: Sequence[int]) -> list[RecordedOp]:
    """The ops that caused these units of work, in order of their start.

    Raises:
        CannotReplayError: The trace links none of them to an op.
    """
    found = trace.sql(_OPS_OF_WORK, {"rank": rank, "ids": list(event_ids)})
    ops = ops_by_id(trace, rank, _whole(found.column("op_id").to_pylist()))
    if not ops:
        raise CannotReplayError("the trace links these events to no op")
    return list(ops.values())


def _whole(ids: Iterable[int | None]) -> list[int]:
    return [id_ for id_ in ids if id_ is not None]


def alike(ops: Iterable[RecordedOp]) -> list[list[RecordedOp]]:
    """The ops grouped by what they do, the group with the most time first."""
    groups: dict[tuple[object, ...], list[RecordedOp]] = {}
    for op in ops:
        groups.setdefault(op.signature, []).append(op)
    return sorted(groups.values(), key=lambda group: -sum(op.duration_ns for op in group))


def _op(row: Mapping[str, Any]) -> RecordedOp:
    return RecordedOp(row["event_id"], row["name"], _slots(row), row["duration_ns"] or 0)


def _slots(row: Mapping[str, Any]) -> tuple[Slot, ...]:
    dtypes = _listed(row["input_dtypes"])
    shapes = _listed(row["input_shapes"])
    strides = _listed(row["input_strides"])
    values = _listed(row["input_values"])
    return tuple(
        Slot(
            dtype if isinstance(dtype, str) else "TensorList",
            _frozen(_at(shapes, place, [])),
            _frozen(_at(strides, place, None)),
            _value(_at(values, place, "")),
        )
        for place, dtype in enumerate(dtypes)
    )


def _listed(text: str | None) -> list[Any]:
    return [] if text is None else list(json.loads(text))


def _at(items: list[Any], place: int, default: object) -> Any:
    return items[place] if place < len(items) else default


def _value(recorded: object) -> str:
    return recorded if isinstance(recorded, str) else json.dumps(recorded)


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def _is_plain_shape(shape: object) -> bool:
    return isinstance(shape, tuple) and all(isinstance(size, int) for size in shape)


def _count(shape: Sequence[int]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total
