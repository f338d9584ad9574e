"""Hardware work -> the runtime call that launched it -> the framework op around that call."""

from __future__ import annotations

import numpy as np
import polars as pl

from neuron_explorer.collectors.events import UNKNOWN, Bools, Events, Ints
from neuron_explorer.collectors.linking.nesting import NONE, Rows


def launches(events: Events) -> Rows:
    """Runtime call of each hardware row with the same correlation id; NONE elsewhere.

    Where an id was used again, the latest call that began no later than the work counts,
    else (clocks that disagree) the first one after it.
    """
    timed = events.correlation != UNKNOWN
    calls = np.flatnonzero(timed & events.roles("runtime/"))
    work = np.flatnonzero(timed & events.roles("hardware/"))
    found = np.full(len(events), NONE, np.int32)
    if len(calls) and len(work):
        found[work] = _matched(events, calls, work)
    return found


def _matched(events: Events, calls: Ints, work: Ints) -> Rows:
    def frame(rows: Ints, label: str) -> pl.DataFrame:
        columns = {
            "correlation": events.correlation[rows],
            "at": events.start[rows],
            label: rows.astype(np.int32),
        }
        return pl.DataFrame(columns).sort("at", maintain_order=True)

    right, left = frame(calls, "call"), frame(work, "work")
    matched = left.join_asof(
        right, on="at", by="correlation", strategy="backward", check_sortedness=False
    )
    late = left.join_asof(
        right, on="at", by="correlation", strategy="forward", check_sortedness=False
    )
    calls_found = matched["call"].fill_null(late["call"]).fill_null(NONE)
    result = np.full(len(events), NONE, np.int32)
    result[matched["work"].to_numpy()] = calls_found.to_numpy()
    return result[work]


def ops_by_external_id(events: Events, rows: Bools) -> Rows:
    """Ops that carry the same `External id` as the chosen rows, as far as ids are unambiguous.

    A hint, for work whose launch the trace does not hold.
    """
    external_id = events.external_id
    ops = np.flatnonzero(events.roles("framework/op", "framework/autograd"))
    ids = external_id[ops]
    known = ids != UNKNOWN
    distinct, first, count = np.unique(ids[known], return_index=True, return_counts=True)
    found = np.full(len(events), NONE, np.int32)
    wanted = np.flatnonzero(rows & (external_id != UNKNOWN) & (external_id > 0))
    if not len(distinct) or not len(wanted):
        return found
    place = np.minimum(np.searchsorted(distinct, external_id[wanted]), len(distinct) - 1)
    op = ops[known][first[place]]
    fits = (distinct[place] == external_id[wanted]) & (count[place] == 1)
    fits &= events.start[op] <= events.start[wanted]
    found[wanted[fits]] = op[fits]
    return found


def forwards(events: Events, pid: Rows) -> Rows:
    """Forward op of each backward op: same process and sequence number, begun last before it."""
    numbered = events.sequence != UNKNOWN
    backward = np.flatnonzero(numbered & events.backward)
    forward = np.flatnonzero(numbered & ~events.backward & events.roles("framework/"))
    found = np.full(len(events), NONE, np.int32)
    if not len(backward) or not len(forward):
        return found

    def frame(rows: Ints, label: str) -> pl.DataFrame:
        columns = {
            "pid": pid[rows],
            "sequence": events.sequence[rows],
            "at": events.start[rows],
            label: rows.astype(np.int32),
        }
        return pl.DataFrame(columns).sort("at", maintain_order=True)

    matched = frame(backward, "backward").join_asof(
        frame(forward, "forward"),
        on="at",
        by=["pid", "sequence"],
        strategy="backward",
        check_sortedness=False,
    )
    found[matched["backward"].to_numpy()] = matched["forward"].fill_null(NONE).to_numpy()
    return found
