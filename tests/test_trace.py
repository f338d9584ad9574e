"""Opening trace files: what is accepted, what is refused and with which words."""

from __future__ import annotations

import gc
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

from builders import H100, Row, kernel, op, write_trace
from neuron_explorer.database import Database
from neuron_explorer.errors import DeviceError, TraceError
from neuron_explorer.schema import COLUMNS, type_name
from neuron_explorer.trace import Trace
from neuron_explorer.view_files import View


def one_kernel(path: Path, **columns: object) -> Path:
    return write_trace(path, [kernel(0, 10, **columns)])


def stripped(source: Path, target: Path, *, without: str) -> Path:
    table = parquet.read_table(source)
    parquet.write_table(table.drop_columns([without]), target)
    return target


def refusal(path: Path) -> TraceError:
    with pytest.raises(TraceError) as caught:
        Trace.open([path])
    assert "\n" not in str(caught.value)
    assert caught.value.hint
    return caught.value


def test_missing_file_is_named(tmp_path: Path) -> None:
    assert str(tmp_path / "none.parquet") in str(refusal(tmp_path / "none.parquet"))


def test_folder_is_no_file(tmp_path: Path) -> None:
    assert "folder" in str(refusal(tmp_path))


def test_no_paths_at_all() -> None:
    with pytest.raises(TraceError, match="no trace given"):
        Trace.open([])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b'{"traceEvents": []}', "not a readable Parquet file"),
        (b"PAR1" + bytes(64), "not a readable Parquet file"),
    ],
)
def test_what_is_no_parquet(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(content)
    assert says in str(refusal(path))


def test_cut_parquet_is_refused(tmp_path: Path) -> None:
    path = one_kernel(tmp_path / "t.parquet")
    path.write_bytes(path.read_bytes()[:-100])
    assert "not a readable Parquet file" in str(refusal(path))


def test_foreign_parquet_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"a": [1]}), path)
    assert "no trace of neuron_explorer" in str(refusal(path))


def test_metadata_that_is_no_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = pa.table({"a": [1]}).replace_schema_metadata({"neuron_explorer.origin": "{"})
    parquet.write_table(table, path)
    assert "not JSON" in str(refusal(path))


@pytest.mark.parametrize(
    ("version", "advice"),
    [("2.0.0", "upgrade"), ("17.3.1", "upgrade"), ("0.9.0", "again"), ("new", "again")],
)
def test_other_major_versions_are_refused(tmp_path: Path, version: str, advice: str) -> None:
    path = write_trace(tmp_path / "t.parquet", [], {"schema_version": version})
    error = refusal(path)
    assert version in str(error)
    assert advice in error.hint


