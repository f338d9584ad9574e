"""Texts of an analyzer's header, filled with the values of a row.

`{column}` is the value as it is; with a unit after a colon it becomes what a person reads:

    {t:ns}      1.2 ms      {b:bytes}   34 MB       {r:rate}    2.1 TB/s  (bytes per second)
    {s:share}   41 %        {n:count}   12,345      {f:file}    bert/modeling_bert.py
    {n:count op}   1 op, 12,345 ops

Units are decimal (1 MB = 10^6 bytes) and keep two digits. Unknown (NULL) reads `unknown`.
`[[ ... ]]` is left out when a column inside it is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from string import Formatter

_OPTIONAL = re.compile(r"\[\[(.*?)\]\]", re.DOTALL)
_TIMES = ((1, "ns"), (10**3, "us"), (10**6, "ms"), (10**9, "s"))
_SIZES = ((1, "B"), (10**3, "kB"), (10**6, "MB"), (10**9, "GB"), (10**12, "TB"))

Row = Mapping[str, object]


def fill(template: str, row: Row) -> str:
    """`template` with the row's values, for a person.

    Raises:
        KeyError: The template uses a column the row does not have.
        ValueError: A unit is unknown or does not fit its value.
    """
    kept = _OPTIONAL.sub(lambda found: _keep_if_known(found[1], row), template)
    return " ".join(_People().vformat(kept, (), row).split())


def fill_sql(template: str, row: Row) -> str:
    """`template` with the row's values as SQL literals (`NULL`, `'text'`, `[1, 2]`)."""
    return _Literals().vformat(template, (), row).strip()


def fields_of(template: str) -> frozenset[str]:
    """The columns a template uses."""
    parsed = Formatter().parse(template.replace("[[", "").replace("]]", ""))
    return frozenset(name for _, name, _, _ in parsed if name is not None)


def time_text(ns: float) -> str:
    """1_234_567 -> `1.2 ms`."""
    return _scaled(ns, _TIMES)


def size_text(size: float) -> str:
    """34_000_000 -> `34 MB`."""
    return _scaled(size, _SIZES)


def share_text(share: float) -> str:
    """0.41 -> `41 %`."""
    return f"{_two_digits(share * 100)} %"


def _scaled(value: float, units: tuple[tuple[int, str], ...]) -> str:
    fitting = (each for each in units if abs(value) / each[0] < 999.5)
    factor, unit = next(fitting, units[-1])
    scaled = value / factor
    return f"{scaled:.0f} {unit}" if factor == 1 else f"{_two_digits(scaled)} {unit}"


def _two_digits(value: float) -> str:
    return f"{value:.1f}" if 0 < abs(value) < 9.95 else f"{value:.0f}"


def _count_text(count: float) -> str:
    return f"{count:,.0f}"


def _plural(noun: str) -> str:
    if noun.endswith("y"):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith("ch") else f"{noun}s"


def _rate_text(rate: float) -> str:
    return f"{size_text(rate)}/s"


_UNITS = {
    "ns": time_text,
    "bytes": size_text,
    "share": share_text,
    "count": _count_text,
    "rate": _rate_text,
}


class _People(Formatter):
    def format_field(self, value: object, format_spec: str) -> str:
        if value is None:
            return "unknown"
        if format_spec == "file":
            return "/".join(PurePath(str(value)).parts[-2:])
        unit, _, noun = format_spec.partition(" ")
        if unit in _UNITS and (not noun or unit == "count"):
            if not isinstance(value, int | float):
                raise ValueError(f"{value!r} has no unit {format_spec!r}")
            said = _UNITS[unit](value)
            return f"{said} {noun if value == 1 else _plural(noun)}" if noun else said
        return str(super().format_field(value, format_spec))


class _Literals(Formatter):
    def format_field(self, value: object, format_spec: str) -> str:  # noqa: ARG002
        return sql_literal(value)


def sql_literal(value: object) -> str:
    """A value of a result row as an SQL literal.

    Raises:
        ValueError: The value has no literal here.
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool | int | float):
        return str(value).lower()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, list | tuple):
        return f"[{', '.join(sql_literal(item) for item in value)}]"
    raise ValueError(f"{value!r} has no SQL literal")


def _keep_if_known(part: str, row: Row) -> str:
    return part if all(row[name] is not None for name in fields_of(part)) else ""
