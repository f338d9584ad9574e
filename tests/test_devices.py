"""Chips: every file is complete and sourced, and real device properties find their chip."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuron_explorer import devices
from neuron_explorer.devices import (
    DTYPES,
    FOLDER_VARIABLE,
    chip_names,
    cpu_chip,
    load_chip,
    match_chip,
)
from neuron_explorer.devices.chip import parse_chip
from neuron_explorer.errors import DeviceError

GOOD = """
title = "A test chip"
vendor = "nobody"
unit = "GPU"

[[match]]
name = 'Test (Chip|Board)'

[memory]
gib = 2
source = "invented"

[bandwidth]
gb_per_s = 100.5
source = "invented"

[peak.bf16]
tflops = 10
source = "invented"
"""

BUILT_IN = sorted(path.stem for path in Path(devices.__path__[0]).glob("*.toml"))

RIDGES = {
    "v100-sxm2": 139,
    "a100-40gb-sxm": 201,
    "a100-40gb-pcie": 201,
    "a100-80gb-sxm": 153,
    "a100-80gb-pcie": 161,
    "h100-sxm": 295,
    "h100-pcie": 378,
    "h200": 206,
    "b200": 281,
    "gb200": 312,
    "l4": 403,
    "l40s": 419,
    "a10g": 117,
    "mi250x": 117,
    "mi300x": 247,
    "mi325x": 218,
    "mi355x": 312,
    "trn1": 232,
    "inf2": 232,
    "trn2": 230,
    "trn3": 137,
}
"""FLOP/byte at which bf16 (fp16 on the V100) turns from memory to compute bound."""

NAMELESS_MI300X = {"name": "", "totalGlobalMem": 206141652992, "numSms": 304, "warpSize": 64}

REAL_CHIPS = {
    "Tesla V100-SXM2-32GB": "v100-sxm2",
    "Tesla V100-DGXS-32GB": "v100-sxm2",
    "NVIDIA A100-PG509-200": "a100-40gb-sxm",
    "NVIDIA A100-SXM4-40GB": "a100-40gb-sxm",
    "NVIDIA A100-PCIE-40GB": "a100-40gb-pcie",
    "NVIDIA A100-SXM4-80GB": "a100-80gb-sxm",
    "NVIDIA H100 80GB HBM3": "h100-sxm",
    "NVIDIA B200": "b200",
    "Quadro GP100": "gp100",
    "AMD Instinct MI300X": "mi300x",
    "AMD Instinct MI300X VF": "mi300x",
    "AMD Radeon Graphics": "mi250",
    "": "mi300x",
    # 896 or 1024 cores, GDDR5 or GDDR6, under one name: no figure would be sure
    "NVIDIA GeForce GTX 1650": None,
    # no public figures
    "ARTEMIS": None,
}


@pytest.fixture(autouse=True)
def no_chips_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_number_has_a_source(name: str) -> None:
    chip = load_chip(name)
    numbers = {"memory_bytes", "bandwidth_bytes_per_s"}
    numbers |= {f"peak_flops.{dtype}" for dtype in chip.peak_flops}
    assert numbers <= set(chip.sources)
    assert all(len(source) > 10 for source in chip.sources.values())
    assert set(chip.peak_flops) <= set(DTYPES)


@pytest.mark.parametrize(("name", "expected"), RIDGES.items())
def test_ridge_is_the_published_one(name: str, expected: float) -> None:
    chip = load_chip(name)
    ridge = chip.ridge("bf16") or chip.ridge("fp16")
    assert ridge == pytest.approx(expected, rel=0.02)


def test_figures_are_in_plain_units() -> None:
    chip = load_chip("h100-sxm")
    assert chip.bandwidth_bytes_per_s == 3.35e12
    assert chip.peak_flops["bf16"] == 989e12
    assert chip.memory_bytes == 80 * 2**30
    assert chip.roof_share == 0.75
    assert chip.ridge("int4") is None


def test_figures_nobody_published_say_so() -> None:
    assert "inferred" in load_chip("trn2-core").sources["bandwidth_bytes_per_s"]
    assert "from memory" in load_chip("l4").sources["bandwidth_bytes_per_s"]
    assert "from memory" in load_chip("a10g").sources["peak_flops.bf16"]
    assert "measurement" in load_chip("trn2").sources["roof_share"]


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        (NAMELESS_MI300X, "mi300x"),
        (NAMELESS_MI300X | {"name": "AMD Radeon Graphics"}, "mi300x"),
        (NAMELESS_MI300X | {"totalGlobalMem": 256 * 2**30}, "mi325x"),
        (NAMELESS_MI300X | {"totalGlobalMem": 68702699520, "numSms": 110}, "mi250x"),
        (NAMELESS_MI300X | {"totalGlobalMem": 68702699520, "numSms": 104}, "mi250"),
        ({"name": "AMD Instinct MI250X / MI250", "numSms": 104}, "mi250"),
        ({"name": "AMD Instinct MI250X / MI250"}, None),
        ({"name": "NVIDIA L4"}, "l4"),
        ({"name": "NVIDIA L40S"}, "l40s"),
        ({"name": "NVIDIA A100 80GB PCIe"}, "a100-80gb-pcie"),
        ({"name": "NVIDIA H200 NVL"}, None),
        ({"name": "NVIDIA H100 NVL"}, None),
        ({"name": ""}, None),
        ({"name": "", "totalGlobalMem": "206141652992", "numSms": 304}, None),
        ({"name": None}, None),
        ({}, None),
    ],
)
def test_device_properties_tell_the_chip(
    properties: dict[str, object], expected: str | None
) -> None:
    chip = match_chip(properties)
    assert (chip and chip.name) == expected


def test_every_device_of_the_real_traces_is_judged(traces: Path) -> None:
    seen = {}
    for path in [*traces.glob("kineto/*.json*"), *traces.glob("kineto-ranks/**/*.json")]:
        for properties in device_properties(path):
            chip = match_chip(properties)
            seen[properties["name"]] = chip and chip.name
    assert seen == REAL_CHIPS


def device_properties(path: Path) -> list[dict[str, object]]:
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    text = raw.decode("utf-8", "replace")
    found = re.search(r'"deviceProperties"\s*:\s*(?=\[)', text)
    if not found:
        return []
    devices: list[dict[str, object]] = json.JSONDecoder(strict=False).raw_decode(text, found.end())[
        0
    ]
    return devices


@given(
    st.dictionaries(
        st.sampled_from(["name", "totalGlobalMem", "numSms", "warpSize", "id"]),
        st.one_of(st.none(), st.text(), st.integers(), st.floats(), st.lists(st.integers())),
    )
)
def test_no_property_makes_matching_fail(properties: dict[str, object]) -> None:
    chip = match_chip(properties)
    assert chip is None or chip.name in chip_names()


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("gib = 2", "gib = '2'", r"memory\.gib"),
        ("gib = 2", "gib = true", r"memory\.gib"),
        ("gib = 2", "gib = -2", r"memory\.gib"),
        ("gib = 2", "gib = nan", r"memory\.gib"),
        ("gib = 2", "gib = inf", r"memory\.gib"),
        ("gib = 2\n", "", r"`gib` - at `\$\.memory`"),
        ("gib = 2", "gib = 2\ngb = 3", r"unknown field `gb`"),
        ('vendor = "nobody"', "", "`vendor`"),
        ('vendor = "nobody"', 'vendor = "nobody"\ncolour = "red"', "`colour`"),
        ("[peak.bf16]", "[peak.bf17]", "bf17"),
        ("tflops = 10\n", "", "`tflops`"),
        ('tflops = 10\nsource = "invented"', "tflops = 10", "`source`"),
        ('tflops = 10\nsource = "invented"', 'tflops = 10\nsource = ""', r"peak\[\.\.\.\]\.source"),
        ("'Test (Chip|Board)'", "'Test (Chip'", r"match\.name"),
        ("name = 'Test", "memory_gib = [3, 2]\nname = 'Test", r"match\.memory_gib"),
        ("[memory]", "[memory", "line"),
    ],
)
def test_a_wrong_chip_file_names_itself_and_the_key(old: str, new: str, complaint: str) -> None:
    text = GOOD.replace(old, new)
    assert text != GOOD
    with pytest.raises(DeviceError, match=complaint) as caught:
        parse_chip(text, "test", "folder/test.toml")
    assert str(caught.value).startswith("folder/test.toml: ")


@given(st.text())
def test_any_text_is_a_chip_or_a_device_error(text: str) -> None:
    with pytest.raises(DeviceError):
        parse_chip(text, "test", "test.toml")


def test_a_chip_file_is_found_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "My-Chip.toml"
    path.write_text(GOOD, "utf-8")
    chip = load_chip(str(path))
    assert (chip.name, chip.bandwidth_bytes_per_s) == ("my-chip", 100.5e9)
    assert load_chip(path) == chip


def test_a_missing_chip_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="nowhere"):
        load_chip(tmp_path / "nowhere.toml")


@pytest.mark.parametrize("where", ["config", "variable"])
def test_chips_of_the_user_join_and_win(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "config" / "neuron_explorer" / "devices"
    if where == "variable":
        folder = tmp_path / "mine"
        monkeypatch.setenv(FOLDER_VARIABLE, str(folder))
    folder.mkdir(parents=True)
    (folder / "h100-sxm.toml").write_text(GOOD, "utf-8")
    (folder / "another.toml").write_text(GOOD.replace("Test (Chip|Board)", "NVIDIA B200"), "utf-8")
    assert load_chip("h100-sxm").vendor == "nobody"
    assert "another" in chip_names()
    matched = match_chip({"name": "test board"})
    assert matched is not None
    assert matched.name == "h100-sxm"
    b200 = match_chip({"name": "NVIDIA B200"})
    assert b200 is not None
    assert b200.name == "another"
    assert match_chip({"name": "NVIDIA H100 80GB HBM3"}) is None


def test_two_chips_that_fit_are_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    for name in ("one", "two"):
        (tmp_path / f"{name}.toml").write_text(GOOD, "utf-8")
    assert match_chip({"name": "Test Chip"}) is None


def test_a_folder_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "gone"))
    with pytest.raises(DeviceError, match="gone"):
        chip_names()


@pytest.mark.parametrize(
    ("name", "hint"),
    [("h100", "h100-sxm"), ("mi300", "mi300x"), ("cpu", "calibrate"), ("zzz", "devices")],
)
def test_an_unknown_chip_comes_with_a_hint(name: str, hint: str) -> None:
    with pytest.raises(DeviceError, match=name) as caught:
        load_chip(name)
    assert hint in caught.value.hint


def test_names_are_sorted_and_ignore_case() -> None:
    assert chip_names() == BUILT_IN
    assert load_chip("H100-SXM") == load_chip("h100-sxm")


def test_an_unmeasured_cpu_has_no_roof() -> None:
    assert cpu_chip() is None
    assert "cpu" not in chip_names()
