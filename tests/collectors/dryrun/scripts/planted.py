"""Records each script of a folder in a dry run of its own: `planted.py FOLDER OUTPUT`."""

from __future__ import annotations

import json
import runpy
import sys
import warnings
from pathlib import Path

import torch

import neuron_explorer

warnings.simplefilter("ignore")
scripts = sorted(Path(sys.argv[1]).glob("*.py"))
for script in scripts:
    neuron_explorer.dryrun("trn2")
    torch._dynamo.reset()
    with neuron_explorer.profile(output=Path(sys.argv[2]) / f"{script.stem}.parquet"):
        runpy.run_path(str(script))
print(json.dumps([script.stem for script in scripts]))  # noqa: T201
