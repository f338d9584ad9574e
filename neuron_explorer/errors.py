"""Every error this package raises on purpose; each says what, where and what to do.

NeuronExplorerError         exit 1   could not run
    UsageError              exit 2   the caller asked for something that cannot be
    TraceError              exit 1   a trace is missing, unreadable or of a newer schema
    ImportFailedError       exit 1   nothing could be read from a foreign file
    OutputError             exit 1   the result cannot be written
    QueryError              exit 1   SQL that is refused or does not run
    AnalyzerError           exit 1   an analyzer is unknown or its file is wrong
    DeviceError             exit 1   a chip is unknown or its file is wrong
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """Exit codes of the command line."""

    OK = 0
    FAILED = 1
    USAGE = 2
    UNTRUSTED = 3
    GATE = 4
    INTERRUPTED = 130


class NeuronExplorerError(Exception):
    """What was tried and what was found; `hint` says what the reader can do about it."""

    exit_code: ClassVar[ExitCode] = ExitCode.FAILED

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(NeuronExplorerError):
    exit_code = ExitCode.USAGE


class TraceError(NeuronExplorerError):
    pass


class ImportFailedError(NeuronExplorerError):
    pass


class OutputError(NeuronExplorerError):
    pass


class QueryError(NeuronExplorerError):
    pass


class AnalyzerError(NeuronExplorerError):
    pass


class DeviceError(NeuronExplorerError):
    pass
