"""The texts of views that DuckDB can parse, and whose tables have a schema."""

from resource import RUSAGE_SELF, getrusage

import duckdb
import pytest
from polynya.iceberg.sandbox import sandbox
from polynya.iceberg.view_text import (
    FUNCTIONS,
    ViewText,
    names_are_qualified,
    parsed_names,
    parsed_view,
    view_text,
)
from polynya.runtime.errors import BadRequest

# The text, and whether each table has a schema; None: it cannot be told, which counts as no.
TEXTS = [
    ("SELECT 1 AS a", True),
    ("VALUES (1)", True),
    ("SELECT * FROM s.t", True),
    ("SELECT * FROM lake.s.t", True),
    ("SELECT * FROM {DUCKLAKE_CATALOG}.s.t", True),
    ('SELECT * FROM "s.x"."t"', True),
    ("FROM t", False),
    ("SELECT * FROM s.t JOIN u USING (a)", False),
    ("WITH x AS (SELECT * FROM s.t) SELECT * FROM x", True),
    ("WITH x AS (SELECT * FROM t) SELECT * FROM x", False),
    ("SELECT (SELECT max(a) FROM t) AS m FROM s.t", False),
]


@pytest.mark.parametrize(("text", "is_qualified"), TEXTS)
def test_texts(text, is_qualified):
    assert parsed_view(text) == ViewText(text, is_qualified)
    assert parsed_names(text) is is_qualified


def test_a_text_is_parsed_in_a_process_of_its_own():
    assert view_text("  FROM s.t ; \n") == ViewText("FROM s.t", is_qualified=True)
    assert names_are_qualified("FROM s.t JOIN t USING (a)") is False
    with pytest.raises(BadRequest, match="cannot parse the SQL"):
        view_text("SELECT FROM WHERE")


