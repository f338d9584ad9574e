"""Source frame, stack and module of each event, from the Python rows around it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from neuron_explorer.collectors.events import Bools, Events
from neuron_explorer.collectors.interning import NULL, Codes, Interner
from neuron_explorer.collectors.linking.frames import Frame, ModuleCall, parse_frame, parse_module
from neuron_explorer.collectors.linking.nesting import Rows, nearest

VIAS = ("function", "call", "forward", "launch")


@dataclass
class Sources:
    """Per row: codes into `frames`, `stacks` and `modules`; NULL where unknown."""

    source: Codes
    user: Codes
    stack: Codes
    module: Codes
    via: Codes
    """Code into `VIAS`."""
    frames: list[Frame] = field(default_factory=list)
    stacks: list[str] = field(default_factory=list)
    modules: list[ModuleCall] = field(default_factory=list)


def host_sources(events: Events, parent: Rows, user_prefixes: tuple[str, ...]) -> Sources:
    """Sources of host rows from the Python rows above them on their thread."""
    catalogue = _Catalogue(events, user_prefixes)
    python = events.roles("python/frame")
    model = python & catalogue.is_model[events.name]
    above_model = nearest(parent, model, include_self=True)
    above_user = nearest(parent, python & catalogue.is_user[events.name], include_self=True)
    above_module = nearest(parent, python & catalogue.is_module[events.name], include_self=True)
    stack_of, stacks = _stacks(events, model, nearest(parent, model))
    found = Sources(
        source=_through(above_model, catalogue.frame_of[events.name]),
        user=_through(above_user, catalogue.frame_of[events.name]),
        stack=_through(above_model, stack_of),
        module=_through(above_module, catalogue.module_of[events.name]),
        via=np.where(above_model >= 0, VIAS.index("function"), NULL).astype(np.int32),
        frames=catalogue.frames,
        stacks=stacks,
        modules=catalogue.modules,
    )
    _read_call_stacks(events, found, user_prefixes)
    return found


def _through(rows: Rows, values: Codes) -> Codes:
    return np.where(rows >= 0, values[rows], NULL).astype(np.int32)


def inherit(found: Sources, rows: Bools, giver: Rows, via: str) -> None:
    """Let the chosen rows take everything from their giver, where it has a source."""
    takers = np.flatnonzero(rows & (giver >= 0))
    givers = giver[takers]
    for column in (found.source, found.user, found.stack, found.module):
        known = column[givers] != NULL
        column[takers[known]] = column[givers[known]]
    sourced = takers[found.source[givers] != NULL]
    found.via[sourced] = VIAS.index(via)


class _Catalogue:
    """What each distinct name says, looked up by name code."""

    def __init__(self, events: Events, user_prefixes: tuple[str, ...]) -> None:
        self.frames: list[Frame] = []
        self.modules: list[ModuleCall] = []
        texts = events.names.name.texts
        # one more place at the end, so that a missing name (code -1) finds "nothing"
        self.frame_of = np.full(len(texts) + 1, NULL, np.int32)
        self.module_of = np.full(len(texts) + 1, NULL, np.int32)
        self.is_model = np.zeros(len(texts) + 1, np.bool_)
        self.is_user = np.zeros(len(texts) + 1, np.bool_)
        for code in np.unique(events.name[events.roles("python/frame")]).tolist():
            if code >= 0:
                self._read(code, texts[code], user_prefixes)
        self.is_module = self.module_of != NULL

    def _read(self, code: int, text: str, user_prefixes: tuple[str, ...]) -> None:
        if module := parse_module(text):
            self.module_of[code] = len(self.modules)
            self.modules.append(module)
        elif frame := parse_frame(text, user_prefixes):
            self.frame_of[code] = len(self.frames)
            self.frames.append(frame)
            self.is_model[code], self.is_user[code] = frame.model, frame.user


def _stacks(events: Events, model: Bools, above: Rows) -> tuple[Codes, list[str]]:
    """Stack of each model frame: its caller's stack and itself, level by level."""
    texts: list[str] = []
    stack_of = np.full(len(model), NULL, np.int32)
    names = events.names.name.texts
    level = np.flatnonzero(model & (above < 0))
    waiting = np.flatnonzero(model & (above >= 0))
    while len(level):
        caller = np.where(above[level] >= 0, stack_of[above[level]], NULL).astype(np.int64)
        pairs = (caller + 1) << 32 | events.name[level]
        distinct, place = np.unique(pairs, return_inverse=True)
        stack_of[level] = len(texts) + place
        for pair in distinct.tolist():
            own, outer = names[pair & 0xFFFFFFFF], (pair >> 32) - 1
            texts.append(f"{texts[outer]}\n{own}" if outer >= 0 else own)
        ready = stack_of[above[waiting]] != NULL
        level, waiting = waiting[ready], waiting[~ready]
    return stack_of, texts


def _read_call_stacks(events: Events, found: Sources, user_prefixes: tuple[str, ...]) -> None:
    """Call stacks that old traces wrote into each op: innermost first, with true call lines."""
    rows = np.flatnonzero((events.call_stack != NULL) & (found.source == NULL))
    if not len(rows):
        return
    reader = _CallStacks(found, user_prefixes)
    texts = events.names.call_stack.texts
    known = {code: reader.read(texts[code]) for code in np.unique(events.call_stack[rows]).tolist()}
    codes = np.array([known[code] for code in events.call_stack[rows].tolist()], np.int32)
    found.source[rows], found.user[rows], found.stack[rows] = codes.T
    found.via[rows] = np.where(codes[:, 0] != NULL, VIAS.index("call"), NULL)


class _CallStacks:
    def __init__(self, found: Sources, user_prefixes: tuple[str, ...]) -> None:
        self._found = found
        self._prefixes = user_prefixes
        self._frames = Interner()
        self._first = len(found.frames)

    def read(self, text: str) -> tuple[int, int, int]:
        """Codes of source frame, user frame and stack of one `;`-separated call stack."""
        model: list[tuple[str, Frame]] = []
        for entry in text.split(";"):
            frame = parse_frame(entry, self._prefixes)
            if frame and frame.model:
                model.append((entry, frame))
        if not model:
            return NULL, NULL, NULL
        user = next((pair for pair in model if pair[1].user), None)
        self._found.stacks.append("\n".join(entry for entry, _ in reversed(model)))
        return (
            self._code(*model[0]),
            self._code(*user) if user else NULL,
            len(self._found.stacks) - 1,
        )

    def _code(self, text: str, frame: Frame) -> int:
        code = self._first + self._frames.code(text)
        if code == len(self._found.frames):
            self._found.frames.append(frame)
        return code
