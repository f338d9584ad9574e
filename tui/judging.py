"""What the app learns of a trace by itself: its overview, then what each analyzer finds."""

from __future__ import annotations

import gc

from neuron_explorer.analyzers import NotApplicable, Report, analyzers, run
from neuron_explorer.analyzers.runner import rank_findings
from neuron_explorer.reports.overview import Overview, overview
from neuron_explorer.tui.asking import Asking
from neuron_explorer.tui.data import Ask


class Judging(Asking):
    """Fills the shared state, and tells the screen in front each time."""

    _left: list[str]
    """Analyzers still to run, once it is known which there are."""

    def judge(self) -> None:
        """Ask for everything."""
        self.ask("overview", self._overview, self._know, self._unknown)

    def _overview(self, ask: Ask) -> Overview:
        return overview(ask.trace, self.explorer.state.files)

    def _know(self, seen: Overview) -> None:
        self.explorer.state.overview = seen
        self._begin()

    def _unknown(self, problem: str) -> None:
        self.explorer.complain(problem)
        self._begin()

    def _begin(self) -> None:
        self._left = list(analyzers())
        self.explorer.learnt()
        self._next()

    def _next(self) -> None:
        """Run the analyzers one after the other: what the first find need not wait for the last."""
        self.explorer.state.analyzers_left = len(self._left)
        if not self._left:
            gc.freeze()
            self.explorer.learnt()
            return
        name = self._left.pop(0)
        self.ask(
            f"analyzer {name}",
            lambda ask: run(ask.trace, only=[name]),
            self._judged,
            lambda problem: self._failed(name, problem),
        )

    def _judged(self, report: Report) -> None:
        state = self.explorer.state
        state.findings = rank_findings([*state.findings, *report.findings])
        state.not_applicable += report.not_applicable
        self._next()
        self.explorer.learnt()

    def _failed(self, name: str, problem: str) -> None:
        """One that cannot run stops none of the others."""
        reason = f"could not run: {problem}"
        self._judged(Report([], [NotApplicable(name, reason)], ran=[], params={}))
