"""Tables that Iceberg clients drop and rename, beside a twin lake where DuckDB did the same."""

import pytest
import requests
from polynya_local.clients.duckdb import DuckDB
from pyiceberg import exceptions

from tests.support.writes.twins import catalog_rows, query

# Files, deletes in files and inlined ones, inlined rows, comments, partitions and a sort order.
TABLE = """
CREATE TABLE {0} (a INTEGER, b VARCHAR, c STRUCT(d INTEGER));
COMMENT ON TABLE {0} IS 'of {0}'; COMMENT ON COLUMN {0}.a IS 'the a';
INSERT INTO {0} SELECT range, 'x', {{d: range}} FROM range(50);
DELETE FROM {0} WHERE a < 20;
ALTER TABLE {0} SET PARTITIONED BY (b); ALTER TABLE {0} SET SORTED BY (a);
INSERT INTO {0} VALUES (100, 'y', NULL), (101, 'z', NULL);
DELETE FROM {0} WHERE a = 30;
DELETE FROM {0} WHERE a = 100;
"""
SCRIPT = (
    "".join(TABLE.format(name) for name in ("dropped", "renamed", "moved"))
    + """
CREATE SCHEMA other; CREATE SCHEMA "Two words";
CREATE TABLE wide (a INTEGER); CREATE TABLE by_duckdb (a INTEGER); CREATE TABLE taken (a INTEGER);
CREATE VIEW viewed AS SELECT 1 AS a;
"""
)
SUM = "SELECT count(*), sum(a), count(b), sum(c.d) FROM {}"


def test_a_drop_writes_the_rows_of_native_ducklake(pair, catalog, moto):
    [(before,)] = query(pair.lake, moto, "SELECT max(snapshot_id) FROM ducklake_snapshots('lake')")
    expected = query(pair.lake, moto, SUM.format("dropped"))
    catalog.purge_table("main.dropped")  # asks for a purge
    pair.native("DROP TABLE dropped")
    pair.check()
    assert ("main", "dropped") not in catalog.list_tables("main")
    with pytest.raises(exceptions.NoSuchTableError):
        catalog.drop_table("main.dropped")
    past = SUM.format(f"main.dropped AT (VERSION => {before})")
    assert query(pair.lake, moto, past) == expected


def test_a_rename_writes_the_rows_of_native_ducklake(pair, catalog, moto):
    for old, new in [("renamed", "Two words"), ("Two words", "renamed_again")]:
        uuid = catalog.load_table(("main", old)).metadata.table_uuid
        catalog.rename_table(("main", old), ("main", new))
        pair.native(f'ALTER TABLE "{old}" RENAME TO "{new}"')
        pair.check()
        assert catalog.load_table(("main", new)).metadata.table_uuid == uuid
        with pytest.raises(exceptions.NoSuchTableError):
            catalog.load_table(("main", old))
    # What native DuckLake writes afterwards is the same as well.
    pair.native(
        "INSERT INTO renamed_again VALUES (7, 'seven', {d: 7})",
        "DELETE FROM renamed_again WHERE a = 49",
        also_here=True,
    )
    pair.check()


