"""What the timeline tells of the event under its cursor, as far as the trace knows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neuron_explorer.cost_notes import NOTES, WHY_UNLINKED
from neuron_explorer.reports import formats
from neuron_explorer.tui.text import Line, Piece, safe


def in_words(cost_note: str) -> str:
    """What the codes in a `cost_note` say, as it goes on in a sentence."""
    meanings = NOTES | WHY_UNLINKED
    said = (meanings.get(code, code).removesuffix(".") for code in cost_note.split("; "))
    return "; ".join(f"{each[:1].lower()}{each[1:]}" for each in said)


def facts(found: Mapping[str, Any], width: int) -> list[Line]:
    """Line and module, what launched it, what it had to do: as far as the trace knows."""
    if not found:
        return []
    lines: list[Line] = []
    if found["source_file"] is not None:
        place = formats.place(found["source_file"], found["source_line"], max(width // 2, 16))
        function = safe(str(found["source_function"] or ""), 20)
        module = safe(str(found["module"] or ""), max(width // 2 - 26, 6))
        lines.append([(" line ", "dim"), (place, "place"), f"  {function}  ", (module, "dim")])
    causes: list[Piece] = [" "]
    for label, name in (("op", found["op_name"]), ("launch", found["launch_name"])):
        if name is not None and name != found["name"]:
            causes += [(f"{label} ", "dim"), safe(str(name), 36), "  "]
    for label, value in _where(found):
        causes += [(f"{label} ", "dim"), f"{value}  "]
    lines.append(causes)
    work = _work(found)
    if work:
        lines.append([(" work ", "dim"), work])
    if found["input_shapes"]:
        shapes = f"{found['input_shapes']} {found['input_dtypes'] or ''}"
        lines.append([(" shapes ", "dim"), safe(shapes, max(width - 9, 8))])
    return lines


def _where(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    named = (("step", found["step"]), ("phase", found["phase"]))
    return [(label, safe(str(value), 16)) for label, value in named if value is not None]


def _work(found: Mapping[str, Any]) -> str:
    """`memory-bound, 61 % of the roof, 1.2 GB`; empty where nothing is known."""
    said = []
    if found["share_of_floor"] is not None:
        said.append(_roof(found["share_of_floor"], found["floor_ns"]))
    if found["bytes"] is not None:
        said.append(formats.bytes_(found["bytes"]))
    if found["flops"]:
        said.append(formats.flops(found["flops"]))
    if found["bound"] is not None and not said:
        said.append(f"bound {found['bound']}: {found['why_unknown'] or 'its cost is not known'}")
    return ", ".join(said)


def _roof(share: float, floor_ns: int) -> str:
    floor = formats.duration(floor_ns)
    if share > 1:
        return f"faster than the roof says ({floor}): caches, or less arithmetic than counted"
    return f"{formats.share(share)} of the roof (at best {floor})"
