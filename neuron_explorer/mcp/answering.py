"""Turns a method that answers into a tool: errors become answers, strings are cleaned."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from functools import wraps
from typing import Any, get_type_hints

from mcp_types import CallToolResult, TextContent

from neuron_explorer.errors import NeuronExplorerError
from neuron_explorer.mcp.answers import Answer
from neuron_explorer.mcp.cleaning import Cleaner

Tool = Callable[..., Answer]


def answering(tool: Tool) -> Callable[..., CallToolResult]:
    """The tool as the SDK calls it.

    What this program cannot do for a stated reason is an answer that says so, since an agent can
    act on it. Anything else is a fault, which the SDK reports as one and logs on stderr.
    """
    shape: type[Answer] = get_type_hints(tool)["return"]

    @wraps(tool)
    def answer(*args: object, **kwargs: object) -> CallToolResult:
        try:
            given = tool(*args, **kwargs)
        except NeuronExplorerError as error:
            given = shape(cannot_answer=_reason(error))
        except OSError as error:
            given = shape(cannot_answer=f"Cannot answer, because of the system: {error.strerror}")
        return _result(given)

    return answer


def described(tool: Tool) -> str:
    """What an agent reads of the tool: its docstring, one paragraph a line."""
    text = inspect.getdoc(tool) or ""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def packed(answer: Answer) -> dict[str, Any]:
    """The answer as plain data, cleaned, with what had to be cut counted in it."""
    cleaner = Cleaner()
    data: dict[str, Any] = cleaner.value(answer.model_dump(mode="json", by_alias=True))
    data["strings_cut"] = cleaner.cut
    return data


def as_text(data: dict[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def _result(answer: Answer) -> CallToolResult:
    data = packed(answer)
    return CallToolResult(
        content=[TextContent(text=as_text(data)), *answer.attached()], structured_content=data
    )


def _reason(error: NeuronExplorerError) -> str:
    hint = f". {error.hint[:1].upper()}{error.hint[1:]}" if error.hint else ""
    return f"Cannot answer, because {error}{hint}"
