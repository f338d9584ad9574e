"""Tools that take long or draw: verify, screenshot."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, ClassVar

from pydantic import Field

from neuron_explorer.analyzers.verify.results import keep
from neuron_explorer.errors import NeuronExplorerError
from neuron_explorer.findings import Finding
from neuron_explorer.loading import is_parquet
from neuron_explorer.mcp.asking_tools import TraceName
from neuron_explorer.mcp.data_answers import ScreenshotAnswer, VerifyAnswer
from neuron_explorer.mcp.findings_text import find, plain, short
from neuron_explorer.mcp.opened import OpenTrace, OpenTraces
from neuron_explorer.mcp.trust import trust_in
from neuron_explorer.reports.verdicts import verdict

Draw = Callable[[Sequence[str], str, tuple[int, int]], str]
"""Files, name of a screen, columns and rows -> SVG."""

_LINE = re.compile(r'<text[^>]* y="([\d.]+)"[^>]*>(.*?)</text>')
_PLACE = re.compile(r' x="([\d.]+)"[^>]* textLength="([\d.]+)"')


class ActingTools:
    NAMES: ClassVar[tuple[str, ...]] = ("verify", "screenshot")

    def __init__(self, traces: OpenTraces, draw: Draw) -> None:
        self._traces = traces
        self._draw = draw

    def verify(
        self,
        finding: Annotated[str, Field(description="Its id, or the beginning of it.")],
        trace: TraceName = None,
        seconds: Annotated[float, Field(ge=1, le=300, description="Time to measure for.")] = 20,
    ) -> VerifyAnswer:
        """Replay the recorded ops of a finding here, before and after its change, and measure.

        The claim is then confirmed, smaller than claimed, or not confirmed.

        Takes up to `seconds` and needs torch here. The result is measured on this machine's device,
        which need not be the recorded one. It is kept in a file beside a Parquet trace, the only
        thing this server ever writes; findings show it from then on.
        """
        with self._traces.using(trace) as opened:
            found = find(opened.report().findings, finding)
            runner, machine = _replaying("runner"), _replaying("machine")
            options = runner.Options(machine.choose_device(None), seconds=seconds)
            result = runner.verify_one(opened.trace(), found, options)
            beside = _file_beside(opened, found)
            kept = None if beside is None else str(keep(beside, found, result))
            opened.forget_report()
            measured = replace(found, verified=result)
            return VerifyAnswer(
                trace=opened.name,
                trust=trust_in(opened),
                finding=short(measured),
                verdict=str(result["verdict"]),
                said=verdict(measured) or "",
                result=plain(result),
                kept_in=kept,
            )

    def screenshot(
        self,
        screen: Annotated[
            str,
            Field(description="overview, source, timeline, ops, roofline, memory, modules, ..."),
        ] = "overview",
        trace: TraceName = None,
        columns: Annotated[int, Field(ge=40, le=240)] = 120,
        rows: Annotated[int, Field(ge=10, le=80)] = 40,
    ) -> ScreenshotAnswer:
        """A screen of the terminal interface, as a person sees it.

        Gives its text, and the picture as an SVG resource. For showing somebody; the other tools
        give the same as data.
        """
        with self._traces.using(trace) as opened:
            files = [str(file) for file in opened.trace().files]
            svg = self._draw(files, screen, (columns, rows))
            answer = ScreenshotAnswer(
                trace=opened.name,
                trust=trust_in(opened),
                screen=screen,
                columns=columns,
                rows=rows,
                text=screen_text(svg, columns),
                svg_bytes=len(svg.encode()),
            )
            answer.attach(svg)
            return answer


def screen_text(svg: str, columns: int) -> list[str]:
    """The lines of text in a picture that Rich drew, each piece in its column."""
    lines: dict[float, list[str]] = {}
    cell = _cell_width(svg)
    for found in _LINE.finditer(svg):
        text = html.unescape(found[2]).replace("\xa0", " ")
        place = _PLACE.search(found[0])
        if place is not None:
            line = lines.setdefault(float(found[1]), [" "] * columns)
            at = round(float(place[1]) / cell)
            line[at : at + len(text)] = text
    return ["".join(line).rstrip() for _, line in sorted(lines.items())]


def _cell_width(svg: str) -> float:
    """Pixels a character: what any piece of text says its length is."""
    for found in _LINE.finditer(svg):
        place, text = _PLACE.search(found[0]), html.unescape(found[2])
        if place is not None and text.isascii() and text:
            return float(place[2]) / len(text)
    return 12.2


def _replaying(name: str) -> ModuleType:
    """A module that replays.

    Raises:
        NeuronExplorerError: torch is not installed.
    """
    try:
        return import_module(f"neuron_explorer.analyzers.verify.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "torch":
            raise
        raise NeuronExplorerError(
            "verify replays ops with torch, which is not installed where this server runs",
            hint="pip install 'neuron-explorer[torch]'",
        ) from error


def _file_beside(opened: OpenTrace, finding: Finding) -> Path | None:
    """The Parquet file that the finding is about; None where the trace was only imported."""
    if not all(is_parquet(path) for path in opened.files):
        return None
    rows = opened.trace().sql("SELECT DISTINCT rank, file FROM trace_metadata ORDER BY rank, file")
    files = {row["rank"]: Path(row["file"]) for row in reversed(rows.to_pylist())}
    return files.get(finding.rank or 0) or next(iter(files.values()), None)
