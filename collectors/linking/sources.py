"""Source frame, stack and module of each event, from the Python rows around it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from neuron_explorer.collectors.events import Bools, Events, Ints, Running, Sparse
from neuron_explorer.collectors.interning import NULL, Codes
from neuron_explorer.collectors.linking.frames import (
    Frame,
    ModuleCall,
    Owners,
    parse_frame,
    parse_module,
)
from neuron_explorer.collectors.linking.nesting import NONE, Rows, nearest

SmallCodes = npt.NDArray[np.int8]
VIAS = ("function", "call", "forward", "launch", "line", "compiled")


@dataclass(frozen=True)
class Stack:
    """Model frames around an event."""

    text: str
    """Outermost first, one a line."""
    source: Frame
    """The innermost one."""
    user: Frame | None
    """The innermost one of the user's own code."""


def stack_of(frames: Iterable[tuple[str, str, int, str]], owners: Owners) -> Stack | None:
    """The stack of the model frames among some; None where there are none.

    Args:
        frames: Full file name, the name to show, line and function; outermost first.
        owners: Whose code it is where the usual rules do not say.
    """
    stack: Stack | None = None
    for file, shown, line, function in frames:
        frame = parse_frame(f"{file}({line}): {function}", owners)
        if frame and frame.model:
            named = replace(frame, file=shown)
            stack = _called(stack, f"{shown}({line}): {function}", named)
    return stack


@dataclass
class Sources:
    """Stack, module and origin of each row; the stack decides the source frames."""

    stack: Codes
    """Code into `stacks`, NULL where no model frame is known."""
    module: Codes
    """Code into `modules`."""
    via: SmallCodes
    """Code into `VIAS`."""
    own_in_backward: Bools
    """Rows run by model code that itself ran inside their backward op: hooks, custom
    backward functions, recomputed forwards. They keep their own line."""
    module_in_backward: Bools
    """Rows of a module's call that itself lies inside a backward op. They keep their module."""
    stacks: list[Stack] = field(default_factory=list)
    modules: list[ModuleCall] = field(default_factory=list)


def host_sources(events: Events, parent: Rows, owners: Owners) -> Sources:
    """Sources of host rows from the Python rows above them on their thread."""
    catalogue = _Catalogue(events, owners)
    python = events.roles("python/frame")
    model = python & catalogue.is_model[events.name]
    above = nearest(parent, model, include_self=True)
    stacks = _Stacks(events, catalogue, parent, above, np.flatnonzero(model))
    via = np.where(above >= 0, np.int8(VIAS.index("function")), np.int8(NULL))
    stack = np.where(above >= 0, stacks.of_frame[above], NULL)
    stacks.advance_to_lines(stack, via, above)
    module_of, modules = _modules(events, python & catalogue.is_module[events.name], catalogue)
    above = nearest(parent, module_of != NULL, include_self=True)
    module = np.where(above >= 0, module_of[above], NULL)
    own = np.zeros(len(events), np.bool_)
    backward = nearest(parent, events.backward)
    called_there = (above >= 0) & (backward[above] != NONE)
    found = Sources(stack, module, via, own, called_there, stacks.stacks, modules)
    _read_call_stacks(events, found, owners)
    _read_recorded_stacks(events, found, owners)
    if events.running is not None:
        _read_lines(events, parent, events.running, found)
    return found


def inherit(found: Sources, takers: npt.NDArray[np.intp], giver: Rows, via: str) -> None:
    """Let the takers have everything their giver knows of its source."""
    keep = {"forward": (found.own_in_backward, found.module_in_backward)}.get(via)
    for place, column in enumerate((found.stack, found.module)):
        taking = takers if keep is None else takers[~keep[place][takers]]
        taking = taking[column[giver[taking]] != NULL]
        column[taking] = column[giver[taking]]
        if column is found.stack:
            found.via[taking] = VIAS.index(via)


def _modules(
    events: Events, by_tracer: Bools, catalogue: _Catalogue
) -> tuple[Codes, list[ModuleCall]]:
    """Module of each row that is a module's call, and all modules by code.

    Calls come from torch's Python tracer, which numbers instances, or from a capture's own
    rows, which have qualified names; where both are, the qualified ones are taken.
    """
    module_of = np.full(len(events), NULL, np.int32)
    rows = np.flatnonzero(events.roles("framework/module"))
    if not len(rows):
        module_of[by_tracer] = catalogue.module_of[events.name[by_tracer]]
        return module_of, catalogue.modules
    classes = events.recorded["module_class"].of(rows, NULL)
    pairs = events.name[rows].astype(np.int64) << 32 | (classes + 1)
    distinct, place = np.unique(pairs, return_inverse=True)
    names, texts = events.names.name.texts, ["", *events.names.recorded["module_class"].texts]
    modules = [ModuleCall(names[p >> 32], texts[p & 0xFFFFFFFF]) for p in distinct.tolist()]
    module_of[rows] = place
    return module_of, modules


