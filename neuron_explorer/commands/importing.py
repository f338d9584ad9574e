"""`import`: one file to one Parquet file, several to a folder of ranks."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from neuron_explorer.collectors.costs import load_user_formulas
from neuron_explorer.collectors.importers import ImportOptions, ImportReport, import_file
from neuron_explorer.collectors.linking.frames import Owners
from neuron_explorer.commands.choices import keep_inputs
from neuron_explorer.errors import ExitCode, OutputError, UsageError
from neuron_explorer.loading import is_parquet, resolve
from neuron_explorer.progress import Progress
from neuron_explorer.reports import formats, json_report
from neuron_explorer.trace_files import read_trace_files

IMPORT_SCHEMA = "neuron_explorer.import/1"
ONE = Path("trace.parquet")
MANY = Path("traces")


@dataclass(frozen=True)
class Imported:
    """One input and what became of it."""

    source: str
    report: ImportReport
    output: Path


def import_options(
    mine: Sequence[str], plumbing: Sequence[str], costs: Path | None
) -> ImportOptions:
    """How to read the files; formulas of the user's own hold from here on.

    Raises:
        FormulaError: the file of formulas is missing or wrong.
    """
    if costs is not None:
        load_user_formulas(costs)
    return ImportOptions(owners=Owners(tuple(mine), tuple(plumbing)))


def import_all(
    files: Sequence[str],
    output: Path | None,
    progress: Progress,
    options: ImportOptions | None = None,
) -> list[Imported]:
    """Import every file; the outputs appear only when all of them are whole.

    Raises:
        UsageError: the output is an input, or two inputs name the same rank.
        ImportFailedError: nothing could be read from a file.
        OutputError: the output cannot be written.
    """
    found = [str(path) for path in resolve([Path(file) for file in files])]
    _check_foreign(found)
    target = output or (ONE if len(found) == 1 else MANY)
    keep_inputs(found, target)
    options = options or ImportOptions()
    if len(found) == 1:
        return [_imported(found[0], target, progress, options)]
    return _import_ranks(found, target, progress, options)


def exit_code(done: Sequence[Imported]) -> ExitCode:
    """Whether every input was whole."""
    cut = any(one.report.truncated for one in done)
    return ExitCode.UNTRUSTED if cut else ExitCode.OK


def import_json(done: Sequence[Imported]) -> str:
    """The versioned envelope of `import`."""
    imported = [
        {
            "input": one.source,
            "output": str(one.output),
            "events": one.report.events,
            "issues": list(one.report.issues),
            "truncated": one.report.truncated,
        }
        for one in done
    ]
    code = int(exit_code(done))
    return json_report.dump({"schema": IMPORT_SCHEMA, "imported": imported, "exit_code": code})


def import_notes(done: Sequence[Imported]) -> Iterator[str]:
    """A line for each file, and what to type next."""
    for one in done:
        issues = len(one.report.issues)
        said = f", {issues} kinds of import issues" if issues else ""
        cut = ", cut short" if one.report.truncated else ""
        count = formats.count(one.report.events)
        yield f"{one.source} -> {one.output}: {count} events{said}{cut}"
    yield f"next: neuron-explorer analyze {_together(done)}"


def _imported(source: str, output: Path, progress: Progress, options: ImportOptions) -> Imported:
    report = import_file(Path(source), output, progress=progress, options=options)
    return Imported(source, report, output)


def _import_ranks(
    files: Sequence[str], folder: Path, progress: Progress, options: ImportOptions
) -> list[Imported]:
    """Import beside the folder, then move: a run that ends early leaves nothing."""
    _check_folder(folder)
    with _draft_folder(folder) as draft:
        done = []
        for position, file in enumerate(files):
            ranked = replace(options, rank=position)
            made = _imported(file, draft / f"{position}.parquet", progress, ranked)
            done.append(_named_by_rank(made, draft))
        _publish(done, folder)
    return [replace(one, output=folder / one.output.name) for one in done]


def _named_by_rank(made: Imported, draft: Path) -> Imported:
    target = draft / f"rank={read_trace_files([made.output])[0].rank}.parquet"
    if target.exists():
        raise UsageError(
            f"{made.source} says {target.stem}, and so does a file before it",
            hint="import traces of different runs one at a time, each with its own -o",
        )
    made.output.rename(target)
    return replace(made, output=target)


def _check_foreign(files: Sequence[str]) -> None:
    ours = next((file for file in files if is_parquet(Path(file))), None)
    if ours is not None:
        raise UsageError(
            f"{ours} is Parquet, not a trace to import", hint=f"neuron-explorer analyze {ours}"
        )


def _check_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file", hint="several traces need a folder: -o traces")
    if folder.is_dir() and any(folder.glob("*.parquet")):
        raise UsageError(
            f"{folder} holds traces already", hint="empty it or name another folder with -o"
        )


@contextmanager
def _draft_folder(folder: Path) -> Iterator[Path]:
    try:
        draft = Path(tempfile.mkdtemp(prefix=".importing-", dir=folder.absolute().parent))
    except OSError as error:
        raise OutputError(
            f"{folder} cannot be written: {error.strerror}", hint="name another folder with -o"
        ) from error
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _publish(done: Sequence[Imported], folder: Path) -> None:
    """Move them in, all or none."""
    is_new = not folder.exists()
    folder.mkdir(exist_ok=True)
    try:
        for one in done:
            one.output.replace(folder / one.output.name)
    except BaseException:
        for one in done:
            (folder / one.output.name).unlink(missing_ok=True)
        if is_new:
            folder.rmdir()
        raise


def _together(done: Sequence[Imported]) -> Path:
    return done[0].output if len(done) == 1 else done[0].output.parent
