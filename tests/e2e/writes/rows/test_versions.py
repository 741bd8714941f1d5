"""Lakes that stay at catalog version 1.1 for several commits, and ones that are migrated meanwhile.

At the end the catalog is taken back to 1.0, and native DuckLake reads, changes and maintains what
Iceberg clients wrote.
"""

from contextlib import closing
from dataclasses import replace

import pyarrow as pa
import pytest
from polynya.catalog import writer as commit_catalog
from polynya.commits.plan import row_deletes
from polynya_local.clients.native import attach
from pyiceberg.exceptions import BadRequestError
from pyiceberg.expressions import EqualTo, LessThan
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from tests.support.catalog_versions import SERVED, to_1_0, to_1_1
from tests.support.servers.in_process import bridge
from tests.support.writes.hand_made import DELETES, Entry, HandMade, parquet
from tests.support.writes.starts import DO_NOT_INLINE, LAKE, NATIVE, STARTS
from tests.support.writes.twin import Twin
from tests.support.writes.twins import catalog_rows
from tests.support.writes.writable import set_up_writes

pytestmark = pytest.mark.versions("1.1", "1.0")

ROWS = pa.schema([("id", pa.int64()), ("s", pa.string()), ("p", pa.int32())])
LONG = "z" * 300
"""DuckLake's bounds have 256 bytes of it, the last of which is one more."""


def rows(*values):
    return pa.Table.from_pylist([dict(zip(ROWS.names, row, strict=True)) for row in values], ROWS)


NEW = rows((100, "new", 1), (101, None, 2))
INSERT = "INSERT INTO {t} (id, s, p) VALUES (100, 'new', 1), (101, NULL, 2)"


@pytest.fixture(autouse=True)
def nothing_is_taken_back(version, monkeypatch):
    monkeypatch.setattr(SERVED, "version", "1.0")


@pytest.fixture(scope="module")
def served(lake, moto):
    made = set_up_writes(lake.write("versions", LAKE))
    with bridge(made, moto, writes=True) as found:
        yield made, found, moto


@pytest.fixture
def twin(served):
    """A table of a lake that has version 1.0 between two tests."""
    lake, found, moto = served
    with closing(Twin(lake, found, moto)) as twin:
        twin.client = HandMade(found, moto)
        yield twin
    if query(twin, "SELECT value FROM ducklake_metadata WHERE key = 'version'") != [["1.0"]]:
        to_1_0(lake)


def query(twin, sql, **parameters):
    return twin.lake.database.run(sql, **parameters)


def migrate(twin):
    """Migrate the lake; native DuckLake does not see it any more."""
    twin.con.execute("DETACH lake")
    to_1_1(twin.lake)


def take_back(twin):
    to_1_0(twin.lake)
    attach(twin.con, twin.lake, read_only=False)


def alter(twin, *call):
    """One call of UpdateSchema: the name of the method, and its arguments."""
    with twin.table().update_schema() as change:
        getattr(change, call[0])(*call[1:])


CHANGES = {
    "createNamespace": lambda twin: twin.pyiceberg.create_namespace("new"),
    "createTable": lambda twin: twin.pyiceberg.create_table("main.new", ROWS),
    "updateTable": lambda twin: twin.table().append(NEW),
    "dropTable": lambda twin: twin.pyiceberg.drop_table(f"main.{twin.name}"),
    "renameTable": lambda twin: twin.pyiceberg.rename_table(f"main.{twin.name}", "main.other"),
}
"""What a client asks for, by its name in the REST catalog's specification."""


def test_a_version_that_is_not_known_is_refused(twin):
    twin.native(*STARTS["files"][:2])
    migrate(twin)
    query(twin, "UPDATE ducklake_metadata SET value = '1.2' WHERE key = 'version'")
    before = catalog_rows(twin.lake)
    # PyIceberg asks by HEAD, whose answer has no sentence, before it renames a table.
    for change in CHANGES.values():
        with pytest.raises(BadRequestError, match=r"version '?1\.2'?|Bad Request$"):
            change(twin)
    assert catalog_rows(twin.lake) == before


