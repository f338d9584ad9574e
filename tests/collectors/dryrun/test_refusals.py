"""Where a dry run is refused, and that nobody pays for it who does not ask for one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from dryrun_scripts import run_code

pytest.importorskip("torch")

ASK = """
import neuron_explorer
from neuron_explorer.errors import DeviceError
try:
    neuron_explorer.dryrun({arguments})
except DeviceError as error:
    print(error, error.hint or "")
"""


def output(code: str, folder: Path) -> str:
    done = run_code(code, folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


def test_where_it_is_refused_nothing_is_registered(tmp_path: Path) -> None:
    (tmp_path / "torch_neuronx.py").write_text("raise SystemExit('it must not be imported')")
    here = tmp_path / "here"
    here.mkdir()
    (here / "chip.toml").write_text("title = 'x'\nchip = 'trn2-core'")
    (here / "ops.toml").write_text("fallback = []")
    (here / "mul.toml").write_text('fallback = ["mul*"]\nallocation = ["empty*"]\n')
    code = f"""
import sys, torch
sys.path.insert(0, {str(tmp_path)!r})
{ASK.format(arguments="")}
sys.path.remove({str(tmp_path)!r})
is_available, torch.cuda.is_available = torch.cuda.is_available, lambda: True
{ASK.format(arguments="")}
torch.cuda.is_available = is_available
{ASK.format(arguments="'tpu'")}
{ASK.format(arguments="constants='chip.toml'")}
{ASK.format(arguments="support='ops.toml'")}
print(torch._C._get_privateuse1_backend_name())
device = neuron_explorer.dryrun(support="mul.toml")
x = torch.tensor([3.0]).to("neuron")
print((x * 2 + 1).item(), [f.name for f in device.log.fallbacks])
"""
    said = output(code, here).splitlines()
    assert "a real Neuron back end is installed" in said[0]
    assert "CUDA is present" in said[1]
    assert "relabel" in said[1]
    assert "one of trn2" in said[2]
    assert "chip.toml: 'types' is missing" in said[3]
    assert "ops.toml: the list 'allocation' is missing" in said[4]
    assert said[5:] == ["privateuseone", "7.0 ['aten::mul']"]


def test_another_private_device_is_left_alone(tmp_path: Path) -> None:
    code = "import torch\ntorch.utils.rename_privateuse1_backend('acme')\n"
    assert "'acme' already holds" in output(code + ASK.format(arguments=""), tmp_path)


def test_it_costs_nothing_unasked(tmp_path: Path) -> None:
    code = """
import sys, torch, warnings
import neuron_explorer
warnings.simplefilter("ignore")
with neuron_explorer.profile(output="t.parquet"):
    torch.ones(3) + 1
print([name for name in sys.modules if "dryrun" in name])
print(torch._C._get_privateuse1_backend_name(), hasattr(torch, "neuron"))
"""
    # in a process of its own from the start: the others have everything imported
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip().splitlines()[-2:] == ["[]", "privateuseone False"]
