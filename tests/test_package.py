"""The package has the shape the docs promise, in a checkout and when installed."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
SETUPTOOLS = PYPROJECT["tool"]["setuptools"]


def python(code: str, folder: Path) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_every_package_on_disk_is_listed() -> None:
    home = {"neuron_explorer": "neuron_explorer"} | SETUPTOOLS["package-dir"]
    found = {
        ".".join([name, *init.parent.relative_to(ROOT / folder).parts])
        for name, folder in home.items()
        for init in (ROOT / folder).rglob("__init__.py")
        if not (ROOT / folder / init.relative_to(ROOT / folder).parts[0]).is_symlink()
    }
    assert found == set(SETUPTOOLS["packages"])


@pytest.mark.skipif((ROOT / "PKG-INFO").exists(), reason="a source archive holds no links")
def test_links_and_package_dir_agree() -> None:
    links = {
        f"neuron_explorer.{path.name}": path.resolve().name
        for path in (ROOT / "neuron_explorer").iterdir()
        if path.is_symlink()
    }
    assert links == SETUPTOOLS["package-dir"]


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("neuron_explorer", "py.typed"),
        ("neuron_explorer", "guide.md"),
        ("neuron_explorer", "views/work.sql"),
        ("neuron_explorer.devices", "h100-sxm.toml"),
        ("neuron_explorer.reports.html", "report.css"),
        ("neuron_explorer.reports.html", "report.html.j2"),
        ("neuron_explorer.reports.html", "report.js"),
        ("neuron_explorer.analyzers", "trace_health.sql"),
    ],
)
def test_data_files_ship(package: str, name: str) -> None:
    assert (files(package) / name).is_file()


@pytest.mark.parametrize("name", ["collectors", "analyzers", "tui", "tests"])
def test_no_generic_top_level_name(name: str, tmp_path: Path) -> None:
    assert python(f"import importlib.util as u; print(u.find_spec({name!r}))", tmp_path) == "None"


def test_torch_is_an_extra_only() -> None:
    project = PYPROJECT["project"]
    assert not [need for need in project["dependencies"] if need.startswith("torch")]
    assert project["optional-dependencies"]["torch"]


def test_both_console_scripts_are_one_command() -> None:
    scripts = PYPROJECT["project"]["scripts"]
    assert scripts["neuron-explorer"] == scripts["nexp"] == "neuron_explorer.cli:main"


def test_every_exported_name_loads(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    code = "import neuron_explorer as n; [getattr(n, name) for name in n.__all__]; print('loaded')"
    assert python(code, tmp_path) == "loaded"


def test_without_torch_recording_says_what_to_install(tmp_path: Path) -> None:
    code = """
import sys
sys.modules["torch"] = None
import neuron_explorer
for name in neuron_explorer.__all__:
    try:
        getattr(neuron_explorer, name)
    except ImportError as error:
        print(error)
"""
    lines = python(code, tmp_path).splitlines()
    assert [line.split()[0] for line in lines] == [
        "neuron_explorer.dryrun",
        "neuron_explorer.enable_compile_sources",
        "neuron_explorer.profile",
        "neuron_explorer.trace_handler",
    ]
    assert all("pip install 'neuron-explorer[torch]'" in line for line in lines)


def test_an_unknown_name_is_an_attribute_error(tmp_path: Path) -> None:
    code = "import neuron_explorer as n; print(hasattr(n, 'Profiler9000'))"
    assert python(code, tmp_path) == "False"
