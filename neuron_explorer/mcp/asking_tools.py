"""Tools that open a trace and give an overview: open_trace, summary, findings, explain_finding."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from neuron_explorer.analyzers import analyzers
from neuron_explorer.errors import UsageError
from neuron_explorer.mcp.answering import as_text, packed
from neuron_explorer.mcp.answers import (
    BoundTime,
    Device,
    ExplainAnswer,
    FindingsAnswer,
    LineCost,
    NotApplicable,
    OpenAnswer,
    Saving,
    SummaryAnswer,
)
from neuron_explorer.mcp.findings_text import find, plain, rows_of, short
from neuron_explorer.mcp.opened import OpenTrace, OpenTraces
from neuron_explorer.mcp.trust import trust_in
from neuron_explorer.reports import formats
from neuron_explorer.trace import Trace

SUMMARY_BYTES = 4_096
_EVENT_IDS = 50

TraceName = Annotated[
    str | None,
    Field(description="Short name (t1) or path of a trace; may be left out if one is known."),
]

BOUNDS = """
SELECT bound, sum(device_time_ns)::BIGINT AS device_time_ns,
    sum(device_time_ns) / sum(sum(device_time_ns)) OVER () AS share
FROM roofline GROUP BY bound HAVING sum(device_time_ns) > 0 ORDER BY device_time_ns DESC, bound
"""
_LINES = """
SELECT source_file, source_line, sum(device_ns)::BIGINT AS device_ns,
    sum(host_ns)::BIGINT AS host_ns, max_by(bound, device_ns) AS bound
