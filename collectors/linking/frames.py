"""Python frames by name: which are whose code, and what file, line and function they say."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import lru_cache

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


def parse_frame(text: str, user_prefixes: tuple[str, ...] = ()) -> Frame | None:
    """The frame that `file.py(12): function` names; None for built-ins and modules."""
    found = _FRAME.match(text)
    if found is None:
        return None
    file = found["file"].replace("\\", "/")
    owner = _owner(file, user_prefixes)
    return Frame(
        file, int(found["line"]), found["function"], owner in ("site", "user"), owner == "user"
    )


def parse_module(text: str) -> ModuleCall | None:
    """The module that `nn.Module: Linear_7` names."""
    found = _MODULE.match(text)
    return ModuleCall(text.removeprefix("nn.Module: "), found["class"]) if found else None


@lru_cache(maxsize=1 << 14)
def _owner(file: str, user_prefixes: tuple[str, ...]) -> str:
    """Whose code it is: torch, stdlib, site (an installed library) or user."""
    if user_prefixes and file.startswith(user_prefixes):
        return "user"
    if file.startswith("<") or _GENERATED.search(file):
        return "stdlib"
    site = list(_SITE.finditer(file))
    inside = file[site[-1].end() :] if site else file
    top = inside.split("/", 1)[0].removesuffix(".py")
    if top in _FRAMEWORK:
        return "torch"
    if site:
        return "site"
    if _STDLIB_FOLDER.search(file) or top in sys.stdlib_module_names:
        return "stdlib"
    return "site" if top in _INSTALLED else "user"
