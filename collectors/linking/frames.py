"""Python frames by name: which are whose code, and what file, line and function they say."""

from __future__ import annotations

import linecache
import re
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_FRAME = re.compile(r"^(?P<file>.+?)\((?P<line>\d+)\): (?P<function>.*)$", re.DOTALL)
_MODULE = re.compile(r"^nn\.Module: (?P<class>.+?)(?:_(?P<number>\d+))?$")

_FRAMEWORK = frozenset({"torch", "functorch", "torchgen", "triton", "torch_xla", "torch_npu"})
_STDLIB_FOLDER = re.compile(r"(^|/)lib(64)?/python3(\.\d+)?/")
_SITE = re.compile(r"(^|/)(site-packages|dist-packages)/")
_GENERATED = re.compile(r"(^|/)torchinductor_[^/]*/|/inductor_cache/")
"""Code that Inductor wrote: nobody's source line."""
_INSTALLED = frozenset(
    [
        "PIL",
        "accelerate",
        "aiter",
        "apex",
        "bitsandbytes",
        "datasets",
        "deepspeed",
        "detectron2",
        "diffusers",
        "einops",
        "fairseq",
        "fastapi",
        "flash_attn",
        "flashinfer",
        "gradio",
        "huggingface_hub",
        "ignite",
        "kornia",
        "lightning",
        "megatron",
        "mmcv",
        "mmengine",
        "numpy",
        "optimum",
        "pandas",
        "peft",
        "pydantic",
        "pytorch_lightning",
        "ray",
        "safetensors",
        "scipy",
        "sentence_transformers",
        "sglang",
        "timm",
        "torchao",
        "torchaudio",
        "torchtitan",
        "torchtune",
        "torchvision",
        "tqdm",
        "transformer_engine",
        "transformers",
        "trl",
        "vllm",
        "xformers",
        "xfuser",
    ]
)
"""Top folders of model libraries: Kineto cuts `sys.path` entries off file names, so a
relative path no longer says whether it was installed."""


_NOTEBOOK = re.compile(r"^<(ipython-input|ipykernel|cell|marimo)\b")
"""How notebooks name the code of a cell that has no file."""
_MACHINE_MADE = re.compile(
    r"^<(eval_with_key|attrs generated|decorator-gen|frozen|lambdifygenerated|makefun|string>)"
)
"""Code that libraries write at run time, though some of it can be looked up like a source."""


@dataclass(frozen=True)
class Owners:
    """Whose code it is where the usual rules do not say.

    An entry is a path (`/opt/ours`, `src/net.py`) or a package (`diffusers`, `my.package`,
    `diffusers/utils`); of those that fit a file the longest decides.
    """

    mine: tuple[str, ...] = ()
    """The user's own code wherever it lies, installed libraries included."""
    plumbing: tuple[str, ...] = ()
    """Neither a model's nor the user's: what it does belongs to the line that called it."""


USUAL = Owners()
"""Nothing but the usual rules."""

PLUMBING = Owners(
    plumbing=(
        # decorators of forwards, around every call of a model
        "transformers/utils/generic.py",
        "transformers/utils/deprecation.py",
        "transformers/utils/output_capturing.py",
        "diffusers/utils/peft_utils.py",
        "diffusers/utils/accelerate_utils.py",
        # casts the results of a forward, gathers over ranks what a script asks for
        "accelerate/utils/operations.py",
        # registers and calls every operator of the library; its folder is on `sys.path`
        "aiter/jit/core.py",
        "aiter/jit/utils/torch_guard.py",
        "torch_guard.py",
        # runs the compiled pieces of a model from the line that has them
        "vllm/compilation",
        # call the hooks of a user's module, each with its own line
        "lightning/pytorch/trainer/call.py",
        "pytorch_lightning/trainer/call.py",
        "lightning/pytorch/utilities",
        "pytorch_lightning/utilities",
        "lightning/fabric/utilities",
        "lightning_fabric/utilities",
        "lightning_utilities/core/apply_func.py",
    )
)
"""Wrappers of libraries: they only pass calls on, so no line of theirs says what was asked for."""


@dataclass(frozen=True)
class Frame:
    """One Python frame."""

    file: str
    line: int
    function: str
    model: bool
    """Neither torch nor the standard library."""
    user: bool
    """A model frame that is not of an installed library either."""


@dataclass(frozen=True)
class ModuleCall:
    """A call of an nn.Module, as torch's Python tracer names it."""

    name: str
    cls: str


def parse_frame(text: str, owners: Owners = USUAL) -> Frame | None:
    """The frame that `file.py(12): function` names; None for built-ins and modules."""
    found = _FRAME.match(text)
    if found is None:
        return None
    file = found["file"].replace("\\", "/")
    owner = owner_of(file, owners)
    return Frame(
        file, int(found["line"]), found["function"], owner in ("site", "user"), owner == "user"
    )


def parse_module(text: str) -> ModuleCall | None:
    """The module that `nn.Module: Linear_7` names."""
    found = _MODULE.match(text)
    return ModuleCall(text.removeprefix("nn.Module: "), found["class"]) if found else None


def owner_of(file: str, owners: Owners = USUAL) -> str:
    """Whose code it is: torch, stdlib, plumbing, site (an installed library) or user."""
    if file.startswith("<") and not _MACHINE_MADE.match(file):
        # what has a source in this process was typed by somebody: a cell, a text for `exec`
        typed = _NOTEBOOK.match(file) or file in linecache.cache
        return "user" if typed else "stdlib"
    return _owner(file, owners)


@lru_cache(maxsize=1 << 14)
def _owner(file: str, owners: Owners) -> str:
    return _said(file, owners) or _usual(file)


def _usual(file: str) -> str:
    if file.startswith("<") or _GENERATED.search(file):
        return "stdlib"
    site = list(_SITE.finditer(file))
    inside = file[site[-1].end() :] if site else file
    top = inside.split("/", 1)[0].removesuffix(".py")
    if top in _FRAMEWORK:
        return "torch"
    if site:
        return _said(inside, PLUMBING) or "site"
    if _STDLIB_FOLDER.search(file) or top in sys.stdlib_module_names:
        return "stdlib"
    return _said(file, PLUMBING) or ("site" if top in _INSTALLED else "user")


def _said(file: str, owners: Owners) -> str | None:
    """What the longest entry that fits says; the user's own where both do."""
    mine = max((_fit(file, entry) for entry in owners.mine), default=0)
    plumbing = max((_fit(file, entry) for entry in owners.plumbing), default=0)
    if not mine and not plumbing:
        return None
    return "user" if mine >= plumbing else "plumbing"


def _fit(file: str, entry: str) -> int:
    """How long an entry is, if it fits a file; else 0."""
    path = entry.replace("\\", "/").rstrip("/")
    if path.startswith("~"):
        path = str(Path(path).expanduser())
    elif "/" not in path and not path.endswith(".py"):
        path = path.replace(".", "/")
    path = path.removeprefix("./")
    around, names = f"/{file.removeprefix('/')}/", f"/{path.strip('/')}"
    whole = f"{names}/" in around or f"{names}.py/" in around
    fits = whole and (not path.startswith("/") or around.startswith(names))
    return len(path) if fits else 0
