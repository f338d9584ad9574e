"""What one step of a trace is made of: the typical time of each part, and how it varies.

The same part of a program - the n-th call of an op with these shapes from this line - runs once a
step, so its times over the steps are a sample. Its median stands for it: a step that warms up, or
an interruption that hits another part in each step, moves no median of a part, although it moves
the duration of the step as a whole. Parts that run in less than half of the steps count with
their mean; what runs in a single step of several, as a first step does, is no part of a step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_explorer.trace import Trace

Floats = npt.NDArray[np.float64]

PLACE = ("source_file", "source_line", "source_function", "module", "name", "waits")
QUEUE = ("device", "queue")
WORK = ("input_shapes", "input_dtypes", "kernel")
"""What may differ from step to step in the same place; a cell has the most frequent."""
PYTHON = "Python"
"""Name of what the host does before an op."""
ENDING = "end of the step"
"""Name of what follows the last op of a step: the program's, and the recorder's."""
VARYING = "varying"
"""In place of shapes, where no one is that of most steps."""

# 1.4826 x MAD estimates a standard deviation, and the median of n of them has 1.2533 / sqrt(n) of
# it (both for normal errors: Rousseeuw and Croux 1993, doi:10.1080/01621459.1993.10476408).
_CELLS = """
WITH chosen AS (
    {parts}
),

parts AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY rank, step, {place} ORDER BY event_id ASC) AS occurrence,
        coalesce(min(step) OVER here < max(step) OVER here, FALSE) OR $numbers < 3 AS recurs
    FROM chosen
    WHERE NOT $stepped OR (rank, step) IN (SELECT (s.rank, s.step) FROM steps AS s)
    WINDOW here AS (PARTITION BY {place})
),

alike AS (
    SELECT
        *,
        count(*) OVER (PARTITION BY {place}, occurrence, {work}) AS like_it
    FROM parts
    WHERE recurs
),

sampled AS (
    SELECT
        {place},
        {most},
        count(*) AS seen,
        2 * count(*) > $samples AS regular,
        median(own_ns) AS typical_ns,
        mad(own_ns) AS spread_ns,
        sum(own_ns) AS total_ns,
        sum(write_bytes) AS written_bytes
    FROM alike
    GROUP BY {place}, occurrence
)

SELECT
    {place},
    {work},
    count(*) AS positions,
    bool_and(regular) AS regular,
    sum(seen) / $samples AS events,
    sum(written_bytes) / $samples AS written_bytes,
    sum(if(regular, typical_ns, total_ns / $samples)) AS own_ns,
    sum(
        if(
            regular,
            pow(1.2533 * 1.4826 * spread_ns, 2) / seen,
            pow(total_ns / $samples, 2) / seen
        )
    ) AS variance
FROM sampled
GROUP BY {place}, {work}
ORDER BY {place}, {work}
"""
_MOST = "if(2 * max(like_it) > count(*), arg_max({0}, like_it), $varying) AS {0}"
_HOST = """
    SELECT
        h.rank, h.step, h.event_id, h.source_file, h.source_line, h.source_function, h.module,
        h.name, h.input_shapes, h.input_dtypes,
        NULL AS device, NULL AS queue, NULL AS kernel,
        h.layer = 'runtime' AND h.kind = 'sync' AS waits,
        h.self_ns AS own_ns,
        e.write_bytes
    FROM host_times AS h
    INNER JOIN events AS e ON h.rank = e.rank AND h.event_id = e.event_id
    UNION ALL BY NAME
    SELECT
        h.rank, h.step, h.event_id, h.source_file, h.source_line, h.source_function, h.module,
        $python AS name, FALSE AS waits, h.python_ns AS own_ns
    FROM host_times AS h
    UNION ALL BY NAME
    SELECT
        s.rank, s.step, 0 AS event_id, $ending AS name, FALSE AS waits,
        greatest(0, s.end_ns - max(e.end_ns)) AS own_ns
    FROM steps AS s
    INNER JOIN host_times AS h ON s.rank = h.rank AND s.step = h.step
    INNER JOIN events AS e ON h.rank = e.rank AND h.event_id = e.event_id
    GROUP BY s.rank, s.step, s.end_ns
"""
_DEVICE = """
    SELECT
        w.rank, w.step, w.event_id, w.source_file, w.source_line, w.source_function, w.module,
        coalesce(w.op_name, w.name) AS name, w.input_shapes, w.input_dtypes,
        w.device, w.queue, w.name AS kernel,
        FALSE AS waits,
        w.duration_ns AS own_ns,
        NULL AS write_bytes
    FROM work AS w
"""
_MODELLED = """
    SELECT
        e.rank, e.step, e.event_id, e.source_file, e.source_line, e.source_function, e.module,
        coalesce(w.op_name, w.name) AS name, e.input_shapes, e.input_dtypes,
        w.device, w.queue, w.name AS kernel,
        FALSE AS waits,
        w.modelled_duration_ns AS own_ns,
        NULL AS write_bytes
    FROM modelled_work AS w
    INNER JOIN events AS e ON w.rank = e.rank AND w.event_id = e.event_id
"""
_STEPS = """
WITH worked AS (
    SELECT rank, step, sum(rank_busy_ns) AS busy_ns
    FROM timeline
    GROUP BY rank, step
)

