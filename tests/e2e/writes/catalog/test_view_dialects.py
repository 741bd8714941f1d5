"""Views with SQL for several dialects: DuckLake has the text for DuckDB, a tag has the others."""

import pytest

from tests.e2e.writes.catalog.test_views import SCHEMA, Api, replacing, request, version
from tests.support.writes.twins import catalog_rows, query

SETTINGS = {"VIEW_DIALECTS": "spark,trino"}
SCRIPT = "CREATE TABLE t AS SELECT range::INTEGER AS a FROM range(3);"
VIEWS = "/namespaces/main/views"
SNAPSHOT = "SELECT max(snapshot_id) FROM ducklake_snapshots('lake')"


@pytest.fixture(scope="module")
def api(served):
    return Api(f"{served.catalog_uri}/v1/lake")


@pytest.fixture(scope="module")
def pinned(served):
    """The catalog as of a snapshot."""
    return lambda snapshot: Api(f"{served.catalog_uri}/v1/lake--at-{snapshot}")


def text(dialect: str, sql: str):
    return {"type": "sql", "sql": sql, "dialect": dialect}


SPARK, TRINO = text("spark", "SELECT `a` FROM t"), text("Trino", 'SELECT "a" FROM t')
DUCKDB = text("duckdb", "SELECT a FROM t")
THREE = [SPARK, DUCKDB, TRINO]


def with_texts(name: str, texts, **changed):
    return request(name, "", **{"view-version": version("", representations=texts), **changed})


def texts_of(document) -> list:
    current = document["current-version-id"]
    [found] = [v for v in document["versions"] if v["version-id"] == current]
    return found["representations"]


def test_ducklake_has_the_text_for_duckdb(pair, api, moto):
    made = api("POST", VIEWS, with_texts("v", THREE))["metadata"]
    pair.native("CREATE VIEW v AS SELECT a FROM t")
    pair.check(ignoring_our_tags=True)
    assert texts_of(made) == THREE
    assert api.view("v") == made
    assert query(pair.lake, moto, "FROM v ORDER BY a") == [(0,), (1,), (2,)]
    # It stays the same view, and DuckLake changes no text of it.
    query(pair.lake, moto, "ALTER VIEW v RENAME TO w", "COMMENT ON VIEW w IS 'native'")
    assert api.view("w") == {**made, "properties": {"comment": "native"}}
    query(pair.lake, moto, "DROP VIEW w")
    pair.native("DROP VIEW v")


def test_a_native_view_that_replaces_it_has_its_own_text_only(pair, api, pinned, moto):
    made = api("POST", VIEWS, with_texts("n", THREE))["metadata"]
    [(before,)] = query(pair.lake, moto, SNAPSHOT)
    query(pair.lake, moto, "CREATE OR REPLACE VIEW n AS SELECT 7 AS seven")
    after = api.view("n")
    assert after["view-uuid"] != made["view-uuid"]
    assert texts_of(after) == [text("duckdb", "SELECT 7 AS seven")]
    assert query(pair.lake, moto, "FROM n") == [(7,)]
    assert pinned(before).view("n") == made
    query(pair.lake, moto, "DROP VIEW n")


ALLOWED = {"action": "set-properties", "updates": {"replace.drop-dialect.allowed": "true"}}


