"""`neuron_explorer.profile`: torch's profiler, whose windows end as `trace.parquet`.

Everything that torch.profiler.profile takes means the same here; what is ours is keyword-only.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from torch.profiler import ProfilerAction

from neuron_explorer.collectors.capture.asked import (
    NESTED,
    Nested,
    Source,
    configuration,
    resolve_source,
    resolve_threads,
)
from neuron_explorer.collectors.capture.cautions import files_of_earlier_runs, short_schedule
from neuron_explorer.collectors.capture.collector_pauses import CollectorPauses
from neuron_explorer.collectors.capture.companions import Companion, Remark
from neuron_explorer.collectors.capture.compiler import CompileSources, hide_own_code
from neuron_explorer.collectors.capture.decorated import F, decorated
from neuron_explorer.collectors.capture.exported import Exported
from neuron_explorer.collectors.capture.growth import Growth
from neuron_explorer.collectors.capture.guards import arm, disarm, guard, undisturbed
from neuron_explorer.collectors.capture.lines import BY_EVENTS
from neuron_explorer.collectors.capture.module_calls import ModuleCalls
from neuron_explorer.collectors.capture.outputs import Outputs, Written, rank_of_environment
from neuron_explorer.collectors.capture.queues import QueueRecorder
from neuron_explorer.collectors.capture.recorded_lines import LineSession
from neuron_explorer.collectors.capture.recording import Phase, Recording
from neuron_explorer.collectors.capture.resting import Resting
from neuron_explorer.collectors.capture.sessions import Session, calling_place, sessions
from neuron_explorer.collectors.capture.step_marks import StepMarks
from neuron_explorer.collectors.capture.window import (
    Beside,
    attempt,
    export_window,
    holds_window,
    owners_of,
    write_window,
)
from neuron_explorer.collectors.linking.frames import Owners
from neuron_explorer.errors import TraceError, UsageError
from neuron_explorer.trace import Trace

_RECORDS = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
_NO_WINDOW = "leave the `with` block, or call step() as often as the schedule asks"


class profile(Recording):  # noqa: N801 - named like torch's own
    """A drop-in for `torch.profiler.profile` that writes `trace.parquet`.

    Shapes and memory are recorded unless switched off, since without them nothing can be said
    about bytes; every other argument keeps torch's default.

    The job goes on whatever becomes of its profile: what cannot be recorded or written is said
    in a warning, and only an output that cannot be written is an error, before anything runs.
    What exists is saved where the block ends by an exception or Ctrl-C, where the interpreter
    exits before `stop()`, and at SIGTERM. A forked child records and writes nothing.

    Args:
        output: A `.parquet` path, or a folder for many windows. Several windows or ranks
            never share a file.
        record_shapes: As in torch; on by default.
        profile_memory: As in torch; on by default.
        source: How lines are found. `exact`: every line that model code runs is recorded,
            by line events from Python 3.12 on, by a trace function before. It costs half a
            microsecond a line: little beside calls of torch, but a loop in pure Python runs
            about 20 times slower meanwhile. `call`: torch's own Python tracer, which knows
            lines of calls but not of operators, and modules; its price is one of calls (such
            a loop runs twice as slow, small functions ten times). `off`: none. `auto`:
            `exact`, but `call` where a debugger traces already.
        with_stack: As in torch; on by default where `source` comes to `call`.
        experimental_config: As in torch; Python frames are asked for unless it is given.
        nested: What a session does that begins while another one of ours records, since torch
            has room for one. `join`: it leaves the recording to the outer one, whose `trace`
            and `paths` are then its own too. `refuse`: it has neither. Both say in a warning
            where the outer one was opened, and neither ever raises. Inside torch's own profiler
            nothing is recorded, whatever this says; where torch's own is opened inside of
            ours, our window ends there.
        all_threads: Record the ops of every thread, and allow `stop()` on another thread than
            `start()`; torch then records no memory. Otherwise only the thread that starts (and
            those on which torch runs its backward) is recorded. None = where memory is not
            recorded anyway. Where `experimental_config` is given, that decides.
        max_growth: By how many bytes this process may grow while one window is recorded; the
            window ends there, with a warning and the import issue `budget_reached`. None = half
            of the memory that is available when the window begins. It is looked at in `step()`,
            where lines are recorded every 65536 of them, and in windows that begin on the main
            thread four times a second.
        save_at_sigterm: Save what exists when SIGTERM comes, then end as without; only where
            the program has no handler of its own and starts on the main thread. Python runs a
            handler between two of its instructions, so one that hangs inside C code does not end.
        compile_sources: As `enable_compile_sources()`, from `start()` to `stop()`.
        mine: Paths (`/opt/ours`, `src/net.py`) or packages (`my.package`, `diffusers/utils`)
            that are your own code wherever they lie: `user_file` and `user_line` name them.
        plumbing: Paths or packages that are neither your own code nor a model's, as torch is
            not: what they do belongs to the line that called them. Of all entries that fit a
            file the longest decides.
        kwargs: Every other argument of `torch.profiler.profile`.

    Raises:
        UsageError: `source` or `nested` is none of the above.
    """

    def __init__(  # noqa: PLR0913 - each is a choice of the user's
        self,
        *,
        output: str | Path = "trace.parquet",
        record_shapes: bool = True,
        profile_memory: bool = True,
        source: Source = "auto",
        with_stack: bool | None = None,
        experimental_config: Any = None,
        nested: Nested = "join",
        all_threads: bool | None = None,
        max_growth: int | None = None,
        save_at_sigterm: bool = True,
        compile_sources: bool = True,
        mine: str | Sequence[str] = (),
        plumbing: str | Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        how = resolve_source(source)
        if nested not in NESTED:
            raise UsageError(f"nested={nested!r} is unknown", hint=f"one of {', '.join(NESTED)}")
        threads = resolve_threads(all_threads, experimental_config, memory=profile_memory)
        owners = owners_of(mine, plumbing)
        frames = how == "call" if with_stack is None else with_stack
        modules = ModuleCalls(beside_frames=frames)
        growth, self._steps = Growth(max_growth), StepMarks()
        listening = CompileSources() if compile_sources else None
        # else a trace function would see all calls of a compilation
        traced = how == "exact" and not BY_EVENTS
        self._listening = listening or (Resting() if traced else None)
        super().__init__(
            Beside(
                lines=self._lines(how, modules, owners),
                companions=[*_companions(listening), self._steps, modules],
                owners=owners,
            ),
            growth,
            all_threads=threads,
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=frames,
            experimental_config=experimental_config
            or configuration(frames=frames, all_threads=threads),
            **kwargs,
        )
        self.opened_at = ""
        self._paths: list[Path] = []
        self._written: Written | None = None
        self._handlers_error: Exception | None = None
        self._nested = nested
        self._save_at_sigterm = save_at_sigterm
        self.outputs = Outputs(Path(output), rank_of_environment())
        """Where its windows go; sessions that share one never write to the same place."""
        self._files = Exported()
        self._outer: profile | None = None
        self._again = 0
        """How often `start()` was called while this very session was running."""
        sessions.watch()
        guard(self)

    def _lines(self, how: Source, modules: ModuleCalls, owners: Owners) -> LineSession | None:
        # a trace function for modules alone would cost more than it tells
        if how != "exact" and not (how == "call" and BY_EVENTS):
            return None
        return LineSession(
            modules.watch, lines=how == "exact", check=self.check_growth, owners=owners
        )

    def __call__(self, function: F) -> F:
        """Decorate: each call is recorded, also of a coroutine or a generator.

        Raises:
            UsageError: The function is an async generator.
        """
        return decorated(self, function)

    def start(self) -> None:
        """Begin, as in torch; harmless where another profiler records.

        Raises:
            OutputError: The output cannot be written; nothing has been recorded then.
        """
        outer, place = sessions.active, calling_place()
        if outer is not None:
            self._stand_back(outer, place)
            return
        self._outer, self._again = None, 0
        self.outputs.check()
        self.opened_at, sessions.active = place, self
        if self._save_at_sigterm:
            arm()
        attempt(hide_own_code, "torch.compile may compile what records")
        if self._listening is not None:
            attempt(self._listening.listen, "compilations are not recorded")
        try:
            attempt(super().start, "nothing is recorded")
        except Warning:  # where warnings are errors, no `with` block ends what did not begin
            self._leave()
            raise

    def step(self) -> None:
        """A step ends, as in torch; harmless where this session does not record.

        Without a schedule each call ends a step of the one window as well. What a handler of
        the user's raises is raised once the next window has been prepared.
        """
        if sessions.active is self:
            self.check_growth()
            if not self.record_steps:
                self._steps.mark()
            super().step()
            self._raise_the_handlers()

    def stop(self) -> None:
        """End, as in torch; says so where a schedule never came to record anything."""
        if self._again:
            self._again -= 1
            return
        if sessions.active is not self:
            return
        ends_in = self.current_action
        try:
            if self.record_steps and ends_in in _RECORDS:
                self._cut = self._cut or ("window_incomplete", f"step {self.step_num}", 1)
            super().stop()
        finally:
            self._leave()
        self._say_what_to_mind(ends_in)
        self._raise_the_handlers()

    def _leave(self) -> None:
        sessions.active = None
        disarm()
        if self._listening is not None:
            self._listening.leave()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End; what ended the block is raised, whatever a handler of the user's raises besides."""
        end: Any = super().__exit__
        try:
            end(kind, error, trace)
        except Exception as failure:
            if error is None:
                raise
            error.add_note(f"and when its profile ended: {failure!r}")

    def finish(self, why: str) -> None:
        """Save what exists: the process ends."""
        warnings.warn(
            f"the session started at {self.opened_at} was not stopped before {why}: "
            "what it has is saved",
            stacklevel=2,
        )
        self._again = 0
        attempt(self.stop)

    def abandon(self) -> None:
        """Forget everything: this is a forked child, and the parent records and writes."""
        self._forget()
        self._files = Exported()

    def clean_up(self) -> None:
        """Remove what lies on the disk besides the traces."""
        self._files.remove()

    @property
    def complete(self) -> bool:
        """Whether a window has been written, and the last one is what was asked for."""
        return bool(self.paths) and self._cut is None

    @property
    def paths(self) -> list[Path]:
        """Files written so far, one a window."""
        return self._paths if self._outer is None else self._outer.paths

    @property
    def trace(self) -> Trace:
        """The trace of the last window, loaded; of the outer session where this one joined it.

        Raises:
            TraceError: No window has been written yet, or another session has written its own
                to the same place since.
        """
        wrote = (self._outer or self)._written
        if wrote is None:
            raise TraceError(
                "no window has been written yet", hint=self._hint_of_the_outer() or _NO_WINDOW
            )
        if wrote.replaced():
            raise TraceError(
                f"{wrote.path} has been replaced since this session wrote it",
                hint="give each session an output= of its own, or all of them one folder",
            )
        return Trace.open([wrote.path])

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:  # noqa: FBT001, FBT002 - torch's own signature
        """As in torch; callable as often as one likes, also after our own file is written.

        Raises:
            TraceError: Nothing has been recorded.
        """
        if use_python_export and holds_window(self):
            super().export_chrome_trace(path, use_python_export)
        elif not self._files.copy(path):
            export_window(self, Path(path))

    def prepare_trace(self) -> None:
        """Forget the exported window before torch records the next one."""
        self._files.forget()
        super().prepare_trace()

    def _trace_ready(self) -> None:
        if self._phase is not Phase.ENDED:
            return
        self._phase = Phase.OFF
        with undisturbed():
            attempt(self._write_window)
        try:
            super()._trace_ready()
        except Exception as error:  # noqa: BLE001 - raised where torch has done what is next
            self._handlers_error = error

    def _raise_the_handlers(self) -> None:
        error, self._handlers_error = self._handlers_error, None
        if error is not None:
            raise error

    def _write_window(self) -> None:
        exported = self._files.new()
        export_window(self, exported)
        self._files.current = exported
        self._beside.remarks = self._remarks()
        self._beside.facts["all_threads"] = self._all_threads
        output = self.outputs.next()
        write_window(self, exported, output, self._beside)
        self._written = Written.now(output)
        self._paths.append(output)

    def _remarks(self) -> list[Remark]:
        found = [] if self._cut is None else [self._cut]
        if self._all_threads and self.profile_memory:
            found.append(("memory_not_recorded", "all_threads", 1))
        return found

    def _stand_back(self, outer: Session, place: str) -> None:
        """Leave the recording to a session that runs already."""
        if outer is self:
            self._again += 1
            said = "it goes on, and ends with the outermost stop()"
        elif self._nested == "join" and isinstance(outer, profile):
            self._outer = outer
            said = "this one joins it, and records nothing of its own"
        else:
            said = "this one records nothing"
        self.opened_at = self.opened_at if outer is self else place
        warnings.warn(
            f"a session opened at {outer.opened_at} records already: {said}", stacklevel=3
        )

    def _hint_of_the_outer(self) -> str:
        if self._outer is None or sessions.active is not self._outer:
            return ""
        return f"this session joined the one opened at {self._outer.opened_at}; ask after its end"

    def _say_what_to_mind(self, ends_in: ProfilerAction) -> None:
        steps = self.step_num if self.record_steps else None
        earlier = self.outputs.of_earlier_runs() if self._paths else []
        for said in (
            short_schedule(steps, len(self.paths), early=ends_in in _RECORDS),
            files_of_earlier_runs(earlier),
        ):
            if said:
                warnings.warn(said, stacklevel=3)


def _companions(compile_sources: CompileSources | None) -> list[Companion]:
    """What records beside torch, in the order in which it begins."""
    first = [] if compile_sources is None else [compile_sources]
    return [*first, CollectorPauses(), QueueRecorder()]
