"""`devices` and `calibrate`: the roofs that traces are judged by."""

from __future__ import annotations

from collections.abc import Sequence

from neuron_explorer.collectors.capture.calibrate import calibrate
from neuron_explorer.commands.choices import Format
from neuron_explorer.devices import Chip, all_chips, load_chip
from neuron_explorer.reports import chips, console


def show_devices(name: str | None, form: Format) -> None:
    """Print all chips, or one with the source of each number."""
    _show(all_chips() if name is None else [load_chip(name)], form)


def show_calibration(form: Format, *, quiet: bool) -> None:
    """Measure this CPU, keep the result, print it."""
    if not quiet:
        console.note("measuring this CPU, about 12 s; leave it idle meanwhile")
    _show([calibrate()], form)


def _show(found: Sequence[Chip], form: Format) -> None:
    match form:
        case Format.JSON:
            console.write_data(chips.chips_json(found))
        case Format.MD:
            console.write_data(chips.chips_markdown(found))
        case Format.TEXT:
            console.write(_text(found, console.stdout_page()))


def _text(found: Sequence[Chip], page: console.Page) -> str:
    return chips.chip_text(found[0], page) if len(found) == 1 else chips.chips_text(found, page)
