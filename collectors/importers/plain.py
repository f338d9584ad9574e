"""Documents of events without a surprise, which is what PyTorch writes of a CPU's work: one pass.

The general query reads an event's args two or three times, to find what no column holds. Here
every key that may occur has a place, and a count proves that no other did: a document that
writes as many keys as were read of it holds none unread and none twice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neuron_explorer.collectors.importers.event_columns import (
    ARGUMENTS,
    EVENT,
    columns,
    literal,
    selected,
)

_KEPT = (
    *("Device Id", "Device Type", "Addr", "finished"),
    *("name", "labels", "sort_index", "Op count"),
)
"""Args that stay in the attributes too, in the order in which PyTorch writes them."""

_READ = dict.fromkeys(("Total Reserved", "Total Allocated", "Bytes"), "VARCHAR")
_ARGUMENTS = ARGUMENTS | _READ | dict.fromkeys(_KEPT, "JSON")
_MARKS = {"s": "VARCHAR", "bp": "VARCHAR"}
_ALWAYS = ("ph", "pid", "tid")
_PLACED = (
    *("ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "device", "stream"),
    *("external_id", "sequence", "forward_thread", "alloc_bytes"),
)
"""Columns that have a value for each key that was read for them, if it fits."""

_COUNT = "others_read"
_QUOTE, _COLON, _BLANK, _NULL = b'": n'


def query() -> str:
    """The columns of the general query and how many keys were read that have none of their own."""
    placed = ("External id", "Sequence number", "Fwd thread id", "device", "stream", "Bytes")
    others = _counted(*(f'a."{key}"' for key in _ARGUMENTS if key not in placed))
    of_placed = ", ".join(f'a."{key}"' for key in placed)
    # args that are no object are read as one without keys
    args = f"CASE WHEN {others} > 0 OR coalesce({of_placed}) IS NOT NULL THEN 1 ELSE 0 END"
    found = {
        **columns(_text),
        **{name: name for name in _ALWAYS},
        "attributes": _attributes(),
        _COUNT: f"{_counted(*_MARKS)} + {others} + {args}",
    }
    return f"""
        WITH parsed AS (
            SELECT unnest(json_transform(doc, {literal([EVENT | _MARKS | {"args": _ARGUMENTS}])}))
                AS e
            FROM documents
        ),
        events AS (SELECT unnest(e), e.args AS a FROM parsed WHERE e IS NOT NULL)
        SELECT {selected(found)} FROM events
    """


def _counted(*values: str) -> str:
    return "(" + " + ".join(f"({value} IS NOT NULL)::TINYINT" for value in values) + ")"


def _text(key: str) -> str:
    if key in _KEPT:
        return f"""(a."{key}" ->> '$')"""
    return f'a."{key}"' if key in _READ else "NULL::VARCHAR"


def _attributes() -> str:
    present = " OR ".join(f'a."{key}" IS NOT NULL' for key in _KEPT)
    parts = ", ".join(f'\'"{key}":\' || a."{key}"' for key in _KEPT)
    return f"CASE WHEN {present} THEN '{{' || concat_ws(',', {parts}) || '}}' END"


def proven(table: pa.Table, documents: Sequence[bytes]) -> pa.Table | None:
    """The table without its count; None unless the counts say that nothing was left out."""
    missing = sum(table[name].null_count for name in _ALWAYS)
    wide = table["correlation_text"].null_count - table["correlation"].null_count
    written = [keys_written(document) for document in documents]
    if missing or wide or None in written:
        return None
    placed = sum(table.num_rows - table[name].null_count for name in _PLACED)
    read = placed + (pc.sum(table[_COUNT]).as_py() or 0)
    return table.drop_columns([_COUNT]) if read == sum(filter(None, written)) else None


def keys_written(document: bytes) -> int | None:
    """How many keys a JSON document holds at least, all of them with values.

    Text that looks like a key counts as one. None where a key could be without a value, or
    could not be told: with a `null`, or with a blank before its colon.
    """
    text = np.frombuffer(document, np.uint8)
    colons = np.flatnonzero(text == _COLON)
    before = text[colons - 1]
    keys = colons[before == _QUOTE]
    value = text.take(keys + 1, mode="clip")
    value = np.where(value == _BLANK, text.take(keys + 2, mode="clip"), value)
    if (before <= _BLANK).any() or ((value <= _BLANK) | (value == _NULL)).any():
        return None
    return len(keys)
