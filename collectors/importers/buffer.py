"""Bytes on their way through the scanner: what has come, how far it is used, what is awaited."""

from __future__ import annotations


class ScanBuffer:
    """Bytes fed so far and not yet used.

    Attributes:
        raw: the bytes.
        text: the same decoded as Latin-1, index for index.
        index: how far they are used.
        final: whether no more will come.
    """

    def __init__(self, offset: int) -> None:
        self.raw = b""
        self.text = ""
        self.index = 0
        self.final = False
        self._offset = offset
        self._parts: list[bytes] = []
        self._waiting = 0
        self._need = 0

    def feed(self, data: bytes) -> bool:
        """Adds bytes; whether there are enough now to go on."""
        self._parts.append(data)
        self._waiting += len(data)
        return self.unread + self._waiting >= self._need

    def load(self) -> None:
        """Makes everything fed visible and drops what is used."""
        self._offset += self.index
        self.raw = b"".join((self.raw[self.index :], *self._parts))
        self.text = self.raw.decode("latin-1")
        self.index = 0
        self._parts.clear()
        self._waiting = self._need = 0

    def skip(self, count: int) -> None:
        """Counts bytes of the file that were read elsewhere."""
        self._offset += count

    def wait(self, size: int) -> None:
        """Says that at least `size` unread bytes are needed to go on."""
        self._need = size

    def wait_for_more(self) -> None:
        """Says that the unread bytes do not suffice; doubling keeps many small feeds linear."""
        self._need = max(2 * self.unread, self.unread + 1)

    @property
    def unread(self) -> int:
        return len(self.text) - self.index

    @property
    def empty(self) -> bool:
        return self.unread == 0 and self._waiting == 0

    def position(self, index: int) -> int:
        """Offset in the file of an index in the text."""
        return self._offset + index

    def example(self, start: int, end: int) -> str:
        """A piece of the text as its reader would see it."""
        return self.raw[start : min(end, start + 800)].decode("utf-8", "replace")
