"""The records of torch.compile's structured trace that matter here, each as a note.

The trace is the log that tlparse reads: records of a metadata object and a text, each of one
compilation (`2/0`: frame and how often it was compiled).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

_GRAPHS = frozenset(
    [
        "aot_backward_graph",
        "aot_forward_graph",
        "aot_inference_graph",
        "aot_joint_graph",
        "dynamo_output_graph",
        "inductor_output_code",
        "inductor_post_grad_graph",
    ]
)
METRICS = frozenset(["bwd_compilation_metrics", "compilation_metrics"])
MAPPINGS = "inductor_provenance_tracking_node_mappings"
TRACES = "inductor_provenance_tracking_kernel_stack_traces"
_ARTIFACTS = frozenset(
    [
        "dynamo_graph_break_reason",
        "inductor_post_grad_graph",
        "recompile_reasons",
        MAPPINGS,
        TRACES,
    ]
)
_CACHE = re.compile(r"^(?P<cache>fx_graph|aotautograd)_cache_(?P<state>\w+)$")
_CACHE_NAMES = {"fx_graph": "FX graph cache", "aotautograd": "AOTAutograd cache"}
_HANDLES = re.compile(r"\[Provenance debug handles\] (.+)$", re.MULTILINE)
_KEY = re.compile(r'"key": "(\w+)"')
_BYPASSED = re.compile(r'"cache_bypass_reason": "((?:[^"\\]|\\.)*)"')


class Note(NamedTuple):
    """One record that matters here."""

    kind: str
    at_ns: int
    tid: int
    graph_id: str
    fields: Mapping[str, Any]
    text: str


def note_of(metadata: Mapping[str, Any], text: str | None, at_ns: int, tid: int) -> Note | None:
    """The note of a record of the structured trace; None where it says nothing needed here.

    Args:
        metadata: The record's object, its name being one of the keys.
        text: Its payload.
        at_ns: When it was written, Unix ns.
        tid: Native id of the thread that wrote it.
    """
    kind = next((name for name in metadata if name in _GRAPHS or name in METRICS), None)
    fields: Mapping[str, Any] = metadata[kind] if kind in METRICS else {}
    if kind is None and "artifact" in metadata:
        kind, fields = _artifact(str(metadata["artifact"].get("name")), text or "")
    if kind is None:
        return None
    graph_id = f"{metadata.get('frame_id', '?')}/{metadata.get('frame_compile_id', '?')}"
    if kind == "cache":
        text = ""
    elif kind == "inductor_output_code":
        text = "\n".join(_HANDLES.findall(text or ""))
    return Note(kind, at_ns, tid, graph_id, fields, text or "")


def _artifact(name: str, text: str) -> tuple[str | None, Mapping[str, Any]]:
    if name in _ARTIFACTS:
        return name, {}
    if found := _CACHE.match(name):
        key, why = _KEY.search(text), _BYPASSED.search(text)
        said = {"key": key and key[1], "why": why and json.loads(f'"{why[1]}"')}
        return "cache", {**found.groupdict(), **said}
    return None, {}
