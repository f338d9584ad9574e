"""`verify`: replay what findings talk about, before and after the change, and measure."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType

from neuron_explorer import __version__
from neuron_explorer.analyzers import run
from neuron_explorer.analyzers.verify.results import keep, results_path
from neuron_explorer.commands.analyze import FINDINGS
from neuron_explorer.commands.capturing import quiet_torch
from neuron_explorer.commands.traces import open_trace
from neuron_explorer.errors import ExitCode, NeuronExplorerError, UsageError
from neuron_explorer.findings import Finding
from neuron_explorer.loading import is_parquet, resolve
from neuron_explorer.reports import console
from neuron_explorer.reports.json_report import dump, finding_json
from neuron_explorer.reports.verdicts import verdict_page
from neuron_explorer.trace import Trace

VERIFY_SCHEMA = "neuron_explorer.verify/1"

_SHOWN_NAMES = 12


@dataclass(frozen=True)
class Request:
    """What the caller of `verify` chose."""

    file: str
    wanted: Sequence[str] = ()
    """Ids of findings, the beginning of one, or analyzers; empty: those that `analyze` shows."""
    device: str | None = None
    """torch's name of the device to replay on; None: the accelerator here, else the CPU."""
    rounds: int | None = None
    seconds: float | None = None
    threads: int | None = None
    as_json: bool = False
    quiet: bool = False


def verify(request: Request) -> ExitCode:
    """Measure one finding after another; each result is kept and shown as soon as it is there.

    Raises:
        NeuronExplorerError: torch is not installed.
        UsageError: no finding is called so, or there is no such device.
        OutputError: the results cannot be written beside the trace.
    """
    runner, machine = _replaying("runner"), _replaying("machine")
    device = machine.choose_device(request.device)
    with open_trace([request.file], quiet=request.quiet) as trace:
        chosen = _chosen(run(trace).findings, request.wanted)
        options = runner.Options(
            device,
            rounds=request.rounds or runner.ROUNDS,
            seconds=request.seconds or runner.SECONDS,
            threads=request.threads,
        )
        beside = _kept_beside(request.file, trace)
        if not beside and not request.quiet:
            console.note(f"{request.file} is no Parquet trace: nothing is kept. `import` it first")
        return _measure(trace, chosen, options, beside, request)


def _measure(
    trace: Trace,
    chosen: Sequence[Finding],
    options: object,
    beside: Mapping[int, Path],
    request: Request,
) -> ExitCode:
    done: list[Finding] = []
    code = ExitCode.OK
    try:
        with _watched(len(chosen), quiet=request.quiet) as said:
            for finding, result in _replaying("runner").verify(trace, chosen, options, said):
                if beside:
                    keep(_file_of(finding, beside), finding, result)
                done.append(replace(finding, verified=result))
                if not request.as_json:
                    console.write(verdict_page(done[-1], console.stdout_page()))
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    if request.as_json:
        console.write_data(_json(done, request.file, code))
    if not request.quiet:
        _close(done, len(chosen), beside)
    return code


def _replaying(name: str) -> ModuleType:
    """A module that replays.

    Raises:
        NeuronExplorerError: torch is not installed.
    """
    quiet_torch()
    try:
        return import_module(f"neuron_explorer.analyzers.verify.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "torch":
            raise
        raise NeuronExplorerError(
            "verify replays ops with torch, which is not installed",
            hint="pip install 'neuron-explorer[torch]'",
        ) from error


def _chosen(findings: Sequence[Finding], wanted: Sequence[str]) -> list[Finding]:
    """The findings asked for, in the order of `analyze`.

    Raises:
        UsageError: One of the words names none.
    """
    if not wanted:
        return list(findings[:FINDINGS])
    for word in wanted:
        if not any(_is_called(finding, word) for finding in findings):
            known = ", ".join(finding.id for finding in findings[:_SHOWN_NAMES])
            raise UsageError(
                f"no finding is called {word}",
                hint=f"name an analyzer, or the beginning of an id: {known or 'there are none'}",
            )
    return [f for f in findings if any(_is_called(f, word) for word in wanted)]


def _is_called(finding: Finding, word: str) -> bool:
    return finding.analyzer == word or finding.id.startswith(word)


def _kept_beside(file: str, trace: Trace) -> dict[int, Path]:
    """The Parquet file by rank; empty where the trace was imported only to be read."""
    if not all(is_parquet(path) for path in resolve([Path(file)])):
        return {}
    rows = trace.sql("SELECT DISTINCT rank, file FROM trace_metadata").to_pylist()
    return {row["rank"]: Path(row["file"]) for row in rows}


def _file_of(finding: Finding, beside: Mapping[int, Path]) -> Path:
    return beside.get(finding.rank or 0) or next(iter(beside.values()))


def _close(done: Sequence[Finding], asked: int, beside: Mapping[int, Path]) -> None:
    if len(done) < asked:
        console.note(f"stopped: {len(done)} of {asked} findings are measured")
    if done and beside:
        kept = dict.fromkeys(str(results_path(_file_of(each, beside))) for each in done)
        console.note(f"kept in {', '.join(kept)}; `analyze` shows it")


def _json(done: Sequence[Finding], file: str, code: ExitCode) -> str:
    return dump(
        {
            "schema": VERIFY_SCHEMA,
            "tool_version": __version__,
            "file": file,
            "findings": [finding_json(finding) for finding in done],
            "exit_code": int(code),
        }
    )


@contextmanager
def _watched(count: int, *, quiet: bool) -> Iterator[Callable[[str], None]]:
    """What is under way, on stderr where a person watches."""
    if quiet or not sys.stderr.isatty() or not count:
        yield lambda _: None
        return
    with console.waiting() as status:
        yield lambda said: status.update(f"verifying {said}")
