"""SQL that turns events into the JSON text of the Trace Event Format.

Each event keeps every column: those that torch.profiler has a place for stand where it puts
them, the rest in `args.neuron_explorer` under the table's own names. So any tool that reads
torch's traces reads these, and the importer gets every value back.

The format is Google's "Trace Event Format"; names of args are those of Kineto.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from neuron_explorer.exchange import ARGUMENTS, CARRIER, DEVICE, KEY, TAKEN, TEXTS
from neuron_explorer.exports.window import Part
from neuron_explorer.schema import COLUMNS, Column
from neuron_explorer.trace import Trace

ELSEWHERE = TEXTS | {"name", "category", "start_ns", "duration_ns", "attributes", "stack"}
"""Columns that are not under `KEY`, except where nothing else can hold them."""

SLICE = "CASE WHEN duration_ns IS NULL THEN 'i' ELSE 'X' END"
_FLOWS = "WHEN 'flow_start' THEN 's' WHEN 'flow_step' THEN 't' WHEN 'flow_end' THEN 'f'"
PHASES: dict[str, str] = {
    "as_recorded": f"""CASE
        WHEN layer = 'meta' AND kind = 'metadata' THEN 'M'
        WHEN start_ns IS NULL OR kind = 'counter' THEN 'carrier'
        WHEN layer = 'meta' AND starts_with(kind, 'flow_') THEN CASE kind {_FLOWS} END
        ELSE {SLICE} END""",
    "to_draw": f"""CASE
        WHEN start_ns IS NULL OR kind = 'counter' OR layer = 'meta' THEN 'carrier'
        ELSE {SLICE} END""",
}
"""How each row is written: as torch writes it, or for a viewer that draws the links itself."""

ON_DEVICE = "(e.layer = 'hardware' OR e.kind = 'device_annotation')"
PLACE = f"""concat_ws(chr(31), e.rank, {ON_DEVICE}, coalesce(e.pid::VARCHAR, e.pid_raw, ''),
    coalesce(e.tid::VARCHAR, e.tid_raw, ''), coalesce(e.device, ''), coalesce(e.queue, ''),
    coalesce(e.stream::VARCHAR, ''), e.kind = 'device_annotation')"""
"""Key of the track an event lies in."""


STACKS = """
SELECT stack, row_number() OVER (ORDER BY min((rank, event_id))) AS number
FROM events WHERE {condition} AND stack IS NOT NULL GROUP BY stack ORDER BY number
"""
"""A number for each stack: they are long and few, so events only name theirs."""


STRETCH_ROWS = 25_000
"""Rows that are sorted at once: their texts have a kilobyte each."""

_STRETCHES = """
WITH numbered AS (
    SELECT start_ns, row_number() OVER (ORDER BY start_ns) AS number
    FROM events WHERE {condition} AND start_ns IS NOT NULL
)

SELECT DISTINCT start_ns FROM numbered WHERE number % {rows} = 0 ORDER BY start_ns
"""


def stretches(trace: Trace, part: Part) -> Iterator[str]:
    """The part's time in stretches of so many events, each as a condition; one after the other."""
    asked = _STRETCHES.format(condition=part.condition, rows=STRETCH_ROWS)
    found = trace.sql(asked).column("start_ns").to_pylist()
    ends = [*(f"start_ns < {start}" for start in found), "TRUE"]
    begins = ["TRUE", *(f"start_ns >= {start}" for start in found)]
    for number, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        # what has no start comes first
        yield f"{begin} AND {end}" if number else f"coalesce({end}, TRUE)"


def flows_sql(part: Part) -> str:
    """Rows `(rank, source, target, flow)`: which slices an arrow joins when they are drawn."""
    return f"""
    WITH drawn AS (
        SELECT rank, event_id, layer, coalesce(launch_id, op_id) AS launch_id, forward_id
        FROM events WHERE {part.condition} AND {PHASES["to_draw"]} = 'X'
    ),
    links AS (
        SELECT rank, event_id AS target, launch_id AS source, 'launch' AS flow
        FROM drawn WHERE layer = 'hardware'
        UNION ALL
        SELECT rank, event_id, forward_id, 'forward'
        FROM drawn WHERE layer = 'framework' AND forward_id IS NOT NULL
    )
    SELECT l.* FROM links AS l
    INNER JOIN drawn AS d ON l.rank = d.rank AND l.source = d.event_id
    WHERE l.source <> l.target
    ORDER BY l.rank, l.source, l.target
    """