def test_a_moved_table_is_read_and_written_natively(pair, catalog, moto):
    [(before,)] = query(pair.lake, moto, "SELECT max(snapshot_id) FROM ducklake_snapshots('lake')")
    expected = query(pair.lake, moto, SUM.format("moved"))
    catalog.rename_table(("main", "moved"), ("Two words", "moved_here"))
    name = '"Two words".moved_here'
    assert query(pair.lake, moto, SUM.format(name)) == expected
    past = SUM.format(f"main.moved AT (VERSION => {before})")
    assert query(pair.lake, moto, past) == expected
    changes = (
        f"INSERT INTO {name} SELECT range, 'n', {{d: 1}} FROM range(200, 260)",
        f"INSERT INTO {name} VALUES (300, 'inlined', {{d: 1}})",
        f"DELETE FROM {name} WHERE a = 21",
        f"UPDATE {name} SET b = 'changed' WHERE a = 22",
        f"ALTER TABLE {name} ADD COLUMN e INTEGER",
        "CALL ducklake_flush_inlined_data('lake')",
        "CALL ducklake_merge_adjacent_files('lake')",
        "CALL ducklake_rewrite_data_files('lake')",
    )
    query(pair.lake, moto, *changes)
    # The twin does the same with a table that does not move.
    pair.native(*(one.replace(name, "moved") for one in changes))
    moved, stayed = (
        query(one, moto, f"SELECT rowid, * FROM {source} ORDER BY ALL")
        for one, source in ((pair.lake, name), (pair.twin, "moved"))
    )
    assert moved == stayed
    table = catalog.load_table(("Two words", "moved_here"))
    assert sorted(table.scan().to_arrow()["a"].to_pylist()) == sorted(row[1] for row in stayed)
    # Back in its own schema the path is relative again.
    catalog.rename_table(("Two words", "moved_here"), ("main", "moved"))
    tables = catalog_rows(pair.lake)["ducklake_table"]
    [path] = [row for row in tables if row["table_name"] == "moved" and not row["end_snapshot"]]
    assert (path["path"], path["path_is_relative"]) == ("moved/", "true")
    query(pair.lake, moto, "INSERT INTO main.moved (a) VALUES (1)", "DROP TABLE main.moved")
    assert query(pair.lake, moto, past) == expected


def test_duckdb_drops_a_table(pair, served, moto):
    client = DuckDB(served.catalog_uri, "lake", served.s3_endpoint)
    try:
        client.query("DROP TABLE ice.main.by_duckdb")
    finally:
        client.close()
    with pytest.raises(Exception, match="does not exist"):
        query(pair.lake, moto, "FROM main.by_duckdb")


def names(source, destination):
    def identifier(full_name):
        *namespace, name = full_name.split("/")
        return {"namespace": namespace, "name": name}

    return {"source": identifier(source), "destination": identifier(destination)}


# Spark sends the name of its own catalog as a first level: RENAME TO ice.main.t
REFUSED = [
    ("POST", "/tables/rename", names("main/absent", "main/x"), 404, "NoSuchTableException"),
    ("POST", "/tables/rename", names("main/wide", "absent/x"), 404, "NoSuchNamespaceException"),
    ("POST", "/tables/rename", names("main/wide", "ice/absent/x"), 404, "NoSuchNamespaceException"),
    ("POST", "/tables/rename", names("main/wide", "other/main/x"), 404, "NoSuchNamespaceException"),
    ("POST", "/tables/rename", names("main/wide", "main/taken"), 409, "AlreadyExistsException"),
    ("POST", "/tables/rename", names("main/wide", "main/wide"), 409, "AlreadyExistsException"),
    ("POST", "/tables/rename", names("main/wide", "main/viewed"), 409, "AlreadyExistsException"),
    ("POST", "/tables/rename", names("main/wide", "main/Taken"), 400, "BadRequestException"),
    ("POST", "/tables/rename", names("main/wide", "main/"), 400, "BadRequestException"),
    ("POST", "/tables/rename", names("main/viewed", "main/x"), 404, "NoSuchTableException"),
    ("DELETE", "/namespaces/main/tables/absent", None, 404, "NoSuchTableException"),
    ("DELETE", "/namespaces/absent/tables/absent", None, 404, "NoSuchTableException"),
    ("DELETE", "/namespaces/main/tables/viewed", None, 404, "NoSuchTableException"),
    (
        *("POST", "/namespaces/main/register", {"name": "r", "metadata-location": "s3://b/m"}),
        *(400, "BadRequestException"),
    ),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "type_"), REFUSED)
def test_refusals_change_nothing(pair, served, method, path, body, status, type_):
    before = catalog_rows(pair.lake)
    answer = requests.request(method, f"{served.catalog_uri}/v1/lake{path}", json=body, timeout=60)
    assert (answer.status_code, answer.json()["error"]["type"]) == (status, type_), answer.text
    assert catalog_rows(pair.lake) == before
