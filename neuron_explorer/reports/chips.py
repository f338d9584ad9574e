"""Chips with their numbers, and where each number comes from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from neuron_explorer.devices import Chip
from neuron_explorer.reports import console, formats, json_report, layout
from neuron_explorer.reports.tables import Table, table_markdown, table_text

DEVICES_SCHEMA = "neuron_explorer.devices/1"
LISTED = ("fp32", "bf16", "fp8")
"""Peaks worth a column in the list."""


def chips_text(chips: Sequence[Chip], page: console.Page) -> str:
    """The list of chips, one a line."""
    note = layout.text("peaks in dense TFLOP/s; `devices NAME` gives the sources", "dim")
    return console.render([table_text(_listing(chips), page.width), note], page)


def chip_text(chip: Chip, page: console.Page) -> str:
    """One chip: each number with its source under it."""
    parts: list[RenderableType] = [Text(f"{chip.name}  {chip.title}", style="bold")]
    for label, value, source in _numbers(chip):
        parts.append(layout.hanging(Text(f"  {label:<10}"), Text(value)))
        if source:
            parts.append(layout.indent(layout.text(source, "dim"), 12))
    named = Text(f"  {'named':<10}")
    parts += [layout.hanging(named, layout.text(alias)) for alias in chip.aliases]
    return console.render(parts, page)


def chips_json(chips: Sequence[Chip]) -> str:
    """Every number as it is in the chip's file."""
    return json_report.dump({"schema": DEVICES_SCHEMA, "devices": [_as_json(c) for c in chips]})


def chips_markdown(chips: Sequence[Chip]) -> str:
    """A table of all, or of one with its sources."""
    if len(chips) == 1:
        rows = [list(number) for number in _numbers(chips[0])]
        return f"## {chips[0].title}\n\n{table_markdown(Table(['', 'value', 'source'], rows))}"
    return table_markdown(_listing(chips))


def _listing(chips: Sequence[Chip]) -> Table:
    rows = [
        [
            chip.name,
            _memory(chip),
            formats.bandwidth(chip.bandwidth_bytes_per_s),
            *[_peak(chip, dtype) for dtype in LISTED],
            chip.title,
        ]
        for chip in chips
    ]
    return Table(["name", "memory", "bandwidth", *LISTED, "title"], rows)


def _memory(chip: Chip) -> str:
    """`80 GiB`: memory is sold in powers of two, bandwidth in powers of ten."""
    return f"{chip.memory_bytes / 2**30:.0f} GiB"


def _peak(chip: Chip, dtype: str) -> str:
    peak = chip.peak_flops.get(dtype)
    return "" if peak is None else formats.digits(peak / 1e12)


def _numbers(chip: Chip) -> Iterator[tuple[str, str, str]]:
    """Label, number, source."""
    yield "unit", f"one {chip.unit} of {chip.vendor}", ""
    yield "memory", _memory(chip), chip.sources["memory_bytes"]
    bandwidth = formats.bandwidth(chip.bandwidth_bytes_per_s)
    yield "bandwidth", bandwidth, chip.sources["bandwidth_bytes_per_s"]
    for dtype, peak in chip.peak_flops.items():
        ridge = formats.count(chip.ridge(dtype))
        said = f"{formats.flop_rate(peak)}, ridge {ridge} FLOP/byte"
        yield dtype, said, chip.sources[f"peak_flops.{dtype}"]
    if chip.achievable_matmul is not None:
        reached = f"{formats.share(chip.achievable_matmul)} of the bf16 peak"
        yield "matmul", reached, chip.sources["achievable_matmul"]


def _as_json(chip: Chip) -> dict[str, object]:
    return {
        "name": chip.name,
        "title": chip.title,
        "vendor": chip.vendor,
        "unit": chip.unit,
        "memory_bytes": chip.memory_bytes,
        "bandwidth_bytes_per_s": chip.bandwidth_bytes_per_s,
        "peak_flops": dict(chip.peak_flops),
        "roof_share": chip.roof_share,
        "achievable_matmul": chip.achievable_matmul,
        "aliases": list(chip.aliases),
        "sources": dict(chip.sources),
    }
