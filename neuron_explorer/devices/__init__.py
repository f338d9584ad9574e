"""Known chips: one TOML file each, here, in the user's folders, or measured (`cpu`).

A user's chip is a file like those in this folder (`chip.py` describes it) in the folder that
`NEURON_EXPLORER_DEVICES` names or in `~/.config/neuron_explorer/devices`; it wins over a chip of
the same name here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path

from neuron_explorer.devices.chip import DTYPES, ROOF_SHARE, Chip, Match, parse_chip
from neuron_explorer.devices.roof import CPU, cpu_chip
from neuron_explorer.errors import DeviceError

__all__ = [
    "CPU",
    "DTYPES",
    "FOLDER_VARIABLE",
    "ROOF_SHARE",
    "Chip",
    "Match",
    "all_chips",
    "chip_names",
    "cpu_chip",
    "load_chip",
    "match_chip",
]

FOLDER_VARIABLE = "NEURON_EXPLORER_DEVICES"


def all_chips() -> list[Chip]:
    """Every chip that `load_chip` knows by name, in name order.

    Raises:
        DeviceError: a chip file of the user is wrong.
    """
    chips = _built_in() | _of_user()
    measured = cpu_chip()
    if measured is not None:
        chips = {CPU: measured} | chips
    return [chips[name] for name in sorted(chips)]


def chip_names() -> list[str]:
    """Names that `load_chip` takes, sorted; `cpu` only once it was calibrated."""
    return [chip.name for chip in all_chips()]


def load_chip(name_or_path: str | Path) -> Chip:
    """The chip of that name, or of that chip file.

    Raises:
        DeviceError: no such chip or file, or the file is wrong.
    """
    text = str(name_or_path)
    if text.endswith(".toml") or os.sep in text:
        return _read(Path(text))
    chips = {chip.name: chip for chip in all_chips()}
    if text.lower() not in chips:
        raise DeviceError(f"no chip is called {text!r}", hint=_hint(text.lower(), chips))
    return chips[text.lower()]


def match_chip(properties: Mapping[str, object]) -> Chip | None:
    """The chip that Kineto's device properties tell, or None where none or several fit.

    Args:
        properties: One entry of `deviceProperties`: `name`, `totalGlobalMem` (bytes), `numSms`,
            `warpSize`. Some ROCm releases leave the name empty or generic: then the rest decides.

    Raises:
        DeviceError: a chip file of the user is wrong.
    """
    of_user = _of_user()
    for known in (of_user, {n: chip for n, chip in _built_in().items() if n not in of_user}):
        fitting = [
            chip for chip in known.values() if any(match.fits(properties) for match in chip.matches)
        ]
        if fitting:
            return fitting[0] if len(fitting) == 1 else None
    return None


@cache
def _built_in() -> dict[str, Chip]:
    entries = [entry for entry in files(__name__).iterdir() if entry.name.endswith(".toml")]
    chips = [
        parse_chip(entry.read_text("utf-8"), entry.name.removesuffix(".toml"), str(entry))
        for entry in sorted(entries, key=lambda entry: entry.name)
    ]
    return {chip.name: chip for chip in chips}


def _of_user() -> dict[str, Chip]:
    paths = [path for folder in _user_folders() for path in sorted(folder.glob("*.toml"))]
    return {chip.name: chip for chip in map(_read, paths)}


def _user_folders() -> list[Path]:
    """Folders of the user's chips, the one that wins last."""
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    folders = [config / "neuron_explorer" / "devices"]
    named = os.environ.get(FOLDER_VARIABLE)
    if named:
        folders.append(Path(named))
        if not folders[-1].is_dir():
            raise DeviceError(f"{FOLDER_VARIABLE} names no folder: {named}")
    return folders


def _read(path: Path) -> Chip:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DeviceError(f"cannot read the chip file {path}: {error}") from error
    return parse_chip(text, path.stem.lower(), str(path))


def _hint(name: str, chips: Mapping[str, Chip]) -> str:
    if name == CPU:
        return "`neuron-explorer calibrate` measures this machine's"
    near = [known for known in chips if name and known.startswith(name)]
    near = near or get_close_matches(name, chips, n=3)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return "`neuron-explorer devices` lists all; a path to a chip file works as well"
