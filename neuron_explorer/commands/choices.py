"""Options as a person types them, turned into what the program takes."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from neuron_explorer.errors import UsageError


class Format(StrEnum):
    """How a report is written."""

    TEXT = "text"
    JSON = "json"
    MD = "md"


class FindingsFormat(StrEnum):
    """How findings are written."""

    TEXT = "text"
    JSON = "json"
    MD = "md"
    HTML = "html"


class RowFormat(StrEnum):
    """How the rows of a query are written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class Target(StrEnum):
    """What `export` writes a trace as."""

    PERFETTO = "perfetto"
    CHROME = "chrome"
    CSV = "csv"
    SPEEDSCOPE = "speedscope"
    SARIF = "sarif"
    OTLP = "otlp-json"


_ONE = "--json is short for --format json"
_BY_SUFFIX = {".json": Format.JSON, ".md": Format.MD}


def report_format(form: Format | None, *, json: bool, output: Path | None = None) -> Format:
    """What was asked for; the name of the output file decides where nothing was.

    Raises:
        UsageError: `--json` beside another format.
    """
    if json and form not in {None, Format.JSON}:
        raise UsageError(f"--json and --format {form} exclude each other", hint=_ONE)
    if json:
        return Format.JSON
    suffix = "" if output is None else output.suffix
    return form or _BY_SUFFIX.get(suffix, Format.TEXT)


def findings_format(
    form: FindingsFormat | None, *, json: bool, output: Path | None = None
) -> FindingsFormat:
    """The same for findings, which can be a page too.

    Raises:
        UsageError: `--json` beside another format.
    """
    if form is FindingsFormat.HTML and json:
        raise UsageError("--json and --format html exclude each other", hint=_ONE)
    page = form is None and not json and output is not None and output.suffix in {".html", ".htm"}
    if form is FindingsFormat.HTML or page:
        return FindingsFormat.HTML
    plain = None if form is None else Format(form)
    return FindingsFormat(report_format(plain, json=json, output=output))


def row_format(form: RowFormat | None, *, json: bool) -> RowFormat:
    """The same for rows.

    Raises:
        UsageError: `--json` beside another format.
    """
    if json and form not in {None, RowFormat.JSON}:
        raise UsageError(f"--json and --format {form} exclude each other", hint=_ONE)
    return RowFormat.JSON if json else form or RowFormat.TABLE


def analyzer_names(given: Sequence[str]) -> list[str] | None:
    """`["a,b", "c"]` as three names; None where none was given: all of them.

    Raises:
        UsageError: the option was given, but no name with it.
    """
    names = [name.strip() for text in given for name in text.split(",") if name.strip()]
    if given and not names:
        raise UsageError("--only names no analyzer", hint="leave it out to run all")
    return names or None


def thresholds(given: Sequence[str]) -> dict[str, int | float | str]:
    """`analyzer.name=value` as a mapping, numbers as numbers.

    Raises:
        UsageError: a text without a name or without a value.
    """
    found: dict[str, int | float | str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise UsageError(
                f"--param {text!r} names no value",
                hint="write it as analyzer.name=value: device_idle.min_idle_share=0.1",
            )
        found[name] = _number(value)
    return found


def keep_inputs(files: Sequence[str], output: Path) -> None:
    """Refuse to write over what is read.

    Raises:
        UsageError: the output is one of the inputs.
    """
    for file in map(Path, files):
        if output.exists() and file.exists() and output.samefile(file):
            raise UsageError(
                f"{output} is an input and would be overwritten", hint="name another file with -o"
            )


def _number(value: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(value.replace("_", ""))
        except ValueError:
            continue
    return value
