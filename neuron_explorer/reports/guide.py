"""The guide for agents and scripts, as the package ships it, and its parts for programs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from neuron_explorer import __version__
from neuron_explorer.reports import json_report

GUIDE_SCHEMA = "neuron_explorer.guide/1"

_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_QUERY = re.compile(
    r"^### \d+\. (?P<question>.+?)\n+```sql\n(?P<sql>.+?)\n```\n*(?P<note>.*)\Z",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class WorkedQuery:
    """A question in plain words, and the SQL that answers it."""

    question: str
    sql: str
    note: str = ""


@cache
def guide_markdown() -> str:
    return files("neuron_explorer").joinpath("guide.md").read_text("utf-8")


def worked_queries() -> list[WorkedQuery]:
    """Every query of the guide, in its order."""
    parts = re.split(r"^(?=### )", guide_markdown().partition("\n## The Parquet")[0], flags=re.M)
    found = [_QUERY.search(part.strip()) for part in parts[1:]]
    return [
        WorkedQuery(each["question"], each["sql"], " ".join(each["note"].split()))
        for each in found
        if each is not None
    ]


def guide_json() -> str:
    """`{"sections": {title: markdown}, "queries": [{"question", "sql", "note"}]}`."""
    _, *parts = _SECTION.split(guide_markdown())
    sections = {title: text.strip() for title, text in zip(parts[::2], parts[1::2], strict=True)}
    return json_report.dump(
        {
            "schema": GUIDE_SCHEMA,
            "tool_version": __version__,
            "sections": sections,
            "queries": [vars(query) for query in worked_queries()],
        }
    )
