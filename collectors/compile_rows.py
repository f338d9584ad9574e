"""Compilations, graph breaks, recompilations and cache lookups as rows of the layer `compiler`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from neuron_explorer.collectors.compile_notes import Note
from neuron_explorer.collectors.readable_graph import FRAME, Place, place_of

_CACHE_NAMES = {"fx_graph": "FX graph cache", "aotautograd": "AOTAutograd cache"}
_BREAK = re.compile(r"^Graph break in user code at (?P<file>.+):(?P<line>\d+)$", re.MULTILINE)
_REASON = re.compile(
    r"^Graph Break Reason: (.*?)(?:\n\s*Hint:|\n\s*\n For more|\nUser code|\Z)", re.S | re.M
)
_STACK_LINE = re.compile(r"^Line: (?P<line>\d+), Name: (?P<function>.+?), Filename: (?P<file>.+)$")

_STAGES = {
    "backend_ns": "aot_autograd_cumulative_compile_time_us",
    "inductor_ns": "inductor_cumulative_compile_time_us",
    "code_gen_ns": "inductor_code_gen_cumulative_compile_time_us",
    "kernel_compile_ns": "triton_compile_time_us",
    "pre_grad_passes_ns": "pre_grad_pass_time_us",
    "joint_passes_ns": "joint_graph_pass_time_us",
    "post_grad_passes_ns": "post_grad_pass_time_us",
    "before_restart_ns": "dynamo_compile_time_before_restart_us",
    "gc_ns": "gc_time_us",
}
"""Attribute of a `compiler/compile` row -> torch's metric, us."""
_COUNTS = {"guards": "guard_count", "graph_ops": "graph_op_count"}

Row = dict[str, Any]
Shorten = Callable[[str], str]


def plain_row(note: Note, kind: str, name: str, *, reason: str | None) -> Row:
    return {
        "role": f"compiler/{kind}",
        "name": name,
        "start_ns": note.at_ns,
        "tid": note.tid,
        "graph_id": note.graph_id if "?" not in note.graph_id else None,
        "reason": reason or None,
    }


def cache_row(note: Note) -> Row:
    """One look into a cache, and what it said."""
    said = note.fields
    reason = ": ".join(filter(None, (said["state"], said["why"])))
    row = plain_row(note, "cache_lookup", _CACHE_NAMES[said["cache"]], reason=reason)
    row["attributes"] = json.dumps({"state": said["state"], "key": said["key"]})
    return row


def graph_break_row(note: Note, shorten: Shorten) -> Row:
    """One graph break, with its reason and the frames down to the line that broke it."""
    reason, at = _REASON.search(note.text), _BREAK.search(note.text)
    frames = note.text.partition("User code traceback:")[2].partition("Traceback (most")[0]
    places = [place_of(found) for found in FRAME.finditer(frames)]
    if not places and at:
        places = [Place(at["file"], int(at["line"]), "<unknown>")]
    said = reason[1] if reason else note.text.split("\n\n")[0]
    row = plain_row(note, "graph_break", "graph break", reason=_one_line(said))
    row["stack"] = stack_text(places, shorten)
    return row


def compile_row(note: Note, name: str | None, states: Mapping[str, Sequence[str]]) -> Row:
    """One compilation with its time by stage; its stack is for the caller to add.

    Args:
        note: The metrics that end a compilation.
        name: The function that was compiled.
        states: What each cache said.
    """
    start, duration = _span(note.fields, note.at_ns)
    row = plain_row(note, "compile", name or "compilation", reason=_failure(note.fields))
    row |= {"start_ns": start, "duration_ns": duration}
    forward = note.kind == "compilation_metrics"
    row["attributes"] = json.dumps(_attributes(note.fields, states, forward=forward))
    return row


def stack_text(places: Iterable[Place], shorten: Shorten) -> str | None:
    """Frames, one a line; None where there are none."""
    return "\n".join(f"{shorten(p.file)}({p.line}): {p.function}" for p in places) or None


def _one_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines()]
    return " ".join(word for word, _ in groupby(filter(None, lines)))


def compiled_at(said: Mapping[str, Any]) -> list[Place]:
    """Frames from the call to the function that was compiled."""
    found = [_STACK_LINE.match(line) for line in said.get("stack_trace") or ()]
    places = [place_of(line) for line in found if line]
    own = Place(said["co_filename"], int(said["co_firstlineno"]), said["co_name"])
    if not places or places[-1].function != own.function:
        places.append(own)
    return places


def _span(said: Mapping[str, Any], now_ns: int) -> tuple[int, int | None]:
    start, duration = said.get("start_time_us"), said.get("duration_us")
    if start is None and said.get("start_time") is not None:
        start = int(said["start_time"] * 1e6)
    if duration is None and said.get("entire_frame_compile_time_s") is not None:
        duration = int(said["entire_frame_compile_time_s"] * 1e6)
    length = None if duration is None else int(duration) * 1000
    return now_ns if start is None else int(start) * 1000, length


def _failure(said: Mapping[str, Any]) -> str | None:
    kind, why = said.get("fail_type"), said.get("fail_reason")
    return _one_line(f"{kind}: {why}") if kind else None


def _attributes(
    said: Mapping[str, Any], states: Mapping[str, Sequence[str]], *, forward: bool
) -> Row:
    found: Row = {"forward": forward}
    for name, metric in _STAGES.items():
        if said.get(metric) is not None:
            found[name] = int(said[metric]) * 1000
    found |= {
        name: said[metric] for name, metric in _COUNTS.items() if said.get(metric) is not None
    }
    hits = sum(int(said.get(f"inductor_fx_{w}_cache_hit_count") or 0) for w in ("local", "remote"))
    missed = said.get("inductor_fx_local_cache_miss_count")
    if hits or missed:
        found["cache"] = "cold" if missed else "warm"
    for cache, said_there in states.items():
        found[f"{cache}_cache"] = said_there[-1]
    if said.get("restart_reasons"):
        found["restarts"] = [_one_line(reason) for reason in said["restart_reasons"]]
    return found
