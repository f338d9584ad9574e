"""Tools that look into a trace: sql, schema, source, timeline, roofline."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from neuron_explorer.devices import all_chips
from neuron_explorer.errors import TraceError
from neuron_explorer.mcp import source_lines, window
from neuron_explorer.mcp.asking_tools import TraceName, bounds
from neuron_explorer.mcp.data_answers import (
    ChipRoof,
    ColumnMeaning,
    RoofGroup,
    RooflineAnswer,
    SchemaAnswer,
    SourceAnswer,
    SqlAnswer,
    TableMeaning,
    TermMeaning,
    TimelineAnswer,
)
from neuron_explorer.mcp.findings_text import rows_of
from neuron_explorer.mcp.opened import OpenTraces
from neuron_explorer.mcp.trust import trust_in
from neuron_explorer.reports.reference import reference
from neuron_explorer.reports.schema_report import chosen
from neuron_explorer.trace import Trace

Grouping = Literal["op", "kernel", "line", "module", "family", "dtype", "phase", "step"]

_GROUPINGS: dict[str, str] = {
    "op": "coalesce(op_name, name)",
    "kernel": "name",
    "line": "source_file || ':' || source_line",
    "module": "module",
    "family": "family",
    "dtype": "dtype",
    "phase": "phase",
    "step": "step::VARCHAR",
}
_ROOFS = """
WITH parts AS (
    SELECT coalesce({group}, 'unknown') AS grouped, bound,
        count(*) AS events,
        sum(device_time_ns) AS device_time_ns,
        sum(device_time_ns) FILTER (WHERE floor_ns IS NOT NULL) AS known_ns,
        sum(floor_ns) AS floor_ns,
        sum(bytes) AS bytes,
        sum(flops) AS flops,
        sum(bytes) FILTER (WHERE flops IS NOT NULL) AS both_bytes,
        sum(flops) FILTER (WHERE bytes IS NOT NULL) AS both_flops
    FROM roofline GROUP BY grouped, bound
)

SELECT grouped AS "group",
    sum(events)::BIGINT AS events,
    sum(device_time_ns)::BIGINT AS device_time_ns,
    sum(bytes)::BIGINT AS bytes,
    sum(flops)::BIGINT AS flops,
    round(sum(floor_ns))::BIGINT AS floor_ns,
    sum(floor_ns) / nullif(sum(known_ns), 0) AS share_of_floor,
    sum(both_flops) / nullif(sum(both_bytes), 0) AS intensity,
    max_by(bound, device_time_ns) AS bound,
    coalesce(sum(known_ns), 0) / nullif(sum(device_time_ns), 0) AS cost_known
