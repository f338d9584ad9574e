"""What could not be used as it stood in a foreign file: kind, count, first position, example."""

from __future__ import annotations

from dataclasses import dataclass

EXAMPLE_LENGTH = 200

KINDS: dict[str, str] = {
    "absurd_number": "A number beyond double precision, such as 1e999.",
    "bad_escape": "A backslash that starts no JSON escape, as in an unescaped Windows path.",
    "bad_header_value": "A value next to traceEvents that is no JSON.",
    "bad_number": "A number JSON does not allow: +1, .5, 1., 007, 0x1F.",
    "bad_utf8": "Bytes that are not UTF-8.",
    "bad_value": "A value that is missing or no JSON value at all.",
    "bare_key": "A key without quotes.",
    "big_header_value": "A value next to traceEvents that is too big to keep.",
    "comment": "A comment inside an event.",
    "control_character": "A raw control character inside a string.",
    "cut": "The file ends in the middle.",
    "duplicate_key": "Two values next to traceEvents under one key.",
    "empty_event": "An event that is null or {}.",
    "extra_comma": "A comma with nothing before or after it.",
    "gzip_corrupt": "Compressed data that does not match its checksum or cannot be decoded.",
    "gzip_cut": "Compressed data that ends in the middle.",
    "junk": "Bytes between events that belong to none.",
    "lone_surrogate": "Half of a surrogate pair, such as \\ud800 alone.",
    "missing_comma": "Two values without a comma between them.",
    "not_a_number": "A bare inf or nan where a number belongs.",
    "nul_byte": "A NUL byte in the text.",
    "other_encoding": "Text in another encoding than UTF-8.",
    "python_repr": "Text printed by Python (single quotes), which is not JSON.",
    "trailing_garbage": "Bytes after the end of the data.",
    "unclosed_event": "An event without its closing brace.",
    "unclosed_list": "A list without its closing bracket.",
    "unclosed_string": "A string without its closing quote.",
    "unescaped_quote": "A quote inside a string without a backslash.",
    "unreadable_event": "An event that could not be read even with repairs.",
    "wrong_suffix": "A file whose content is not what its suffix says.",
    "unknown_category": "A category that no table here knows.",
    "no_usable_time": "An event whose time stamp is missing or no number.",
    "negative_duration": "A duration below zero.",
    "unclosed_slice": "A begin event without its end.",
    "unopened_slice": "An end event without its begin.",
    "time_set_aside": "Hardware work stamped 0, or a year from the rest of the trace.",
    "duration_overrun": "Hardware work that runs on over whole later work of its own queue.",
    "module_unnamed": "A call of a module that did not let itself be named.",
    "compiled_without_sources": "A compiled kernel or graph whose source lines are unknown.",
    "compilations_dropped": "Compilations beyond what is kept of one process.",
    "names_lost": "Names written as `unknown`: what Kineto does to any that is not ASCII.",
    "window_cut": "A capture that ended early, for another profiler was opened inside it.",
    "window_incomplete": "A capture that ended before its schedule did.",
    "budget_reached": "A capture that ended early, for it took too much memory.",
    "gc_pauses_dropped": "Pauses of the garbage collector beyond what is kept of one window.",
    "lines_truncated": "Lines that ran after as many had been recorded as are kept.",
    "memory_not_recorded": "Allocations: torch records none when it records every thread.",
    "threads_without_ops": "Threads that ran the program's Python code, and have no op here.",
    "queue_source_failed": "A queue source that raised, or gave a table that is none.",
    "queue_events_dropped": "Events of hardware queues that their source says it lost.",
    "queue_events_reversed": "Events of hardware queues that end before they begin.",
    "queue_events_outside": "Events of hardware queues that began before the recording or after.",
    "rows_missing": "Rows that a file of `neuron-explorer export` should hold, and does not.",
}
"""Every kind the readers of Chrome traces and a capture report, with its meaning."""

