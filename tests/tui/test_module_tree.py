from __future__ import annotations

from typing import Any

from neuron_explorer.tui.module_tree import AMOUNTS, opened, tree


def row(module: str, **known: Any) -> dict[str, Any]:
    usual = {"module_class": None, "calls": None, "work_events": 0} | dict.fromkeys(AMOUNTS)
    return {"module": module} | usual | known


def test_a_module_has_the_time_of_all_inside_it() -> None:
    root = tree(
        [
            row("layers.0.mlp", device_ns=30, work_events=2),
            row("layers.0", device_ns=5, work_events=1, module_class="Block", calls=4),
            row("layers.1.mlp", device_ns=50, host_ns=7, work_events=3),
            row("head"),
        ]
    )
    layers = root.inner["layers"]
    assert (layers.amounts["device_ns"], layers.work_events) == (85, 6)
    first = layers.inner["layers.0"]
    assert (first.amounts["device_ns"], first.kind, first.calls) == (35, "Block", 4)
    assert layers.amounts["host_ns"] == 7
    assert first.amounts["host_ns"] is None, "unknown is not nothing"
    assert root.inner["head"].amounts["device_ns"] is None
    assert sorted(first.recorded) == ["layers.0", "layers.0.mlp"]


def test_instances_stand_with_their_class_and_odd_names_alone() -> None:
    root = tree([row("nn.Module: Linear_0"), row("nn.Module: Linear_1"), row("[/red]")])
    assert set(root.inner) == {"nn.Module: Linear_*", "[/red]"}
    assert len(root.inner["nn.Module: Linear_*"].inner) == 2


def test_what_is_in_sight_is_what_is_open_the_longest_first() -> None:
    root = tree([row("a.x", device_ns=1), row("a.y", device_ns=3), row("b", device_ns=2)])
    assert [module.path for module in opened(root, set())] == ["a", "b"]
    shown = opened(root, {"a"})
    assert [module.path for module in shown] == ["a", "a.y", "a.x", "b"]
    assert shown[1].above == "a"
