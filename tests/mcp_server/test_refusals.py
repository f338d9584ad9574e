"""Which files an agent may have read, and which requests over HTTP are served."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp.server.mcpserver", reason="the MCP SDK is not installed")

import httpx2
from mcp_server.serving_fixtures import TOKEN

from builders import kernel, write_trace
from neuron_explorer.cli import main
from neuron_explorer.commands.mcp import _ended_by_signals
from neuron_explorer.errors import NeuronExplorerError, OutputError, TraceError, UsageError
from neuron_explorer.mcp.opened import OpenTraces
from neuron_explorer.mcp.readable import Readable
from neuron_explorer.mcp.serving import LoopbackServer, new_token

Capture = pytest.CaptureFixture[str]

# ---- paths ----------------------------------------------------------------

OUTSIDE = [
    "/etc/passwd",
    "/etc/hostname",
    "/",
    "..",
    "../outside/secret.parquet",
    "{inside}/../outside/secret.parquet",
    "{inside}/link.parquet",
    "link.parquet",
    "{inside}/way/secret.parquet",
    "{inside}/circle",
    "/proc/self/environ",
    "/no/such/file.parquet",
    "{inside}x/trace.parquet",
    "/etc/*",
]
NOT_THERE = ["gone.parquet", "~/x.parquet", "https://x.y/z.parquet", "file:///etc/passwd", "*"]
NO_PATHS = ["a\x00b", "a\nb", "x" * 5000, "\x1b[31m"]


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    """A folder with a trace, and every way out of it that a file system knows."""
    folder = tmp_path / "inside"
    write_trace(folder / "trace.parquet", [kernel(0, 1)])
    secret = write_trace(tmp_path / "outside" / "secret.parquet", [kernel(0, 1)])
    (folder / "link.parquet").symlink_to(secret)
    (folder / "way").symlink_to(secret.parent)
    (folder / "circle").symlink_to(folder / "circle")
    os.mkfifo(folder / "pipe.parquet")
    return folder


@pytest.mark.parametrize("path", OUTSIDE)
def test_path_outside_is_refused(inside: Path, path: str) -> None:
    readable = Readable.of([str(inside)])
    with pytest.raises(TraceError, match="lies outside of what this server was started with"):
        readable.find(path.format(inside=inside))


@pytest.mark.parametrize("path", NOT_THERE)
def test_nothing_but_a_file_of_the_folder_is_a_path(inside: Path, path: str) -> None:
    with pytest.raises(TraceError, match="no trace at"):
        Readable.of([str(inside)]).find(path)


@pytest.mark.parametrize("path", NO_PATHS)
def test_what_is_no_path_is_refused(inside: Path, path: str) -> None:
    with pytest.raises(TraceError, match="no path of a trace"):
        Readable.of([str(inside)]).find(path)


def test_a_pipe_is_no_trace(inside: Path) -> None:
    with pytest.raises(TraceError, match="no regular file"):
        Readable.of([str(inside)]).find("pipe.parquet")


def test_inside_is_found_by_its_name_and_its_path(inside: Path) -> None:
    readable = Readable.of([str(inside)])
    real = [inside / "trace.parquet"]
    for path in ("trace.parquet", str(inside / "trace.parquet"), f"{inside}/./x/../trace.parquet"):
        assert readable.find(path) == real
    assert readable.listing() == [str(inside / "trace.parquet")]


def test_a_file_given_alone_opens_no_neighbour(inside: Path) -> None:
    neighbour = write_trace(inside / "other.parquet", [kernel(0, 1)])
    readable = Readable.of([str(inside / "trace.parquet")])
    assert readable.find("trace.parquet") == [inside / "trace.parquet"]
    with pytest.raises(TraceError, match="lies outside"):
        readable.find(str(neighbour))


def test_a_link_given_at_start_is_meant(inside: Path) -> None:
    readable = Readable.of([str(inside / "link.parquet")])
    assert readable.files == [inside.parent / "outside" / "secret.parquet"]


def test_root_folder_is_not_taken_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    with pytest.raises(UsageError, match="every file readable"):
        Readable.of([])


@pytest.mark.parametrize("device", ["/etc/hostname", "../x.toml", "no-such-chip"])
def test_a_chip_is_a_name_and_never_a_path(inside: Path, device: str) -> None:
    with pytest.raises(UsageError, match="there is no chip"):
        OpenTraces(Readable.of([str(inside)])).open("trace.parquet", device)


def test_a_trace_that_changed_is_opened_again(inside: Path) -> None:
    traces = OpenTraces(Readable.of([str(inside)]))
    with traces.using("trace.parquet") as opened:
        assert opened.trace().sql("SELECT * FROM work").num_rows == 1
    write_trace(inside / "trace.parquet", [kernel(0, 1), kernel(2, 1)])
    with traces.using("trace.parquet") as again:
        assert again is opened
        assert again.trace().sql("SELECT * FROM work").num_rows == 2
    traces.close()


def test_what_is_no_trace_gets_no_name(inside: Path) -> None:
    (inside / "notes.json").write_text("{}")
    traces = OpenTraces(Readable.of([str(inside)]))
    with pytest.raises(NeuronExplorerError, match="no trace events"), traces.using("notes.json"):
        pytest.fail("it was opened")
    assert traces.titles == []
    with traces.using("trace.parquet") as opened:
        assert traces.titles == [f"{opened.name} (trace.parquet)"]
    traces.close()


def test_only_some_stay_open_and_all_can_be_asked(tmp_path: Path) -> None:
    for number in range(9):
        write_trace(tmp_path / f"{number}.parquet", [kernel(0, number + 1)])
    traces = OpenTraces(Readable.of([str(tmp_path)]))
    for number in [*range(9), 0]:
        with traces.using(f"{number}.parquet") as opened:
            rows = opened.trace().sql("SELECT duration_ns FROM work").to_pylist()
            assert rows == [{"duration_ns": number + 1}]
            assert opened.name == f"t{number + 1}"
    assert sum(each.is_open for each in traces._known.values()) <= 6
    traces.close()


# ---- the command ----------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["gone.parquet"], 1, "no trace at gone.parquet"),
        (["--port", "80", "."], 2, "--port belongs to HTTP"),
        (["--http", "--port", "70000", "."], 2, "65535"),
        (["--http", "--token", "short", "."], 2, "at least 16"),
    ],
)
def test_wrong_start_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture,
    arguments: list[str], code: int, said: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LC_ALL", "C")
    assert main(["mcp", *arguments]) == code
    out, err = capsys.readouterr()
    assert not out
    assert said in err.splitlines()[0]


def test_without_the_sdk_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "mcp.server.mcpserver", None)
    assert main(["mcp"]) == 1
    out, err = capsys.readouterr()
    assert not out
    assert "pip install 'neuron-explorer[mcp]'" in err
    assert len(err.splitlines()) == 2


def test_a_token_is_made_and_said_unless_one_is_given(
    inside: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setattr(LoopbackServer, "run", lambda self: self._socket.close())
    assert main(["mcp", "--http", str(inside)]) == 0
    out, err = capsys.readouterr()
    assert not out
    assert "serving MCP at http://127.0.0.1:" in err
    assert len(err.partition("Authorization: Bearer ")[2].strip()) > 30
    monkeypatch.setenv("NEURON_EXPLORER_MCP_TOKEN", TOKEN)
    assert main(["mcp", "--http", str(inside)]) == 0
    assert "Bearer" not in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_although_stdin_is_waited_for(
    inside: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, number: signal.Signals
) -> None:
    traces = OpenTraces(Readable.of([str(inside)]))
    with traces.using("trace.parquet") as opened:
        opened.trace()
    codes: list[int] = []
    monkeypatch.setattr("os._exit", codes.append)  # it would end the tests as well
    with _ended_by_signals(traces):
        signal.raise_signal(number)
    assert codes == [128 + number]
    assert not opened.is_open
    assert capsys.readouterr().err == "neuron-explorer: interrupted\n"


# ---- over HTTP ------------------------------------------------------------

ASKED: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/list",
    "params": {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    },
}


def post(loopback: LoopbackServer, **headers: str) -> int:
    usual = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/list",
    }
    return httpx2.post(loopback.url, json=ASKED, headers=usual | headers, timeout=20).status_code


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": f"Bearer {TOKEN[:-1]}"}, 401),
        ({"authorization": TOKEN}, 401),
        ({"authorization": f"Bearer {TOKEN}"}, 200),
        ({"authorization": f"Bearer {TOKEN}", "host": "evil.example"}, 421),
        ({"authorization": f"Bearer {TOKEN}", "host": "127.0.0.1:1"}, 421),
        ({"authorization": f"Bearer {TOKEN}", "origin": "https://evil.example"}, 403),
        ({"host": "evil.example"}, 401),
    ],
)
def test_a_request_needs_the_token_and_a_loopback_name(
    loopback: LoopbackServer, headers: dict[str, str], status: int
) -> None:
    assert post(loopback, **headers) == status


def test_it_listens_on_the_loopback_address_only(loopback: LoopbackServer) -> None:
    assert loopback.url == f"http://127.0.0.1:{loopback.port}/mcp"
    assert loopback._socket.getsockname()[0] == "127.0.0.1"


def test_port_and_token_are_checked_before_anything_is_served() -> None:
    server: Any = None
    with pytest.raises(UsageError, match="at least 16"):
        LoopbackServer(server, 0, "short")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(OutputError, match=r"port \d+ of 127.0.0.1 cannot be used"):
            LoopbackServer(server, taken.getsockname()[1], new_token())
    assert len(new_token()) > 30
