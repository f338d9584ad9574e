"""Which files an agent may have read: those given at start, and whatever lies under the folders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from neuron_explorer.errors import TraceError, UsageError
from neuron_explorer.loading import resolve

_SUFFIXES = (".parquet", ".json", ".json.gz", ".json.zst", ".trace")
_DEPTH = 3
_MOST_LISTED = 50
_LONGEST_PATH = 1_000


@dataclass(frozen=True)
class Readable:
    """Real paths, all links followed."""

    folders: Sequence[Path]
    files: Sequence[Path]

    @classmethod
    def of(cls, given: Sequence[str]) -> Readable:
        """What the caller of `mcp` named; the current folder where nothing was.

        Raises:
            UsageError: A pattern matches nothing, or nothing was named and this is the root folder.
            TraceError: One of them does not exist.
        """
        here = Path.cwd()
        if not given and here == Path(here.anchor):
            raise UsageError(
                "mcp was started in the root folder, which would make every file readable",
                hint="name a trace or a folder of traces",
            )
        folders, files = [], []
        for text in given or [str(here)]:
            if Path(text).is_dir():
                folders.append(Path(text).resolve())
            else:
                files += [_existing(path) for path in resolve([Path(text)])]
        return cls(folders, files)

    def allows(self, path: Path) -> bool:
        """Whether the file that the path leads to may be read, links and `..` followed."""
        real = _real(path)
        if real is None:
            return False
        return real in self.files or any(real.is_relative_to(folder) for folder in self.folders)

    def find(self, text: str) -> list[Path]:
        """Real paths of the files of one trace: of a file, or of a folder of ranks.

        Raises:
            TraceError: It lies outside, whether it exists or not; or there is no trace.
        """
        if len(text) > _LONGEST_PATH or not text.isprintable():
            raise TraceError("that is no path of a trace")
        inside = [path for path in self._places(text) if self.allows(path)]
        if not inside:
            raise TraceError(
                f"{text} is not readable: it lies outside of what this server was started with",
                hint=f"readable: {', '.join(map(str, [*self.folders, *self.files]))}",
            )
        found = next((path for path in map(Path.resolve, inside) if path.exists()), None)
        if found is None:
            raise TraceError(
                f"no trace at {text}", hint="call open_trace without a path to list some"
            )
        return [self._member(path) for path in (resolve([found]) if found.is_dir() else [found])]

    def listing(self) -> list[str]:
        """Files that look like traces, the first few."""
        found = [str(path) for path in self.files]
        for folder in self.folders:
            for path in _files_under(folder, _DEPTH):
                if len(found) >= _MOST_LISTED:
                    return found
                if path.name.endswith(_SUFFIXES) and self.allows(path):
                    found.append(str(path))
        return found

    def _places(self, text: str) -> Iterator[Path]:
        if Path(text).is_absolute():
            yield Path(text)
            return
        yield from (folder / text for folder in self.folders)
        yield from (path for path in self.files if path.name == text)
        yield Path.cwd() / text

    def _member(self, path: Path) -> Path:
        """The file itself, which a pipe or a device is not: reading one may never end."""
        if not self.allows(path):
            raise TraceError(f"{path} leads out of the readable folders", hint="remove the link")
        if not path.is_file():
            raise TraceError(f"{path} is no regular file")
        return path.resolve()


def _existing(path: Path) -> Path:
    if not path.exists():
        raise TraceError(f"no trace at {path}", hint="check the path")
    return path.resolve()


def _real(path: Path) -> Path | None:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):  # links in a circle, a name too long
        return None


def _files_under(folder: Path, depth: int) -> Iterator[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return  # a folder that may not be listed has nothing to offer
    for entry in entries:
        if entry.is_dir() and not entry.is_symlink() and not entry.name.startswith("."):
            if depth > 1:
                yield from _files_under(entry, depth - 1)
        elif entry.is_file():
            yield entry
