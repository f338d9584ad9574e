"""Hand-made traces: a few rows as dicts become a valid `trace.parquet`.

    path = write_trace(tmp_path / "t.parquet", [op(0, 50), kernel(10, 20, op_id=0)])

A row names only the columns that matter to its test. `event_id` is the row's position, so a
link is the position of the row it points at.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from neuron_explorer.schema import (
    BY_NAME,
    KINDS,
    METADATA_PREFIX,
    SCHEMA_VERSION,
    arrow_schema,
    column_docs,
)

Row = Mapping[str, object]

H100: dict[str, object] = {
    "id": 0,
    "name": "NVIDIA H100 80GB HBM3",
    "totalGlobalMem": 85_045_346_304,
}

_JSON_COLUMNS = frozenset(
    ["input_shapes", "input_dtypes", "input_strides", "input_values", "output_shapes", "attributes"]
)


def row(
    layer: str, kind: str, start_ns: int | None, duration_ns: int | None, **columns: object
) -> Row:
    """A row of any layer and kind."""
    assert kind in KINDS[layer], f"{layer} has no kind {kind}"
    return {
        "layer": layer,
        "kind": kind,
        "start_ns": start_ns,
        "duration_ns": duration_ns,
    } | columns


def kernel(start_ns: int | None, duration_ns: int | None, **columns: object) -> Row:
    """A kernel on `cuda:0`, `stream 7`; `kind` may make it another unit of work."""
    defaults: dict[str, object] = {"name": "kernel", "device": "cuda:0", "queue": "stream 7"}
    kind = str(columns.pop("kind", "kernel"))
    return row("hardware", kind, start_ns, duration_ns, **(defaults | columns))


def op(start_ns: int, duration_ns: int, **columns: object) -> Row:
    """A framework operator on thread 1 of process 1."""
    defaults: dict[str, object] = {"name": "aten::op", "pid": 1, "tid": 1}
    return row("framework", "op", start_ns, duration_ns, **(defaults | columns))


def launch(start_ns: int, duration_ns: int, **columns: object) -> Row:
    """A runtime call on thread 1 of process 1: a kernel launch, unless `kind` says otherwise."""
    defaults: dict[str, object] = {"name": "cudaLaunchKernel", "pid": 1, "tid": 1}
    kind = str(columns.pop("kind", "launch"))
    return row("runtime", kind, start_ns, duration_ns, **(defaults | columns))


def step(number: int, start_ns: int, duration_ns: int) -> Row:
    """A `ProfilerStep#n` annotation."""
    name = f"ProfilerStep#{number}"
    return row(
        "framework", "annotation", start_ns, duration_ns, name=name, step=number, pid=1, tid=1
    )


def write_trace(
    path: Path, rows: Iterable[Row], metadata: Mapping[str, object] | None = None
) -> Path:
    """Write `rows` as a `trace.parquet` at `path`; `metadata` replaces the defaults key by key."""
    full = [_complete(position, given) for position, given in enumerate(rows)]
    values = _default_metadata(len(full)) | dict(metadata or {})
    schema = arrow_schema().with_metadata(
        {f"{METADATA_PREFIX}{key}": json.dumps(value) for key, value in values.items()}
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.Table.from_pylist(full, schema=schema), path)
    return path


def _complete(position: int, given: Row) -> dict[str, object]:
    unknown = given.keys() - BY_NAME.keys()
    assert not unknown, f"row {position} has no such columns: {sorted(unknown)}"
    full: dict[str, object] = dict.fromkeys(BY_NAME) | {"event_id": position, "rank": 0}
    for name, value in given.items():
        as_json = name in _JSON_COLUMNS and not isinstance(value, str | None)
        full[name] = json.dumps(value, separators=(",", ":")) if as_json else value
    return full


def _default_metadata(count: int) -> dict[str, object]:
    options = ["record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules"]
    return {
        "schema_version": SCHEMA_VERSION,
        "origin": {
            "tool": "kineto",
            "file": "made.json",
            "bytes": 1,
            "via": "import",
            "truncated": False,
        },
        "environment": {},
        "devices": [H100],
        "capture": dict.fromkeys(options, True),
        "clock": {},
        "dropped": {},
        "import_issues": [],
        "sources": {},
        "columns": column_docs(),
        "summary": {"rank": 0, "events": count},
    }
