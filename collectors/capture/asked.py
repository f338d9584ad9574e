"""What a session is asked for: how lines are found, and what torch is told besides arguments."""

from __future__ import annotations

import sys
from typing import Any, Literal, get_args

import torch

from neuron_explorer.collectors.capture.lines import BY_EVENTS
from neuron_explorer.errors import UsageError

Nested = Literal["join", "refuse"]
NESTED: tuple[Nested, ...] = get_args(Nested)
Source = Literal["auto", "exact", "call", "off"]
SOURCES: tuple[Source, ...] = get_args(Source)


def resolve_source(source: Source) -> Source:
    """What `source` comes to on this Python: `exact`, `call` or `off`.

    Raises:
        UsageError: It is none of the four.
    """
    if source not in SOURCES:
        raise UsageError(f"source={source!r} is unknown", hint=f"one of {', '.join(SOURCES)}")
    if source == "auto":
        # before 3.12 lines come from a trace function, and a debugger's own comes first
        return "exact" if BY_EVENTS or sys.gettrace() is None else "call"
    return source


def asks_for_all_threads(config: Any) -> bool:
    """What a configuration of the user's says, which torch tells nobody but pickle."""
    kind: Any = torch._C._profiler._ExperimentalConfig
    states = (kind(), kind(profile_all_threads=True), config)
    said: Any = zip(*(state.__getstate__() for state in states), strict=True)
    return any(given for off, on, given in said if off != on)


def resolve_threads(wanted: bool | None, config: Any, *, memory: bool) -> bool:  # noqa: FBT001 - as given
    """Whether all threads are recorded; where nobody says, unless memory is."""
    if config is not None:
        return asks_for_all_threads(config)
    return not memory if wanted is None else wanted


def configuration(*, frames: bool, all_threads: bool) -> Any:
    """What torch is told beside the arguments of its profiler.

    Args:
        frames: Whether Python frames are recorded, which only a `verbose` trace has. Without
            frames that adds nothing to the file, and a quarter to the time torch needs for it.
        all_threads: Whether ops of every thread are recorded, and no memory.
    """
    config: Any = torch._C._profiler._ExperimentalConfig
    return config(verbose=frames, profile_all_threads=all_threads)
