"""Memory and time that `profile()` takes beside torch, and what many sessions leave behind.

make bench
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from jobs import run_job  # noqa: E402

pytestmark = pytest.mark.bench

ADDS = 200_000
"""Each leaves five ops, so a million."""
LIMIT_MIB, LIMIT_S = 512, 30

MILLION = f"""
import json
import neuron_explorer.collectors.capture.window as window
from torch.autograd import profiler as inner

def mib(key):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(l.split()[1]) >> 10 for l in lines if l.startswith(key))

torch.set_num_threads(1)
x = torch.ones(4)
with profile(output="warm.parquet"):
    x.add_(1)
session = profile(profile_memory=False, all_threads=False)
session.start()
recording = mib("VmRSS")
for _ in range({ADDS}):
    x.add_(1)
recording = mib("VmRSS") - recording
ended = inner._disable_profiler
found = {{}}
def end():
    found["torch"] = -time.process_time()
    result = ended()
    found["torch"] += time.process_time()
    open("/proc/self/clear_refs", "w").write("5")
    found["held"] = mib("VmRSS")
    found["ours"] = -time.process_time()
    return result
inner._disable_profiler = end
session.stop()
found["ours"] += time.process_time()
found["above"] = mib("VmHWM") - found["held"]
found["recording"] = recording
with session.trace as trace:
    found["ops"] = trace.sql("SELECT count(*) AS n FROM ops")["n"][0].as_py()
print(json.dumps(found))
"""


def test_a_million_ops(tmp_path: Path) -> None:
    job = run_job(MILLION, tmp_path, timeout_s=600, anew=True)
    assert job.code == 0, job.said
    found: dict[str, Any] = json.loads(job.out.splitlines()[-1])
    sys.stdout.write(
        f"\n{found['ops']} ops: recording {found['recording']} MiB; torch ends in "
        f"{found['torch']:.1f} s of CPU and holds {found['held']} MiB; "
        f"ours {found['ours']:.1f} s of CPU and {found['above']} MiB above that\n"
    )
    assert found["ops"] >= 5 * ADDS
    assert found["above"] <= LIMIT_MIB
    assert found["ours"] <= LIMIT_S


SESSIONS = """
import gc, json, pathlib
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 >> 10
def left():
    return [len(list(pathlib.Path(f"/proc/self/{what}").iterdir())) for what in ("fd", "task")]

def sessions(of, count):
    for number in range(count):
        with of() as session:
            torch.ones(2)
    gc.collect()
    return resident()

warnings.simplefilter("ignore")
number = iter(range(10_000))
ours = lambda: profile(output=f"{next(number)}.parquet")
theirs = lambda: torch.profiler.profile(record_shapes=True, profile_memory=True)
before_theirs = sessions(theirs, 20)
theirs_kib = sessions(theirs, 200) - before_theirs
before, files = sessions(ours, 40), left()
ours_kib = sessions(ours, 200) - before
print(json.dumps({"theirs": theirs_kib, "ours": ours_kib, "before": files, "after": left()}))
"""


def test_many_sessions_in_one_process(tmp_path: Path) -> None:
    job = run_job(SESSIONS, tmp_path, timeout_s=600, anew=True)
    assert job.code == 0, job.said
    found = json.loads(job.out.splitlines()[-1])
    sys.stdout.write(
        f"\n200 sessions: torch's grow by {found['theirs']} KiB, ours by {found['ours']} KiB\n"
    )
    assert found["after"] == found["before"]
    assert found["ours"] <= 32 << 10
    assert len(list(tmp_path.glob("*.parquet"))) == 240
