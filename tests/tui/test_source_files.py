from __future__ import annotations

import hashlib
from pathlib import Path

from neuron_explorer.tui.source_files import source_text
from neuron_explorer.tui.text import Line

CODE = "import torch\n\n\ndef forward(x):\n\treturn x * 2  # twice\n"


def recorded(file: Path, content: str, *lines: int) -> list[dict[str, object]]:
    kept = {str(number): content.splitlines()[number - 1] for number in lines}
    digest = hashlib.sha256(content.encode()).hexdigest()
    return [{"sources": {str(file): {"sha256": digest, "lines": kept}}}]


def plain(line: Line) -> str:
    return "".join(piece if isinstance(piece, str) else piece[0] for piece in line)


def test_the_very_same_file_is_shown_whole_and_coloured(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(CODE)
    found = source_text(recorded(file, CODE, 5), str(file))
    assert [plain(found.lines[n]) for n in (1, 4, 5)] == [
        "import torch",
        "def forward(x):",
        "    return x * 2  # twice",
    ]
    assert ("def", "keyword") in found.lines[4]
    assert found.warning == ""


def test_a_changed_file_shows_the_lines_of_the_trace_with_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(CODE.replace("* 2", "* 3"))
    found = source_text(recorded(file, CODE, 4, 5), str(file))
    assert sorted(found.lines) == [4, 5]
    assert "* 2" in plain(found.lines[5])
    assert "changed since the trace" in found.warning


def test_a_file_that_is_not_here_comes_from_the_trace(tmp_path: Path) -> None:
    found = source_text(recorded(tmp_path / "gone.py", CODE, 5), str(tmp_path / "gone.py"))
    assert sorted(found.lines) == [5]
    assert "is not on this machine" in found.warning


def test_a_file_without_a_recorded_hash_is_shown_with_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(CODE)
    found = source_text([{}], str(file))
    assert len(found.lines) == 5
    assert "as it is now" in found.warning


def test_text_that_nobody_has_is_said(tmp_path: Path) -> None:
    found = source_text([{}], str(tmp_path / "gone.py"))
    assert not found.lines
    assert "neither in the trace nor here" in found.warning
