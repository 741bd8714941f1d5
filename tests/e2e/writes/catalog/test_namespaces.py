"""Namespaces that Iceberg clients create and drop, beside a twin lake where DuckDB did the same."""

import pytest
import requests
from pyiceberg import exceptions

from tests.support.writes.twins import query

SCRIPT = """
CREATE TABLE t (a INTEGER);
CREATE SCHEMA full_of_tables; CREATE TABLE full_of_tables.t (a INTEGER);
CREATE SCHEMA full_of_views; CREATE VIEW full_of_views.v AS SELECT 1 AS a;
CREATE SCHEMA full_of_macros; CREATE MACRO full_of_macros.m(x) AS x + 1;
CREATE SCHEMA once_full; CREATE TABLE once_full.t (a INTEGER); DROP TABLE once_full.t;
"""


@pytest.mark.parametrize(
    "name", ["sales", "Two words", "dots.in.name", 'quote"s, and: commas', "é"]
)
def test_create_and_drop_write_the_rows_of_native_ducklake(pair, catalog, name):
    quoted = name.replace('"', '""')
    catalog.create_namespace((name,))
    pair.native(f'CREATE SCHEMA "{quoted}"')
    pair.check()
    assert (name,) in catalog.list_namespaces()
    with pytest.raises(exceptions.NamespaceAlreadyExistsError):
        catalog.create_namespace((name,))
    if "." not in name:  # PyIceberg's paths of several levels are tested below
        catalog.drop_namespace((name,))
        pair.native(f'DROP SCHEMA "{quoted}"')
        pair.check()
        assert (name,) not in catalog.list_namespaces()


def test_a_namespace_is_native_at_once(pair, catalog, moto):
    catalog.create_namespace("native_at_once")
    rows = query(
        pair.lake,
        moto,
        "CREATE TABLE native_at_once.t AS SELECT 42 AS a",
        "SELECT a FROM native_at_once.t",
    )
    assert rows == [(42,)]
    pair.native("CREATE SCHEMA native_at_once", "CREATE TABLE native_at_once.t AS SELECT 42 AS a")
    pair.check()


@pytest.mark.parametrize("name", ["full_of_tables", "full_of_views", "full_of_macros"])
def test_a_namespace_that_is_not_empty_stays(pair, catalog, name):
    with pytest.raises(exceptions.NamespaceNotEmptyError):
        catalog.drop_namespace(name)
    pair.check()


def test_a_namespace_whose_tables_are_dropped_is_empty(pair, catalog):
    catalog.drop_namespace("once_full")
    pair.native("DROP SCHEMA once_full")
    pair.check()
    with pytest.raises(exceptions.NoSuchNamespaceError):
        catalog.drop_namespace("once_full")


def test_properties_are_tags_that_native_ducklake_ignores(pair, catalog, moto):
    catalog.create_namespace("with_properties", {"owner": "me", "comment": "of sales"})
    location = {"location": f"{pair.lake.data_path}/with_properties"}
    found = catalog.load_namespace_properties("with_properties")
    assert found == {"owner": "me", "comment": "of sales", **location}
    done = catalog.update_namespace_properties(
        "with_properties", removals={"comment", "absent"}, updates={"owner": "you", "team": "a"}
    )
    assert sorted(done.updated) == ["owner", "team"]
    assert (done.removed, done.missing) == (["comment"], ["absent"])
    found = catalog.load_namespace_properties("with_properties")
    assert found == {"owner": "you", "team": "a", **location}
    changes = "SELECT changes FROM ducklake_snapshots('lake') ORDER BY snapshot_id DESC LIMIT 2"
    assert query(pair.lake, moto, changes) == [
        ({},),
        ({"schemas_created": ["with_properties"]},),
    ]
    before = snapshots(pair, moto)
    done = catalog.update_namespace_properties("with_properties", removals={"absent"})
    assert (done.removed, done.missing) == ([], ["absent"])
    assert snapshots(pair, moto) == before
    catalog.drop_namespace("with_properties")
    catalog.create_namespace("with_properties")
    assert catalog.load_namespace_properties("with_properties") == location
    query(pair.lake, moto, "DROP SCHEMA with_properties", "INSERT INTO main.t VALUES (1)")


def snapshots(pair, moto) -> int:
    [(count,)] = query(pair.lake, moto, "SELECT count(*) FROM ducklake_snapshots('lake')")
    return count


# Method, path, body; status and type of the answer.
REFUSED = [
    ("POST", "", {"namespace": ["a", ""]}, 400, "BadRequestException"),
    ("POST", "", {"namespace": []}, 400, "BadRequestException"),
    ("POST", "", {"namespace": [""]}, 400, "BadRequestException"),
    ("POST", "", {"namespace": ["nul\0"]}, 400, "BadRequestException"),
    ("POST", "", {"namespace": ["MAIN"]}, 400, "BadRequestException"),
    ("POST", "", {"namespace": ["main"]}, 409, "AlreadyExistsException"),
    (
        *("POST", "", {"namespace": ["p"], "properties": {"location": "s3://b/p"}}),
        *(400, "BadRequestException"),
    ),
    (
        *("POST", "", {"namespace": ["p"], "properties": {"s3.endpoint": "http://x"}}),
        *(400, "BadRequestException"),
    ),
    ("DELETE", "/no_such", None, 404, "NoSuchNamespaceException"),
    ("DELETE", "/a%1Fb", None, 404, "NoSuchNamespaceException"),
    ("POST", "/no_such/properties", {"updates": {}}, 404, "NoSuchNamespaceException"),
    (
        *("POST", "/main/properties", {"updates": {"a": "1"}, "removals": ["a"]}),
        *(422, "UnprocessableEntityException"),
    ),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "type_"), REFUSED)
def test_refusals_change_nothing(pair, served, moto, method, path, body, status, type_):
    before = snapshots(pair, moto)
    uri = f"{served.catalog_uri}/v1/lake/namespaces{path}"
    answer = requests.request(method, uri, json=body, timeout=60)
    assert (answer.status_code, answer.json()["error"]["type"]) == (status, type_), answer.text
    assert snapshots(pair, moto) == before
