from __future__ import annotations

from neuron_explorer.analyzers.compare.lines import Line, LinePair, pair_lines

FILE = "/tmp/run-1/model.py"
TEXTS = ["x = self.norm(x)", "x = self.up(x)", "return x"]


def lines(texts: list[str], file: str = FILE, first: int = 10, function: str = "f") -> list[Line]:
    return [Line(file, first + i, function, text) for i, text in enumerate(texts)]


def numbers(pairs: list[LinePair]) -> list[tuple[int | None, int | None]]:
    return [(number(p.base), number(p.new)) for p in pairs]


def number(line: Line | None) -> int | None:
    return None if line is None else line.number


def test_lines_that_moved_are_the_same() -> None:
    pairs = pair_lines(lines(TEXTS), lines(TEXTS, first=25))
    assert numbers(pairs) == [(10, 25), (11, 26), (12, 27)]
    assert not any(pair.edited for pair in pairs)


def test_a_file_of_another_temporary_folder_is_the_same() -> None:
    pairs = pair_lines(lines(TEXTS), lines(TEXTS, file="/private/var/x9/model.py"))
    assert numbers(pairs) == [(10, 10), (11, 11), (12, 12)]


def test_of_two_files_of_one_name_the_longer_common_path_decides() -> None:
    base = lines(["a = 1"], "/a/enc/model.py") + lines(["b = 2"], "/a/dec/model.py")
    new = lines(["b = 3"], "/b/dec/model.py") + lines(["a = 4"], "/b/enc/model.py")
    found = {(p.base and p.base.file, p.new and p.new.file) for p in pair_lines(base, new)}
    assert found == {("/a/enc/model.py", "/b/enc/model.py"), ("/a/dec/model.py", "/b/dec/model.py")}


def test_a_renamed_file_is_known_by_what_is_in_it() -> None:
    pairs = pair_lines(lines(TEXTS), lines([*TEXTS, "y = 1"], "/srv/new_name.py"))
    assert numbers(pairs) == [(10, 10), (11, 11), (12, 12), (None, 13)]


def test_an_edited_line_keeps_its_counterpart() -> None:
    new = [TEXTS[0], "x = self.up(x).relu()", TEXTS[2]]
    pairs = pair_lines(lines(TEXTS), lines(new))
    assert numbers(pairs) == [(10, 10), (11, 11), (12, 12)]
    assert [pair.edited for pair in pairs] == [False, True, False]


def test_another_line_in_its_place_is_new_and_the_old_one_gone() -> None:
    pairs = pair_lines(lines(TEXTS), lines([TEXTS[0], "torch.cuda.synchronize()", TEXTS[2]]))
    assert sorted(numbers(pairs), key=str) == [(10, 10), (11, None), (12, 12), (None, 11)]


def test_the_same_words_in_two_functions_are_two_lines() -> None:
    base = lines(TEXTS, function="encode")
    pairs = pair_lines(base, lines(TEXTS, first=40, function="decode"))
    assert all(pair.base is None or pair.new is None for pair in pairs)


def test_without_texts_lines_go_by_number_and_a_moved_function_by_order() -> None:
    base = [Line(FILE, n, f) for n, f in ((3, "a"), (4, "a"), (9, "b"))]
    new = [Line(FILE, n, f) for n, f in ((3, "a"), (4, "a"), (12, "b"))]
    assert numbers(pair_lines(base, new)) == [(3, 3), (4, 4), (9, 12)]


def test_a_line_that_only_stopped_to_run_was_not_removed() -> None:
    base, new = lines(TEXTS), lines(TEXTS[:2])
    (gone,) = [p for p in pair_lines(base, new, known_in_new=lambda _: TEXTS) if p.new is None]
    assert gone.stands
    assert not gone.edited
    (removed,) = [p for p in pair_lines(base, new) if p.new is None]
    assert removed.edited


def test_every_line_is_in_one_pair() -> None:
    base, new = lines(TEXTS), lines(["y = 0", *TEXTS[1:], "z = x"])
    pairs = pair_lines(base, new)
    assert sorted(p.base.number for p in pairs if p.base) == [10, 11, 12]
    assert sorted(p.new.number for p in pairs if p.new) == [10, 11, 12, 13]
