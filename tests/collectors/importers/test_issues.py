from __future__ import annotations

from neuron_explorer.collectors.importers.issues import ACTIONS, KINDS, IssueLog, printable


def test_issues_of_a_kind_are_merged() -> None:
    log = IssueLog()
    log.add("cut", position=5, example="a\n\x1b[31mb", action="kept")
    log.add("cut", position=1, example="other", count=3)
    log.add("junk")
    assert log.records() == [
        {
            "kind": "cut",
            "count": 4,
            "first_position": 5,
            "example": "a\\n\\x1b[31mb",
            "action": "kept",
        },
        {
            "kind": "junk",
            "count": 1,
            "first_position": None,
            "example": None,
            "action": ACTIONS["junk"],
        },
    ]
    assert (log.count("cut"), log.count("bad_utf8")) == (4, 0)


def test_records_are_copies() -> None:
    log = IssueLog()
    log.add("cut")
    log.records()[0]["count"] = 9
    assert log.count("cut") == 1
    log.clear()
    assert log.records() == []


def test_examples_are_short() -> None:
    assert printable("x" * 200) == "x" * 200
    assert printable("x" * 300) == "x" * 199 + "…"
    assert len(printable("\0" * 300)) == 200
    assert printable("日本 \u202e") == "日本 \\u202e"


def test_every_action_is_of_a_known_kind() -> None:
    assert ACTIONS.keys() <= KINDS.keys()
