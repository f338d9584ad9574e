"""Hardware work -> the runtime call that launched it."""

from __future__ import annotations

import numpy as np
import polars as pl

from neuron_explorer.collectors.events import Events, Ints, Sparse
from neuron_explorer.collectors.linking.nesting import NONE, Rows


def launches(events: Events) -> Rows:
    """Runtime call of each hardware row with the same correlation id; NONE elsewhere.

    Where an id was used again, the latest call that began no later than the work counts,
    else (clocks that disagree) the first one after it.
    """
    calls = events.correlation.where(events.roles("runtime/"))
    work = events.correlation.where(events.roles("hardware/"))
    found = np.full(len(events), NONE, np.int32)
    if not len(calls.rows) or not len(work.rows):
        return found
    right, left = _frame(events, calls, "call"), _frame(events, work, "work")
    matched = left.join_asof(right, on="at", by="id", strategy="backward", check_sortedness=False)
    late = left.join_asof(right, on="at", by="id", strategy="forward", check_sortedness=False)
    call = matched["call"].fill_null(late["call"]).fill_null(NONE)
    found[matched["work"].to_numpy()] = call.to_numpy()
    return found


def _frame(events: Events, ids: Sparse, label: str) -> pl.DataFrame:
    columns = {"id": ids.values, "at": events.start[ids.rows], label: ids.rows}
    return pl.DataFrame(columns).sort("at", maintain_order=True)


def launches_by_flow(events: Events) -> tuple[Rows, Rows]:
    """(hardware rows, host rows) that a flow joins, for back ends without correlation ids.

    A flow stands at the start of the event it leaves and of the one it reaches.
    """
    begins = events.flow.where(events.roles("meta/flow_start"))
    ends = events.flow.where(events.roles("meta/flow_end"))
    if not len(begins.rows) or not len(ends.rows):
        return np.empty(0, np.int32), np.empty(0, np.int32)
    work = _at(events, np.flatnonzero(events.roles("hardware/")), "work")
    host = _at(events, np.flatnonzero(events.roles("runtime/", "framework/op")), "host")
    joined = (
        _ends(events, begins, "host_")
        .join(_ends(events, ends, "work_"), on="id", maintain_order="left")
        .join(work, left_on=["work_track", "work_at"], right_on=["track", "at"])
        .join(host, left_on=["host_track", "host_at"], right_on=["track", "at"])
    )
    # several host events may begin at once: the last one begun in the file is the innermost
    joined = joined.sort("work", "host").unique("work", keep="last", maintain_order=True)
    return joined["work"].to_numpy(), joined["host"].to_numpy()


def _at(events: Events, rows: Ints, label: str) -> pl.DataFrame:
    return pl.DataFrame(
        {"track": events.track[rows], "at": events.start[rows], label: rows.astype(np.int32)}
    )


def _ends(events: Events, flows: Sparse, prefix: str) -> pl.DataFrame:
    columns = {"track": events.track[flows.rows], "at": events.start[flows.rows]}
    named = {prefix + name: column for name, column in columns.items()}
    return pl.DataFrame({"id": flows.values, **named})


def ops_by_external_id(events: Events) -> tuple[Rows, Rows]:
    """(hardware rows, ops with the same `External id`), where the id is unambiguous.

    A hint, for work whose launch the trace does not hold.
    """
    ops = events.external_id.where(events.roles("framework/op", "framework/autograd"))
    work = events.external_id.where(events.roles("hardware/"))
    distinct, first, count = np.unique(ops.values, return_index=True, return_counts=True)
    if not len(distinct) or not len(work.rows):
        return np.empty(0, np.int32), np.empty(0, np.int32)
    place = np.minimum(np.searchsorted(distinct, work.values), len(distinct) - 1)
    op = ops.rows[first[place]]
    fits = (distinct[place] == work.values) & (count[place] == 1) & (work.values > 0)
    fits &= events.start[op] <= events.start[work.rows]
    return work.rows[fits], op[fits]
