"""For agents and scripts: the server, and what to know beforehand."""

from __future__ import annotations

from typing import Annotated

import typer

from neuron_explorer.cli.options import Form, Json, examples
from neuron_explorer.commands.choices import report_format

commands = typer.Typer()


@commands.command(
    epilog=examples(
        "mcp trace.parquet",
        "mcp runs/",
        "mcp --http --port 8765 runs/",
    )
)
def mcp(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TRACE]...",
            help="Traces, and folders whose traces may be opened; default: the current folder.",
        ),
    ] = None,
    *,
    http: Annotated[
        bool, typer.Option("--http", help="Streamable HTTP on 127.0.0.1 instead of stdio.")
    ] = False,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port for --http; default: a free one.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="NEURON_EXPLORER_MCP_TOKEN",
            show_envvar=True,
            help="What each HTTP request must bring; default: made and printed on stderr.",
        ),
    ] = None,
) -> None:
    """Serve agents over the Model Context Protocol.

    Nothing outside of the named files and folders can be read, and nothing is written but the
    results of verify beside a trace. Needs neuron-explorer[mcp].
    """
    from neuron_explorer.commands.mcp import Service, serve

    serve(Service(files or (), http, port, token if http else None))


@commands.command(epilog=examples("guide", "guide --json"))
def guide(*, form: Form = None, json: Json = False) -> None:
    """Print the guide for agents and scripts.

    What the views mean, ten worked queries, pitfalls.
    """
    from neuron_explorer.commands.guide import show_guide

    show_guide(report_format(form, json=json))
