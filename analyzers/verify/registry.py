"""The experiments, found by their place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from neuron_explorer.analyzers.verify import experiments
from neuron_explorer.analyzers.verify.plans import Case, Plan
from neuron_explorer.analyzers.verify.recorded import CannotReplayError

Planner = Callable[[Case], Plan]


@cache
def planners() -> dict[str, Planner]:
    """By analyzer, the function that plans its experiment."""
    return {
        analyzer: module.plan
        for module in _modules()
        for analyzer in getattr(module, "ANALYZERS", ())
    }


@cache
def reasons() -> dict[str, str]:
    """By analyzer, why nothing of it can be replayed."""
    return {
        analyzer: reason
        for module in _modules()
        for analyzer, reason in getattr(module, "REASONS", {}).items()
    }


def planner(analyzer: str) -> Planner:
    """How to replay the findings of an analyzer.

    Raises:
        CannotReplayError: Nobody knows how.
    """
    found = planners().get(analyzer)
    if found is None:
        raise CannotReplayError(reasons().get(analyzer, f"no experiment replays {analyzer} yet"))
    return found


def _modules() -> Iterator[ModuleType]:
    for found in iter_modules(experiments.__path__, f"{experiments.__name__}."):
        yield import_module(found.name)