# Texts of every kind of expression, relation and modifier that only read tables and compute.
ACCEPTED = [
    "SELECT count(*), sum(a) FROM s.t GROUP BY ALL HAVING count(*) > 1 ORDER BY 1 DESC NULLS LAST "
    "LIMIT 5 OFFSET 1",
    "SELECT DISTINCT ON (a) a FROM t LIMIT 10%",
    "SELECT a LIKE 'x%', b NOT ILIKE 'y', c SIMILAR TO 'z', d ~ 'q', e GLOB 'a*' FROM t",
    "SELECT coalesce(a, 1), nullif(a, b), CASE WHEN a THEN b END, a IS DISTINCT FROM b FROM t",
    "SELECT date_trunc('day', ts), extract(year FROM ts), ts AT TIME ZONE 'UTC', now(), today(), "
    "current_date, current_timestamp, current_time, ts + INTERVAL 1 DAY, DATE '2020-01-01' FROM t",
    "SELECT s.a.b, l[1], l[1:2], m['k'], {'a': 1}, [1, 2], MAP {'a': 1}, (1, 2), x'00' FROM t",
    "SELECT list_transform(l, lambda x: x + 1), [x * 2 for x in l if x > 1] FROM t",
    "SELECT row_number() OVER (PARTITION BY a ORDER BY b ROWS 1 PRECEDING), lag(a) OVER w, "
    "sum(a) FILTER (a > 1), string_agg(a, ',' ORDER BY b) FROM t WINDOW w AS (ORDER BY a) "
    "QUALIFY row_number() OVER () = 1",
    "WITH x AS MATERIALIZED (SELECT 1 AS a), y AS (FROM x) SELECT * FROM y",
    "WITH RECURSIVE r AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM r WHERE a < 5) FROM r",
    "FROM t JOIN u USING (a) LEFT JOIN v ON t.a = v.a, LATERAL (SELECT t.a) l",
    "FROM t ASOF JOIN w ON t.ts >= w.ts POSITIONAL JOIN z",
    "FROM t WHERE EXISTS (FROM u) AND a IN (SELECT b FROM v) AND a BETWEEN 1 AND 2 OR NOT b",
    "SELECT * EXCLUDE (a) REPLACE (b + 1 AS b), COLUMNS('a.*') FROM t",
    "FROM range(3) r(i), generate_series(1, 2), unnest([1, 2])",
    "SELECT unnest(l), random(), uuid(), md5(a), regexp_replace(a, 'x', 'y'), version() FROM t",
    "SELECT 1 UNION SELECT 2 EXCEPT SELECT 3 UNION ALL BY NAME SELECT 5 AS a",
    "FROM t TABLESAMPLE 10%",
    "FROM t PIVOT (sum(b) FOR a IN (1, 2))",
    "UNPIVOT t ON a, b INTO NAME n VALUE v",
    "SELECT CAST(a AS DECIMAL(9, 2)), a::VARCHAR[], TRY_CAST(a AS STRUCT(x INT, y INT[3])) FROM t",
    "SELECT a COLLATE nocase FROM t AT (VERSION => 3)",
    "SELECT count(DISTINCT a), median(a), arg_max(a, b), grouping(a) FROM t GROUP BY CUBE (a)",
    "SELECT j->'a', j->>'$.b', to_json(s), 'a' || b, split_part(a, ',', 1), -a, a ** 2 FROM t",
    "SELECT main.upper(a), system.main.upper(a), list_sum(l) FROM t",
    "VALUES (1, 'a'), (2, 'b')",
    "TABLE t",
    "FROM pg_orders, s.duckdb_things, information",
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_what_only_reads_tables_and_computes_is_accepted(text):
    assert parsed_view(text).sql == text


# What native DuckLake would read, do or show as whoever queries the view.
REACHING = {
    "the table function read_text": "FROM read_text('/etc/passwd')",
    "the table function read_csv": "FROM t WHERE a IN (SELECT a FROM read_csv('https://evil/'))",
    "the table function read_blob": "SELECT (SELECT content FROM READ_BLOB('x'))",
    "the table function glob": "WITH x AS (FROM glob('*')) FROM x",
    "the table function duckdb_secrets": "FROM t LEFT JOIN LATERAL (FROM duckdb_secrets()) ON true",
    "the table function duckdb_settings": "SELECT 1 UNION FROM duckdb_settings()",
    "the table function query": "FROM query('FROM t')",
    "the table function query_table": "FROM query_table('t')",
    "the table function parquet_scan": "FROM (SELECT 1) WHERE 1 < ANY (FROM parquet_scan('x'))",
    "the table function lake.main.range": "FROM lake.main.range(1)",
    "the table function sqlite_scan": "FROM sqlite_scan('a', 'b')",
    "the table function http_get": "FROM http_get('https://evil/')",
    "getenv": "SELECT getenv('AWS_SECRET_ACCESS_KEY')",
    "current_setting": "SELECT current_setting('s3_secret_access_key')",
    "getvariable": "SELECT main.getvariable('x')",
    "nextval": "SELECT system.main.nextval('s')",
    "write_log": "SELECT write_log('x')",
    "sleep_ms": "FROM t ORDER BY sleep_ms(1000)",
    "json_serialize_plan": "SELECT json_serialize_plan('FROM read_csv(x)')",
    "read_text": "SELECT read_text('/etc/passwd')",
    "a_macro": "SELECT sum(a_macro(a)) OVER (PARTITION BY b) FROM t",
    "lake.main.upper": "SELECT lake.main.upper('a')",
    "an_aggregate": "SELECT an_aggregate(a) OVER () FROM t",
    "pg_get_viewdef": "SELECT pg_get_viewdef(1)",
    "pg_sleep": "SELECT [x FOR x IN [1] IF pg_sleep(1)]",
    "get_block_size": "SELECT COLUMNS(c -> get_block_size(c) > 1) FROM t",
    "which DuckDB could take for a file": (
        "FROM 'file.csv'",
        "FROM file.csv",
        "FROM a.b.parquet",
        "FROM 'https://evil/'",
        'FROM s."https://evil/"',
        "FROM '/etc/passwd'",
        "FROM 'C:\\x'",
        'FROM "s.t"',
        "FROM 'x.parquet?a=b'",
        "FROM 's3://bucket/*'",
        'FROM s."x.JSON.gz"',
        'WITH "x.csv" AS (SELECT 1) FROM "x.csv"',
    ),
    "which is not a table": (
        "FROM information_schema.tables",
        "FROM pg_settings",
        "FROM pg_catalog.pg_settings",
        "FROM DuckDB_logs",
        "FROM main.duckdb_logs",
        "FROM system.main.x",
    ),
    "SHOW_REF": ("SUMMARIZE t", "DESCRIBE t", "SHOW TABLES", "FROM (SHOW DATABASES)"),
}


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (name, text)
        for name, one in REACHING.items()
        for text in ([one] if type(one) is str else one)
    ],
)
def test_what_reaches_out_of_the_lake_is_refused(message, text):
    with pytest.raises(BadRequest, match=f"must not .*{message}"):
        parsed_view(text)