def test_newer_minor_version_opens(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.parquet", [kernel(0, 1)], {"schema_version": "1.99.3"})
    assert Trace.open([path]).sql("SELECT count(*) AS n FROM work").to_pylist() == [{"n": 1}]


def test_column_of_a_later_minor_version_is_null_in_an_older_file(tmp_path: Path) -> None:
    whole = one_kernel(tmp_path / "whole.parquet", rank=0, phase="forward")
    other = one_kernel(tmp_path / "other.parquet", rank=1, phase="forward")
    old = stripped(other, tmp_path / "old.parquet", without="phase")
    rows = Trace.open([whole, old]).sql("SELECT rank, phase FROM work ORDER BY rank").to_pylist()
    assert rows == [{"rank": 0, "phase": "forward"}, {"rank": 1, "phase": None}]


def test_empty_trace_opens_and_every_total_is_empty(tmp_path: Path) -> None:
    trace = Trace.open([write_trace(tmp_path / "t.parquet", [])])
    for view in ("work", "devices", "queues", "gaps", "steps", "lines", "chains", "roofline"):
        assert trace.sql(f"SELECT * FROM {view}").num_rows == 0


def test_events_have_the_types_of_the_schema(tmp_path: Path) -> None:
    trace = Trace.open([one_kernel(tmp_path / "t.parquet")])
    told = {row["column_name"]: row["column_type"] for row in _describe(trace, "events")}
    expected = {column.name: type_name(column) for column in COLUMNS}
    assert told == expected | {"stack": "VARCHAR[]", "end_ns": "BIGINT"}


def _describe(trace: Trace, view: str) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = trace.sql(f"DESCRIBE {view}").to_pylist()
    return rows


def test_stack_becomes_a_list_of_frames(tmp_path: Path) -> None:
    trace = Trace.open([write_trace(tmp_path / "t.parquet", [op(0, 1, stack="a.py:1\nb.py:2")])])
    assert trace.sql("SELECT stack FROM events").to_pylist() == [{"stack": ["a.py:1", "b.py:2"]}]


def test_metadata_is_decoded_by_file(tmp_path: Path) -> None:
    path = one_kernel(tmp_path / "t.parquet")
    trace = Trace.open([path])
    assert trace.files == [path]
    assert trace.metadata[path]["devices"] == [H100]


def test_a_quote_in_the_path_is_only_a_quote(tmp_path: Path) -> None:
    trace = Trace.open([one_kernel(tmp_path / "it's; DROP" / "t.parquet")])
    assert trace.sql("SELECT count(*) AS n FROM work").to_pylist() == [{"n": 1}]
    assert trace.query("SELECT count(*) FROM work").rows == [(1,)]


# ---- several ranks --------------------------------------------------------


def rank_rows(rank: int, name: str) -> list[Row]:
    """Ten ops of one kernel each; ids and correlations are the same in every rank."""
    ops = [op(i * 10, 5, rank=rank, op_id=None, correlation=i) for i in range(10)]
    kernels = [
        kernel(100 + i * 10, 5, rank=rank, name=name, op_id=i, correlation=i) for i in range(10)
    ]
    return [*ops, *kernels]


def test_ranks_share_ids_but_no_links(tmp_path: Path) -> None:
    paths = [
        write_trace(tmp_path / f"{rank}.parquet", rank_rows(rank, f"kernel{rank}"))
        for rank in (0, 1)
    ]
    rows = Trace.open(paths).sql(
        """
        SELECT o.rank, count(*) AS links, count(DISTINCT w.name) AS names
        FROM ops AS o INNER JOIN work AS w ON o.rank = w.rank AND o.event_id = w.op_id
        GROUP BY o.rank ORDER BY o.rank
        """
    )
    assert rows.to_pylist() == [
        {"rank": 0, "links": 10, "names": 1},
        {"rank": 1, "links": 10, "names": 1},
    ]


def test_files_that_claim_one_rank_are_renumbered_and_say_so(tmp_path: Path) -> None:
    paths = [
        write_trace(tmp_path / f"{name}.parquet", rank_rows(3, name)) for name in ("a", "b", "c")
    ]
    trace = Trace.open(paths)
    found = trace.sql("SELECT DISTINCT rank, name FROM work ORDER BY rank").to_pylist()
    assert [(row["rank"], row["name"]) for row in found] == [(0, "a"), (1, "b"), (2, "c")]
    issues = trace.sql("SELECT rank, kind FROM import_issues ORDER BY rank").to_pylist()
    assert [issue["rank"] for issue in issues] == [0, 1, 2]
    assert {issue["kind"] for issue in issues} == {"rank_taken"}


def test_the_same_file_twice_is_two_ranks(tmp_path: Path) -> None:
    path = one_kernel(tmp_path / "t.parquet")
    rows = Trace.open([path, path]).sql("SELECT rank, work_ns FROM devices").to_pylist()
    assert rows == [{"rank": 0, "work_ns": 10}, {"rank": 1, "work_ns": 10}]


# ---- living together ------------------------------------------------------


def test_two_traces_of_one_file_work_at_once_and_it_can_be_replaced(tmp_path: Path) -> None:
    path = one_kernel(tmp_path / "t.parquet")
    first, second = Trace.open([path]), Trace.open([path])
    assert first.sql("SELECT work_ns FROM devices").to_pylist() == [{"work_ns": 10}]
    assert second.query("SELECT work_ns FROM devices").rows == [(10,)]
    write_trace(tmp_path / "next.parquet", [kernel(0, 99)]).replace(path)
    third = Trace.open([path])
    assert third.sql("SELECT work_ns FROM devices").to_pylist() == [{"work_ns": 99}]
    assert list(tmp_path.iterdir()) == [path]


def test_any_thread_may_ask(tmp_path: Path) -> None:
    trace = Trace.open([write_trace(tmp_path / "t.parquet", rank_rows(0, "k"))])
    answers: list[int] = []

    def ask(view: str) -> None:
        answers.append(trace.sql(f"SELECT count(*) AS n FROM {view}").to_pylist()[0]["n"])

    views = ["work", "roofline", "timeline", "gaps", "ops", "chains", "roofline", "work"]
    threads = [threading.Thread(target=ask, args=[view]) for view in views]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [0, 9, 10, 10, 10, 10, 10, 10]


def test_threads_share_the_filling_of_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled: list[str] = []
    fill = Database._fill

    def counted(database: Database, view: View) -> None:
        filled.append(view.name)
        fill(database, view)

    monkeypatch.setattr(Database, "_fill", counted)
    trace = Trace.open([write_trace(tmp_path / "t.parquet", rank_rows(0, "k"))])
    queries = [f"SELECT * FROM {view}" for view in ("step_bounds", "chain_ops", "exposed", "lines")]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(trace.rows, queries * 2))
    assert len(filled) == len(set(filled)) > len(queries)


