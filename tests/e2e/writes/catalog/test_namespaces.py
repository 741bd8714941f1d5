"""Namespaces that Iceberg clients create and drop, beside a twin lake where DuckDB did the same."""

import pyarrow as pa
import pytest
import requests
from pyiceberg import exceptions

from tests.support.servers.in_process import bridge
from tests.support.writes.twins import catalog_rows, query

pytestmark = pytest.mark.versions("1.1", "1.0")

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


@pytest.mark.parametrize("directory", ["places/of_sales", "it's (a, b)/c-1.0"])
@pytest.mark.parametrize("end", ["", "/"])
def test_a_namespace_lies_where_its_creator_says(pair, catalog, moto, directory, end):
    location = f"{pair.lake.data_path}/{directory}"
    catalog.create_namespace("placed", {"location": location + end, "owner": "me"})
    found = catalog.load_namespace_properties("placed")
    assert found == {"location": location, "owner": "me"}
    rows = [row for row in catalog_rows(pair.lake)["ducklake_schema"] if not row["end_snapshot"]]
    [path] = [(r["path"], r["path_is_relative"]) for r in rows if r["schema_name"] == "placed"]
    assert path == (f"{directory}/", "true")
    # Native writers and clients put files there, and read those of each other.
    query(pair.lake, moto, "CREATE TABLE placed.n AS SELECT range AS a FROM range(100)")
    client = catalog.create_table("placed.c", pa.schema([("a", pa.int64())]))
    client.append(pa.table({"a": range(50)}))
    files = "SELECT data_file FROM ducklake_list_files('lake', '{}', schema => 'placed')"
    for table in ("n", "c"):
        [(file,)] = query(pair.lake, moto, files.format(table))
        assert file.startswith(f"{location}/{table}/")
        scanned = catalog.load_table(("placed", table)).scan().to_arrow()["a"].to_pylist()
        assert query(pair.lake, moto, f"SELECT a FROM placed.{table}") == [(a,) for a in scanned]
    assert client.properties["write.data.path"].startswith(f"{location}/c/")
    with pytest.raises(exceptions.BadRequestError, match="other files of the lake"):
        catalog.create_namespace("also_placed", {"location": f"{location}/n"})
    # Snapshots show the files of dropped tables.
    query(pair.lake, moto, "DROP TABLE placed.n", "DROP TABLE placed.c")
    catalog.drop_namespace("placed")
    with pytest.raises(exceptions.BadRequestError, match="other files of the lake"):
        catalog.create_namespace("also_placed", {"location": location})
    query(pair.lake, moto, "CALL ducklake_expire_snapshots('lake', older_than => now())")


def test_the_location_of_a_dropped_namespace_is_free(pair, catalog):
    location = {"location": f"{pair.lake.data_path}/places/free"}
    for name in ("was_there", "is_there"):
        catalog.create_namespace(name, location)
        assert catalog.load_namespace_properties(name) == location
        catalog.drop_namespace(name)


NOT_FREE = "other files of the lake"
NOT_BELOW = "not a directory below"
PLACES = {
    "places": NOT_FREE,  # around another one
    "places/taken": NOT_FREE,
    "places/taken/t": NOT_FREE,
    "main": NOT_FREE,
    "main/t": NOT_FREE,
    "main/new": NOT_FREE,
    "full_of_tables": NOT_FREE,
    "": NOT_BELOW,
    ".polynya-staging/x": NOT_BELOW,
    "x/../main": NOT_BELOW,
    "x//y": NOT_BELOW,
    "x/*": NOT_BELOW,
    "x%20y": NOT_BELOW,
    "é": NOT_BELOW,
}


@pytest.mark.parametrize("place", PLACES)
def test_no_other_location_is_accepted(pair, catalog, moto, place):
    here = pair.lake.data_path
    catalog.create_namespace_if_not_exists("taken", {"location": f"{here}/places/taken"})
    before = snapshots(pair, moto)
    with pytest.raises(exceptions.BadRequestError, match=PLACES[place]):
        catalog.create_namespace("nowhere", {"location": f"{here}/{place}"})
    with pytest.raises(exceptions.BadRequestError, match=NOT_BELOW):
        catalog.create_namespace("nowhere", {"location": f"{here}s/{place}"})
    with pytest.raises(exceptions.BadRequestError, match="stays where it is"):
        catalog.update_namespace_properties("taken", updates={"location": f"{here}/places/new"})
    assert snapshots(pair, moto) == before


@pytest.mark.parametrize("place", ["staged", "staged/x", "virtual", "virtual/x", "virtual/x/y"])
def test_no_namespace_is_among_the_files_of_polynya(pair, served, moto, place):
    here = pair.lake.data_path
    _, _, prefix = here.removeprefix("s3://").partition("/")
    settings = {"STAGING_LOCATION": f"{here}/staged/", "VIRTUAL_PREFIX": f"{prefix}/virtual/x"}
    body = {"namespace": ["nowhere"], "properties": {"location": f"{here}/{place}"}}
    with bridge(pair.lake, moto, writes=True, settings=settings) as at:
        answer = requests.post(f"{at.catalog_uri}/v1/lake/namespaces", json=body, timeout=60)
    assert (answer.status_code, NOT_FREE in answer.text) == (400, True), answer.text


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