class _Catalogue:
    """What each distinct name says, looked up by name code."""

    def __init__(self, events: Events, owners: Owners) -> None:
        self.frames: dict[int, Frame] = {}
        self.modules: list[ModuleCall] = []
        texts = events.names.name.texts
        # one more place at the end, so that a missing name (code -1) finds "nothing"
        self.module_of = np.full(len(texts) + 1, NULL, np.int32)
        self.is_model = np.zeros(len(texts) + 1, np.bool_)
        for code in np.unique(events.name[events.roles("python/frame")]).tolist():
            if code >= 0:
                self._read(code, texts[code], owners)
        self.is_module = self.module_of != NULL

    def _read(self, code: int, text: str, owners: Owners) -> None:
        if module := parse_module(text):
            self.module_of[code] = len(self.modules)
            self.modules.append(module)
        elif (frame := parse_frame(text, owners)) and frame.model:
            self.frames[code] = frame
            self.is_model[code] = True


class _Stacks:
    """Stacks of model frames, each made once: its caller's stack, calling line and itself."""

    def __init__(
        self,
        events: Events,
        catalogue: _Catalogue,
        parent: Rows,
        nearest_model: Rows,
        frames: npt.NDArray[np.intp],
    ) -> None:
        self.stacks: list[Stack] = []
        self.of_frame = np.full(len(events), NULL, np.int32)
        """Code of each model frame's stack, its own line being the function's first."""
        self._moved: dict[tuple[int, int], int] = {}
        self._called_at = _called_at(events, parent, nearest_model)
        above = np.where(parent[frames] >= 0, nearest_model[parent[frames]], NONE)
        self._build(events, catalogue, frames, above)

    def _build(
        self,
        events: Events,
        catalogue: _Catalogue,
        frames: npt.NDArray[np.intp],
        above: Rows,
    ) -> None:
        """Level by level, so that a caller's stack is there before its callees'."""
        names = events.names.name.texts
        while len(frames):
            ready = (above < 0) | (self.of_frame[above] != NULL)
            level, caller = frames[ready], above[ready]
            lines = self._called_at.of(level, NULL)
            outer = np.where(caller >= 0, self.of_frame[caller], NULL)
            outer = self._at_lines(outer, np.where(caller >= 0, lines, NULL))
            pairs = (outer.astype(np.int64) + 1) << 32 | events.name[level]
            distinct, place = np.unique(pairs, return_inverse=True)
            self.of_frame[level] = len(self.stacks) + place
            for pair in distinct.tolist():
                code, around = pair & 0xFFFFFFFF, (pair >> 32) - 1
                stack = self.stacks[around] if around >= 0 else None
                self.stacks.append(_called(stack, names[code], catalogue.frames[code]))
            frames, above = frames[~ready], above[~ready]

    def advance_to_lines(self, stack: Codes, via: SmallCodes, above: Rows) -> None:
        """Move the innermost frame of rows to the line it was running, where that is known."""
        known = self._called_at
        # a model frame's own line is unknown: what is known is where it was called from
        rows = known.rows[(above[known.rows] >= 0) & (above[known.rows] != known.rows)]
        stack[rows] = self._at_lines(stack[rows], known.of(rows, NULL))
        via[rows] = VIAS.index("call")

    def _at_lines(self, stack: Codes, line: Ints) -> Codes:
        """Codes of the same stacks with the innermost frame at another line; NULL = as it is."""
        pairs = (stack.astype(np.int64) + 1) << 32 | (line + 1)
        distinct, place = np.unique(pairs, return_inverse=True)
        codes = [self._at_line((p >> 32) - 1, (p & 0xFFFFFFFF) - 1) for p in distinct.tolist()]
        return np.array(codes, np.int32)[place] if codes else stack

    def _at_line(self, code: int, line: int) -> int:
        if code < 0 or line < 0 or self.stacks[code].source.line == line:
            return code
        if (code, line) not in self._moved:
            self._moved[code, line] = len(self.stacks)
            self.stacks.append(_moved(self.stacks[code], line))
        return self._moved[code, line]


def _called_at(events: Events, parent: Rows, nearest_model: Rows) -> Sparse:
    """Line that the nearest model frame of each row was running, where it is known.

    It is the calling line of the frame or built-in that this model frame called on the way
    to the row. A row right below its model frame has none: an operator calls no function.
    """
    called = np.zeros(len(events), np.bool_)
    called[events.call_line.rows] = True
    if not called.any():
        return events.call_line
    child = nearest(parent, called, include_self=True)
    # annotations may stand between a frame and what it calls
    caller = nearest(parent, events.roles("python/frame"))
    rows = np.flatnonzero(child >= 0)
    # a frame's line is its caller's, so look from the row's parent where it is a frame itself
    above = np.where(nearest_model[rows] == rows, parent[rows], rows)
    model = np.where(above >= 0, nearest_model[above], NONE)
    rows = rows[(model >= 0) & (caller[child[rows]] == model)].astype(np.int32)
    return Sparse(rows, events.call_line.of(child[rows]))