def test_a_table_that_one_thread_could_not_fill_another_fills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = Trace.open([write_trace(tmp_path / "t.parquet", rank_rows(0, "k"))])
    with monkeypatch.context() as patched:
        patched.setattr(Database, "_fill", lambda *_: pytest.fail("no room"))
        with pytest.raises(pytest.fail.Exception):
            trace.rows("SELECT * FROM roofline")
    assert len(trace.rows("SELECT * FROM roofline")) == 10


def test_python_values_are_those_of_the_arrow_table(tmp_path: Path) -> None:
    trace = Trace.open([write_trace(tmp_path / "t.parquet", rank_rows(0, "k"))])
    query = """
        SELECT sum(duration_ns) AS total, list(event_id) AS ids, {'a': 1, 'b': 'x'} AS entry,
        NULL AS nothing, 0.5 AS share FROM work"""
    assert trace.rows(query) == trace.sql(query).to_pylist()
    assert trace.answer("SELECT 1 AS a, 2 AS b WHERE FALSE").columns == ["a", "b"]


def test_parameters_are_bound_by_name(tmp_path: Path) -> None:
    trace = Trace.open([one_kernel(tmp_path / "t.parquet")])
    rows = trace.sql("SELECT $name AS name, $n + 1 AS n", {"name": "it's", "n": 1})
    assert rows.to_pylist() == [{"name": "it's", "n": 2}]
    with pytest.raises(duckdb.Error):
        trace.sql("SELECT 1", {"unused": 1})


def test_sums_of_integers_are_integers(tmp_path: Path) -> None:
    trace = Trace.open([one_kernel(tmp_path / "t.parquet")])
    query = "SELECT sum(duration_ns) AS a, sum(8e18::BIGINT + x) AS b FROM work, range(4) AS r (x)"
    table = trace.sql(query)
    assert table.schema.field("a").type == pa.int64()
    assert table.to_pylist()[0]["a"] == 40
    assert int(table.to_pylist()[0]["b"]) == 32 * 10**18 + 6


def test_variables_of_the_caller_are_no_tables(tmp_path: Path) -> None:
    trace = Trace.open([one_kernel(tmp_path / "t.parquet")])
    secret = pa.table({"a": [1]})
    with pytest.raises(duckdb.CatalogException):
        trace.sql("SELECT * FROM secret")
    assert secret.num_rows == 1


def test_every_query_runs_under_the_settings_of_the_trace(tmp_path: Path) -> None:
    """A cursor inherits only what is set for the whole instance."""
    trace = Trace.open([one_kernel(tmp_path / "t.parquet")])
    names = ("TimeZone", "parquet_metadata_cache", "python_enable_replacements")
    found = trace.rows(
        f"SELECT {', '.join(f'current_setting({name!r}) AS {name}' for name in names)}"
    )
    assert found == [dict(zip(names, ("UTC", True, False), strict=True))]


def test_kept_folder_goes_with_the_trace(tmp_path: Path) -> None:
    for close in (True, False):
        folder = TemporaryDirectory(dir=tmp_path)
        trace = Trace.open([one_kernel(Path(folder.name) / "t.parquet")])
        trace.keep_alive(folder)
        assert trace.sql("SELECT 1 AS n").num_rows == 1
        if close:
            trace.close()
        del trace
        gc.collect()
        assert not Path(folder.name).exists()


# ---- chips ----------------------------------------------------------------


def test_device_is_recognised_from_its_properties(tmp_path: Path) -> None:
    trace = Trace.open([one_kernel(tmp_path / "t.parquet")])
    rows = trace.sql("SELECT chip, modelled FROM devices").to_pylist()
    assert rows == [{"chip": "h100-sxm", "modelled": False}]


