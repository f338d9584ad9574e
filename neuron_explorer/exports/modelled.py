"""The modelled timeline of a dry run: tracks of their own beside the measured ones.

Its slices are a second picture of rows that are measured elsewhere in the file: they have no
`args.neuron_explorer`, so `import` makes no events of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from neuron_explorer.exports.window import Part
from neuron_explorer.trace import Trace

CATEGORY = "modelled"

_IN_PART = """
SELECT w.*, e.start_ns FROM modelled_work AS w
INNER JOIN (SELECT rank, event_id, start_ns FROM events WHERE {condition}) AS e
    ON w.rank = e.rank AND w.event_id = e.event_id
WHERE w.modelled_start_ns IS NOT NULL
"""

_PLACES = f"""
SELECT
    concat_ws(chr(31), 'modelled', rank, coalesce(device, ''), coalesce(queue, '')) AS place,
    rank, TRUE AS on_device, FALSE AS marks,
    NULL AS pid, NULL AS pid_raw, NULL AS tid, NULL AS tid_raw, NULL AS thread_name,
    'modelled: ' || coalesce(device, 'device unknown') AS device,
    coalesce(queue, 'queue unknown') || ' (modelled)' AS queue,
    NULL AS stream
FROM ({_IN_PART}) GROUP BY ALL ORDER BY rank, device, queue
"""

# the modelled clock begins at 0 with the dry run: here, with the measured start of its first work
_SLICES = f"""
WITH work AS ({_IN_PART}),

clocks AS (
    SELECT
        rank,
        coalesce(
            arg_min(start_ns - modelled_start_ns, (modelled_start_ns, event_id)), {{base_ns}}
        ) AS shift_ns
    FROM work GROUP BY rank
)

SELECT
    concat_ws(chr(31), 'modelled', w.rank, coalesce(w.device, ''), coalesce(w.queue, '')) AS place,
    w.modelled_start_ns + c.shift_ns - {{base_ns}} AS start_ns,
    coalesce(w.modelled_end_ns, w.modelled_start_ns) + c.shift_ns - {{base_ns}} AS end_ns,
    w.name, w.event_id, w.modelled_start_ns, w.bound, w.launch_cost_ns, w.memory_floor_ns,
    w.compute_floor_ns, w.link_ns, w.bytes, w.flops, w.op_name, w.graph_id, w.step, w.phase,
    w.module, w.source_file, w.source_line
FROM work AS w INNER JOIN clocks AS c ON w.rank = c.rank
ORDER BY start_ns ASC, end_ns DESC, w.rank ASC, w.event_id ASC
"""

_NOT_ARGUMENTS = frozenset(["place", "start_ns", "end_ns", "name"])


def modelled_places(trace: Trace, part: Part) -> Sequence[Mapping[str, Any]]:
    """Every queue with modelled work in the part, as `tracks.places` has the measured ones."""
    return trace.sql(_PLACES.format(condition=part.condition)).to_pylist()


def modelled_slices(trace: Trace, part: Part) -> Iterator[Mapping[str, Any]]:
    """Rows `(place, start_ns, end_ns, name, ...)` in the order of their starts."""
    query = _SLICES.format(condition=part.condition, base_ns=part.base_ns)
    for batch in trace.batches(query):
        yield from batch.to_pylist()


def arguments(row: Mapping[str, Any]) -> dict[str, object]:
    """What a viewer shows of a slice: of which event it is, and what its time is made of."""
    known = {k: v for k, v in row.items() if k not in _NOT_ARGUMENTS and v is not None}
    return {"figures": "modelled"} | known
