"""How an event stands in the JSON that `export` writes and `import` reads back.

Columns that torch.profiler has a place for stand where it puts them; the rest stand under `KEY`
among an event's args, by their names in `schema`.
"""

from __future__ import annotations

KEY = "neuron_explorer"
"""Of the object in an event's args; and in the file's header, where it says what wrote it."""
CARRIER = f"{KEY}_event"
"""Name of metadata events that carry a row which a viewer should not draw."""
METADATA = f"{KEY}_metadata"
"""Name of metadata events that carry the file-level metadata, one a key."""
STACK = f"{KEY}_stack"
"""Name of those that carry a stack and the number by which events name it."""
END = f"{KEY}_end"
"""Name of the last one, which says how many rows the file has."""

ARGUMENTS: dict[str, str] = {
    "input_shapes": "Input Dims",
    "input_dtypes": "Input type",
    "input_strides": "Input Strides",
    "input_values": "Concrete Inputs",
    "external_id": "External id",
    "correlation": "correlation",
    "stream": "stream",
    "sequence": "Sequence number",
    "forward_thread": "Fwd thread id",
    "alloc_bytes": "Bytes",
    "device_allocated": "Total Allocated",
    "device_reserved": "Total Reserved",
}
"""Column -> the name Kineto has for it among an event's args."""
DEVICE = "device"
"""Kineto's name for the number of a device."""
TEXTS = frozenset(["input_shapes", "input_dtypes", "input_strides", "input_values"])
"""Columns whose text is JSON itself; they stand among the args only."""
TAKEN = (KEY, DEVICE, *ARGUMENTS.values())
"""Args that are no attributes."""
