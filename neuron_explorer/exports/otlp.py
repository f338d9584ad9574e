"""`otlp-json`: spans for OpenTelemetry, in the JSON form of OTLP.

A resource for each process and device, a span for each event that lasted. A span's parent is
the event it is in; of work on a device, the call that launched it. Backward ops link to their
forward ops.

The format: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding (ids in hex, 64-bit
numbers as text).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from neuron_explorer import __version__
from neuron_explorer.exports.sink import Sink
from neuron_explorer.exports.window import Part
from neuron_explorer.trace import Trace

_ATTRIBUTES: dict[str, str] = {
    "code.file.path": "source_file",
    "code.line.number": "source_line",
    "code.function.name": "source_function",
    "thread.name": "thread_name",
    "neuron_explorer.layer": "layer",
    "neuron_explorer.kind": "kind",
    "neuron_explorer.queue": "queue",
    "neuron_explorer.step": "step",
    "neuron_explorer.module": "module",
    "neuron_explorer.phase": "phase",
    "neuron_explorer.bound": "bound",
    "neuron_explorer.flops": "flops",
    "neuron_explorer.read_bytes": "read_bytes",
    "neuron_explorer.write_bytes": "write_bytes",
    "neuron_explorer.cost_via": "cost_via",
    "neuron_explorer.input_shapes": "input_shapes",
    "thread.id": "tid",
}
"""Names of OpenTelemetry's conventions where there are any -> column."""
_COLUMNS = ", ".join(f"e.{name}" for name in _ATTRIBUTES.values() if name != "bound")
_QUERY = f"""
WITH shown AS (
    SELECT * FROM events
    WHERE {{condition}} AND duration_ns IS NOT NULL AND start_ns IS NOT NULL
        AND layer NOT IN ('meta', 'memory')
),
placed AS (
    SELECT *, layer = 'hardware' OR kind = 'device_annotation' AS on_device,
        CASE WHEN layer = 'hardware' THEN coalesce(launch_id, op_id) ELSE parent_id END AS up
    FROM shown
)
SELECT e.rank, e.event_id, e.name, e.start_ns, e.end_ns, e.on_device, e.device, e.pid,
    p.event_id AS parent, f.event_id AS forward, r.bound, {_COLUMNS}
FROM placed AS e
LEFT JOIN shown AS p ON e.rank = p.rank AND e.up = p.event_id
LEFT JOIN shown AS f ON e.rank = f.rank AND e.forward_id = f.event_id
LEFT JOIN roofline AS r ON e.rank = r.rank AND e.event_id = r.event_id
ORDER BY e.rank, e.on_device, if(e.on_device, e.device, e.pid::VARCHAR), e.start_ns, e.event_id
"""
_INTERNAL = 1


def write_otlp(trace: Trace, part: Part, out: Sink) -> dict[str, object]:
    """One trace: its id is a hash of the capture, so exporting twice gives the same ids."""
    trace_id = _trace_id(trace)
    resources = spans = 0
    resource: tuple[object, ...] | None = None
    out.write('{"resourceSpans":[')
    for row in _rows(trace, part):
        of = (row["rank"], row["on_device"], row["device"] if row["on_device"] else row["pid"])
        if of != resource:
            out.write("]}]},\n" if resource is not None else "\n")
            out.write(_opening(trace, row))
            resource, resources = of, resources + 1
        else:
            out.write(",\n")
        out.write(_json(_span(row, trace_id)))
        spans += 1
    out.write("]}]}\n]}\n" if resource is not None else "]}\n")
    return {"spans": spans, "resources": resources, "trace_id": trace_id}


def _rows(trace: Trace, part: Part) -> Iterator[dict[str, Any]]:
    for batch in trace.batches(_QUERY.format(condition=part.condition)):
        yield from batch.to_pylist()


def _trace_id(trace: Trace) -> str:
    told = [
        [facts.get("origin"), facts.get("clock"), facts.get("summary")]
        for facts in trace.metadata.values()
    ]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:32]


def _span_id(rank: int, event_id: int) -> str:
    """Sixteen hex digits, never all zero: that would be no id."""
    return f"{(rank << 40) + event_id + 1:016x}"


def _opening(trace: Trace, row: Mapping[str, Any]) -> str:
    """A resource up to its first span."""
    environments = (facts.get("environment") or {} for facts in trace.metadata.values())
    hosts = (e.get("hostname") or e.get("host") for e in environments)
    known = {
        "service.name": "pytorch",
        "host.name": next((host for host in hosts if isinstance(host, str)), None),
        "process.pid": None if row["on_device"] else row["pid"],
        "neuron_explorer.device": row["device"] if row["on_device"] else None,
        "neuron_explorer.rank": row["rank"],
    }
    resource = _json({"attributes": _attributes(known)})
    scope = _json({"name": "neuron_explorer", "version": __version__})
    return f'{{"resource":{resource},"scopeSpans":[{{"scope":{scope},"spans":[\n'


def _span(row: Mapping[str, Any], trace_id: str) -> dict[str, object]:
    span: dict[str, object] = {
        "traceId": trace_id,
        "spanId": _span_id(row["rank"], row["event_id"]),
    }
    if row["parent"] is not None and row["parent"] != row["event_id"]:
        span["parentSpanId"] = _span_id(row["rank"], row["parent"])
    span |= {
        "name": row["name"] or "unknown",
        "kind": _INTERNAL,
        "startTimeUnixNano": str(row["start_ns"]),
        "endTimeUnixNano": str(row["end_ns"]),
        "attributes": _attributes({k: row[column] for k, column in _ATTRIBUTES.items()}),
    }
    if row["forward"] is not None:
        span["links"] = [{"traceId": trace_id, "spanId": _span_id(row["rank"], row["forward"])}]
    return span


def _attributes(known: Mapping[str, object]) -> list[dict[str, object]]:
    return [
        {"key": key, "value": _value(value)} for key, value in known.items() if value is not None
    ]


def _value(value: object) -> dict[str, object]:
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": str(value)}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
