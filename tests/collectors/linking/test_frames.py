"""Whose code a frame is: by the usual rules, and as the user says."""

from __future__ import annotations

import linecache

import pytest

from neuron_explorer.collectors.linking.frames import USUAL, Owners, owner_of

SITE = "/opt/venv/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    ("file", "owner"),
    [
        ("/home/me/train.py", "user"),
        ("train.py", "user"),
        (f"{SITE}/ours/net.py", "site"),
        ("transformers/models/bert/modeling_bert.py", "site"),
        (f"{SITE}/torch/nn/modules/linear.py", "torch"),
        ("torch/nn/modules/linear.py", "torch"),
        ("/usr/lib/python3.11/contextlib.py", "stdlib"),
        ("contextlib.py", "stdlib"),
        ("/tmp/torchinductor_me/ab/cab.py", "stdlib"),
        ("<string>", "stdlib"),
        ("<frozen importlib._bootstrap>", "stdlib"),
        ("<eval_with_key>.7", "stdlib"),
        ("<ipython-input-3-8d2f6a>", "user"),
        ("/tmp/ipykernel_4242/1234.py", "user"),
        # wrappers only pass calls on
        ("diffusers/utils/peft_utils.py", "plumbing"),
        (f"{SITE}/transformers/utils/generic.py", "plumbing"),
        ("torch_guard.py", "plumbing"),
        ("vllm/compilation/cuda_graph.py", "plumbing"),
        ("pytorch_lightning/utilities/model_helpers.py", "plumbing"),
        ("diffusers/utils/torch_utils.py", "site"),
        ("/home/me/vllm/compilation_notes.py", "user"),
    ],
)
def test_the_usual_rules(file: str, owner: str) -> None:
    assert owner_of(file) == owner


def test_typed_code_that_can_be_looked_up_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    assert owner_of("<typed>") == "stdlib"
    entry = (3, None, ["f()"], "<typed>")
    monkeypatch.setitem(linecache.cache, "<typed>", entry)
    assert owner_of("<typed>") == "user"
    monkeypatch.setitem(linecache.cache, "<attrs generated init a.B>", entry)
    assert owner_of("<attrs generated init a.B>") == "stdlib"


@pytest.mark.parametrize(
    ("entry", "file", "fits"),
    [
        ("diffusers", f"{SITE}/diffusers/models/unet.py", True),
        ("diffusers", "diffusers/models/unet.py", True),
        ("diffusers", "diffusers_extra/models/unet.py", False),
        ("diffusers/utils", "diffusers/utils/peft_utils.py", True),
        ("diffusers/utils", "diffusers/models/unet.py", False),
        ("my.package", "/home/me/src/my/package/net.py", True),
        ("my.package", "/home/me/src/my/packages/net.py", False),
        ("my.package.net", "/home/me/src/my/package/net.py", True),
        ("src/net.py", "/home/me/src/net.py", True),
        ("./src", "src/net.py", True),
        ("/opt/ours", "/opt/ours/net.py", True),
        ("/opt/ours/", "/opt/ours/net.py", True),
        ("/opt/ours", "/opt/ours2/net.py", False),
        ("/opt/ours", "/home/me/opt/ours/net.py", False),
        ("~/ours", "/home/you/ours/net.py", True),
        ("torch", "torch/nn/modules/linear.py", True),
        ("ours", "C:\\work\\ours\\net.py".replace("\\", "/"), True),
        ("", "/home/me/net.py", False),
    ],
)
def test_an_entry_is_a_path_or_a_package(
    entry: str, file: str, monkeypatch: pytest.MonkeyPatch, *, fits: bool
) -> None:
    monkeypatch.setenv("HOME", "/home/you")
    usual = owner_of(file)
    assert owner_of(file, Owners(plumbing=(entry,))) == ("plumbing" if fits else usual)
    assert owner_of(file, Owners(mine=(entry,))) == ("user" if fits else usual)


def test_the_longest_entry_decides() -> None:
    owners = Owners(mine=("diffusers",), plumbing=("diffusers/utils", "ours"))
    assert owner_of("diffusers/models/unet.py", owners) == "user"
    assert owner_of("diffusers/utils/torch_utils.py", owners) == "plumbing"
    both = Owners(mine=("ours",), plumbing=("ours",))
    assert owner_of("ours/net.py", both) == "user"


def test_what_the_user_says_outranks_the_usual_plumbing() -> None:
    file = "transformers/utils/generic.py"
    assert owner_of(file, USUAL) == "plumbing"
    assert owner_of(file, Owners(mine=("transformers",))) == "user"
