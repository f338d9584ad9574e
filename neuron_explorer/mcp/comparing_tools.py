"""The tool that sets two traces against each other: compare."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from neuron_explorer.analyzers.compare import Comparison, Row, Verdict, compare
from neuron_explorer.mcp.data_answers import (
    CompareAnswer,
    FindingCompared,
    MetricCompared,
    RowCompared,
    StepCompared,
)
from neuron_explorer.mcp.findings_text import short
from neuron_explorer.mcp.opened import OpenTraces
from neuron_explorer.mcp.trust import trust_in
from neuron_explorer.reports import formats


class ComparingTools:
    NAMES: ClassVar[tuple[str, ...]] = ("compare",)

    def __init__(self, traces: OpenTraces) -> None:
        self._traces = traces

    def compare(
        self,
        base: Annotated[str, Field(description="Trace as it was: short name or path.")],
        new: Annotated[str, Field(description="Trace as it is now.")],
        rows: Annotated[int, Field(ge=1, le=200, description="Most rows.")] = 20,
    ) -> CompareAnswer:
        """What changed between two traces of one program, beyond noise.

        Step time, source lines, modules, ops, queues and findings: better, worse, new, gone. What
        the machine did to the same work is taken out; the noise band comes from the steps of both.
        Equal runs give changed = false. With fewer than two steps a side, noise is unknown.
        """
        with self._traces.using(base) as before, self._traces.using(new) as after:
            found = compare(before.trace(), after.trace(), (before.report(), after.report()))
            answer = answered(found, rows)
            answer.trace, answer.base = after.name, before.name
            answer.trust, answer.base_trust = trust_in(after), trust_in(before)
            return answer


def answered(found: Comparison, most: int) -> CompareAnswer:
    """The changes alone: what stayed the same is not listed."""
    changed = [row for row in found.rows if row.changed]
    step = found.step
    return CompareAnswer(
        changed=found.changed,
        changes=found.changes,
        step=StepCompared(
            base_ns=step.base_ns,
            new_ns=step.new_ns,
            program_ns=step.program_ns,
            machine_ns=step.machine_ns,
            band_ns=step.band_ns,
            verdict=str(step.verdict),
        ),
        rows=[_row(row) for row in changed[:most]],
        rows_left_out=max(len(changed) - most, 0),
        findings=[
            FindingCompared(
                verdict=str(each.verdict),
                counted=each.counted,
                was=each.was,
                finding=short(each.latest),
            )
            for each in found.findings
            if each.verdict is not Verdict.SAME
        ][:most],
        metrics=[
            MetricCompared(
                name=each.name,
                unit=each.unit,
                base=each.base,
                new=each.new,
                band=each.band,
                verdict=str(each.verdict),
                missing=each.missing,
            )
            for each in found.metrics
        ],
        notes=list(found.notes),
    )


def _row(row: Row) -> RowCompared:
    time = row.times.get(row.measure)
    line = None if row.pair is None else row.pair.latest
    return RowCompared(
        kind=row.kind,
        name=row.name,
        place=None if line is None else formats.place(line.file, line.number),
        verdict=str(row.verdict),
        delta_ns=row.delta_ns,
        measure=row.measure,
        base_ns=None if time is None else time.base_ns,
        new_ns=None if time is None else time.new_ns,
        band_ns=None if time is None else time.band_ns,
    )
