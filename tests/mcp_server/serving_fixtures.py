"""A server over three shared traces, reached as agents reach it: over stdio and over HTTP."""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from neuron_explorer.cli import main
from neuron_explorer.commands.mcp import _draw
from neuron_explorer.disk_sources import confined
from neuron_explorer.mcp.opened import OpenTraces
from neuron_explorer.mcp.readable import Readable
from neuron_explorer.mcp.server import make_server
from neuron_explorer.mcp.serving import LoopbackServer

BERT, SMALL, COMPILED = "h100-bert-small.parquet", "mi250-rocm62.json.gz", "compiled.json.gz"
TOKEN = "a-token-for-this-test-only"


@dataclass
class Agent:
    """The SDK's own client, called from a thread."""

    portal: BlockingPortal
    client: Client
    driven: set[tuple[str, object]] = field(default_factory=set)
    """Tools that answered, each with the trace it was asked about."""

    def result(self, tool: str, **arguments: object) -> Any:
        given = self.portal.call(self.client.call_tool, tool, arguments)
        if not given.is_error:
            about = (arguments.get(name) for name in ("trace", "path", "base"))
            self.driven.add((tool, next((each for each in about if each is not None), None)))
        return given

    def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """The data of an answer, which is also its text."""
        given = self.result(tool, **arguments)
        assert not given.is_error, given.content
        data: dict[str, Any] = given.structured_content
        return data

    def soon(self, tool: str, **arguments: object) -> Future[Any]:
        return self.portal.start_task_soon(self.client.call_tool, tool, arguments)


@pytest.fixture(scope="module")
def folder(traces: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What agents may read: an imported trace, two as torch wrote them, a link that leads out."""
    kept = tmp_path_factory.mktemp("readable")
    kineto = traces / "kineto"
    assert main(["import", str(kineto / "h100-bert-small.json.gz"), "-qo", str(kept / BERT)]) == 0
    shutil.copyfile(kineto / SMALL, kept / SMALL)
    shutil.copyfile(kineto / "mi300-compiled-triton.json.gz", kept / COMPILED)
    outside = tmp_path_factory.mktemp("outside") / "secret.parquet"
    shutil.copyfile(kept / BERT, outside)
    (kept / "link.parquet").symlink_to(outside)
    return kept


@pytest.fixture(scope="module")
def portal() -> Iterator[BlockingPortal]:
    with start_blocking_portal() as opened:
        yield opened


@pytest.fixture(scope="module")
def stdio(folder: Path, portal: BlockingPortal) -> Iterator[Agent]:
    command = ["-m", "neuron_explorer", "mcp", str(folder)]
    server = StdioServerParameters(command=sys.executable, args=command, cwd=folder)
    with (
        (folder.parent / "stderr.txt").open("w") as errors,
        portal.wrap_async_context_manager(Client(stdio_client(server, errlog=errors))) as client,
    ):
        yield Agent(portal, client)


@pytest.fixture(scope="module")
def loopback(folder: Path) -> Iterator[LoopbackServer]:
    readable = Readable.of([str(folder)])
    opened = OpenTraces(readable)
    serving = LoopbackServer(make_server(opened, _draw), 0, TOKEN)
    thread = threading.Thread(target=serving.run, daemon=True)
    with confined(readable.allows):
        thread.start()
        yield serving
        serving.stop()
        thread.join(20)
    opened.close()
    assert not thread.is_alive()


@contextmanager
def over_http(portal: BlockingPortal, loopback: LoopbackServer) -> Iterator[Agent]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    http = httpx2.AsyncClient(headers=headers, timeout=60)
    transport = streamable_http_client(loopback.url, http_client=http)
    with portal.wrap_async_context_manager(Client(transport)) as client:
        yield Agent(portal, client)
    portal.call(http.aclose)


@pytest.fixture(scope="module")
def http(portal: BlockingPortal, loopback: LoopbackServer) -> Iterator[Agent]:
    with over_http(portal, loopback) as agent:
        yield agent


@pytest.fixture(params=["stdio", "http"])
def agent(request: pytest.FixtureRequest) -> Agent:
    chosen: Agent = request.getfixturevalue(request.param)
    return chosen
