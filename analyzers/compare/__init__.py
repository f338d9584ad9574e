"""Two traces of one program: what changed beyond noise, by line, module, op, queue, finding."""

from __future__ import annotations

from neuron_explorer.analyzers.compare.comparison import Comparison, Side, compare
from neuron_explorer.analyzers.compare.found import FindingChange
from neuron_explorer.analyzers.compare.lines import Line, LinePair
from neuron_explorer.analyzers.compare.metrics import Metric
from neuron_explorer.analyzers.compare.noise import Verdict
from neuron_explorer.analyzers.compare.rows import Row, Time
from neuron_explorer.analyzers.compare.step_change import StepChange

__all__ = [
    "Comparison",
    "FindingChange",
    "Line",
    "LinePair",
    "Metric",
    "Row",
    "Side",
    "StepChange",
    "Time",
    "Verdict",
    "compare",
]
