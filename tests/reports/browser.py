"""Chromium without a window, driven through a pipe: no port, no client library."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
_LOUD = frozenset(["assert", "error", "trace", "warning"])
KEYS = {"Tab": 9, "Enter": 13}


def program() -> str | None:
    """Path of Chromium, where it is installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Page:
    """One tab, and all that it said and asked for."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._read, self._number = b"", 0
        self._session: str | None = None
        self.said: list[str] = []
        """Errors and warnings: its own, and those of what it may not do."""
        self.requests: list[str] = []
        self._loaded = False

    def open(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: object) -> dict[str, Any]:
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result
            self._heard(answer)

    def show(self, file: Path, *, width: int, height: int, dark: bool = False) -> None:
        """Load a file as a screen of that size does, and wait until its plots are drawn."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self._loaded = False
        self.call("Page.navigate", url=file.as_uri())
        while not self._loaded:
            self._heard(self._next())
        self.value(
            """new Promise((done) => {
                const wanted = Object.keys(
                    JSON.parse(document.getElementById("items").textContent)).length;
                const look = () => Number(document.documentElement.dataset.drawn || 0) >= wanted
                    ? requestAnimationFrame(() => setTimeout(done, 50)) : setTimeout(look, 20);
                look();
            })"""
        )

    def value(self, script: str) -> Any:
        """What an expression of the page is."""
        told = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def press(self, key: str) -> None:
        code = KEYS[key]
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                **(text if kind == "keyDown" else {}),
            )

    def picture(self) -> bytes:
        """The whole page as PNG."""
        told = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        return base64.b64decode(told["data"])

    def pdf(self) -> bytes:
        return base64.b64decode(self.call("Page.printToPDF")["data"])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._read:
            block = os.read(self._answers, 1 << 16)
            assert block, "Chromium ended"
            self._read += block
        message, _, self._read = self._read.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def _heard(self, event: dict[str, Any]) -> None:
        method, params = event.get("method"), event.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in _LOUD:
            self.said.append(" ".join(str(arg.get("value")) for arg in params["args"]))
        elif method == "Runtime.exceptionThrown":
            self.said.append(str(params["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.said.append(params["entry"]["text"])


@contextmanager
def chromium() -> Iterator[Page]:
    """A browser with a profile of its own, gone at the end."""
    path = program()
    assert path is not None
    (read_command, command), (answer, write_answer) = os.pipe(), os.pipe()
    with TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        # Chromium reads commands from file descriptor 3 and answers on 4
        script = f'exec "$@" 3<&{read_command} 4>&{write_answer}'
        arguments = [path, *FLAGS, f"--user-data-dir={profile}"]
        process = subprocess.Popen(
            ["/bin/bash", "-c", script, "bash", *arguments],
            pass_fds=(read_command, write_answer),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": profile},
        )
        os.close(read_command)
        os.close(write_answer)
        try:
            page = Page(command, answer)
            page.open()
            yield page
            page._session = None
            page.call("Browser.close")
            process.wait(20)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            os.close(command)
            os.close(answer)
