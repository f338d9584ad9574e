"""Every wrapping a trace file comes in, and every way in which one is damaged."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import os
import threading
import tracemalloc
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuron_explorer.collectors.importers.container import open_source
from neuron_explorer.collectors.importers.issues import IssueLog
from neuron_explorer.errors import ImportFailedError

TEXT = json.dumps(
    {"traceEvents": [{"ph": "X", "name": "ünï", "ts": i} for i in range(2000)]}
).encode()


@dataclass(frozen=True)
class Content:
    data: bytes
    truncated: bool
    kinds: dict[str, int]
    position: int
    size: int


def content(path: Path, data: bytes, block: int = 1000) -> Content:
    path.write_bytes(data)
    return opened(path, block)


def opened(path: Path, block: int = 1000) -> Content:
    issues = IssueLog()
    pieces = []
    with open_source(path, issues) as source:
        while piece := source.read(block):
            assert len(piece) <= 3 * block
            pieces.append(piece)
        kinds = {str(issue["kind"]): int(str(issue["count"])) for issue in issues.records()}
        return Content(b"".join(pieces), source.truncated, kinds, source.position, source.size)


def zipped(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name.replace("_", "."), data)
    return file.getvalue()


class TestWhole:
    @pytest.mark.parametrize(
        ("name", "data"),
        [
            ("a.json", TEXT),
            ("a.json.gz", gzip.compress(TEXT)),
            ("a.json.gz", gzip.compress(TEXT[:7000]) + gzip.compress(TEXT[7000:])),
            ("a.json.gz", gzip.compress(b"") + gzip.compress(TEXT) + b"\0" * 1000),
            (
                "a.json.gz",
                b"".join(gzip.compress(TEXT[i : i + 999]) for i in range(0, len(TEXT), 999)),
            ),
            ("a.json.gz", gzip.compress(gzip.compress(TEXT))),
            ("a", zlib.compress(TEXT)),
            ("a.zip", zipped(trace_json=TEXT, readme_txt=b"x")),
            ("a.zip", zipped(trace_json_gz=gzip.compress(TEXT))),
            ("a.json", b"\xef\xbb\xbf" + TEXT),
        ],
    )
    def test_every_wrapping(self, tmp_path: Path, name: str, data: bytes) -> None:
        got = content(tmp_path / name, data)
        assert (got.data, got.truncated, got.kinds) == (TEXT, False, {})
        assert got.size == len(data)

    @pytest.mark.parametrize(
        ("name", "data"),
        [("a.json.gz", TEXT), ("a.json", gzip.compress(TEXT)), ("a.gz", zipped(a_json=TEXT))],
    )
    def test_wrong_suffix(self, tmp_path: Path, name: str, data: bytes) -> None:
        got = content(tmp_path / name, data)
        assert (got.data, got.kinds) == (TEXT, {"wrong_suffix": 1})

    @pytest.mark.parametrize(
        "encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]
    )
    @pytest.mark.parametrize("block", [7, 1000])
    def test_other_encodings(self, tmp_path: Path, encoding: str, block: int) -> None:
        got = content(tmp_path / "a.json", TEXT.decode().encode(encoding), block)
        assert (got.data, got.kinds) == (TEXT, {"other_encoding": 1})

    def test_a_pipe(self, tmp_path: Path) -> None:
        path = tmp_path / "pipe"
        os.mkfifo(path)
        writer = threading.Thread(target=path.write_bytes, args=(gzip.compress(TEXT),))
        writer.start()
        got = opened(path)
        writer.join()
        assert (got.data, got.size) == (TEXT, 0)

    def test_position_reaches_the_size(self, tmp_path: Path) -> None:
        assert content(tmp_path / "a.json", TEXT).position == len(TEXT)
        data = gzip.compress(TEXT)
        assert content(tmp_path / "a.json.gz", data).position == len(data)

    def test_memory_is_bounded(self, tmp_path: Path) -> None:
        path = tmp_path / "bomb.json.gz"
        path.write_bytes(gzip.compress(bytes(200_000_000), 1))
        tracemalloc.start()
        with open_source(path, IssueLog()) as source:
            assert sum(map(len, iter(lambda: source.read(1 << 20), b""))) == 200_000_000
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 8_000_000


class TestDamaged:
    @pytest.mark.parametrize("missing", [1, 4, 8, 9, 100, 1000])
    def test_cut_gzip(self, tmp_path: Path, missing: int) -> None:
        whole = gzip.compress(TEXT)
        got = content(tmp_path / "a.json.gz", whole[:-missing])
        assert TEXT.startswith(got.data)
        assert len(got.data) >= len(TEXT) * (1 - missing / len(whole)) - 2000
        assert (got.truncated, got.kinds) == (True, {"gzip_cut": 1})
        if missing <= 8:
            assert got.data == TEXT

    def test_cut_in_a_later_member(self, tmp_path: Path) -> None:
        data = gzip.compress(TEXT) + gzip.compress(TEXT)[:5]
        got = content(tmp_path / "a.json.gz", data)
        assert (got.data, got.truncated, got.kinds) == (TEXT, True, {"gzip_cut": 1})

    @pytest.mark.parametrize("block", [1000, 1 << 20])
    def test_wrong_checksum(self, tmp_path: Path, block: int) -> None:
        data = bytearray(gzip.compress(TEXT))
        data[-6] ^= 255
        got = content(tmp_path / "a.json.gz", bytes(data) + gzip.compress(b"more"), block)
        assert (got.data, got.truncated) == (TEXT + b"more", False)
        assert got.kinds == {"gzip_corrupt": 1}

    def test_wrong_byte_in_the_middle(self, tmp_path: Path) -> None:
        text = os.urandom(50_000) + TEXT
        data = bytearray(gzip.compress(text))
        data[30_000:30_100] = bytes(100)
        got = content(tmp_path / "a.json.gz", bytes(data), 1 << 20)
        assert got.data[:29_000] == text[:29_000]
        assert got.kinds == {"gzip_corrupt": 1}

    def test_garbage_after_gzip(self, tmp_path: Path) -> None:
        got = content(tmp_path / "a.json.gz", gzip.compress(TEXT) + b"\0\0garbage")
        assert (got.data, got.truncated) == (TEXT, False)
        assert got.kinds == {"trailing_garbage": 1}

    @given(
        st.binary(max_size=200), st.sampled_from([b"", b"\x1f\x8b", b"\x1f\x8b\x08\0", b"PK\3\4"])
    )
    def test_random_bytes(
        self, tmp_path_factory: pytest.TempPathFactory, data: bytes, magic: bytes
    ) -> None:
        path = tmp_path_factory.mktemp("random") / "a.json"
        with contextlib.suppress(ImportFailedError):
            content(path, magic + data)


class TestErrors:
    def failure(self, path: Path) -> str:
        with pytest.raises(ImportFailedError) as caught:
            opened(path)
        assert caught.value.hint
        assert "\n" not in str(caught.value)
        return str(caught.value)

    def test_no_file(self, tmp_path: Path) -> None:
        assert self.failure(tmp_path / "a.json").endswith("a.json does not exist")
        assert "cannot open" in self.failure(Path("a\0b"))
        assert "is a folder" in self.failure(tmp_path)

    def test_no_permission(self, tmp_path: Path) -> None:
        path = tmp_path / "a.json"
        path.write_bytes(TEXT)
        path.chmod(0)
        if os.access(path, os.R_OK):
            pytest.skip("this user may read everything")
        assert "Permission denied" in self.failure(path)

    @pytest.mark.parametrize(
        ("data", "said"),
        [
            (b"", "is empty (0 bytes)"),
            (gzip.compress(b""), "holds no data"),
            (b"\x1f\x8b\x08", "holds no data"),
            (b"\x28\xb5\x2f\xfd1234", "is compressed with zstd"),
            (bz2.compress(TEXT), "is compressed with bzip2"),
            (b"\xfd7zXZ\x00", "is compressed with xz"),
            (zipped(a_json=b"1", b_json=b"2"), "is a zip file with 2 traces in it"),
            (zipped(a_json=TEXT)[:100], "is a zip file that cannot be read"),
        ],
    )
    def test_no_data(self, tmp_path: Path, data: bytes, said: str) -> None:
        path = tmp_path / "a.json"
        path.write_bytes(data)
        assert said in self.failure(path)
