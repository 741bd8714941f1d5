"""SQL on the page: it reads the lake, and nothing else can be done with it."""

import csv
import io
import threading
import time
from urllib.parse import urlencode

import duckdb
import pytest
from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.clients.native import attach
from polynya_local.reports.preview import Limits
from polynya_local.reports.visitor_sql import SqlQuestion, locked

from tests.pages.conftest import Page, report
from tests.pages.markup import Markup

ORDERS = "SELECT day, count(*) AS n, sum(amount) FROM shop.orders GROUP BY ALL ORDER BY day"


def address(query: str, **others: object) -> str:
    return "/sql?" + urlencode({"query": query, **others})


def answer(page: Page, query: str, **others: object) -> dict:
    return report(page, address(query, **others))["answer"]


@pytest.mark.parametrize("snapshot", [None, 3])
def test_rows_are_those_of_native_ducklake(page, moto, snapshot):
    past = {} if snapshot is None else {"snapshot": snapshot}
    at = "" if snapshot is None else f"AT (VERSION => {snapshot})"
    with connect(LAKE, moto) as con:
        attach(con, page.lake)
        native = ORDERS.replace("shop.orders", f"lake.shop.orders {at}")
        texts = [[str(value) for value in row] for row in con.execute(native).fetchall()]
    rows = answer(page, ORDERS, **past)["rows"]
    assert [[cell["text"] for cell in row] for row in rows["rows"]] == texts
    assert rows["types"] == ["DATE", "BIGINT", "DECIMAL(38,2)"]


def test_a_download_has_all_rows_exactly(page):
    query = (
        "SELECT 170141183460469231731687303715884105727 AS \"a,b\", 'x' || chr(10) AS t, NULL AS n"
    )
    answer(page, f"{query} ")  # the process has begun
    got = page.get(address(query, download="csv"))
    assert got.headers["Content-Disposition"].endswith('.csv"')
    rows = [*csv.reader(io.StringIO(got.text))]
    assert rows == [["a,b", "t", "n"], ["170141183460469231731687303715884105727", "x\n", ""]]
    too_long = page.get(address("SELECT * FROM range(100001)", download="csv", format="json"))
    assert (too_long.status, "100,000 rows" in too_long.text) == (400, True)


REFUSED = """
SELECT * FROM read_text('/etc/passwd')
SELECT * FROM '/etc/passwd'
SELECT * FROM 's3://lakes/x.parquet'
SELECT * FROM "s3://lakes/x"."parquet"
SELECT (SELECT content FROM read_text('/etc/passwd'))
WITH x AS (FROM glob('/*')) SELECT 1
SELECT * FROM read_csv('http://127.0.0.1:1/')
SELECT * FROM query('SELECT 1')
SELECT * FROM query_table('shop.orders')
SELECT * FROM duckdb_secrets()
SELECT * FROM pg_settings
SELECT * FROM system.information_schema.tables
SELECT current_setting('memory_limit')
SELECT getenv('HOME')
SELECT * FROM postgres_query('lake', 'SELECT 1')
SELECT * FROM postgres_execute('lake', 'DROP TABLE ducklake_table')
SELECT * FROM __ducklake_metadata_lake.public.ducklake_table
SELECT * FROM ducklake_expire_snapshots('lake', older_than => now())
SELECT * FROM set_iceberg_table_properties('lake.shop.orders', {'a': 'b'})
SELECT * FROM iceberg_scan('s3://lakes/x')
SELECT * FROM question
CALL ducklake_merge_adjacent_files('lake')
CALL lake.set_option('target_file_size', '1MB')
CALL ducklake_cleanup_old_files('lake', cleanup_all => true)
COPY (SELECT 1) TO '/tmp/polynya-sql.csv'
COPY shop.orders TO 's3://lakes/x.parquet'
INSERT INTO shop.orders VALUES (1)
DELETE FROM shop.orders
DROP TABLE shop.orders
CREATE TABLE memory.main.t AS SELECT 1
ATTACH '/tmp/x.db'
INSTALL httpfs
LOAD postgres_scanner
PRAGMA version
SET memory_limit = '9GB'
RESET lock_configuration
EXPLAIN ANALYZE SELECT 1
EXPORT DATABASE '/tmp/x'
SELECT 1; SELECT 2
SELECT 1; DROP TABLE shop.orders
SELECT $1
""".strip().splitlines()


def test_nothing_else_can_be_read_or_done(page):
    before = page.report("/")["newest"]
    for query in REFUSED:
        got = answer(page, query)
        assert got["rows"] is None and got["notes"]["rows"], query
        assert "root:" not in str(got), query
    assert page.report("/")["newest"] == before


HARMFUL = [query for query in REFUSED if query.startswith(("COPY", "ATTACH", "SET", "RESET"))] + [
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_csv('http://127.0.0.1:1/')",
    "SELECT * FROM read_parquet('s3://other/x.parquet')",
    "INSTALL httpfs",
    "LOAD postgres_scanner",
    "SET allowed_directories = ['/']",
    "SET enable_external_access = true",
    "SET python_enable_replacements = true",
    "CREATE SECRET (TYPE s3)",
    "FROM ducklake_snapshots('lake')",
]


def test_what_runs_it_is_closed_even_without_a_look_at_the_text(page, tmp_path):
    question = SqlQuestion("", 3, ("s3://lakes/owner_rows/",))
    with locked(page.state.reader.endpoints, question, Limits(), str(tmp_path)) as con:
        for statement in HARMFUL:
            with pytest.raises(duckdb.Error):
                con.execute(statement)


MANY = "range(100000000)"
ENDLESS = f"SELECT count(*) FROM {MANY} a, {MANY} b WHERE hash(a.range, b.range) = 3"


@pytest.mark.slow
def test_what_takes_too_long_or_too_much_ends_and_can_be_stopped(page):
    limits, reader = Limits(seconds=1.0), page.state.reader
    before, reader.limits = reader.limits, limits
    try:
        assert "too long" in answer(page, ENDLESS)["notes"]["rows"]
        reader.limits = Limits(seconds=20.0, memory="100MB")
        assert "memory" in answer(page, f"SELECT list(range) FROM {MANY}")["notes"]["rows"]
        assert answer(page, "SELECT * FROM range(1000000000000)")["rows"]["has_more"]
        reader.limits = Limits(seconds=60.0)
        query = f"{ENDLESS} -- "
        asking = threading.Thread(target=page.get, args=(address(query),))
        asking.start()
        while getattr(reader.under_way, "text", "") != query.strip():
            time.sleep(0.05)
        assert "It was stopped" in page.get(address(query, stop=1)).text
        asking.join(10)
        reader.limits = limits
        assert answer(page, "SELECT 1")["rows"]["rows"][0][0]["text"] == "1"
    finally:
        reader.limits = before


def test_the_page_shows_a_form_the_tables_and_what_is_wrong(page):
    assert "shop.orders" in Markup(page.get("/sql").text).text
    answer(page, "SELECT <b>")
    got = page.get(address("SELECT <b>"))
    assert Markup(got.text).faults == [] and "SELECT &lt;b&gt;</textarea>" in got.text
    assert "There are no rows" in got.text


def test_a_page_of_another_site_runs_nothing(page):
    got = page.get(address("SELECT 4711 + 1"), **{"Sec-Fetch-Site": "cross-site"})
    assert "SELECT 4711 + 1</textarea>" in got.text and "4712" not in got.text