FROM lines GROUP BY source_file, source_line
ORDER BY device_ns DESC NULLS LAST, host_ns DESC NULLS LAST, source_file, source_line LIMIT 5
"""
_LAYERS = "SELECT layer, count(*) AS events FROM events GROUP BY layer ORDER BY layer"


class AskingTools:
    NAMES: ClassVar[tuple[str, ...]] = ("open_trace", "summary", "findings", "explain_finding")

    def __init__(self, traces: OpenTraces) -> None:
        self._traces = traces

    def open_trace(
        self,
        path: Annotated[
            str | None,
            Field(description="A .parquet or .json[.gz] trace, or a folder of ranks."),
        ] = None,
        device: Annotated[
            str | None, Field(description="Judge as if run on this chip: trn2, h100-sxm, ...")
        ] = None,
    ) -> OpenAnswer:
        """Open a trace of torch.profiler or neuron_explorer and say what it holds.

        Gives the short name that other tools take. Without a path: the one trace given at start,
        else what could be opened. Importing a large JSON trace takes seconds to minutes once.
        """
        titles = self._traces.titles
        if path is None and len(titles) != 1:
            return OpenAnswer(known=titles, readable=self._traces.readable.listing())
        name = None if path is None else self._traces.open(path, device).name
        with self._traces.using(name) as opened:
            seen, trace = opened.seen(), opened.trace()
            return OpenAnswer(
                trace=opened.name,
                trust=trust_in(opened),
                files=list(seen.files),
                tool=seen.tool,
                devices=_devices(opened),
                ranks=seen.ranks,
                steps=seen.steps.count,
                events={r["layer"]: r["events"] for r in trace.sql(_LAYERS).to_pylist()},
                known=self._traces.titles,
            )

    def summary(self, trace: TraceName = None) -> SummaryAnswer:
        """The trace in at most 4 KB; the place to start.

        Devices, steps, what holds the device back, the costliest lines, the worthiest findings, and
        what all findings are worth together.
        """
        with self._traces.using(trace) as opened:
            seen, report, asked = opened.seen(), opened.report(), opened.trace()
            answer = SummaryAnswer(
                trace=opened.name,
                trust=trust_in(opened),
                devices=_devices(opened),
                steps=seen.steps.count,
                step_mean_ns=seen.steps.mean_ns,
                recorded_ns=seen.recorded_ns,
                bounds=bounds(asked),
                lines=[_line(row) for row in asked.sql(_LINES).to_pylist()],
                findings=[short(finding) for finding in report.findings[:5]],
                findings_total=len(report.findings),
                together=[
                    Saving(
                        low_ns=each.low_ns,
                        high_ns=each.high_ns,
                        likely_ns=None,
                        figures=each.figures,
                    )
                    for each in report.combined
                ],
                not_applicable=len(report.not_applicable),
            )
        return _fitted(answer)

    def findings(
        self,
        trace: TraceName = None,
        analyzer: Annotated[str | None, Field(description="Of this analyzer only.")] = None,
        severity: Annotated[
            Literal["critical", "warning", "info"] | None, Field(description="Of this one only.")
        ] = None,
        file: Annotated[
            str | None, Field(description="Of source files whose path ends so only.")
        ] = None,
        offset: Annotated[int, Field(ge=0, description="Findings to skip.")] = 0,
        limit: Annotated[int, Field(ge=1, le=50, description="Findings a page.")] = 10,
    ) -> FindingsAnswer:
        """List findings, the worthiest first: id, place, saving in ns, measured or modelled.

        Savings of several findings may be the same time: summary says what they are worth together.
        The first page also says which analyzers could not judge and what the trace lacks for them.
        """
        if analyzer is not None and analyzer not in analyzers():
            raise UsageError(
                f"there is no analyzer {analyzer!r}", hint=f"there are {', '.join(analyzers())}"
            )
        with self._traces.using(trace) as opened:
            report = opened.report()
            chosen = [
                finding
                for finding in report.findings
                if analyzer in (None, finding.analyzer)
                and severity in (None, finding.severity)
                and (file is None or (finding.source_file or "").endswith(file))
            ]
            after = offset + limit
            skipped = [
                skip
                for skip in sorted(report.not_applicable)
                if not offset and analyzer in (None, skip.analyzer)
            ]
            return FindingsAnswer(
                trace=opened.name,
                trust=trust_in(opened),
                findings=[short(finding) for finding in chosen[offset:after]],
                total=len(chosen),
                next_offset=after if after < len(chosen) else None,
                not_applicable=[NotApplicable(**skip._asdict()) for skip in skipped],
            )

    def explain_finding(
        self,
        finding: Annotated[str, Field(description="Its id, or the beginning of it.")],
        trace: TraceName = None,
        rows: Annotated[int, Field(ge=0, le=200, description="Most rows of evidence.")] = 20,
    ) -> ExplainAnswer:
        """One finding in full.

        What was seen, the evidence, the SQL that proves it with its rows, the thresholds used, what
        to change in the code, and what verify measured.
        """
        with self._traces.using(trace) as opened:
            report = opened.report()
            found = find(report.findings, finding)
            result = opened.trace().query(found.sql, limit=rows) if found.sql else None
            return ExplainAnswer(
                trace=opened.name,
                trust=trust_in(opened),
                finding=short(found),
                question=" ".join(analyzers()[found.analyzer].question.split()),
                message=found.message,
                advice=found.advice,
                source_text=found.source_text,
                rank=found.rank,
                share=found.share,
                saving_basis=found.saving_basis,
                figures=found.figures,
                thresholds=report.params[found.analyzer],
                evidence=plain(found.evidence),
                event_ids=list(found.event_ids[:_EVENT_IDS]),
                event_count=len(found.event_ids),
                sql=found.sql,
                result=None if result is None else rows_of(result),
                verified=None if found.verified is None else plain(found.verified),
            )


def bounds(trace: Trace) -> list[BoundTime]:
    """Device time by what holds it back."""
    return [BoundTime(**row) for row in trace.sql(BOUNDS).to_pylist()]


def _devices(opened: OpenTrace) -> list[Device]:
    return [
        Device(
            rank=row["rank"],
            device=row["device"],
            chip=row["chip"],
            busy_share=row["busy_ns"] / row["span_ns"] if row["span_ns"] else None,
        )
        for row in opened.seen().devices
    ]


def _line(row: dict[str, Any]) -> LineCost:
    return LineCost(
        place=formats.place(row["source_file"], row["source_line"]),
        device_ns=row["device_ns"],
        host_ns=row["host_ns"],
        bound=row["bound"],
    )


def _fitted(answer: SummaryAnswer) -> SummaryAnswer:
    """Within its bound: strings shortened, then the end of the longest list goes, which is said.

    The totals always stay.
    """
    for finding in answer.findings:
        finding.title = formats.shorten(finding.title, 90)
    for line in answer.lines:
        line.place = formats.shorten(line.place, 90)
    if answer.trust is not None:
        answer.trust.problems = [formats.clip(said, 200) for said in answer.trust.problems]
    while len(as_text(packed(answer)).encode()) > SUMMARY_BYTES:
        problems = answer.trust.problems if answer.trust else []
        lists: dict[str, list[Any]] = {
            "devices": answer.devices,
            "lines": answer.lines,
            "findings": answer.findings,
            "bounds": answer.bounds,
            "problems": problems,
        }
        name, longest = max(lists.items(), key=lambda item: len(as_text({"": _data(item[1])})))
        longest.pop()
        answer.left_out = [*dict.fromkeys([*answer.left_out, f"some of {name}"])]
    return answer


def _data(items: list[Any]) -> list[Any]:
    return [item if isinstance(item, str) else item.model_dump() for item in items]
