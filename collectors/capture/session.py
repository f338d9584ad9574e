"""`neuron_explorer.profile`: torch's profiler, whose windows end as `trace.parquet`.

Everything that torch.profiler.profile takes means the same here; what is ours is keyword-only.
"""

from __future__ import annotations

import gzip
import shutil
import sys
import tempfile
import warnings
import weakref
from contextlib import ContextDecorator
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch.profiler import profile as torch_profile

from neuron_explorer.collectors.capture.companions import Companion
from neuron_explorer.collectors.capture.lines import BY_EVENTS
from neuron_explorer.collectors.capture.outputs import Outputs, rank_of_environment
from neuron_explorer.collectors.capture.recorded_lines import LineSession
from neuron_explorer.collectors.capture.window import Beside, attempt, write_window
from neuron_explorer.errors import TraceError, UsageError
from neuron_explorer.trace import Trace

Source = Literal["auto", "exact", "call", "off"]
SOURCES: tuple[Source, ...] = get_args(Source)


class profile(ContextDecorator, torch_profile):  # noqa: N801 - named like torch's own
    """A drop-in for `torch.profiler.profile` that writes `trace.parquet`.

    Shapes and memory are recorded unless switched off, since without them nothing can be said
    about bytes; every other argument keeps torch's default.

    Args:
        output: A `.parquet` path, or a folder for many windows. Several windows or ranks
            never share a file.
        record_shapes: As in torch; on by default.
        profile_memory: As in torch; on by default.
        source: How lines are found. `exact`: every line that model code runs is recorded,
            by line events from Python 3.12 on, by a trace function before. `call`: torch's
            own Python tracer, which knows lines of calls but not of operators, and modules.
            `off`: none. `auto`: `exact`, but `call` where a debugger traces already.
        with_stack: As in torch; on by default where `source` comes to `call`.
        experimental_config: As in torch; Python frames are asked for unless it is given.
        kwargs: Every other argument of `torch.profiler.profile`.
    """

    def __init__(
        self,
        *,
        output: str | Path = "trace.parquet",
        record_shapes: bool = True,
        profile_memory: bool = True,
        source: Source = "auto",
        with_stack: bool | None = None,
        experimental_config: Any = None,
        **kwargs: Any,
    ) -> None:
        how = resolve_source(source)
        super().__init__(
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=how == "call" if with_stack is None else with_stack,
            experimental_config=experimental_config or python_frames(),
            **kwargs,
        )
        self.paths: list[Path] = []
        """Files written so far, one a window."""
        self._outputs = Outputs(Path(output), rank_of_environment())
        self._folder = Path(tempfile.mkdtemp(prefix="neuron_explorer-"))
        self._exported: Path | None = None
        self._beside = Beside(
            lines=LineSession() if how == "exact" else None,
            companions=_companions(),
        )
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def start(self) -> None:
        """Begin, as in torch.

        Raises:
            OutputError: The output cannot be written; nothing has been recorded then.
        """
        self._outputs.check()
        super().start()

    def stop(self) -> None:
        """End, as in torch; says so where a schedule never came to record anything."""
        super().stop()
        if not self.paths and self.record_steps and self.step_num == 0:
            warnings.warn(
                "a schedule was given, but step() was called 0 times: nothing was recorded",
                stacklevel=2,
            )

    @property
    def trace(self) -> Trace:
        """The trace of the last window, loaded.

        Raises:
            TraceError: No window has been written yet.
        """
        if not self.paths:
            raise TraceError(
                "no window has been written yet",
                hint="leave the `with` block, or call step() as often as the schedule asks",
            )
        return Trace.open([self.paths[-1]])

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:  # noqa: FBT001, FBT002 - torch's own signature
        """As in torch; callable as often as one likes, also after our own file is written."""
        if self._exported is None or use_python_export:
            super().export_chrome_trace(path, use_python_export)
        elif path.endswith(".gz"):
            with self._exported.open("rb") as plain, gzip.open(path, "wb") as packed:
                shutil.copyfileobj(plain, packed)
        else:
            shutil.copyfile(self._exported, path)

    def prepare_trace(self) -> None:
        """Forget the exported window before torch records the next one."""
        if self._exported is not None:
            self._exported.unlink(missing_ok=True)
            self._exported = None
        super().prepare_trace()

    def start_trace(self) -> None:
        """Begin to record, as in torch; and all that records beside it."""
        super().start_trace()
        self._beside.start()

    def stop_trace(self) -> None:
        """End to record, as in torch."""
        self._beside.stop()
        super().stop_trace()

    def _trace_ready(self) -> None:
        attempt(self._write_window)
        super()._trace_ready()

    def _write_window(self) -> None:
        exported = self._folder / f"window-{len(self.paths)}.json"
        super().export_chrome_trace(str(exported))
        self._exported = exported
        output = self._outputs.next()
        write_window(self, exported, output, self._beside)
        self.paths.append(output)


def _companions() -> list[Companion]:
    """What records beside torch, in the order in which it begins."""
    return []


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


def python_frames() -> Any:
    """The configuration with which torch writes Python frames into the trace."""
    return torch._C._profiler._ExperimentalConfig(verbose=True)
