"""Source lines with their time: around a finding, and file by file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from neuron_explorer.findings import Finding
from neuron_explorer.reports import formats
from neuron_explorer.reports.html.facts import Facts

_AROUND = 2
"""Lines before and after a finding's."""
_MOST_FILES = 10
_MOST_LINES = 160
"""Of a file: those with time and what stands around them."""
_LONGEST = 160


@dataclass(frozen=True)
class CodeLine:
    """One line of a listing."""

    number: int
    text: str
    time: str
    """Its time in words; empty where it has none."""
    heat: float
    """Its share of all time of its sort, 0 to 1."""
    part: str
    """The same in words."""
    level: int
    """0 to 4: how hot next to the hottest line."""
    marked: bool = False
    """Whether the finding is about it."""
    after_gap: bool = False
    """Whether lines before it are left out."""
    function: str = ""
    """The function it is in, where nobody has its text."""


@dataclass(frozen=True)
class Excerpt:
    """The lines around a finding."""

    lines: Sequence[CodeLine]
    sort: str
    """device or host: what its times are."""


@dataclass(frozen=True)
class SourceFile:
    """A file with its lines in order."""

    name: str
    time: str
    part: str
    share: float
    lines: Sequence[CodeLine]
    known: bool
    """Whether the trace kept its text."""


class Sources:
    """Listings of one trace."""

    def __init__(self, facts: Facts) -> None:
        self._texts = facts.sources
        self.sort = "device" if any(row["device_ns"] for row in facts.heat) else "host"
        self._times: dict[str, dict[int, int]] = {}
        self._functions: dict[tuple[str, int], str] = {}
        for row in facts.heat:
            place = (row["source_file"], row["source_line"])
            self._functions[place] = row["source_function"] or ""
            time = row[f"{self.sort}_ns"]
            if time:
                self._times.setdefault(row["source_file"], {})[row["source_line"]] = time
        self._whole = sum(sum(lines.values()) for lines in self._times.values()) or 1
        hottest = [max(lines.values()) for lines in self._times.values()]
        self._hottest = max(hottest, default=1)

    @property
    def left_out(self) -> int:
        """Files with less time than those shown."""
        return max(len(self._times) - _MOST_FILES, 0)

    def excerpt(self, finding: Finding) -> Excerpt | None:
        """None where nobody has the text of the line."""
        file, number = finding.source_file, finding.source_line
        if file is None or number is None:
            return None
        texts = self._texts.get(file, {})
        if number not in texts:
            if not finding.source_text:
                return None
            texts = {number: finding.source_text.strip()}
        near = range(number - _AROUND, number + _AROUND + 1)
        chosen = _trimmed({n: texts[n] for n in near if n in texts})
        return Excerpt(self._lines(file, _dedented(chosen), marked=number), self.sort)

    def files(self) -> list[SourceFile]:
        """Files by their time, the longest first."""
        order = sorted(self._times, key=lambda file: (-sum(self._times[file].values()), file))
        return [self._file(file) for file in order[:_MOST_FILES]]

    def _file(self, file: str) -> SourceFile:
        times, texts = self._times[file], self._texts.get(file, {})
        hottest = sorted(times, key=lambda number: -times[number])[: _MOST_LINES // 4]
        near = {n for hot in hottest for n in range(hot - _AROUND, hot + _AROUND + 1)}
        chosen = _trimmed({n: texts[n] for n in sorted(near) if n in texts})
        chosen |= {n: "" for n in hottest if n not in texts}
        total = sum(times.values())
        return SourceFile(
            name=file,
            time=formats.duration(total),
            part=formats.share(total / self._whole),
            share=total / self._whole,
            lines=self._lines(file, dict(sorted(chosen.items())[:_MOST_LINES])),
            known=bool(texts),
        )

    def _lines(
        self, file: str, texts: Mapping[int, str], marked: int | None = None
    ) -> list[CodeLine]:
        times, lines = self._times.get(file, {}), list[CodeLine]()
        for number in sorted(texts):
            time = times.get(number)
            share = (time or 0) / self._whole
            lines.append(
                CodeLine(
                    number=number,
                    text=formats.clip(formats.name(texts[number].expandtabs(4)), _LONGEST),
                    time="" if time is None else formats.duration(time),
                    heat=share,
                    part="" if time is None else formats.share(share),
                    level=0 if time is None else self._level(time),
                    marked=number == marked,
                    after_gap=bool(lines) and lines[-1].number != number - 1,
                    function=formats.name(self._functions.get((file, number), "")),
                )
            )
        return lines

    def _level(self, time: int) -> int:
        part = time / self._hottest
        return 1 + sum(part >= bound for bound in (0.1, 0.3, 0.6))


def _trimmed(texts: Mapping[int, str]) -> dict[int, str]:
    """Without blank lines at either end."""
    filled = [number for number, text in texts.items() if text.strip()]
    low, high = min(filled, default=0), max(filled, default=0)
    return {number: text for number, text in texts.items() if low <= number <= high}


def _dedented(texts: Mapping[int, str]) -> dict[int, str]:
    """Without the blanks that all lines begin with."""
    filled = [text for text in texts.values() if text.strip()]
    indent = min((len(text) - len(text.lstrip()) for text in filled), default=0)
    return {number: text[indent:].rstrip() for number, text in texts.items()}
