"""The fixture `neuron_trace`, as a project that uses it has it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from neuron_explorer.errors import UsageError
from neuron_explorer.integrations.captured_step import CapturedStep

pytest_plugins = ["neuron_explorer.pytest_plugin", "pytester"]

HERE = Path(__file__).name


def place(code: str) -> str:
    """`file:line` of a line of this file."""
    (number,) = [
        n
        for n, line in enumerate(Path(__file__).read_text("utf-8").splitlines(), 1)
        if line.strip() == code
    ]
    return f"{HERE}:{number}"


@pytest.fixture(scope="module")
def t() -> Any:
    """Not imported at the top: the plugin is tested without it, too."""
    return pytest.importorskip("torch", reason="needs torch to capture")


def test_pytest_pays_nothing_for_it(tmp_path: Path) -> None:
    """It is loaded in every test run of everybody who has the package installed."""
    code = (
        "import sys, neuron_explorer.pytest_plugin;"
        "print(*(m for m in ('torch', 'duckdb', 'pyarrow', 'polars', 'textual', 'rich')"
        " if m in sys.modules))"
    )
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (run.stdout.strip(), run.stderr) == ("", "")


def test_a_project_gets_the_fixture_and_readable_failures(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_unused(): pass

        def test_nothing_recorded(neuron_trace):
            neuron_trace.assert_no_host_sync()
        """
    )
    run = pytester.runpytest_subprocess(
        "-p", "neuron_explorer.pytest_plugin", "-W", "error", "-p", "no:cacheprovider"
    )
    run.assert_outcomes(passed=1, failed=1)
    run.stdout.fnmatch_lines(["*neuron_trace has recorded nothing yet*"])


def test_what_a_step_does_wrong_is_named_with_its_line(t: Any, neuron_trace: CapturedStep) -> None:
    features = t.randn(64, 64)
    with neuron_trace() as profiler:
        for _ in range(3):
            total = (features @ features).sum()
            float(total)
            waste()
            profiler.step()
    with pytest.raises(AssertionError) as raised:
        neuron_trace.assert_no_host_sync()
    assert "3 host syncs in the steps" in str(raised.value)
    assert f"{place('float(total)')}: aten::_local_scalar_dense, 3 times" in str(raised.value)

    with pytest.raises(AssertionError, match=r"cpu idle for \d+\.\d% of the median of 3 steps"):
        neuron_trace.assert_device_idle_below(0.0001)
    neuron_trace.assert_device_idle_below(1.01)

    with pytest.raises(AssertionError, match="nothing was compiled while this test recorded"):
        neuron_trace.assert_no_graph_breaks()
    with pytest.raises(AssertionError, match="findings"):
        neuron_trace.assert_no_findings("info")
    neuron_trace.assert_no_findings("many_small_tensors", "critical")
    with pytest.raises(AssertionError, match="exposed_communication could not judge"):
        neuron_trace.assert_no_findings("exposed_communication")
    with pytest.raises(UsageError, match="neither a severity nor an analyzer"):
        neuron_trace.assert_no_findings("nonsense")
    assert neuron_trace.trace.sql("SELECT * FROM steps").num_rows == 3


def waste() -> int:
    return sum(range(1000))


def test_a_step_that_waits_for_nothing_passes(t: Any, neuron_trace: CapturedStep) -> None:
    features = t.randn(32, 32)
    with neuron_trace() as profiler:
        for _ in range(2):
            features = features @ features
            profiler.step()
    neuron_trace.assert_no_host_sync()


def test_graph_breaks_are_named_with_line_and_reason(t: Any, neuron_trace: CapturedStep) -> None:
    def whole(x: Any) -> Any:
        return x.relu() + 1

    def broken(x: Any) -> Any:
        x = x.relu()
        t._dynamo.graph_break()
        return x + 1

    captured(neuron_trace, t.compile(whole, backend="eager"), t.randn(4))
    neuron_trace.assert_no_graph_breaks()
    neuron_trace.assert_no_recompilations()
    captured(neuron_trace, t.compile(broken, backend="eager"), t.randn(4))
    with pytest.raises(AssertionError) as raised:
        neuron_trace.assert_no_graph_breaks()
    assert "1 graph breaks" in str(raised.value)
    assert place("t._dynamo.graph_break()") in str(raised.value)


def captured(neuron_trace: CapturedStep, function: Callable[..., object], given: object) -> None:
    with neuron_trace() as profiler:
        for _ in range(2):
            function(given)
            profiler.step()