ACTIONS: dict[str, str] = {
    "absurd_number": "value set to null",
    "bad_escape": "backslashes kept as they stand",
    "bad_header_value": "value skipped",
    "bad_number": "number rewritten",
    "bad_utf8": "replaced by U+FFFD",
    "bad_value": "value set to null, or read as the literal it spells",
    "bare_key": "quotes added",
    "big_header_value": "value skipped",
    "comment": "comment skipped",
    "control_character": "kept, escaped",
    "cut": "every complete event before it was kept",
    "duplicate_key": "first value kept",
    "empty_event": "skipped",
    "extra_comma": "skipped",
    "gzip_corrupt": "everything decoded before it was kept",
    "gzip_cut": "everything readable before it was kept",
    "junk": "skipped",
    "lone_surrogate": "replaced by U+FFFD",
    "missing_comma": "read as if it were there",
    "not_a_number": "value set to null",
    "nul_byte": "skipped, or escaped inside a string",
    "other_encoding": "decoded",
    "python_repr": "skipped; export the trace with json.dump",
    "trailing_garbage": "ignored",
    "unclosed_event": "closed before the next event",
    "unclosed_list": "closed at the next brace",
    "unclosed_string": "closed before the next key",
    "unescaped_quote": "kept as part of the string",
    "unreadable_event": "skipped up to the next event",
    "wrong_suffix": "read by its content",
    "unknown_category": "kept as host/slice",
    "no_usable_time": "kept outside the timeline",
    "negative_duration": "duration unknown; raw_duration_ns keeps it",
    "unclosed_slice": "kept, duration unknown",
    "unopened_slice": "kept, duration unknown",
    "time_set_aside": "start unknown; raw_start_ns keeps it",
    "duration_overrun": "ends where the next begins; raw_duration_ns keeps it",
    "module_unnamed": "kept under the name `unknown`",
    "compiled_without_sources": "call enable_compile_sources() before the first "
    "compiled call; "
    "for what caches hold without lines, TORCHINDUCTOR_FORCE_DISABLE_CACHES=1",
    "compilations_dropped": "their graphs and rows are left out",
    "names_lost": "kept as they are",
    "window_cut": "what came before was kept",
    "window_incomplete": "what came before was kept",
    "budget_reached": "what came before was kept; record fewer steps",
    "gc_pauses_dropped": "the first ones were kept",
    "lines_truncated": "ops after that have no line; record fewer steps",
    "memory_not_recorded": "no allocation is known; record without all_threads",
    "threads_without_ops": "their ops, if any, are missing; record with all_threads=True",
    "queue_source_failed": "the job went on; the rows of this source are missing",
    "queue_events_dropped": "all others were kept",
    "queue_events_reversed": "kept, duration unknown",
    "queue_events_outside": "kept at the time their source gives them",
    "rows_missing": "links to them are unknown; export the trace again",
}
"""What is done about each kind, unless the place that reports it knows better."""


@dataclass
class _Issue:
    kind: str
    count: int
    first_position: int | None
    example: str | None
    action: str


class IssueLog:
    """Import issues merged by kind: counts add up, the first position and example stay.

    Positions are byte offsets in the decompressed text, except where an action says otherwise.
    """

    def __init__(self) -> None:
        self._issues: dict[str, _Issue] = {}

    def add(
        self,
        kind: str,
        *,
        position: int | None = None,
        example: str | None = None,
        action: str | None = None,
        count: int = 1,
    ) -> None:
        """Adds `count` issues of a kind; `action` defaults to the one of `ACTIONS`."""
        known = self._issues.get(kind)
        if known is not None:
            known.count += count
            return
        shown = printable(example) if example else None
        said = ACTIONS.get(kind, "") if action is None else action
        self._issues[kind] = _Issue(kind, count, position, shown, said)

    def count(self, kind: str) -> int:
        """Number of issues of one kind so far."""
        known = self._issues.get(kind)
        return 0 if known is None else known.count

    def records(self) -> list[dict[str, object]]:
        """One dict a kind, in the order of first appearance, as `import_issues` holds them."""
        return [vars(issue).copy() for issue in self._issues.values()]

    def clear(self) -> None:
        """Forgets everything, for a reader that starts a file again."""
        self._issues.clear()


def printable(text: str, limit: int = EXAMPLE_LENGTH) -> str:
    """`text` on one line of at most `limit` characters, control characters escaped."""
    head = text[: limit + 1]
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in head)
    return safe if len(safe) <= limit else safe[: limit - 1] + "…"