def test_another_chip_makes_figures_modelled(tmp_path: Path) -> None:
    path = one_kernel(tmp_path / "t.parquet")
    modelled = Trace.open([path], device="trn2")
    assert modelled.device_override == "trn2"
    rows = modelled.sql("SELECT chip, modelled FROM devices").to_pylist()
    assert rows == [{"chip": "trn2", "modelled": True}]
    same = Trace.open([path], device="h100-sxm").sql("SELECT modelled FROM devices").to_pylist()
    assert same == [{"modelled": False}]


def test_unknown_chip_is_refused_when_opening(tmp_path: Path) -> None:
    with pytest.raises(DeviceError):
        Trace.open([one_kernel(tmp_path / "t.parquet")], device="h9000")


@pytest.mark.parametrize(
    ("devices", "device", "chip"),
    [
        ([], "cuda:0", None),
        ([{"id": 0, "name": "Mystery"}], "cuda:0", None),
        ([H100], "cuda:3", "h100-sxm"),
        ([{"id": "junk"}, "junk", None], "cuda:0", None),
        ([H100, {"id": 1, "name": "Mystery"}], "cuda:0", "h100-sxm"),
        ([H100, {"id": 1, "name": "Mystery"}], "cuda:1", None),
        ([H100, {"id": 1, "name": "Mystery"}], "cuda:2", None),
        (None, "cuda:0", None),
    ],
)
def test_chip_of_each_device(
    tmp_path: Path, devices: object, device: str, chip: str | None
) -> None:
    path = write_trace(tmp_path / "t.parquet", [kernel(0, 1, device=device)], {"devices": devices})
    assert Trace.open([path]).sql("SELECT chip FROM devices").to_pylist() == [{"chip": chip}]


def test_metadata_view_holds_json(tmp_path: Path) -> None:
    trace = Trace.open([one_kernel(tmp_path / "t.parquet")])
    rows = trace.sql("SELECT value FROM trace_metadata WHERE key = 'devices'").to_pylist()
    assert json.loads(rows[0]["value"]) == [H100]


def test_batches_are_the_rows_of_the_query_in_its_order(tmp_path: Path) -> None:
    rows = [kernel(10 * number, 5) for number in range(5000)]
    with Trace.open([write_trace(tmp_path / "t.parquet", rows)]) as trace:
        query = "SELECT event_id FROM events WHERE start_ns >= $at ORDER BY event_id DESC"
        batches = list(trace.batches(query, {"at": 100}, rows=2048))
        assert max(batch.num_rows for batch in batches) <= 2048 < len(rows)
        found = [number for batch in batches for number in batch.column(0).to_pylist()]
        assert found == list(range(4999, 9, -1))
        with pytest.raises(duckdb.Error):
            list(trace.batches("SELECT nothing FROM events"))


def test_a_sum_over_an_empty_join_is_whole_when_sorted(tmp_path: Path) -> None:
    """DuckDB 2.0.1 keeps one byte of it, unless an optimizer of its own is off."""
    path = write_trace(tmp_path / "t.parquet", [kernel(at * 100, at % 100) for at in range(3000)])
    trace = Trace.open([path])
    rows = trace.sql("""
        SELECT third, total
        FROM (
            SELECT w.event_id % 3 AS third, sum(w.duration_ns)::BIGINT AS total
            FROM work AS w
            LEFT JOIN (FROM collectives WHERE duration_ns > 0) AS c ON w.event_id = c.event_id
            GROUP BY third
        )
        ORDER BY third
    """)
    assert rows["total"].to_pylist() == [49_500] * 3


def test_rows_are_what_a_table_of_the_same_query_holds(tmp_path: Path) -> None:
    rows = [op(0, 10, name="a"), op(20, 10, name="b"), kernel(5, 3)]
    with Trace.open([write_trace(tmp_path / "t.parquet", rows, {"devices": [H100]})]) as trace:
        query = "SELECT kind, sum(duration_ns) AS ns, list(name) AS names FROM events GROUP BY ALL"
        found = trace.rows(f"{query} HAVING kind = $kind", {"kind": "op"})
        assert found == [{"kind": "op", "ns": 20, "names": ["a", "b"]}]
        assert found == trace.sql(f"{query} HAVING kind = $kind", {"kind": "op"}).to_pylist()
        assert trace.rows("SELECT 1 AS one WHERE false") == []
