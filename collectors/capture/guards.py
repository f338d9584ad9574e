"""What may end a session other than its `stop()`: the interpreter's exit, SIGTERM, a fork."""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

import torch
from torch.profiler import ProfilerActivity

from neuron_explorer.collectors.capture.sessions import sessions


class Guarded(Protocol):
    """A session, as far as its end is concerned."""

    def abandon(self) -> None:
        """Forget everything: this is a forked child."""

    def clean_up(self) -> None:
        """Remove what lies on the disk besides the traces."""


_alive: weakref.WeakSet[Guarded] = weakref.WeakSet()


class _State:
    forked_ns = 0
    """When this process was forked (`time.perf_counter_ns`), 0 where it was not seen to be."""
    busy = 0
    """How many calls now change what a session holds, or write it."""
    terminated = False
    """SIGTERM came while something was busy."""
    prepared = False
    """torch was asked to record, for which Kineto begins a thread that never ends."""


def guard(session: Guarded) -> None:
    """Forget a session in forked children, and clean up after it at exit."""
    _alive.add(session)


def inherited(started_ns: int) -> bool:
    """Whether a recording that began then (`time.perf_counter_ns`) is the parent's."""
    return started_ns < _State.forked_ns


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let SIGTERM wait until this is done: what is being saved is saved."""
    _State.busy += 1
    try:
        yield
    finally:
        _State.busy -= 1
        if _State.terminated and not _State.busy:
            _terminate()


def torch_prepares() -> None:
    """Note that torch is asked to record."""
    _State.prepared = True


def busy() -> bool:
    """Whether something now changes what a session holds, or writes it."""
    return _State.busy > 0


def arm() -> None:
    """Save what exists when SIGTERM comes, where nobody else has decided what happens then."""
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _on_sigterm)


def disarm() -> None:
    """Give SIGTERM back, unless somebody else has taken it since."""
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is _on_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _on_sigterm(_number: int, _frame: FrameType | None) -> None:
    if _State.busy:
        _State.terminated = True
    else:
        _terminate()


def _terminate() -> None:
    """Save, then end as the signal would have ended this process."""
    _State.terminated = False
    try:
        _finish("SIGTERM")
    finally:
        _clean_up()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)


def _finish(why: str) -> None:
    if sessions.active is not None:
        sessions.active.finish(why)


def _clean_up() -> None:
    for session in list(_alive):
        session.clean_up()


def _at_exit() -> None:
    try:
        _finish("exit")
    finally:
        _clean_up()


def _in_child() -> None:
    """A forked child records and writes nothing, and leaves the parent's files alone."""
    _State.forked_ns = time.perf_counter_ns()
    _State.busy, _State.terminated = 0, False
    recording = torch._C._autograd._profiler_enabled()
    for session in list(_alive):
        session.abandon()
    sessions.abandon()
    if recording:
        # else each op of the child would be kept until the child ends
        with _silence():
            stop = torch._C._autograd._toggle_collection_dynamic
            stop(False, {ProfilerActivity.CPU})  # noqa: FBT003 - it takes no names
    disarm()
    if _State.prepared:
        _end_without_destructors()


def _end_without_destructors() -> None:
    """Let this forked child end as those of multiprocessing do, once Python is done.

    Kineto's thread is the parent's, and its destructor (`~ConfigLoader`) waits for it for ever:
    a child that ends by itself never would. What C buffers is still written, and the exit status
    kept. Without effect where the C library is not glibc.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "on_exit"):
        # called in reverse, and before all that torch registered
        libc.on_exit(libc._exit, None)
        libc.__cxa_atexit(libc.fflush, None, None)


@contextmanager
def _silence() -> Iterator[None]:
    """Keep what C++ code writes to stderr from a user who did not ask for it."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