FROM parts GROUP BY grouped HAVING sum(device_time_ns) > 0
ORDER BY device_time_ns DESC, "group"
"""
_CHIPS = "SELECT DISTINCT chip, modelled FROM devices WHERE chip IS NOT NULL ORDER BY ALL"


class LookingTools:
    NAMES: ClassVar[tuple[str, ...]] = ("sql", "schema", "source", "timeline", "roofline")

    def __init__(self, traces: OpenTraces) -> None:
        self._traces = traces

    def sql(
        self,
        query: Annotated[
            str, Field(description="One SELECT, WITH, DESCRIBE, SHOW, SUMMARIZE or EXPLAIN.")
        ],
        trace: TraceName = None,
        limit: Annotated[int, Field(ge=0, le=10_000, description="Most rows.")] = 100,
        timeout_s: Annotated[float, Field(gt=0, le=60, description="Most seconds.")] = 30,
    ) -> SqlAnswer:
        """Ask the views of a trace in DuckDB's SQL, read-only.

        No file, network or setting can be reached; time, memory and rows are bounded. Call schema
        first, for names and units.

        Times are int64 ns, bytes and flops whole numbers; NULL means unknown, never 0. Unix times
        exceed what JavaScript keeps exactly: subtract min(start_ns) where they are to be shown.
        """
        with self._traces.using(trace) as opened:
            found = opened.trace().query(query, limit=limit, timeout_s=timeout_s)
            return SqlAnswer(trace=opened.name, trust=trust_in(opened), result=rows_of(found))

    def schema(
        self,
        names: Annotated[
            list[str] | None,
            Field(max_length=20, description="Views or word lists to explain; none: the index."),
        ] = None,
    ) -> SchemaAnswer:
        """What the views hold: each column with type, unit, meaning and what it references.

        Also keys, the rules of NULL, and word lists (layers, notes, issues, thresholds, analyzers).

        Needs no trace. Without names: an index of everything. The views work, ops, roofline, lines,
        steps, syncs, kernels and metric_definitions answer most questions.
        """
        if not names:
            known = reference()
            index = {table.name: table.doc for table in known.tables}
            index |= {words.name: words.doc for words in known.vocabularies}
            return SchemaAnswer(rules=list(known.rules), index=index)
        found = [chosen(name) for name in names]
        return SchemaAnswer(
            rules=list(found[0].rules),
            tables=[
                TableMeaning(
                    name=table.name,
                    meaning=table.doc,
                    key=list(table.key),
                    columns=[
                        ColumnMeaning(
                            name=c.name,
                            type=c.type,
                            unit=c.unit,
                            meaning=c.doc,
                            references=c.references,
                        )
                        for c in table.columns
                    ],
                )
                for each in found
                for table in each.tables
            ],
            words=[
                TermMeaning(name=term.name, value=term.value, meaning=term.doc)
                for each in found
                for words in each.vocabularies
                for term in words.terms
            ],
        )

    def source(
        self,
        file: Annotated[
            str | None, Field(description="Path as events have it, or its end; none: list files.")
        ] = None,
        trace: TraceName = None,
        first_line: Annotated[int, Field(ge=1, description="Where to begin.")] = 1,
        lines: Annotated[int, Field(ge=1, le=400, description="Most lines.")] = 120,
    ) -> SourceAnswer:
        """The source lines that the trace kept, each with what it costs.

        Device and host time (ns), bytes, FLOPs, what bounds their work, findings that point there.

        The text is what the trace kept when it was recorded; no file is opened. Without a file:
        the files of the trace, the costliest first.
        """
        with self._traces.using(trace) as opened:
            report = opened.report()
            answer = SourceAnswer(trace=opened.name, trust=trust_in(opened))
            asked = opened.trace()
            if file is None:
                answer.files = source_lines.files(asked)
                return answer
            answer.file = source_lines.resolve_file(asked, file)
            every = source_lines.annotated(asked, answer.file, report.findings)
            after = [line for line in every if line.line >= first_line]
            answer.lines = after[:lines]
            answer.next_line = after[lines].line if len(after) > lines else None
            return answer

    def timeline(
        self,
        trace: TraceName = None,
        from_ms: Annotated[
            float, Field(ge=0, description="Begin (ms), from the rank's first event.")
        ] = 0.0,
        to_ms: Annotated[
            float | None, Field(gt=0, description="End (ms); none: the end of the recording.")
        ] = None,
        rank: Annotated[int | None, Field(description="None: the first one.")] = None,
        names: Annotated[int, Field(ge=1, le=30, description="Names a lane.")] = 5,
        lanes: Annotated[int, Field(ge=1, le=60, description="Most lanes.")] = 12,
    ) -> TimelineAnswer:
        """What ran between two moments, added up by queue and host thread.

        How busy each was and what took most of it. Durations are cut at the window's ends.
        """
        with self._traces.using(trace) as opened:
            answer = window.seen_between(
                opened.trace(), window.Window(rank, from_ms, to_ms, names, lanes)
            )
            answer.trace, answer.trust = opened.name, trust_in(opened)
            return answer

    def roofline(
        self,
        trace: TraceName = None,
        by: Annotated[Grouping, Field(description="What to add up by.")] = "op",
        limit: Annotated[int, Field(ge=1, le=100, description="Most groups.")] = 15,
    ) -> RooflineAnswer:
        """Device time against the chip's roof, grouped.

        Bytes, FLOPs, intensity, the floor below which no time can be on this chip, the share of it
        reached, and what holds the work back.

        Time is measured; bytes and FLOPs are derived from shapes (cost_known says for how much of
        the time); peaks are the vendor's, each with its origin.
        """
        with self._traces.using(trace) as opened:
            asked = opened.trace()
            rows = asked.sql(_ROOFS.format(group=_GROUPINGS[by])).to_pylist()
            if not rows:
                raise TraceError("no unit of work has a measured time", hint="see trust")
            return RooflineAnswer(
                trace=opened.name,
                trust=trust_in(opened),
                by=by,
                groups=[RoofGroup(**row) for row in rows[:limit]],
                groups_left_out=max(len(rows) - limit, 0),
                bounds=bounds(asked),
                chips=_chips(asked),
            )


def _chips(trace: Trace) -> list[ChipRoof]:
    known: dict[str, Any] = {chip.name: chip for chip in all_chips()}
    used = [row for row in trace.sql(_CHIPS).to_pylist() if row["chip"] in known]
    return [
        ChipRoof(
            chip=row["chip"],
            modelled=row["modelled"],
            bandwidth_bytes_per_s=known[row["chip"]].bandwidth_bytes_per_s,
            peak_flops=dict(known[row["chip"]].peak_flops),
            origin=dict(known[row["chip"]].sources),
        )
        for row in used
    ]
