"""What `verify` measured of a finding, in the words that every renderer shares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from neuron_explorer.findings import Finding
from neuron_explorer.reports import console, formats, layout
from neuron_explorer.reports.evidence import where

_MARKS = {
    "confirmed": ("✓", "bold green"),
    "smaller than claimed": ("≈", "yellow"),
    "not confirmed": ("✗", "bold red"),
}
_NO_MARK = ("·", "dim")

_WHOLE = 0.995
"""From this share of its recorded time on a finding counts as replayed as a whole."""

_MOST_TRIALS = 4


def verdict(finding: Finding) -> str | None:
    """`confirmed: eager 534 ms, torch.compile 169 ms, 62 % less ...`; None if nobody verified."""
    result = finding.verified
    if result is None:
        return None
    if result.get("why"):
        return f"{result['verdict']}: {result['why']}"
    doubt = "; the machine was busy" if result.get("busy") else ""
    return f"{result['verdict']}: {_times(result)}, {_gain(result)}{_where(result)}{doubt}"


def verdict_line(finding: Finding, columns: int = 0) -> Iterator[RenderableType]:
    """The same as a line of a page, with its mark; nothing if nobody verified."""
    said = verdict(finding)
    if said is not None and finding.verified is not None:
        mark, style = _MARKS.get(str(finding.verified["verdict"]), _NO_MARK)
        yield layout.hanging(layout.line((mark, style), " "), layout.text(said), columns)


def verdict_page(finding: Finding, page: console.Page) -> str:
    """What `verify` prints of a finding as soon as it is measured."""
    place = where(finding) or finding.module or ""
    parts: list[RenderableType] = [layout.line((formats.name(finding.title), "bold"))]
    parts += [layout.indent(Text(f"{place}  {finding.id}".strip(), style="cyan"), 2)]
    parts += list(verdict_line(finding, 2))
    parts += [layout.indent(layout.text(said, "dim"), 4) for said in _details(finding)]
    return console.render([*parts, Text("")], page)


def _times(result: Mapping[str, Any]) -> str:
    before, after = result["before_ns"]["median"], result["after_ns"]["median"]
    return (
        f"{result['before']} {formats.duration(before)},"
        f" {result['after']} {formats.duration(after)}"
    )


def _gain(result: Mapping[str, Any]) -> str:
    gain = result["gain"]
    said = _change(gain["median"])
    spread = f" ({_percent(gain['low'])} to {_percent(gain['high'])})"
    low, high = result["predicted_low"], result["predicted_high"]
    if high is None:
        return f"{said}{spread}; nothing was claimed"
    claimed = f"up to {_percent(high)}" if not low else f"{_percent(low)} to {_percent(high)}"
    return f"{said}{spread}, claimed {claimed}"


def _where(result: Mapping[str, Any]) -> str:
    other = f", recorded on {result['recorded_device']}" if result["other_device"] else ""
    elsewhere = " of another machine" if other and _alike(result) else ""
    whole = "" if result["covered"] >= _WHOLE else f"; {_percent(result['covered'])} of it replayed"
    return f"; on {result['device']}{other}{elsewhere}{whole}"


def _alike(result: Mapping[str, Any]) -> bool:
    """Whether the two devices are called the same, so that the name alone says nothing."""
    names = (str(result[key]).partition(",")[0] for key in ("device", "recorded_device"))
    here, there = (name.partition(":")[0].partition(" ")[0] for name in names)
    return here == there


def _details(finding: Finding) -> Iterator[str]:
    result = finding.verified or {}
    trials = result.get("trials", [])
    assert isinstance(trials, list)
    for trial in trials[:_MOST_TRIALS]:
        yield _trial(trial)
    if len(trials) > _MOST_TRIALS:
        yield f"and {len(trials) - _MOST_TRIALS} more kinds of work"
    others = result.get("gain_of_others")
    for name, gain in others.items() if isinstance(others, Mapping) else ():
        yield f"{name}: {_change(gain['median'])}"
    left = result.get("left_out")
    yield from _left_out(left if isinstance(left, list) else [])
    notes = result.get("notes")
    yield from (str(note) for note in notes) if isinstance(notes, list) else ()
    if "trials" in result:
        yield from _doubts(result)


def _left_out(left: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What was not replayed, by the reason: the longest by name."""
    by_reason: dict[str, list[Mapping[str, Any]]] = {}
    for each in left:
        by_reason.setdefault(each["why"], []).append(each)
    for why, alike in by_reason.items():
        taken = formats.duration(sum(each["recorded_ns"] for each in alike))
        more = f" and {len(alike) - 1} more" if len(alike) > 1 else ""
        yield f"not replayed, {taken}: {alike[0]['what']}{more}: {why}"


def _trial(trial: Mapping[str, Any]) -> str:
    times = ", ".join(
        f"{name} {formats.duration(each['median'])}" for name, each in trial["ns"].items()
    )
    once = formats.duration(trial["recorded_ns"] / max(trial["occurrences"], 1))
    return f"{trial['occurrences']} x {trial['what']}: recorded {once}, {times}"


def _doubts(result: Mapping[str, Any]) -> Iterator[str]:
    if result.get("other_device") is None:
        yield "the trace does not say whether it was recorded on this device"
    if str(result.get("device")).startswith("cpu"):
        yield "how many threads the recorded program used is not in the trace"
    if result.get("busy"):
        yield str(result["busy"])


def _change(part: float) -> str:
    if part < -1:
        return f"{1 - part:.3g} times as long"
    return f"{_percent(part)} less" if part >= 0 else f"{_percent(-part)} more"


def _percent(part: float) -> str:
    """Signed, whole; below 10 % with a digit, since claims are often that small."""
    return f"{part * 100:.1f} %" if abs(part) < 0.0995 else f"{part * 100:.0f} %"