PLAIN_COLUMNS = r"""
SELECT table_name FROM information_schema.columns WHERE column_name = 'row_id'
AND table_name LIKE 'ducklake\_inlined\_data\_%'"""


@pytest.mark.slow("[inlined rows of two versions]")
@pytest.mark.parametrize(
    "start", ["inlined rows of two versions", "partitions with inlined rows and deletes"]
)
def test_native_ducklake_continues_what_clients_wrote(twin, start):
    twin.native(DO_NOT_INLINE, *STARTS[start])
    migrate(twin)
    twin.changes(INSERT, lambda: twin.table().append(NEW))
    for sql, condition in (("id = 4", EqualTo("id", 4)), ("id < 3", LessThan("id", 3))):
        delete = f"DELETE FROM {{t}} WHERE {sql}"
        twin.changes(delete, lambda condition=condition: twin.table().delete(condition))
    added = ("add_column", "more", LongType())
    twin.changes("ALTER TABLE {t} ADD COLUMN more BIGINT", lambda: alter(twin, *added))
    twin.changes(INSERT, lambda: twin.table().append(NEW))
    assert query(twin, PLAIN_COLUMNS) == []
    take_back(twin)
    twin.check()
    twin.native(*NATIVE)
    twin.check()


OF_FILE = """
SELECT s.column_id, f.row_group_count, s.min_is_exact, s.max_is_exact
FROM ducklake_file_column_stats AS s JOIN ducklake_data_file AS f USING (data_file_id)
WHERE data_file_id = (SELECT max(data_file_id) FROM ducklake_data_file) ORDER BY 1"""

OF_TABLE = """
SELECT s.column_id, min_value, max_value, min_is_exact, max_is_exact
FROM ducklake_table_column_stats AS s JOIN ducklake_table AS t USING (table_id)
WHERE t.table_name = :name ORDER BY 1"""

OF_DELETES = "SELECT row_group_count FROM ducklake_delete_file ORDER BY delete_file_id DESC LIMIT 1"


COPY = """
COPY (SELECT 3::BIGINT AS id, 'a' AS s UNION ALL SELECT 40, 'm') TO '{path}'
(FORMAT parquet, FIELD_IDS {{id: 1, s: 2}})"""


def test_the_new_columns_say_what_is_true(twin, monkeypatch, tmp_path):
    twin.native(DO_NOT_INLINE, *STARTS["files"])
    migrate(twin)
    # Both writers say in the file that the bounds of texts are values.
    path = tmp_path / "a.parquet"
    twin.con.execute(COPY.format(path=path))
    assert twin.client.commit(twin.name, Entry(path.read_bytes(), 2)) == (200, "")
    assert query(twin, OF_FILE) == [[1, 1, True, True], [2, 1, True, True], [3, 1, None, None]]
    columns = {("id", 1): pa.array([5, 6, 7]), ("s", 2): pa.array(["b", LONG, None])}
    assert twin.client.commit(twin.name, parquet(columns, row_group_size=2)) == (200, "")
    assert query(twin, OF_FILE) == [[1, 2, True, True], [2, 2, True, False], [3, 2, None, None]]
    [id_, s, p] = query(twin, OF_TABLE, name=twin.name)
    # What the migration does not know stays unknown, where it is the table's bound still.
    assert id_ == [1, "1", "40", None, True]
    assert s == [2, "a", f"{LONG[:255]}{{", True, False]
    assert p[3:] == [None, None]
    monkeypatch.setattr(row_deletes, "MOST_INLINED", 0)
    location = twin.table().inspect.files()["file_path"].to_pylist()[0]
    columns = {("file_path", 2147483546): pa.array([location]), ("pos", 2147483545): pa.array([0])}
    deletes = replace(parquet(columns), content=DELETES)
    assert twin.client.commit(twin.name, deletes, operation="delete") == (200, "")
    assert query(twin, OF_DELETES) == [[1]]