def events_sql(part: Part, phases: str, stretch: str) -> str:
    """Rows `(place, ph, start_ns, end_ns, event_id, rank, text, ...)` by time.

    `text` is the event without process and thread, from its `ph` on. `$stacks` are all stacks of
    the part, in the order of their numbers.
    """
    shown = f"SELECT *, {PHASES[phases]} AS ph FROM events WHERE {part.condition} AND {stretch}"
    return f"""
    WITH stacks AS (
        SELECT unnest($stacks::VARCHAR[]) AS stack, generate_subscripts($stacks, 1) AS number
    )
    SELECT {PLACE} AS place, e.ph, e.start_ns - {part.base_ns} AS start_ns,
        e.end_ns - {part.base_ns} AS end_ns, e.event_id, e.rank, e.name,
        {_event_text(part.base_ns)} AS text,
        CASE WHEN e.kind = 'counter' THEN e.attributes END AS counted,
        e.device, e.device_allocated AS allocated, e.device_reserved AS reserved
    FROM ({shown}) AS e
    LEFT JOIN stacks AS s ON e.stack = s.stack
    LEFT JOIN roofline AS r ON e.rank = r.rank AND e.event_id = r.event_id
    ORDER BY e.start_ns ASC NULLS FIRST, e.duration_ns DESC NULLS LAST, e.event_id ASC
    """


def _event_text(base_ns: int) -> str:
    carried = "e.ph = 'carrier'"
    return f"""concat(
        '"ph":"', CASE WHEN {carried} THEN 'M' ELSE e.ph END, '"',
        CASE e.ph WHEN 'i' THEN ',"s":"t"' WHEN 'f' THEN ',"bp":"e"' END,
        CASE WHEN e.ph IN ('s', 't', 'f') THEN ',"id":' || coalesce(e.correlation, 0) END,
        ',"cat":' || to_json(e.category),
        CASE WHEN {carried} THEN ',"name":"{CARRIER}"' ELSE ',"name":' || to_json(e.name) END,
        ',"ts":' || {_microseconds(f"e.start_ns - {base_ns}")},
        ',"dur":' || {_microseconds("e.duration_ns")},
        ',"args":{{"{KEY}":{{"event_id":' || e.event_id, {_own_columns()},
        ',"stack":' || s.number, ',"bound":' || to_json(r.bound),
        CASE WHEN isfinite(r.share_of_floor) AND r.share_of_floor < 1e9
            THEN ',"share_of_floor":' || r.share_of_floor::DECIMAL(18, 4) END,
        CASE WHEN {carried} OR e.name = '{CARRIER}' THEN ',"name":' || to_json(e.name) END,
        CASE WHEN NOT {_spreadable()} THEN ',"attributes":' || to_json(e.attributes) END,
        '}}', {_arguments()},
        CASE WHEN {_spreadable()} THEN ',' || e.attributes[2:-2] END,
        '}}}}')"""


def _own_columns() -> str:
    columns = [c for c in COLUMNS if c.name not in ELSEWHERE and c.name != "event_id"]
    return ", ".join(f"""',"{c.name}":' || {_json_of(c)}""" for c in columns)


def _json_of(column: Column) -> str:
    number = pa.types.is_integer(column.type)
    return f"e.{column.name}::VARCHAR" if number else f"to_json(e.{column.name})"


def _arguments() -> str:
    number = "nullif(regexp_extract(e.device, ':([0-9]{1,9})$', 1), '')"
    parts = [
        f"""',"{key}":' || {f"e.{column}" if column in TEXTS else f"e.{column}::VARCHAR"}"""
        for column, key in ARGUMENTS.items()
    ]
    return ", ".join([f"""',"{DEVICE}":' || {number}""", *parts])


def _spreadable() -> str:
    """Whether the attributes can stand among the args without hiding one of them."""
    taken = ", ".join(f"'{key}'" for key in TAKEN)
    plain = "json_valid(e.attributes) AND e.attributes LIKE '{%}'"
    return f"""(e.attributes IS NULL OR CASE WHEN {plain}
        THEN len(json_keys(e.attributes)) > 0
            AND NOT list_has_any(json_keys(e.attributes), [{taken}]) ELSE FALSE END)"""


def _microseconds(ns: str) -> str:
    """Decimal microseconds with three places: exact, as torch writes them."""
    sign = f"CASE WHEN ({ns}) < 0 THEN '-' ELSE '' END"
    return f"""({sign} || abs({ns}) // 1000 || '.' || lpad((abs({ns}) % 1000)::VARCHAR, 3, '0'))"""