# What DuckDB says of a function; of macros it says nothing, and their definitions are expressions.
PURE = """
SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE internal AND (
  function_type = 'aggregate' OR (function_type = 'scalar' AND stability = 'CONSISTENT')
  OR (function_type = 'macro' AND NOT regexp_matches(macro_definition, '(?i)\\bselect\\b')))"""
OF_TIME_AND_CHANCE = {
    *("current_date", "get_current_time", "get_current_timestamp", "now", "today"),
    *("transaction_timestamp", "random", "uuid", "gen_random_uuid", "uuidv4", "uuidv7"),
    "error",
}


@pytest.mark.skipif(
    not duckdb.__version__.startswith("1."), reason="2.0 does not list window functions as such"
)
def test_the_functions_are_those_that_duckdb_calls_consistent():
    with sandbox() as box:
        pure = {name for (name,) in box.con.execute(PURE).fetchall()}
    # It does not list `unnest`.
    assert FUNCTIONS - pure == OF_TIME_AND_CHANCE | {"unnest"}


REFUSED = [
    ("", "one query"),
    ("SELECT 1; SELECT 2", "one query"),
    ("DROP TABLE t", "one query"),
    ("COPY (SELECT 1) TO '/tmp/x'", "one query"),
    ("EXPLAIN SELECT 1", "one query"),
    ("SELECT ?", "parameters"),
    ("SELECT $a", "parameters"),
    ("SELECT FROM WHERE", "cannot parse"),
    ("SELECT " + "(" * 20_000 + "1" + ")" * 20_000, "cannot parse"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=range(len(REFUSED)))
def test_refusals(text, message):
    with pytest.raises(BadRequest, match=message):
        parsed_view(text)


def names(count: int) -> str:
    return ", ".join(f"c{number}" for number in range(count))


SETS = "more than 1,000 names and numbers"
LARGE = {
    "nothing": (";", "one query"),
    "a NUL": ("SELECT '\0'", "NUL"),
    "characters": ("SELECT '" + "x" * 100_000 + "'", "characters"),
    "names": (f"SELECT {'a,' * 40_000} a", "more than 20,000 names and numbers"),
    "ROLLUP": (f"SELECT 1 FROM t GROUP BY ROLLUP ({names(2550)})", SETS),
    "rollup": (f"SELECT 1 FROM t GROUP BY rollup({names(8000)})", SETS),
    "CUBE": (f"SELECT {names(1000)} FROM t GROUP BY CUBE (a)", SETS),
    "comments in comments": ("SELECT 1 " + "/*" * 20_000 + "*/" * 20_000, "1,000 comments"),
    "comments": ("SELECT 1 " + "/**/" * 20_000, "1,000 comments"),
    "brackets": ("SELECT " + "([{a:" * 100 + "1" + "}])" * 100, "nested too deeply"),
    "many sets": (
        " UNION ALL ".join(["SELECT 1 FROM t GROUP BY CUBE (a,b,c,d,e,f,g,h,i,j,k,l,m,n,o)"] * 40),
        "too much time or memory|can serialize",
    ),
}
"""The first ones are refused before anything parses them, the last one by what it takes."""


@pytest.mark.parametrize("case", LARGE)
def test_texts_that_would_cost_gigabytes_or_minutes(case):
    text, message = LARGE[case]
    before = getrusage(RUSAGE_SELF)
    with pytest.raises(BadRequest, match=message):
        view_text(text)
    after = getrusage(RUSAGE_SELF)
    assert after.ru_utime - before.ru_utime < 0.5
    assert after.ru_maxrss - before.ru_maxrss < 50 * 1024


LONG = {
    "3,000 columns": f"SELECT {names(3000)} FROM s.t",
    "a ROLLUP of 400": f"SELECT count(*) FROM s.t GROUP BY ROLLUP ({names(400)})",
    "brackets in a text": f"SELECT '{'(' * 500}' AS a",
    "900 comments": "SELECT 1 /* a */" + "/* a */" * 900,
    "100 queries in queries": "SELECT * FROM (" * 100 + "FROM s.t" + ")" * 100,
}


@pytest.mark.parametrize("case", LONG)
def test_long_texts_that_people_may_write(case):
    assert view_text(LONG[case]).sql == LONG[case]
