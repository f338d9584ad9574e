"""The header of an analyzer file: what is accepted, and how a wrong one is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuron_explorer.analyzers import analyzers, parse
from neuron_explorer.errors import AnalyzerError

GOOD = """-- +++
-- title = "Slow {name}"
-- question = "What is slow?"
-- severity = "info"
-- needs = ["work"]
-- message = "{name} took {t:ns}[[ in {module}]]"
-- advice = "Make it faster."
-- key = ["name"]
-- proof = "SELECT * FROM work WHERE name = {name}"
-- reference = "https://example.org"
--
-- [params.min_ns]
-- default = 10
-- doc = "Shorter work is left out (ns)."
--
-- [columns]
-- name = "Name."
-- module = "Module."
-- t = "Time (ns)."
-- +++
-- Why it matters.
--
-- What to do.
-- not part of the prose? It is: prose ends at the query.
SELECT name, module, duration_ns AS t FROM work WHERE duration_ns > $min_ns;
"""


def test_reads_a_file() -> None:
    analyzer = parse("slow.sql", GOOD)
    assert analyzer.id == "slow"
    assert analyzer.key == ("name",)
    assert analyzer.params["min_ns"].default == 10
    assert analyzer.doc.startswith("Why it matters.\n\nWhat to do.")
    assert analyzer.health is False
    assert analyzer.sql.rstrip().endswith("$min_ns")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('-- title = "Slow {name}"\n', "", "lacks the header key 'title'"),
        ('-- title = "Slow', '-- titel = "x"\n-- title = "Slow', "unknown header key 'titel'"),
        ('"info"', '"fatal"', "'severity' must be one of"),
        ('["work"]', '["wrok"]', "'needs' must be among .* not 'wrok'"),
        ('["work"]', '"work"', "'needs' must be a list of texts"),
        ('key = ["name"]', "key = []", "'key' must be at least one column"),
        ('key = ["name"]', 'key = ["nmae"]', "'key' uses 'nmae', not a column"),
        ("took {t:ns}", "took {time:ns}", "'message' uses 'time', not a column"),
        ("name = {name}", "name = {who}", "'proof' uses 'who', not a column"),
        ('"Name."', '""', "'columns' must be a table of texts, each with content"),
        ("-- default = 10\n", "", "'params.min_ns' must be a table with default and doc"),
        ("default = 10", "default = [1]", "'params.min_ns' must be a number or text"),
        ('"Make it faster."', '""', "'advice' must be text"),
        ('-- advice = "Make', "advice = 'Make", "header line that is no comment"),
        ('["work"]', '["work"', "no TOML"),
        ("-- +++\n", "", "must start with a header"),
        ("-- Why", "SELECT 1 -- Why", "no prose"),
        ('-- key = ["name"]', '-- key = ["name"]\n-- health = "yes"', "'health' must be true"),
    ],
)
def test_refuses_a_wrong_header_naming_file_and_key(old: str, new: str, said: str) -> None:
    assert old in GOOD
    with pytest.raises(AnalyzerError, match=rf"slow\.sql.*{said}"):
        parse("slow.sql", GOOD.replace(old, new, 1))


@given(st.text() | st.text().map(lambda text: "-- +++\n" + text + "-- +++\n"))
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(AnalyzerError, match=r"x\.sql"):
        parse("x.sql", text)


def test_every_threshold_and_column_says_what_it_means() -> None:
    for analyzer in analyzers().values():
        texts = [param.doc for param in analyzer.params.values()] + [*analyzer.columns.values()]
        assert all(text.endswith(".") for text in texts), analyzer.id
        assert analyzer.reference.startswith("https://")


# Which tables a query fills is found by the words of its text: a part of this name would fill
# every event of the trace into the two tables of the timeline, for nothing.
@pytest.mark.parametrize("name", ["spans", "lanes", "tracks"])
def test_no_analyzer_calls_a_part_of_its_query_like_a_table_of_the_timeline(name: str) -> None:
    assert [id_ for id_, each in analyzers().items() if f"\n{name} AS (" in each.sql] == []
