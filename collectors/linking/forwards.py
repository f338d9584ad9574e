"""Backward op -> its forward op.

Both have one sequence number, and a backward op says by which thread its forward ran. But the
numbers count anew in each thread, and torch numbers those threads its own way: which row of
threads a number means must be found out. It is the thread whose ops have the sequence numbers
and the names that the backward ops ask for; of threads that fit equally well (copies of one
model) the one that came first, as torch gives out its numbers in the order of first use.
"""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from neuron_explorer.collectors.events import UNKNOWN, Events, Ints, Sparse
from neuron_explorer.collectors.linking.nesting import Rows

_BACKWARD = re.compile(r"(Backward\d*|_backward)$")
_PAIR = ["group", "thread", "track"]


def forwards(events: Events, process_of_track: Rows) -> tuple[Ints, Ints]:
    """(backward rows, forward rows): same process, thread and sequence number, begun last before.

    Args:
        events: All events.
        process_of_track: Code of the process of each track.
    """
    backward = events.sequence.where(events.backward)
    forward = events.sequence.where(~events.backward & events.roles("framework/"))
    if not len(backward.rows) or not len(forward.rows):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    asking = _frame(events, backward, "backward", process_of_track)
    known = _frame(events, forward, "forward", process_of_track)
    pairs = _matched(asking, known)
    if known.select("group", "track").n_unique() > known["group"].n_unique():
        pairs = _by_thread(events, asking, known, pairs)
    return pairs["backward"].to_numpy(), pairs["forward"].to_numpy()


def _frame(events: Events, numbers: Sparse, label: str, process_of_track: Rows) -> pl.DataFrame:
    track = events.track[numbers.rows]
    columns = {"id": numbers.values, "at": events.start[numbers.rows], label: numbers.rows}
    columns |= {"track": track, "group": process_of_track[track]}
    return pl.DataFrame(columns).sort("at", maintain_order=True)


def _matched(asking: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    return asking.join_asof(
        known, on="at", by=["group", "id"], strategy="backward", check_sortedness=False
    ).drop_nulls("forward")


def _by_thread(
    events: Events, asking: pl.DataFrame, known: pl.DataFrame, pairs: pl.DataFrame
) -> pl.DataFrame:
    """Pairs of which the forward ran in the thread that the backward names, where it names one."""
    asking = asking.drop("track").with_columns(
        thread=pl.Series(events.forward_thread.of(asking["backward"].to_numpy()))
    )
    silent = asking.filter(pl.col("thread") == UNKNOWN).select("backward")
    silent = pairs.select("backward", "forward").join(silent, on="backward", how="semi")
    asking = asking.filter(pl.col("thread") != UNKNOWN)
    of_tracks = known.partition_by("track", maintain_order=True)
    every = pl.concat([_matched(asking, part) for part in of_tracks])
    every = every.with_columns(agrees=_agree(events, every))
    chosen = _threads(every, known)
    kept = every.join(chosen, on=_PAIR, how="semi").select("backward", "forward")
    return pl.concat([silent, kept])


def _threads(every: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """The track that each thread number means."""
    scores = every.group_by(_PAIR).agg(pl.col("agrees").sum(), pl.len().alias("matched"))
    first = known.group_by("track").agg(pl.col("at").min().alias("began"))
    scores = scores.join(first, on="track").sort(
        ["group", "thread", "agrees", "matched", "began"],
        descending=[False, False, True, True, False],
    )
    taken: set[int] = set()
    rows = []
    for (group, thread), candidates in scores.group_by(["group", "thread"], maintain_order=True):
        best = candidates.row(0, named=True)
        equal = candidates.filter(
            (pl.col("agrees") == best["agrees"]) & (pl.col("matched") == best["matched"])
        )["track"].to_list()
        track = next((free for free in equal if free not in taken), equal[0])
        taken.add(track)
        rows.append((group, thread, track))
    return pl.DataFrame(rows, {name: every.schema[name] for name in _PAIR}, orient="row")


def _agree(events: Events, pairs: pl.DataFrame) -> pl.Series:
    """Whether a backward op has the name of the forward op: `MulBackward0` and `aten::mul`."""
    plain = [_plain(text) for text in events.names.name.texts]
    code = {text: number for number, text in enumerate(dict.fromkeys(plain))}
    codes = np.array([*(code[text] for text in plain), -1], np.int32)
    backward = codes[events.name[pairs["backward"].to_numpy()]]
    return pl.Series(backward == codes[events.name[pairs["forward"].to_numpy()]])


def _plain(name: str) -> str:
    bare = _BACKWARD.sub("", name.rpartition(": ")[2])
    return bare.rpartition("::")[2].replace("_", "").lower()
