"""`mcp`: the agents' server, over stdin and stdout or over HTTP on this machine."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from types import FrameType, ModuleType
from typing import TYPE_CHECKING

from neuron_explorer.commands import signals
from neuron_explorer.commands.capturing import quiet_torch
from neuron_explorer.disk_sources import confined
from neuron_explorer.errors import NeuronExplorerError, UsageError
from neuron_explorer.reports import console

if TYPE_CHECKING:  # the SDK may not be installed
    from mcp.server.mcpserver import MCPServer

    from neuron_explorer.mcp.opened import OpenTraces

_LAST_MOMENT_S = 2.0
"""For closing what is open when a signal ends the server."""


@dataclass(frozen=True)
class Service:
    """What the caller of `mcp` chose."""

    files: Sequence[str]
    """Traces and folders that may be read."""
    http: bool = False
    port: int | None = None
    token: str | None = None


def serve(service: Service) -> None:
    """Serve until the client leaves, or Ctrl-C.

    Raises:
        NeuronExplorerError: The MCP SDK is not installed.
        UsageError: Options that do not go together, a path that is none, a token too short.
        TraceError: A trace does not exist.
        OutputError: The port is taken.
    """
    if not service.http and service.port is not None:
        raise UsageError("--port belongs to HTTP", hint="add --http")
    _need_sdk()
    serving, opened, server = _part("serving"), _part("opened"), _part("server")
    readable = _part("readable").Readable.of(service.files)
    quiet_torch()
    os.environ["LC_ALL"] = "C.UTF-8"  # screens are drawn for agents, not for this terminal
    traces = opened.OpenTraces(readable)
    made = server.make_server(traces, _draw)
    with confined(readable.allows):
        try:
            if service.http:
                _serve_http(serving, made, service)
            else:
                with _ended_by_signals(traces):
                    serving.serve_stdio(made)
        finally:
            traces.close()


def _serve_http(serving: ModuleType, made: MCPServer[None], service: Service) -> None:
    token = service.token or serving.new_token()
    loopback = serving.LoopbackServer(made, service.port or 0, token)
    console.note(f"serving MCP at {loopback.url}; Ctrl-C ends it")
    if not service.token:
        console.note(f"every request needs: Authorization: Bearer {token}")
    loopback.run()


@contextmanager
def _ended_by_signals(traces: OpenTraces) -> Iterator[None]:
    """End at the usual signals, although a thread waits for standard input and cannot be ended."""

    def leave(number: int, _: FrameType | None) -> None:
        # a question that is still asked may hold a trace for long
        closing = threading.Thread(target=traces.close, daemon=True)
        closing.start()
        closing.join(_LAST_MOMENT_S)
        console.complain("interrupted")
        os._exit(128 + number)

    chosen = [n for n in signals.ENDING if signal.getsignal(n) is not signal.SIG_IGN]
    before = {number: signal.signal(number, leave) for number in chosen}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _need_sdk() -> None:
    """Say what is missing before anything else is imported.

    Raises:
        NeuronExplorerError: The MCP SDK is not installed.
    """
    try:
        import_module("mcp.server.mcpserver")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "mcp":
            raise
        raise NeuronExplorerError(
            "mcp serves agents with the MCP SDK, which is not installed",
            hint="pip install 'neuron-explorer[mcp]'",
        ) from error


def _part(name: str) -> ModuleType:
    """A module of the server: it is loaded only once the SDK is known to be there."""
    return import_module(f"neuron_explorer.mcp.{name}")


def _draw(files: Sequence[str], screen: str, size: tuple[int, int]) -> str:
    from neuron_explorer.tui.picture import picture  # noqa: PLC0415 - Textual only where it draws

    return picture(files, screen, size)
