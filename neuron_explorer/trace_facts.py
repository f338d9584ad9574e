"""Small tables beside the events: file metadata, chips, and which device is which chip."""

from __future__ import annotations

import io
import json
import platform
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import json as arrow_json

from neuron_explorer.devices import CPU, Chip, all_chips, load_chip, match_chip
from neuron_explorer.trace_files import TraceFile

_PEAKS: pa.DataType = pa.map_(pa.string(), pa.float64())
_TEXTS: pa.DataType = pa.map_(pa.string(), pa.string())


def _schema(**types: pa.DataType) -> pa.Schema:
    return pa.schema(list(types.items()))


_METADATA = _schema(rank=pa.int32(), file=pa.string(), key=pa.string(), value=pa.string())
_CHIPS = _schema(
    chip=pa.string(),
    title=pa.string(),
    vendor=pa.string(),
    unit=pa.string(),
    memory_bytes=pa.int64(),
    bandwidth_bytes_per_s=pa.float64(),
    peak_flops=_PEAKS,
    roof_share=pa.float64(),
    achievable_matmul=pa.float64(),
    sources=_TEXTS,
)
_DEVICE_CHIPS = _schema(
    rank=pa.int32(),
    host=pa.bool_(),
    device_index=pa.int32(),
    reported_name=pa.string(),
    chip=pa.string(),
    modelled=pa.bool_(),
)


def fact_tables(files: Sequence[TraceFile], device: str | None) -> dict[str, pa.Table]:
    """The tables by name.

    Args:
        files: Files of one trace.
        device: Chip to judge by instead of the one each device is; a name or a path.

    Raises:
        DeviceError: `device` names no chip.
    """
    override = None if device is None else load_chip(device)
    chips = {chip.name: chip for chip in all_chips()}
    if override is not None:
        chips[override.name] = override
    return {
        "metadata": _table(_metadata_rows(files), _METADATA),
        "chips": _table([_chip_row(chips[name]) for name in sorted(chips)], _CHIPS),
        "device_chips": _table(
            [row for file in files for row in _device_rows(file, override, chips.get(CPU))],
            _DEVICE_CHIPS,
        ),
    }


def _table(rows: Sequence[Mapping[str, object]], schema: pa.Schema) -> pa.Table:
    """By way of JSON: `from_pylist` imports pandas where there is one, for 0.4 s and 40 MB."""
    if not rows:
        return schema.empty_table()
    text = "\n".join(map(json.dumps, rows)).encode()
    read = arrow_json.read_json(
        io.BytesIO(text),
        # in one block, whatever the length of a row
        read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(text)),
        parse_options=arrow_json.ParseOptions(explicit_schema=pa.schema(map(_as_list, schema))),
    )
    return pa.Table.from_arrays([_column(read[f.name], f.type) for f in schema], schema=schema)


def _as_list(field: pa.Field[Any]) -> pa.Field[Any]:
    """A map as the list of its entries, since JSON has none whose keys have a type."""
    if not pa.types.is_map(field.type):
        return field
    entry = [("key", field.type.key_type), ("value", field.type.item_type)]
    return pa.field(field.name, pa.list_(pa.struct(entry)))


def _column(read: pa.ChunkedArray[Any], kind: pa.DataType) -> pa.Array[Any]:
    (column,) = read.chunks
    if not isinstance(column, pa.ListArray) or not pa.types.is_map(kind):
        return column
    # the stubs know neither 32-bit offsets nor the fields of entries
    offsets: Any = column.offsets
    entries: Any = column.values
    found: pa.Array[Any] = pa.MapArray.from_arrays(
        offsets, entries.field("key"), entries.field("value")
    )
    return found


def _entries(found: Mapping[str, object]) -> list[dict[str, object]]:
    return [{"key": key, "value": value} for key, value in sorted(found.items())]


def _metadata_rows(files: Sequence[TraceFile]) -> list[dict[str, object]]:
    return [
        {"rank": file.rank, "file": str(file.path), "key": key, "value": _compact(value)}
        for file in files
        for key, value in sorted(_told(file).items())
    ]


def _told(file: TraceFile) -> dict[str, Any]:
    """The file's metadata, and as an import issue what opening it beside others changed."""
    if not file.rank_shift:
        return file.metadata
    issue = {
        "kind": "rank_taken",
        "count": 1,
        "first_position": None,
        "example": f"rank {file.rank - file.rank_shift}",
        "action": f"another file has this rank, so it is rank {file.rank} here",
    }
    return file.metadata | {"import_issues": [*(file.metadata.get("import_issues") or []), issue]}


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _chip_row(chip: Chip) -> dict[str, object]:
    return {
        "chip": chip.name,
        "title": chip.title,
        "vendor": chip.vendor,
        "unit": chip.unit,
        "memory_bytes": chip.memory_bytes,
        "bandwidth_bytes_per_s": chip.bandwidth_bytes_per_s,
        "peak_flops": _entries(chip.peak_flops),
        "roof_share": chip.roof_share,
        "achievable_matmul": chip.achievable_matmul,
        "sources": _entries(chip.sources),
    }


def _device_rows(
    file: TraceFile, override: Chip | None, measured_host: Chip | None
) -> list[dict[str, object]]:
    """One row a device of the metadata, one for those it does not name, one for the host."""
    properties = [entry for entry in file.metadata.get("devices") or [] if isinstance(entry, dict)]
    named = [_device_row(file, entry, match_chip(entry), override) for entry in properties]
    # an index that the metadata lacks is no puzzle where all devices are of one kind
    same = len({row["chip"] for row in named}) == 1
    rest = named[0] if same else _device_row(file, {}, None, override)
    host = _device_row(file, {}, measured_host, override) | {"host": True}
    if override is None and measured_host is not None:
        host["modelled"] = not _recorded_here(file)
    return [*named, rest | {"device_index": None}, host]


def _device_row(
    file: TraceFile, entry: Mapping[str, Any], found: Chip | None, override: Chip | None
) -> dict[str, object]:
    chip = override or found
    return {
        "rank": file.rank,
        "host": False,
        "device_index": _index(entry.get("id")),
        "reported_name": entry.get("name"),
        "chip": None if chip is None else chip.name,
        "modelled": None if chip is None else found is None or chip.name != found.name,
    }


def _recorded_here(file: TraceFile) -> bool:
    """Whether the CPU that was measured is the one that ran: the roof is this machine's."""
    told = file.metadata.get("environment") or {}
    return platform.node() in (told.get("host"), told.get("hostname"))


def _index(recorded: object) -> int | None:
    text = str(recorded)
    return int(text) if re.fullmatch(r"\d{1,6}", text) else None
