"""The server: tools, resources and prompts, each registered with what an agent reads of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase
from mcp_types import ToolAnnotations
from pydantic import ConfigDict

from neuron_explorer import __version__
from neuron_explorer.mcp import words
from neuron_explorer.mcp.acting_tools import ActingTools, Draw
from neuron_explorer.mcp.answering import answering, described
from neuron_explorer.mcp.asking_tools import AskingTools
from neuron_explorer.mcp.comparing_tools import ComparingTools
from neuron_explorer.mcp.looking_tools import LookingTools
from neuron_explorer.mcp.opened import OpenTraces
from neuron_explorer.reports.guide import guide_markdown
from neuron_explorer.reports.schema_report import analyzers_json, metrics_json, schema_json

_WRITES = frozenset(["verify"])

_PROMPTS: Sequence[tuple[str, str, Callable[..., str]]] = (
    ("find_the_bottleneck", "Find the bottleneck", words.bottleneck),
    ("why_is_the_device_idle", "Why is the device idle?", words.idle),
    ("what_should_i_compile", "What should I compile?", words.what_to_compile),
)


def make_server(traces: OpenTraces, draw: Draw) -> MCPServer[None]:
    """A server over these traces.

    Args:
        traces: What agents may open.
        draw: Draws a screen of the terminal interface.
    """
    rooms = (
        AskingTools(traces),
        LookingTools(traces),
        ComparingTools(traces),
        ActingTools(traces, draw),
    )
    server: MCPServer[None] = MCPServer(
        "neuron-explorer",
        title="neuron_explorer",
        instructions=words.INSTRUCTIONS,
        version=__version__,
        log_level="WARNING",
        tools=[_tool(getattr(room, name)) for room in rooms for name in room.NAMES],
    )
    _add_resources(server)
    for name, title, say in _PROMPTS:
        server.prompt(name, title=title, description=say.__doc__)(say)
    return server


def _tool(tool: Callable[..., object]) -> Tool:
    name = tool.__name__
    notes = ToolAnnotations(
        title=name.replace("_", " "),
        read_only_hint=name not in _WRITES,
        destructive_hint=False,
        idempotent_hint=True,
        open_world_hint=False,
    )
    made = Tool.from_function(
        answering(tool),  # type: ignore[arg-type]  # every tool of ours returns an Answer
        name=name,
        description=described(tool),  # type: ignore[arg-type]  # as above
        annotations=notes,
    )
    _refuse_unknown_arguments(made)
    return made


def _refuse_unknown_arguments(tool: Tool) -> None:
    """The SDK leaves them out: a misspelt bound would widen the question without a word."""
    given = tool.fn_metadata.arg_model
    forbidding = {"model_config": ConfigDict(extra="forbid")}
    strict = cast("type[ArgModelBase]", type(given.__name__, (given,), forbidding))
    tool.fn_metadata.arg_model = strict
    tool.parameters = strict.model_json_schema(by_alias=True)


def _add_resources(server: MCPServer[None]) -> None:
    @server.resource(
        "neuron-explorer://schema",
        title="Schema",
        description="Every view and column with type, unit, meaning, keys; codes; thresholds.",
        mime_type="application/json",
    )
    def schema() -> str:
        return schema_json(None)

    @server.resource(
        "neuron-explorer://metric-definitions",
        title="Metric definitions",
        description="What each metric means, its unit, its formula in SQL and where it is found.",
        mime_type="application/json",
    )
    def metric_definitions() -> str:
        return metrics_json()

    @server.resource(
        "neuron-explorer://analyzers",
        title="Analyzers",
        description="Every question that the findings answer, with its thresholds.",
        mime_type="application/json",
    )
    def analyzers() -> str:
        return analyzers_json()

    @server.resource(
        "neuron-explorer://guide",
        title="Guide",
        description="What the views mean, ten worked queries, and pitfalls.",
        mime_type="text/markdown",
    )
    def guide() -> str:
        return guide_markdown()