def test_each_version_has_its_texts(pair, api, pinned, moto):
    first = api("POST", VIEWS, with_texts("r", THREE))["metadata"]
    [(before,)] = query(pair.lake, moto, SNAPSHOT)
    fewer = replacing("", representations=[text("duckdb", "SELECT 5 AS a"), TRINO])
    rows = catalog_rows(pair.lake)
    error = api("POST", f"{VIEWS}/r", fewer, 400)["error"]
    assert "loss of view dialects (replace.drop-dialect.allowed=false): spark" in error["message"]
    assert catalog_rows(pair.lake) == rows
    fewer["updates"].append(ALLOWED)
    second = api("POST", f"{VIEWS}/r", fewer)["metadata"]
    assert texts_of(second) == [text("duckdb", "SELECT 5 AS a"), TRINO]
    assert [one["representations"] for one in second["versions"]] == [THREE, texts_of(second)]
    assert query(pair.lake, moto, "FROM r") == [(5,)]
    assert pinned(before).view("r") == first
    # The same texts again are the same version.
    again = replacing("", representations=THREE, **{"version-id": 9})
    third = api("POST", f"{VIEWS}/r", again)["metadata"]
    assert (third["current-version-id"], third["versions"]) == (1, second["versions"])
    assert texts_of(third) == THREE
    back = {"updates": [{"action": "set-current-view-version", "view-version-id": 2}]}
    assert texts_of(api("POST", f"{VIEWS}/r", back)["metadata"]) == texts_of(second)
    assert query(pair.lake, moto, "FROM r") == [(5,)]
    query(pair.lake, moto, "DROP VIEW r")


def test_a_native_view_gets_more_texts(pair, api, moto):
    query(pair.lake, moto, "CREATE VIEW plain AS SELECT a FROM t")
    native = api.view("plain")
    more = replacing("", representations=THREE, schema=SCHEMA)
    after = api("POST", f"{VIEWS}/plain", more)["metadata"]
    assert [one["representations"] for one in after["versions"]] == [texts_of(native), THREE]
    query(pair.lake, moto, "DROP VIEW plain")


REFUSED = {
    "no text for DuckDB": ([SPARK, TRINO], "BadRequestException", "send SQL for `duckdb` too"),
    "a dialect that the setting lacks": (
        [DUCKDB, text("hive", "SELECT 1")],
        "BadRequestException",
        "the setting VIEW_DIALECTS",
    ),
    "a text that DuckDB must not run": (
        [SPARK, text("duckdb", "FROM read_text('/etc/passwd')")],
        "BadRequestException",
        "must not call the table function",
    ),
    "twice the same dialect": (
        [DUCKDB, TRINO, text("TRINO", "SELECT 1")],
        "IllegalArgumentException",
        "Cannot add multiple queries for dialect trino",
    ),
    "a text that is too long": (
        [DUCKDB, text("spark", "x" * 100_001)],
        "BadRequestException",
        "more than 100000 characters",
    ),
}


@pytest.mark.parametrize(("texts", "kind", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals_change_nothing(pair, api, texts, kind, message):
    before = catalog_rows(pair.lake)
    error = api("POST", VIEWS, with_texts("x", texts), 400)["error"]
    assert error["type"] == kind and message in error["message"]
    assert catalog_rows(pair.lake) == before


@pytest.mark.slow
@pytest.mark.spark
def test_spark_runs_its_own_text(pair, api, served, moto):
    """Without one it takes the first text, whatever its dialect is."""
    from polynya_local.clients import spark

    client = spark.open(served.catalog_uri, "lake", served.s3_endpoint)
    # Neither engine can parse the text of the other.
    native = text("duckdb", "FROM t SELECT a WHERE list_contains([1, 2], a)")
    of_spark = text("spark", "SELECT `a` FROM t LATERAL VIEW explode(array(1, 2)) AS b WHERE a = b")
    api("POST", VIEWS, with_texts("s", [native, of_spark]))
    asked = f"SELECT a FROM {client.catalog}.main.s ORDER BY a"
    found = [tuple(row) for row in spark.session().sql(asked).collect()]
    assert found == query(pair.lake, moto, "FROM s ORDER BY a") == [(1,), (2,)]
    # DuckLake's text would be lost.
    replacing_it = f"CREATE OR REPLACE VIEW {client.catalog}.main.s AS SELECT 1 AS a"
    with pytest.raises(Exception, match=r"SQL for spark|loss of view dialects"):
        spark.session().sql(replacing_it)
    assert texts_of(api.view("s")) == [native, of_spark]
    query(pair.lake, moto, "DROP VIEW s")
