"""How the server is reached: over stdin and stdout, or over HTTP on this machine."""

from __future__ import annotations

import hmac
import secrets
import socket

import anyio
import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from neuron_explorer.errors import OutputError, UsageError

HOST = "127.0.0.1"
PATH = "/mcp"
SHORTEST_TOKEN = 16

_LAST_MOMENT_S = 2
"""How long requests that still run are waited for when the server ends."""


def serve_stdio(server: MCPServer[None]) -> None:
    """Until standard input ends.

    The SDK keeps standard output for itself: what any library writes to it meanwhile goes to
    standard error.
    """
    anyio.run(server.run_stdio_async)


def new_token() -> str:
    return secrets.token_urlsafe(32)


class LoopbackServer:
    """Streamable HTTP on the loopback address; every request carries the token.

    A web page in a browser on this machine could send requests here under a name of its own
    (DNS rebinding): only requests to and from the loopback names are served.
    """

    def __init__(self, server: MCPServer[None], port: int, token: str) -> None:
        """Take the port; nothing is answered before `run`.

        Args:
            server: What to serve.
            port: 0 = any that is free.
            token: What each request must bring as `Authorization: Bearer <token>`.

        Raises:
            UsageError: The token is too short to be secret.
            OutputError: The port is taken.
        """
        if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
            raise UsageError(
                f"the token needs at least {SHORTEST_TOKEN} printable ASCII characters",
                hint="leave it out, and one is made",
            )
        self._socket = _listening(port)
        self.port: int = self._socket.getsockname()[1]
        names = [f"{name}:{self.port}" for name in (HOST, "localhost")]
        app = server.streamable_http_app(
            streamable_http_path=PATH,
            host=HOST,
            transport_security=TransportSecuritySettings(
                allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names]
            ),
        )
        config = uvicorn.Config(
            _TokenRequired(app, token),
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=_LAST_MOMENT_S,
        )
        self._uvicorn = uvicorn.Server(config)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}{PATH}"

    def run(self) -> None:
        """Until Ctrl-C, or `stop` from another thread."""
        with self._socket:
            self._uvicorn.run(sockets=[self._socket])

    def stop(self) -> None:
        self._uvicorn.should_exit = True


class _TokenRequired:
    """Answers 401 to whoever does not bring the token, before anything reads the request."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._brought(scope):
            refused = JSONResponse(
                {"error": "the token of this server is needed: Authorization: Bearer <token>"},
                status_code=401,
                headers={"WWW-Authenticate": "Bearer"},
            )
            await refused(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _brought(self, scope: Scope) -> bool:
        given = Headers(scope=scope).get("authorization", "").encode("latin-1")
        return hmac.compare_digest(given, self._expected)


def _listening(port: int) -> socket.socket:
    taken = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((HOST, port))
    except OSError as error:
        taken.close()
        raise OutputError(
            f"port {port} of {HOST} cannot be used: {error.strerror}",
            hint="choose another with --port, or leave it out",
        ) from error
    return taken
