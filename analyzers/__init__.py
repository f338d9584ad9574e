"""Everything that judges: one `.sql` file is one analyzer; README.md says how to add one."""

from __future__ import annotations

from neuron_explorer.analyzers.header import Analyzer, Param, parse
from neuron_explorer.analyzers.runner import NotApplicable, Report, analyzers, query, run

__all__ = ["Analyzer", "NotApplicable", "Param", "Report", "analyzers", "parse", "query", "run"]
