"""The columns of a normalised event table, as expressions over one event and its args."""

from __future__ import annotations

import json
from collections.abc import Callable

ARGUMENTS: dict[str, str] = {
    "External id": "VARCHAR",
    "correlation": "VARCHAR",
    "device": "VARCHAR",
    "stream": "VARCHAR",
    "Sequence number": "VARCHAR",
    "Fwd thread id": "VARCHAR",
    "Input Dims": "VARCHAR",
    "Input type": "VARCHAR",
    "Input Strides": "VARCHAR",
    "Concrete Inputs": "VARCHAR",
    "Python module id": "VARCHAR",
    "Python id": "VARCHAR",
    "Python parent id": "VARCHAR",
    "Ev Idx": "VARCHAR",
    "Record function id": "VARCHAR",
    "Profiler Event Index": "VARCHAR",
    "cbid": "VARCHAR",
    "cid": "VARCHAR",
}
"""The args of nearly every event. From `Python module id` on they only number what row order,
`parent_id` and `name` say as well, so they are not kept."""

LEFTOVERS: tuple[str, ...] = (
    "external id",
    "Input dims",
    "Call stack",
    "Bytes",
    "Total Allocated",
    "Total Reserved",
    "Device Type",
    "Device Id",
    "bytes",
    "size",
    "name",
    "labels",
    "In msg nelems",
    "Out msg nelems",
    "dtype",
)
"""Args of the rarer events, read only where an event has more than `ARGUMENTS`."""

DROPPED = ("external id", "Input dims", "Call stack", "Bytes", "Total Allocated", "Total Reserved")
EVENT: dict[str, str] = {
    "ph": "VARCHAR",
    "cat": "VARCHAR",
    "name": "VARCHAR",
    "pid": "VARCHAR",
    "tid": "VARCHAR",
    "ts": "DECIMAL(24,3)",
    "dur": "DECIMAL(24,3)",
    "id": "VARCHAR",
}


NUMBERS: dict[str, tuple[str, str]] = {
    "correlation": ("correlation_text", "BIGINT"),
    "external_id": ("external_text", "BIGINT"),
    "device": ("a.device", "INTEGER"),
    "stream": ("a.stream", "BIGINT"),
    "sequence": ('a."Sequence number"', "BIGINT"),
    "forward_thread": ('a."Fwd thread id"', "BIGINT"),
}
"""Column -> its text and type; where the text does not fit the type it goes to the attributes."""


Text = Callable[[str], str]
"""Key of one of `LEFTOVERS` -> the expression that gives its text."""


def columns(extra: Text) -> dict[str, str]:
    """Column -> expression; `a` has the args of `ARGUMENTS`, `extra` finds those of `LEFTOVERS`."""

    def whole(key: str) -> str:
        return f"try_cast({extra(key)} AS BIGINT)"

    def of_device(key: str) -> str:
        # On the CPU (device type 0) torch counts what was taken while it profiled, also what
        # was given back while it did not, and writes 0 as reserved: no total of anything.
        return f"CASE WHEN {whole('Device Type')} IS DISTINCT FROM 0 THEN {whole(key)} END"

    dims = f"""coalesce(a."Input Dims", {extra("Input dims")})"""
    return {
        "ph": "coalesce(ph, '')",
        "cat": "cat",
        "name": "name",
        "pid": "coalesce(pid, '')",
        "tid": "coalesce(tid, '')",
        "ts": "ts",
        "dur": "dur",
        "id": "id",
        "correlation_text": "coalesce(a.correlation, CASE WHEN ph IN ('s', 't', 'f') THEN id END)",
        "external_text": f"""coalesce(a."External id", {extra("external id")})""",
        **{name: f"try_cast({text} AS {kind})" for name, (text, kind) in NUMBERS.items()},
        "inputs": f"""CASE WHEN {dims} IS NOT NULL OR a."Input type" IS NOT NULL THEN
            concat_ws(chr(1), coalesce({dims}, ''), coalesce(a."Input type", ''),
            coalesce(a."Input Strides", ''), coalesce(a."Concrete Inputs", '')) END""",
        "call_stack": extra("Call stack"),
        "alloc_bytes": whole("Bytes"),
        "device_allocated": of_device("Total Allocated"),
        "device_reserved": of_device("Total Reserved"),
        "device_type": whole("Device Type"),
        "device_id": whole("Device Id"),
        "bytes": f"coalesce({whole('bytes')}, {whole('size')})",
        "label": extra("name"),
        "labels": extra("labels"),
        "message_in": whole("In msg nelems"),
        "message_out": whole("Out msg nelems"),
        "message_dtype": extra("dtype"),
    }


def unfit(name: str) -> str:
    """Whether a number's text does not fit its type."""
    text, kind = NUMBERS[name]
    return f"({text} IS NOT NULL AND try_cast({text} AS {kind}) IS NULL)"


def literal(value: object) -> str:
    """A JSON document as a string of SQL."""
    return "'" + json.dumps(value).replace("'", "''") + "'"


def selected(found: dict[str, str]) -> str:
    """The columns as a SELECT's list."""
    return ", ".join(f'{value} AS "{name}"' for name, value in found.items())
