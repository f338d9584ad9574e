"""Fixtures of a running server; where the MCP SDK is not installed, the tests here skip."""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("mcp") is not None:
    from mcp_server.serving_fixtures import agent, folder, http, loopback, portal, stdio

    __all__ = ["agent", "folder", "http", "loopback", "portal", "stdio"]
