"""A comparison of two traces as a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from neuron_explorer.analyzers.compare import Comparison, Row, Verdict
from neuron_explorer.reports import diff_words, formats
from neuron_explorer.reports.diff_words import Compared
from neuron_explorer.reports.evidence import where as finding_place
from neuron_explorer.reports.markdown import fenced, prose
from neuron_explorer.reports.tables import markdown_text as safe

MARKS = {
    Verdict.WORSE: "🔴 worse",
    Verdict.NEW: "🟡 new",
    Verdict.BETTER: "🟢 better",
    Verdict.GONE: "🔵 gone",
    Verdict.SAME: "same",
    Verdict.UNKNOWN: "unknown",
}


def diff_markdown(compared: Compared, failed: Sequence[str] = ()) -> str:
    """The whole comment.

    Args:
        compared: What to show.
        failed: Gates that failed, each in a line.
    """
    seen = compared.comparison
    lines = [*_header(compared), *(f"- ❌ {safe(line)}" for line in failed)]
    lines += [""] if failed else []
    for kind, title in diff_words.TITLES.items():
        lines += _rows(title, seen.of_kind(kind), compared)
    lines += [*_findings(seen), *_figures(seen), *_notes(seen)]
    return "\n".join(lines).rstrip() + "\n"


def _header(compared: Compared) -> Iterator[str]:
    seen, step = compared.comparison, compared.comparison.step
    yield f"### neuron-explorer: {safe(compared.base)} → {safe(compared.new)}"
    yield ""
    yield f"**{safe(diff_words.verdict(seen))}**"
    yield ""
    for label, side in (("base", seen.base), ("new", seen.new)):
        if not side.trusted:
            yield f"**health of {label}: bad** {safe('; '.join(side.complaints))}"
            yield ""
    yield (
        f"step {formats.duration(step.base_ns)} → {formats.duration(step.new_ns)}"
        f" ({seen.base.steps} and {seen.new.steps} steps)"
    )
    yield ""
    for label, amount, why in diff_words.shares(seen):
        yield f"- {label} {amount}: {safe(why)}"
    yield ""


def _rows(title: str, rows: Sequence[Row], compared: Compared) -> Iterator[str]:
    changed = [row for row in rows if row.changed]
    if not changed:
        return
    yield f"#### {title}"
    yield ""
    yield "| | a step | where | from -> to | |"
    yield "| --- | ---: | --- | --- | --- |"
    shown = changed[: compared.limit]
    for row in shown:
        facts = ", ".join(filter(None, (diff_words.noise(row), diff_words.why(row))))
        cells = (diff_words.amount(row), diff_words.place(row), diff_words.values(row), facts)
        yield f"| {MARKS[row.verdict]} | {' | '.join(map(safe, cells))} |"
    yield ""
    if len(changed) > len(shown):
        yield f"and {len(changed) - len(shown)} more"
        yield ""
    code = [text for row in shown for text in _code(row)]
    if code:
        yield from fenced("\n".join(code), "diff")


def _code(row: Row) -> Iterator[str]:
    texts = diff_words.texts(row)
    if texts:
        yield f"@@ {diff_words.place(row)} @@"
        yield from (f"{mark}{text}" for mark, text in texts)


def _findings(seen: Comparison) -> Iterator[str]:
    told = [each for each in seen.findings if each.counted and each.verdict is not Verdict.SAME]
    if not told:
        return
    yield "#### findings"
    yield ""
    for each in told:
        finding = each.latest
        place = finding_place(finding)
        at = f" ({safe(place)})" if place else ""
        yield f"- {MARKS[each.verdict]}: {prose(finding.title)}{diff_words.severities(each)}{at}"
    yield ""


def _figures(seen: Comparison) -> Iterator[str]:
    stated = diff_words.stated(seen)
    if not stated:
        return
    yield "| figure | base | new | change | |"
    yield "| --- | ---: | ---: | ---: | --- |"
    for each in stated:
        values = (diff_words.metric_value(value, each.unit) for value in (each.base, each.new))
        cells = (each.name, *values, diff_words.metric_change(each))
        yield f"| {' | '.join(map(safe, cells))} | {MARKS[each.verdict]} |"
    yield ""


def _notes(seen: Comparison) -> Iterator[str]:
    yield from (f"- {safe(each)}" for each in seen.notes)
