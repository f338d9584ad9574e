"""The event table of `trace.parquet`: every column, its type, unit and meaning. The one place.

The Arrow schema, the DuckDB views, the text of `neuron-explorer schema` and the column
descriptions inside each Parquet file all derive from `COLUMNS`.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

SCHEMA_VERSION = "1.1.0"
"""Removed, renamed or retyped column: MAJOR. Added column: MINOR. Words: PATCH."""

METADATA_PREFIX = "neuron_explorer."
"""File-level keys are `neuron_explorer.<key>`; each value is JSON text."""

METADATA_KEYS: dict[str, str] = {
    "schema_version": "Semantic version of this table.",
    "origin": "Where the events came from: tool, file name, bytes, capture or import.",
    "environment": "What the capture said of host, versions and distributed set-up.",
    "devices": "List of device properties as the capture gave them (name, memory, SMs).",
    "capture": "Capture options that were on: shapes, stacks, memory, flops, modules.",
    "clock": "Base of the time stamps and how they became Unix nanoseconds.",
    "dropped": "Events lost by the profiler itself, by kind, where it says so.",
    "import_issues": "What could not be used as it stood: kind, count, first position, example.",
    "sources": "Source lines around every hit by file, with a hash of the file.",
    "columns": "Type, unit and meaning of every column.",
    "summary": "Row counts by layer, first and last time stamp, rank.",
}

LAYERS: dict[str, str] = {
    "python": "Python frames.",
    "framework": "Operators, annotations, autograd and modules of the framework.",
    "runtime": "Calls into the device's runtime or driver.",
    "hardware": "Work that ran on a hardware queue.",
    "compiler": "Compilations and their stages, graph breaks, recompilations, cache look-ups.",
    "memory": "Allocations and frees.",
    "host": "Anything else on the host: input waits, gc, gloo's collectives, counters, slices.",
    "meta": "Rows about the trace itself (flows, names, pseudo rows). In no total.",
}

KINDS: dict[str, tuple[str, ...]] = {
    "python": ("frame",),
    "framework": ("op", "annotation", "autograd", "module", "line", "device_annotation"),
    "runtime": ("launch", "graph_launch", "copy", "sync", "allocation", "call"),
    "hardware": ("kernel", "memcpy", "memset", "collective", "engine", "dma"),
    "compiler": ("compile", "graph_break", "recompile", "cache_lookup", "stage"),
    "memory": ("alloc", "free"),
    "host": (
        "gc",
        "input_wait",
        "collective",
        "overhead",
        "counter",
        "slice",
        "instant",
        "sync",
    ),
    "meta": ("flow_start", "flow_step", "flow_end", "metadata", "span", "marker", "unreadable"),
}
"""The kinds each layer knows. `host/slice` also takes rows of unknown categories."""

WORK_KINDS = KINDS["hardware"]

PHASES = ("forward", "backward", "optimizer", "input", "other", "compile")
"""`compile`: what ran only because torch.compile was at work, such as tensors without data."""

_TEXT = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True)
class Column:
    """One column of the event table. A NULL always means unknown or not applicable."""

    name: str
    type: pa.DataType
    group: str
    doc: str
    unit: str = ""
    nullable: bool = True


def _text(name: str, group: str, doc: str, *, nullable: bool = True) -> Column:
    return Column(name, _TEXT, group, doc, nullable=nullable)


def _int(name: str, group: str, doc: str, unit: str = "", *, nullable: bool = True) -> Column:
    return Column(name, pa.int64(), group, doc, unit, nullable)


COLUMNS: tuple[Column, ...] = (
    _int("event_id", "identity", "Dense row number, unique in the file.", nullable=False),
    Column(
        "rank",
        pa.int32(),
        "identity",
        "Distributed rank; the file's position among those imported where the trace names none.",
        nullable=False,
    ),
    _int("pid", "identity", "Process id; NULL for pseudo processes such as `Spans`."),
    _int("tid", "identity", "Thread id; NULL for pseudo threads and device queues."),
    _text("pid_raw", "identity", "Process id as the trace wrote it, where that is no integer."),
    _text("tid_raw", "identity", "Thread id as the trace wrote it, where that is no integer."),
    _text("thread_name", "identity", "Name of the thread, where the trace gives one."),
    _text("layer", "what", f"One of {', '.join(LAYERS)}.", nullable=False),
    _text("kind", "what", "What sort of event of its layer.", nullable=False),
    _text("name", "what", "Name as recorded, true UTF-8."),
    _text("category", "what", "Category as the trace wrote it."),
    _int("start_ns", "when", "Start, Unix epoch; NULL where the recorded time is unusable.", "ns"),
    _int("duration_ns", "when", "Duration, repaired where it had to be; NULL = unknown.", "ns"),
    _int("self_ns", "when", "Part of the duration in which no later-begun event ran.", "ns"),
    _int("compile_ns", "when", "Part of the duration in which torch.compile compiled.", "ns"),
    _int("raw_start_ns", "when", "Start as recorded, only where `start_ns` differs.", "ns"),
    _int("raw_duration_ns", "when", "Duration as recorded, only where it was repaired.", "ns"),
    _int("step", "when", "Number of the training step (`ProfilerStep#n`) it belongs to."),
    _text("device", "where", "Device that ran it: `cuda:0`, `hip:0`, `xpu:0`, `cpu`."),
    _text("queue", "where", "Hardware queue: `stream 7`, `TensorE`, `dma 3`."),
    _text(
        "queue_kind", "where", "Kind of the queue, where its source says: compute, copy, dma, ..."
    ),
    _int("stream", "where", "Stream number as recorded."),
    _int("parent_id", "links", "Innermost event that encloses it on the same thread."),
    _int("launch_id", "links", "Runtime call that launched this hardware work."),
    _int("op_id", "links", "Innermost framework op that caused it."),
    _int("forward_id", "links", "Forward op of this backward op."),
    _int("correlation", "links", "Correlation or flow id as recorded."),
    _int("external_id", "links", "`External id` as recorded: a hint, never trusted alone."),
    _int("sequence", "links", "Autograd sequence number."),
    _int("forward_thread", "links", "Autograd's thread number of the forward op; 0 in forward."),
    _text(
        "link_via", "links", "How launch or op was found: correlation, external_id, flow, order."
    ),
    _text("source_file", "source", "File of the innermost model frame: not torch, not stdlib."),
    Column("source_line", pa.int32(), "source", "Line of that frame (see `source_via`)."),
    _text("source_function", "source", "Function of that frame."),
    _text("user_file", "source", "File of the innermost frame of the user's own code."),
    Column("user_line", pa.int32(), "source", "Line of that frame."),
    _text("user_function", "source", "Function of that frame."),
    _text("source_via", "source", "line, call, function, forward, compiled or launch."),
    Column(
        "sources",
        pa.list_(pa.string()),
        "source",
        "`file:line` of every line a compiled kernel comes from, that of most of it first.",
    ),
    _text("stack", "source", "Model frames around it, outermost first, one a text line."),
    _text("module", "source", "Module path or instance: `layers.3.mlp`, `Linear_7`."),
    _text("module_class", "source", "Class of that module."),
    _text("phase", "source", f"One of {', '.join(PHASES)}."),
    Column(
        "recomputed",
        pa.bool_(),
        "source",
        "Forward work that ran again inside a backward, by torch.utils.checkpoint, as far as "
        "the capture or Python frames show it.",
    ),
    _text("input_shapes", "work", "JSON list of input shapes as recorded."),
    _text("input_dtypes", "work", "JSON list of input dtypes as recorded."),
    _text("input_strides", "work", "JSON list of input strides as recorded."),
    _text("input_values", "work", "JSON list of scalar arguments (`Concrete Inputs`)."),
    _text("output_shapes", "work", "JSON list of output shapes, derived from the inputs."),
    _text("family", "work", "Family of the op's cost: elementwise, matmul, norm, copy, ..."),
    _int("flops", "work", "Floating-point operations, a multiply-add counted as two.", "flop"),
    _int("read_bytes", "work", "Bytes it must read from memory.", "bytes"),
    _int("write_bytes", "work", "Bytes it must write to memory.", "bytes"),
    _text("cost_via", "work", "formula, meta, compiler, counter or reported."),
    _text("cost_note", "work", "Why the cost is NULL, or what was assumed."),
    _text("graph_id", "compile", "Compiled frame and its recompilation count: `2/0`."),
    Column("compiled", pa.bool_(), "compile", "Whether it ran inside a compiled region."),
    _text("reason", "compile", "Reason of a graph break or recompilation."),
    _int("alloc_bytes", "memory", "Bytes allocated; negative when freed.", "bytes"),
    _int("device_allocated", "memory", "Device allocator's total after this event.", "bytes"),
    _int("device_reserved", "memory", "Held by the device's allocator after this event.", "bytes"),
    _int("modelled_start_ns", "modelled", "Start on the modelled device's own timeline.", "ns"),
    _int(
        "modelled_duration_ns",
        "modelled",
        "Duration that a model of the chip gives it; never measured.",
        "ns",
    ),
    Column("attributes", pa.string(), "rest", "JSON object of the recorded args without a column."),
)

BY_NAME: dict[str, Column] = {column.name: column for column in COLUMNS}


def arrow_schema() -> pa.Schema:
    """Arrow schema of the event table; unit and meaning are field metadata."""
    return pa.schema(
        [
            pa.field(c.name, c.type, c.nullable, metadata={"doc": c.doc, "unit": c.unit})
            for c in COLUMNS
        ]
    )


def stored_schema(metadata: Mapping[str, str]) -> str:
    """What a file keeps of the schema under `ARROW:schema`, where readers of Parquet look for it.

    Names and texts are plain there: a reader of its own has no use for our dictionaries. pyarrow
    takes the file's metadata from here too, where it is, and looks nowhere else.
    """
    plain = {_TEXT: pa.string()}
    fields = [field.with_type(plain.get(field.type, field.type)) for field in arrow_schema()]
    kept = pa.schema(fields).with_metadata({**metadata})
    return base64.b64encode(kept.serialize().to_pybytes()).decode()


def column_docs() -> list[dict[str, str]]:
    """`name, type, unit, group, doc` of every column, as kept in each file's metadata."""
    return [
        {"name": c.name, "type": type_name(c), "unit": c.unit, "group": c.group, "doc": c.doc}
        for c in COLUMNS
    ]


def type_name(column: Column) -> str:
    """The SQL type a reader of the Parquet file sees."""
    names = {_TEXT: "VARCHAR", pa.string(): "VARCHAR", pa.int64(): "BIGINT"}
    names |= {pa.int32(): "INTEGER", pa.bool_(): "BOOLEAN", pa.list_(pa.string()): "VARCHAR[]"}
    return names[column.type]