def test_statistics_that_a_native_drop_has_removed_do_not_come_back(twin):
    """DuckLake 1.1 removes the bounds of a table from which it drops a file; its rows remain."""
    twin.native(DO_NOT_INLINE, *STARTS["files"])
    migrate(twin)
    for sql in REMOVED:
        query(twin, sql, name=twin.name)
    twin.changes(INSERT, lambda: twin.table().append(NEW))
    alter(twin, "add_column", "more", LongType())
    twin.con.execute(f"ALTER TABLE {twin.memory} ADD COLUMN more BIGINT")
    assert query(twin, OF_TABLE, name=twin.name) == []
    take_back(twin)
    twin.check()
    twin.native("INSERT INTO {t} (id, s, p) VALUES (50, 'z', 1)")
    twin.check()


TABLE_ID = "table_id = (SELECT max(table_id) FROM ducklake_table WHERE table_name = :name)"
REMOVED = (
    f"DELETE FROM ducklake_table_column_stats WHERE {TABLE_ID}",
    f"UPDATE ducklake_table_stats SET record_count = 4 WHERE {TABLE_ID}",
)


def test_names_and_comments_of_columns(twin):
    schema = Schema(NestedField(1, "row_id", LongType()), NestedField(2, "x", LongType(), doc="d"))
    migrate(twin)
    table = twin.pyiceberg.create_table(f"main.{twin.name}", schema)
    alter(twin, "add_column", "end_snapshot", LongType())
    with pytest.raises(BadRequestError, match="reserves the column name _ducklake_x "):
        alter(twin, "add_column", "_ducklake_x", LongType())
    alter(twin, "delete_column", "x")
    assert query(
        twin, f"SELECT end_snapshot FROM ducklake_column_tag WHERE {TABLE_ID}", name=twin.name
    ) == [[twin.newest()]]
    assert [field.name for field in twin.table().schema().fields] == ["row_id", "end_snapshot"]
    assert table.metadata.table_uuid == twin.table().metadata.table_uuid
    twin.pyiceberg.drop_table(f"main.{twin.name}")


OPERATIONS = {
    "append": (INSERT, lambda table: table.append(NEW)),
    "delete": ("DELETE FROM {t} WHERE id = 4", lambda table: table.delete(EqualTo("id", 4))),
    "add column": (
        "ALTER TABLE {t} ADD COLUMN more BIGINT",
        lambda table: table.update_schema().add_column("more", LongType()).commit(),
    ),
}


@pytest.mark.slow("[loaded-", "[claimed-append]", "[claimed-add column]")
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("moment", ["loaded", "claimed"])
def test_a_lake_that_is_migrated_during_an_operation(twin, monkeypatch, operation, moment):
    twin.native(DO_NOT_INLINE, *STARTS["inlined rows"])
    sql, change = OPERATIONS[operation]
    table = twin.table()
    if moment == "loaded":
        migrate(twin)
        # The migration changes no name, and so nothing that clients know.
        assert twin.table().metadata_location == table.metadata_location
        assert [s.manifest_list for s in twin.table().snapshots()] == [
            s.manifest_list for s in table.snapshots()
        ]
    else:
        twin.con.execute("DETACH lake")
        migrated = []

        def claim(con):
            snapshot = real(con)
            if not migrated:
                migrated.append(True)
                to_1_1(twin.lake)
            return snapshot

        real = commit_catalog.claim_snapshot_id
        monkeypatch.setattr(commit_catalog, "claim_snapshot_id", claim)
    twin.changes(sql, lambda: change(table))
    assert query(twin, PLAIN_COLUMNS) == []
    take_back(twin)
    twin.check()
    twin.native(*NATIVE)
    twin.check()