def _moved(stack: Stack, line: int) -> Stack:
    """The stack with its innermost frame at another line."""
    frame = replace(stack.source, line=line)
    text = f"{frame.file}({line}): {frame.function}"
    outer, newline, _ = stack.text.rpartition("\n")
    return Stack(outer + newline + text, frame, frame if frame.user else stack.user)


def _called(around: Stack | None, text: str, frame: Frame) -> Stack:
    """The stack of a frame called from another stack."""
    if around is None:
        return Stack(text, frame, frame if frame.user else None)
    return Stack(f"{around.text}\n{text}", frame, frame if frame.user else around.user)


def _read_call_stacks(events: Events, found: Sources, owners: Owners) -> None:
    """Call stacks that old traces wrote into each op: innermost first, with true call lines."""
    recorded = events.call_stack.where(found.stack == NULL)
    if not len(recorded.rows):
        return
    texts = events.names.call_stack.texts
    distinct, place = np.unique(recorded.values, return_inverse=True)
    codes = []
    for code in distinct.tolist():
        stack = _call_stack(texts[code], owners)
        codes.append(NULL if stack is None else len(found.stacks))
        found.stacks += [stack] if stack else []
    found.stack[recorded.rows] = np.array(codes, np.int32)[place]
    known = recorded.rows[found.stack[recorded.rows] != NULL]
    found.via[known] = VIAS.index("call")


def _call_stack(text: str, owners: Owners) -> Stack | None:
    """Model frames of one `;`-separated call stack; None where it has none."""
    stack: Stack | None = None
    for entry in reversed(text.split(";")):
        frame = parse_frame(entry, owners)
        if frame and frame.model:
            stack = _called(stack, entry, frame)
    return stack


def _read_recorded_stacks(events: Events, found: Sources, owners: Owners) -> None:
    """Stacks that a capture wrote beside its own rows; they say exact lines."""
    recorded = events.recorded["stack"]
    codes = np.full(len(events.names.recorded["stack"]) + 1, NULL, np.int32)
    for code, text in enumerate(events.names.recorded["stack"].texts):
        stack: Stack | None = None
        for entry in text.split("\n"):
            frame = parse_frame(entry, owners)
            stack = _called(stack, entry, frame) if frame and frame.model else stack
        if stack is not None:
            codes[code] = len(found.stacks)
            found.stacks.append(stack)
    found.stack[recorded.rows] = codes[recorded.values]
    known = recorded.rows[found.stack[recorded.rows] != NULL]
    found.via[known] = VIAS.index("line")


def _read_lines(events: Events, parent: Rows, running: Running, found: Sources) -> None:
    """Take recorded lines: where no frame is known, or where both name the same function."""
    used, place = np.unique(running.place, return_inverse=True)
    code_of_place = _stacks_of_places(running, used, found.stacks)
    codes = code_of_place[place]
    agrees = _same_function(found, found.stack[running.rows], codes)
    rows, codes = running.rows[agrees], codes[agrees]
    found.stack[rows] = codes
    found.via[rows] = VIAS.index("line")
    around = nearest(parent, events.backward, include_self=True)[rows]
    inside = (around >= 0) & (running.entered[agrees] >= events.start[around])
    found.own_in_backward[rows[inside]] = True


def _stacks_of_places(running: Running, used: Codes, stacks: list[Stack]) -> Codes:
    """Code of the stack of each used place; adds them, and those of their callers."""
    codes = {-1: NULL}

    def add(place: int) -> None:
        frame, caller = running.frames[place], codes[running.callers[place]]
        text = f"{frame.file}({frame.line}): {frame.function}"
        codes[place] = len(stacks)
        stacks.append(_called(None if caller == NULL else stacks[caller], text, frame))

    for place in used.tolist():
        chain, caller = [place], running.callers[place]
        while caller not in codes:
            chain.append(caller)
            caller = running.callers[caller]
        for missing in reversed(chain):
            if missing not in codes:
                add(missing)
    return np.array([codes[place] for place in used.tolist()], np.int32)


def _same_function(found: Sources, known: Codes, recorded: Codes) -> Bools:
    """Whether a known stack, where there is one, ends in the same function as a recorded one."""
    pairs = (known.astype(np.int64) + 1) << 32 | recorded
    distinct, place = np.unique(pairs, return_inverse=True)
    agrees = []
    for pair in distinct.tolist():
        code, line_code = (pair >> 32) - 1, pair & 0xFFFFFFFF
        ours, theirs = found.stacks[line_code].source, found.stacks[code].source
        same = (ours.file, ours.function) == (theirs.file, theirs.function)
        agrees.append(code < 0 or same)
    return np.array(agrees, np.bool_)[place]
