"""Which source line of one trace is which of the other, though files and lines have moved.

Only lines that something in the trace points at are known, each with its function and, where the
capture kept it, its text. Files go together by the end of their path, or else by what is in them;
lines by function and text in the order they stand in, as a text diff would have it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import PurePath

_ALIKE = 0.6
"""Least similarity of two texts of one function that count as one line, edited."""
_SAME_FILE = 0.5
"""Least share of lines in common of two files whose names differ."""


@dataclass(frozen=True, order=True)
class Line:
    """A line that something in a trace points at."""

    file: str
    number: int
    function: str = ""
    text: str | None = None
    """Without its indent; None where the trace does not have it."""
    above: tuple[str, ...] = ()
    """Texts between it and the line before that anything points at: Python that runs before it."""

    @property
    def content(self) -> tuple[str, str | None]:
        """What makes it the same line in another version of its file."""
        return self.function, self.text


@dataclass(frozen=True)
class LinePair:
    """One line of the program, as it stands in the base and in the new trace."""

    base: Line | None
    new: Line | None
    stands: bool = False
    """Whether it is in both versions of the file, but only one trace points at it."""

    @property
    def edited(self) -> bool:
        """Whether it has other words than before, or was written or removed."""
        if self.base is None or self.new is None:
            return not self.stands
        return self.base.text != self.new.text

    @property
    def touched(self) -> bool:
        """Whether it, or the Python that runs before it, has been edited."""
        if self.base is None or self.new is None:
            return self.edited
        return self.edited or self.base.above != self.new.above

    @property
    def latest(self) -> Line:
        """As it stands now, or stood last."""
        line = self.new or self.base
        if line is None:
            raise ValueError("a pair without a line")
        return line


Known = Callable[[str], Container[str]]
"""Texts that a file is known to have, by its path."""


def pair_lines(
    base: Iterable[Line],
    new: Iterable[Line],
    known_in_base: Known = lambda _: (),
    known_in_new: Known = lambda _: (),
) -> list[LinePair]:
    """Every line of both once, with its counterpart where it has one."""
    before, after = _by_file(base), _by_file(new)
    pairs = dict(_pair_files(before, after))
    found: list[LinePair] = []
    for file, lines in before.items():
        if file not in pairs:
            found += [LinePair(line, None) for line in lines]
            continue
        theirs = pairs[file]
        texts = known_in_base(file), known_in_new(theirs)
        found += [_still(pair, *texts) for pair in _pair_in_file(lines, after[theirs])]
    taken = set(pairs.values())
    found += [LinePair(None, line) for file in after if file not in taken for line in after[file]]
    return found


def _still(pair: LinePair, in_base: Container[str], in_new: Container[str]) -> LinePair:
    """A line that only stopped or began to run was neither written nor removed."""
    if pair.base is not None and pair.new is not None:
        return pair
    text, there = pair.latest.text, in_base if pair.base is None else in_new
    return replace(pair, stands=text is not None and text in there)


def _by_file(lines: Iterable[Line]) -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = {}
    for line in sorted(set(lines), key=lambda each: (each.file, each.number, each.function)):
        found.setdefault(line.file, []).append(line)
    return found


def _pair_files(
    before: Mapping[str, Sequence[Line]], after: Mapping[str, Sequence[Line]]
) -> Iterator[tuple[str, str]]:
    """Files with the most path in common first, then those with the most lines in common."""
    left, right = set(before), set(after)
    ranked = sorted(
        (-_common_end(old, file), -_common_lines(before[old], after[file]), old, file)
        for old in before
        for file in after
    )
    for end, common, old, file in ranked:
        if old in left and file in right and (end or -common >= _SAME_FILE):
            left.discard(old)
            right.discard(file)
            yield old, file


def _common_end(left: str, right: str) -> int:
    """Parts at the end of two paths that are equal; 0 where already the names differ."""
    if left == right:
        return len(PurePath(left).parts) + 1
    count = 0
    for ours, theirs in zip(
        reversed(PurePath(left).parts), reversed(PurePath(right).parts), strict=False
    ):
        if ours != theirs:
            break
        count += 1
    return count


def _common_lines(left: Sequence[Line], right: Sequence[Line]) -> float:
    """Share of the lines with a text, of the file with fewer, that are in the other one too."""
    ours = {line.content for line in left if line.text is not None}
    theirs = {line.content for line in right if line.text is not None}
    if not ours or not theirs:
        return 0.0
    return len(ours & theirs) / min(len(ours), len(theirs))


def _pair_in_file(before: Sequence[Line], after: Sequence[Line]) -> Iterator[LinePair]:
    told = all(line.text is not None for line in (*before, *after))
    ours, theirs = ([_identity(each, told=told) for each in side] for side in (before, after))
    matcher = SequenceMatcher(None, ours, theirs, autojunk=False)
    for what, i, i_end, j, j_end in matcher.get_opcodes():
        if what == "equal":
            yield from map(LinePair, before[i:i_end], after[j:j_end])
        elif told:
            yield from _pair_edited(before[i:i_end], after[j:j_end])
        else:
            yield from _pair_shifted(before[i:i_end], after[j:j_end])


def _identity(line: Line, *, told: bool) -> tuple[str, str | int | None]:
    return line.content if told else (line.function, line.number)


def _pair_edited(before: Sequence[Line], after: Sequence[Line]) -> Iterator[LinePair]:
    """Within a stretch that differs: the most similar lines of a function are one, edited."""
    ranked = sorted(
        (-_similarity(old, line), i, j)
        for i, old in enumerate(before)
        for j, line in enumerate(after)
    )
    left, right = dict(enumerate(before)), dict(enumerate(after))
    for unlike, i, j in ranked:
        if -unlike >= _ALIKE and i in left and j in right:
            yield LinePair(left.pop(i), right.pop(j))
    yield from _alone(left.values(), right.values())


def _pair_shifted(before: Sequence[Line], after: Sequence[Line]) -> Iterator[LinePair]:
    """Without texts: a function with as many lines as before has the same ones, elsewhere."""
    ours, theirs = _by_function(before), _by_function(after)
    for function in dict.fromkeys([*ours, *theirs]):
        left, right = ours.get(function, []), theirs.get(function, [])
        if len(left) == len(right):
            yield from map(LinePair, left, right)
        else:
            yield from _alone(left, right)


def _alone(before: Iterable[Line], after: Iterable[Line]) -> Iterator[LinePair]:
    yield from (LinePair(line, None) for line in before)
    yield from (LinePair(None, line) for line in after)


def _by_function(lines: Iterable[Line]) -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line.function, []).append(line)
    return found


def _similarity(left: Line, right: Line) -> float:
    if left.function != right.function:
        return 0.0
    return SequenceMatcher(None, left.text or "", right.text or "", autojunk=False).ratio()
