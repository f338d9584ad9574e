"""Which formula an op name has. A formula registers itself; nothing lists them."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from neuron_explorer.collectors.costs.arguments import Call, Tensor
from neuron_explorer.errors import NeuronExplorerError


class Work(msgspec.Struct, frozen=True):
    """What a formula found.

    Attributes:
        flops: Operations, a multiply-add counted as two; None = unknown.
        reads: Tensors read, each once, at their stored size; None = unknown.
        writes: Tensors written; None = unknown.
        outputs: What the op returns, where that is not what it writes; None = the writes.
        notes: Codes of `notes.NOTES`.
        family: Where the arguments decide it (a copy that is a cast).
    """

    flops: int | None = None
    reads: Iterable[Tensor] | None = None
    writes: list[Tensor] | None = None
    outputs: list[Tensor] | None = None
    notes: tuple[str, ...] = ()
    family: str | None = None


Formula: TypeAlias = Callable[[Call], Work]


class FormulaError(NeuronExplorerError):
    """A file of formulas is wrong, or two formulas claim the same op."""


class Entry(NamedTuple):
    family: str
    formula: Formula
    inplace: bool = False


_EXACT: dict[str, Entry] = {}
_PATTERNS: dict[str, Entry] = {}


def formula(family: str, names: str, *, namespace: str = "aten::") -> Callable[[Formula], Formula]:
    """Register a function as the formula of ops.

    Args:
        family: One of the families of the `family` column.
        names: Op names, separated by blanks; `*` and `?` match as in file names. An in-place
            variant (`add_`) and an overload (`add.Tensor`) need no name of their own.
        namespace: Put before each name.

    Raises:
        FormulaError: One of the names has a formula already.
    """

    def register(function: Formula) -> Formula:
        for name in names.split():
            add(namespace + name, family, function)
        return function

    return register


def add(name: str, family: str, function: Formula) -> None:
    """Register one name or pattern.

    Raises:
        FormulaError: The name has a formula already.
    """
    table = _PATTERNS if "*" in name or "?" in name else _EXACT
    if name in table:
        taken = table[name].formula
        raise FormulaError(
            f"two formulas for {name}: {taken.__module__}.{taken.__name__} and "
            f"{function.__module__}.{function.__name__}",
            hint="Rename one of them, or remove it.",
        )
    table[name] = Entry(family, function)
    find.cache_clear()


@cache
def scan() -> None:
    """Import every module of this package once, so that each registers its formulas."""
    package = __name__.rpartition(".")[0]
    paths = importlib.import_module(package).__path__
    for module in pkgutil.iter_modules(paths):
        importlib.import_module(f"{package}.{module.name}")


@lru_cache(maxsize=16384)
def find(name: str) -> Entry | None:
    """The formula of an op name: exact, then without overload and in-place mark, then patterns."""
    scan()
    plain = name.partition(".")[0] if "::" in name else name
    for candidate in (name, plain):
        if candidate in _EXACT:
            return _EXACT[candidate]
    base = plain[:-1] if plain.endswith("_") and not plain.endswith("__") else plain
    if base in _EXACT:
        return _EXACT[base]._replace(inplace=True)
    matches = [pattern for pattern in _PATTERNS if fnmatchcase(name, pattern)]
    return _PATTERNS[max(matches, key=len)] if matches else None


def names() -> list[str]:
    """Every registered name and pattern, sorted."""
    scan()
    return sorted(_EXACT.keys() | _PATTERNS.keys())


def load_user_formulas(path: Path) -> list[str]:
    """Load a user's own Python file of formulas.

    The file registers functions with `@formula(family, names, namespace=...)`, as the modules
    of this package do. It is executed: only load a file you trust.

    Returns:
        The names it added.

    Raises:
        FormulaError: The file is missing, does not run, or claims an op that has a formula.
    """
    before = set(names())
    if not path.is_file():
        raise FormulaError(f"{path}: no such file of cost formulas")
    spec = importlib.util.spec_from_file_location(f"user_formulas_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise FormulaError(f"{path}: cost formulas must be a Python file (.py)")
    try:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    except Exception as error:
        _forget(before)
        raise FormulaError(f"{path}: {type(error).__name__}: {_first_line(error)}") from error
    added = sorted(set(names()) - before)
    if not added:
        raise FormulaError(f"{path}: registers no formula", hint="Use @formula(family, names).")
    return added


def _forget(keep: set[str]) -> None:
    for table in (_EXACT, _PATTERNS):
        for name in table.keys() - keep:
            del table[name]
    find.cache_clear()


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0]