SELECT
    s.rank, s.step, s.device_busy_ns, s.launches, s.work_events, s.work_ns,
    -- a device may be at work for longer than the host needs to ask for it
    if(r.accelerated, greatest(s.duration_ns, w.busy_ns), s.duration_ns) AS duration_ns
FROM steps AS s
INNER JOIN rank_spans AS r ON s.rank = r.rank
LEFT JOIN worked AS w ON s.rank = w.rank AND s.step = w.step
ORDER BY s.rank, s.step
"""
_WHOLE = """
SELECT r.rank, r.span_ns AS duration_ns, w.device_busy_ns, l.launches, w.work_events, w.work_ns
FROM rank_spans AS r
LEFT JOIN (
    SELECT t.rank, sum(t.rank_busy_ns) AS device_busy_ns, count(*) AS work_events,
        sum(t.end_ns - t.start_ns) AS work_ns
    FROM timeline AS t GROUP BY t.rank
) AS w ON r.rank = w.rank
LEFT JOIN (SELECT rank, count(*) AS launches FROM launches GROUP BY rank) AS l ON r.rank = l.rank
ORDER BY r.rank
"""
_MODELLED_STEPS = """
SELECT rank, step, span_ns, host_wait_ns, submissions
FROM modelled_steps
WHERE submissions > 0
QUALIFY step IS NOT NULL OR count(step) OVER () = 0
ORDER BY rank, step
"""


@dataclass(frozen=True)
class Cells:
    """Parts alike in place and work, a row each, by step and rank."""

    table: pa.Table
    """The columns of `PLACE`, `QUEUE` and `WORK`; `positions` (parts in a step), `regular` (whether
    all of them are in most steps), `events` (of them, a step), `own_ns` (typical time a step, ns)
    and `variance` (of that number, ns squared)."""

    @property
    def own_ns(self) -> Floats:
        return _floats(self.table, "own_ns")

    @property
    def total_ns(self) -> float:
        return float(self.own_ns.sum())


@dataclass(frozen=True)
class Sample:
    """The steps of one trace, or the whole of it where none is marked."""

    trace: Trace
    steps: pa.Table
    """A row a step and rank: `duration_ns`, `device_busy_ns`, `work_ns`, counts."""
    stepped: bool
    accelerated: bool
    modelled: bool
    """Whether device times are those of a dry run."""
    host: Cells
    device: Cells | None
    """None where the host is the only device: all its time is in `host`."""

    @property
    def count(self) -> int:
        """Steps, over all ranks; 0 where none is marked."""
        return self.steps.num_rows if self.stepped else 0

    def column(self, name: str) -> Floats:
        """One number a step; a step that has none is left out."""
        return _floats(self.steps, name)

    @property
    def typical_ns(self) -> float:
        """A step: on a CPU the sum of its parts, beside a device the median of the whole."""
        if not self.accelerated:
            return self.host.total_ns
        spans = self.column("duration_ns")
        return float(np.median(spans)) if len(spans) else 0.0

    @property
    def busy_share(self) -> float | None:
        """Median share of the step in which a device worked, 0 to 1."""
        busy, span = self.column("device_busy_ns"), self.column("duration_ns")
        if len(busy) != len(span) or not len(span) or not span.all():
            return None
        return float(np.median(np.minimum(busy / span, 1.0)))


def sample(trace: Trace) -> Sample:
    """Ask a trace for its steps and their parts."""
    stepped = trace.sql("SELECT step FROM steps LIMIT 1").num_rows > 0
    modelled = trace.sql("SELECT rank FROM modelled_work LIMIT 1").num_rows > 0
    spans = trace.sql("SELECT coalesce(bool_or(accelerated), FALSE) AS found FROM rank_spans")
    accelerated = bool(spans.to_pylist()[0]["found"])
    steps = _steps(trace, stepped=stepped, modelled=modelled)
    device = _MODELLED if modelled else _DEVICE
    numbers = set(steps.column("step").to_pylist()) if stepped else set()
    params = {"stepped": stepped, "samples": max(steps.num_rows, 1), "numbers": len(numbers)}
    return Sample(
        trace=trace,
        steps=steps,
        stepped=stepped,
        accelerated=accelerated or modelled,
        modelled=modelled,
        host=_cells(trace, _HOST, params),
        device=_cells(trace, device, params) if accelerated or modelled else None,
    )


def _steps(trace: Trace, *, stepped: bool, modelled: bool) -> pa.Table:
    measured = trace.sql(_STEPS if stepped else _WHOLE)
    if not modelled:
        return measured
    told = trace.sql(_MODELLED_STEPS)
    return told.rename_columns(["rank", "step", "duration_ns", "host_wait_ns", "launches"])


def _cells(trace: Trace, parts: str, params: Mapping[str, object]) -> Cells:
    query = _CELLS.format(
        parts=parts.strip(),
        place=", ".join((*PLACE, *QUEUE)),
        work=", ".join(WORK),
        most=", ".join(_MOST.format(column) for column in WORK),
    )
    named = {"python": PYTHON, "ending": ENDING} if "$python" in query else {}
    return Cells(trace.sql(query, {"varying": VARYING, **named, **params}))


def _floats(table: pa.Table, name: str) -> Floats:
    if name not in table.column_names:
        return np.empty(0)
    values: Sequence[float | None] = table.column(name).to_pylist()
    return np.array([value for value in values if value is not None], dtype=np.float64)
