"""A comparison of two traces as a person reads it, at 80 columns or at 40."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from neuron_explorer.analyzers.compare import Comparison, FindingChange, Row, Side, Verdict
from neuron_explorer.reports import console, diff_words, formats, layout
from neuron_explorer.reports.diff_words import Compared
from neuron_explorer.reports.evidence import where as finding_place

STYLES = {
    Verdict.WORSE: "bold red",
    Verdict.NEW: "yellow",
    Verdict.BETTER: "green",
    Verdict.GONE: "cyan",
    Verdict.SAME: "dim",
    Verdict.UNKNOWN: "dim",
}
_VERDICT_WIDTH = 8
_AMOUNT_WIDTH = 11
_CODE = {"-": "red", "+": "green", " ": "dim"}
_UNJUDGED = 5
"""Differences without a verdict that are worth showing."""


def diff_text(compared: Compared, page: console.Page) -> str:
    """The whole page of `diff`."""
    seen = compared.comparison
    parts: list[RenderableType] = [*_header(compared, page.width), *_step(seen)]
    for kind, title in diff_words.TITLES.items():
        parts += _rows(title, seen.of_kind(kind), compared, page.width)
    parts += [*_findings(seen, page.width), *_figures(seen), *_notes(seen), *_next(compared)]
    return console.render(parts, page)


def _header(compared: Compared, width: int) -> Iterator[RenderableType]:
    seen = compared.comparison
    sides = (
        ("base", compared.base, seen.base, seen.step.base_ns),
        ("new", compared.new, seen.new, seen.step.new_ns),
    )
    rows = []
    for label, name, side, step_ns in sides:
        steps = diff_words.steps(side, step_ns)
        file = formats.name(name, max(width - len(steps) - 8, 12))
        rows.append((label, Text(f"{file}  {steps}")))
    yield layout.pairs([*rows, *_untrusted(seen)])
    yield Text("")
    style = "bold green" if not seen.changed else "bold"
    yield layout.text(diff_words.verdict(seen), style)


def _untrusted(seen: Comparison) -> Iterator[tuple[str, Text]]:
    for label, side in (("base", seen.base), ("new", seen.new)):
        if not side.trusted:
            yield "health", _complaint(label, side)


def _complaint(label: str, side: Side) -> Text:
    why = "; ".join(side.complaints) or "see neuron-explorer info"
    return layout.line(("bad", layout.STATUS["bad"]), f": do not trust {label}: ", why)


def _step(seen: Comparison) -> Iterator[RenderableType]:
    step = seen.step
    change = formats.signed_duration(step.new_ns - step.base_ns)
    share = formats.signed_share(
        (step.new_ns - step.base_ns) / step.base_ns if step.base_ns else None
    )
    yield layout.hanging(
        Text("step  "),
        layout.text(
            f"{formats.duration(step.base_ns)} -> {formats.duration(step.new_ns)}"
            f"  {change} ({share})"
        ),
    )
    rows = [
        (label, layout.line((f"{amount:<{_AMOUNT_WIDTH}}", "bold"), explained))
        for label, amount, explained in diff_words.shares(seen)
    ]
    if rows:
        yield layout.pairs(rows, 2)


def _rows(
    title: str, rows: Sequence[Row], compared: Compared, width: int
) -> Iterator[RenderableType]:
    changed = [row for row in rows if row.changed]
    unjudged = [row for row in rows if row.verdict is Verdict.UNKNOWN][:_UNJUDGED]
    if not changed and not unjudged:
        return
    yield layout.heading(title)
    many = len({measure for row in compared.comparison.rows for measure in row.times}) > 1
    for row in (changed or unjudged)[: compared.limit]:
        yield from _row(row, width, many=many)
    hidden = len(changed[compared.limit :]) if compared.limit is not None else 0
    if hidden:
        yield Text(f"  and {hidden} more: --limit 0 shows all", style="dim")
    same = len(rows) - len(changed)
    if changed and same:
        yield Text(f"  {same} more without a change", style="dim")


def _row(row: Row, width: int, *, many: bool) -> Iterator[RenderableType]:
    lead = layout.line(
        "  ",
        (f"{row.verdict:<{_VERDICT_WIDTH}}", STYLES[row.verdict]),
        (f"{diff_words.amount(row):<{_AMOUNT_WIDTH}}", "bold"),
    )
    place = Text(diff_words.place(row, max(width - lead.cell_len, 12)), style="cyan")
    facts = [diff_words.values(row) + diff_words.where(row, many=many), diff_words.noise(row)]
    facts.append(diff_words.why(row))
    yield layout.hanging(lead, place)
    indent = lead.cell_len
    yield layout.indent(Text(", ".join(filter(None, facts)), style="dim"), indent)
    for mark, text in diff_words.texts(row):
        shown = formats.clip(f"{mark} {formats.name(text)}", max(width - indent, 12))
        yield layout.indent(Text(shown, style=_CODE[mark]), indent)


def _findings(seen: Comparison, width: int) -> Iterator[RenderableType]:
    told = [each for each in seen.findings if each.verdict is not Verdict.SAME]
    counted = [each for each in told if each.counted]
    if counted:
        yield layout.heading("findings")
        for each in counted:
            yield from _finding(each, width)
    stepped = [each for each in told if not each.counted]
    if stepped:
        yield layout.heading("findings near their threshold")
        yield layout.text(
            "  In one trace only, or of another severity, though nothing at their place has"
            " changed; not counted:",
            "dim",
        )
        for each in stepped:
            finding = each.latest
            said = f"{each.verdict}  {finding.title}{diff_words.severities(each)}"
            said += f"  {finding_place(finding, width)}"
            yield layout.hanging(Text("  "), layout.text(said, "dim"))


def _finding(change: FindingChange, width: int) -> Iterator[RenderableType]:
    finding = change.latest
    mark, style = layout.MARKS[finding.severity]
    lead = layout.line(
        "  ", (f"{change.verdict:<{_VERDICT_WIDTH}}", STYLES[change.verdict]), (mark, style), " "
    )
    yield layout.hanging(lead, layout.text(finding.title + diff_words.severities(change)))
    place = finding_place(finding, max(width - lead.cell_len, 12))
    if place:
        yield layout.indent(Text(place, style="cyan"), lead.cell_len)


def _figures(seen: Comparison) -> Iterator[RenderableType]:
    stated = diff_words.stated(seen)
    if not stated:
        return
    yield layout.heading("figures")
    widest = max(len(each.name) for each in stated)
    for each in stated:
        values = (
            f"{diff_words.metric_value(each.base, each.unit)}"
            f" -> {diff_words.metric_value(each.new, each.unit)}"
        )
        said = diff_words.metric_change(each)
        yield layout.hanging(
            layout.line("  ", (f"{each.name:<{widest}}", "dim"), "  "),
            layout.line(
                values, f"  {said}  " if said else "  ", (each.verdict, STYLES[each.verdict])
            ),
        )


def _notes(seen: Comparison) -> Iterator[RenderableType]:
    if seen.notes:
        yield layout.heading("to know")
    for each in seen.notes:
        yield layout.hanging(Text("  "), layout.text(each))


def _next(compared: Compared) -> Iterator[RenderableType]:
    if not compared.comparison.changed:
        return
    base, new = shlex.quote(compared.base), shlex.quote(compared.new)
    yield layout.heading("next")
    for command in (
        f"neuron-explorer analyze {new}",
        f"neuron-explorer tui {base} --compare {new}",
    ):
        yield layout.hanging(Text("  "), layout.text(command, "dim"))
