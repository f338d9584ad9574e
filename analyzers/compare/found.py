"""Findings of both traces side by side: new, gone, of another severity, or as they were."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from neuron_explorer.analyzers.compare.lines import LinePair
from neuron_explorer.analyzers.compare.noise import Verdict
from neuron_explorer.analyzers.compare.rows import Row
from neuron_explorer.findings import SEVERITIES, Finding

_Key = tuple[str, object]


@dataclass(frozen=True)
class FindingChange:
    """One finding in one or both traces."""

    verdict: Verdict
    """new, gone, same; worse or better where both have it, at another severity."""
    base: Finding | None
    new: Finding | None
    counted: bool
    """Whether it is a change of the program. Where nothing else changed at its place, or for one of
    the whole trace nowhere, a finding that comes, goes or changes its severity only stepped over a
    threshold."""

    @property
    def latest(self) -> Finding:
        found = self.new or self.base
        if found is None:
            raise ValueError("a change without a finding")
        return found

    @property
    def was(self) -> str | None:
        """Its severity in the base, where that is another than now; else None."""
        if self.base is None or self.new is None or self.base.severity == self.new.severity:
            return None
        return self.base.severity


def finding_changes(
    base: Sequence[Finding],
    new: Sequence[Finding],
    pairs: Sequence[LinePair],
    rows: Sequence[Row],
) -> list[FindingChange]:
    """Every finding once: came, became more or less severe, went, the rest; each in its order."""
    places = _places(pairs)
    ours = _by_key(base, lambda finding: _key(finding, places["base"]))
    theirs = _by_key(new, lambda finding: _key(finding, places["new"]))
    touched = _touched(rows, places)
    found = []
    for key in dict.fromkeys([*theirs, *ours]):
        before, after = ours.get(key, []), theirs.get(key, [])
        both = min(len(before), len(after))
        counted = key[1] in touched if isinstance(key[1], int | str) else bool(touched)
        pairs_of_it = zip(before[:both], after[:both], strict=True)
        found += [_in_both(*two, counted=counted) for two in pairs_of_it]
        found += [FindingChange(Verdict.GONE, one, None, counted) for one in before[both:]]
        found += [FindingChange(Verdict.NEW, None, one, counted) for one in after[both:]]
    order = (Verdict.NEW, Verdict.WORSE, Verdict.BETTER, Verdict.GONE, Verdict.SAME)
    return sorted(found, key=lambda each: (order.index(each.verdict), not each.counted))


def _in_both(base: Finding, new: Finding, *, counted: bool) -> FindingChange:
    before, after = (SEVERITIES.index(each.severity) for each in (base, new))
    if before == after:
        return FindingChange(Verdict.SAME, base, new, counted=False)
    return FindingChange(Verdict.WORSE if after < before else Verdict.BETTER, base, new, counted)


def _places(pairs: Sequence[LinePair]) -> dict[str, dict[tuple[str, int], int]]:
    """Number of the line pair by file and line, of each side."""
    found: dict[str, dict[tuple[str, int], int]] = {"base": {}, "new": {}}
    for number, pair in enumerate(pairs):
        for side, line in (("base", pair.base), ("new", pair.new)):
            if line is not None:
                found[side].setdefault((line.file, line.number), number)
    return found


def _key(finding: Finding, places: Mapping[tuple[str, int], int]) -> _Key:
    """Analyzer and place: number of the line pair, module, or neither."""
    if finding.source_file is not None and finding.source_line is not None:
        at = places.get((finding.source_file, finding.source_line))
        if at is not None:
            return finding.analyzer, at
        return finding.analyzer, (finding.source_file.rpartition("/")[2], finding.source_line)
    return finding.analyzer, finding.module


def _by_key(
    findings: Iterable[Finding], key: Callable[[Finding], _Key]
) -> dict[_Key, list[Finding]]:
    found: dict[_Key, list[Finding]] = {}
    for finding in findings:
        found.setdefault(key(finding), []).append(finding)
    return found


def _touched(
    rows: Iterable[Row], places: Mapping[str, Mapping[tuple[str, int], int]]
) -> set[int | str]:
    """Line pairs and modules at which code, work or a time has changed."""
    found: set[int | str] = set()
    for row in rows:
        if not (row.changed or row.explained):
            continue
        if row.pair is None:
            found.add(row.name)
            continue
        for side, line in (("base", row.pair.base), ("new", row.pair.new)):
            if line is not None:
                found.add(places[side][line.file, line.number])
    return found
