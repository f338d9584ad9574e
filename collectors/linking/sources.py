"""Source frame, stack and module of each event, from the Python rows around it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from neuron_explorer.collectors.events import Events
from neuron_explorer.collectors.interning import NULL, Codes
from neuron_explorer.collectors.linking.frames import Frame, ModuleCall, parse_frame, parse_module
from neuron_explorer.collectors.linking.nesting import NONE, Rows, nearest

SmallCodes = npt.NDArray[np.int8]
VIAS = ("function", "call", "forward", "launch")


@dataclass(frozen=True)
class Stack:
    """Model frames around an event."""

    text: str
    """Outermost first, one a line."""
    source: Frame
    """The innermost one."""
    user: Frame | None
    """The innermost one of the user's own code."""


@dataclass
class Sources:
    """Stack, module and origin of each row; the stack decides the source frames."""

    stack: Codes
    """Code into `stacks`, NULL where no model frame is known."""
    module: Codes
    """Code into `modules`."""
    via: SmallCodes
    """Code into `VIAS`."""
    stacks: list[Stack] = field(default_factory=list)
    modules: list[ModuleCall] = field(default_factory=list)


def host_sources(events: Events, parent: Rows, user_prefixes: tuple[str, ...]) -> Sources:
    """Sources of host rows from the Python rows above them on their thread."""
    catalogue = _Catalogue(events, user_prefixes)
    python = events.roles("python/frame")
    model = python & catalogue.is_model[events.name]
    above = nearest(parent, model, include_self=True)
    stack_of, stacks = _stacks(events, catalogue, parent, above, np.flatnonzero(model))
    stack = np.where(above >= 0, stack_of[above], NULL)
    via = np.where(above >= 0, np.int8(VIAS.index("function")), np.int8(NULL))
    del stack_of, model
    above = nearest(parent, python & catalogue.is_module[events.name], include_self=True)
    module = np.where(above >= 0, catalogue.module_of[events.name[above]], NULL)
    found = Sources(stack, module, via, stacks, catalogue.modules)
    _read_call_stacks(events, found, user_prefixes)
    return found


def inherit(found: Sources, takers: npt.NDArray[np.intp], giver: Rows, via: str) -> None:
    """Let the takers have everything their giver knows of its source."""
    givers = giver[takers]
    for column in (found.stack, found.module):
        known = column[givers] != NULL
        column[takers[known]] = column[givers[known]]
    found.via[takers[found.stack[givers] != NULL]] = VIAS.index(via)


class _Catalogue:
    """What each distinct name says, looked up by name code."""

    def __init__(self, events: Events, user_prefixes: tuple[str, ...]) -> None:
        self.frames: dict[int, Frame] = {}
        self.modules: list[ModuleCall] = []
        texts = events.names.name.texts
        # one more place at the end, so that a missing name (code -1) finds "nothing"
        self.module_of = np.full(len(texts) + 1, NULL, np.int32)
        self.is_model = np.zeros(len(texts) + 1, np.bool_)
        for code in np.unique(events.name[events.roles("python/frame")]).tolist():
            if code >= 0:
                self._read(code, texts[code], user_prefixes)
        self.is_module = self.module_of != NULL

    def _read(self, code: int, text: str, user_prefixes: tuple[str, ...]) -> None:
        if module := parse_module(text):
            self.module_of[code] = len(self.modules)
            self.modules.append(module)
        elif (frame := parse_frame(text, user_prefixes)) and frame.model:
            self.frames[code] = frame
            self.is_model[code] = True


def _stacks(
    events: Events,
    catalogue: _Catalogue,
    parent: Rows,
    nearest_model: Rows,
    frames: npt.NDArray[np.intp],
) -> tuple[Codes, list[Stack]]:
    """Stack of each model frame: its caller's stack and itself, level by level."""
    stacks: list[Stack] = []
    stack_of = np.full(len(events), NULL, np.int32)
    names = events.names.name.texts
    above = np.where(parent[frames] >= 0, nearest_model[parent[frames]], NONE)
    level, waiting = frames[above < 0], frames[above >= 0]
    callers, above = above[above < 0], above[above >= 0]
    while len(level):
        caller = np.where(callers >= 0, stack_of[callers], NULL).astype(np.int64)
        pairs = (caller + 1) << 32 | events.name[level]
        distinct, place = np.unique(pairs, return_inverse=True)
        stack_of[level] = len(stacks) + place
        for pair in distinct.tolist():
            code, outer = pair & 0xFFFFFFFF, (pair >> 32) - 1
            around = stacks[outer] if outer >= 0 else None
            stacks.append(_called(around, names[code], catalogue.frames[code]))
        ready = stack_of[above] != NULL
        level, waiting = waiting[ready], waiting[~ready]
        callers, above = above[ready], above[~ready]
    return stack_of, stacks


def _called(around: Stack | None, text: str, frame: Frame) -> Stack:
    """The stack of a frame called from another stack."""
    if around is None:
        return Stack(text, frame, frame if frame.user else None)
    return Stack(f"{around.text}\n{text}", frame, frame if frame.user else around.user)


def _read_call_stacks(events: Events, found: Sources, user_prefixes: tuple[str, ...]) -> None:
    """Call stacks that old traces wrote into each op: innermost first, with true call lines."""
    recorded = events.call_stack.where(found.stack == NULL)
    if not len(recorded.rows):
        return
    texts = events.names.call_stack.texts
    distinct, place = np.unique(recorded.values, return_inverse=True)
    codes = []
    for code in distinct.tolist():
        stack = _call_stack(texts[code], user_prefixes)
        codes.append(NULL if stack is None else len(found.stacks))
        found.stacks += [stack] if stack else []
    found.stack[recorded.rows] = np.array(codes, np.int32)[place]
    known = recorded.rows[found.stack[recorded.rows] != NULL]
    found.via[known] = VIAS.index("call")


def _call_stack(text: str, user_prefixes: tuple[str, ...]) -> Stack | None:
    """Model frames of one `;`-separated call stack; None where it has none."""
    stack: Stack | None = None
    for entry in reversed(text.split(";")):
        frame = parse_frame(entry, user_prefixes)
        if frame and frame.model:
            stack = _called(stack, entry, frame)
    return stack
