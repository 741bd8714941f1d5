"""A process that adds new rows to sums that it has read sees what a new process sees.

The catalog is changed by DuckDB and by hand, also so that as many rows vanish as come.
"""

import json
from contextlib import closing, contextmanager

import pyarrow as pa
import pytest
import requests
from polynya.catalog.reader import Catalog
from polynya.catalog.scans import ScanPlanner
from polynya.ducklake.connection.catalog_connection import CatalogConnection
from polynya.ducklake.connection.database import Database
from polynya.ducklake.queries import file_sums
from polynya.ducklake.queries.planned_files import INDEXED_VALUES
from polynya.rest.planning import PlanTableScanRequest
from polynya.runtime.settings import Config
from polynya.storage.file_cache import FileCache, MemoryCache
from polynya.storage.objects import object_reader
from polynya.virtual_files.virtual_files import VirtualFiles
from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.clients.native import attach

from tests.support.servers.in_process import bridge, reset_functions
from tests.support.writes.writable import EMPTY, client_of, set_up_writes

SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 3);
USE lake;
CREATE TABLE t(i INTEGER, s VARCHAR, d DATE);
ALTER TABLE t SET PARTITIONED BY (d);
-- @repeat 5
INSERT INTO t SELECT {{i}}00 + j, 's{{i}}', '2024-01-0{{i}}' FROM range(20) AS r(j);
DELETE FROM t WHERE i % 100 = 3;
CREATE TABLE other(i INTEGER);
INSERT INTO other FROM range(100);
"""

DAYS = ("2024-01-02", "2024-01-05", "2024-02-01")
FILTERS = (
    None,
    *({"type": "eq", "term": "d", "value": day} for day in DAYS),
    {"type": "is-null", "term": "d"},
    {"type": "lt", "term": "d", "value": "2024-01-03"},
)


@contextmanager
def process(database, **settings: str):
    """Reads and plans as one instance of the functions does."""
    config = Config.from_env(
        {"DATABASE_URL": database.url, "VIRTUAL_BUCKET": "virtual", **settings}
    )
    with closing(Database(config.database_url, config.metadata_schema)) as catalog_database:
        cache = FileCache(None, MemoryCache(1_000_000))
        virtual_files = VirtualFiles(config, catalog_database, cache, object_reader())
        catalog = Catalog(config, catalog_database, virtual_files)

        def read() -> str:
            planner = ScanPlanner(catalog, "")
            documents = [
                catalog.load_table(("main",), table).body["metadata"] for table in ("t", "other")
            ]
            plans = [
                planner.plan_table_scan(("main",), "t", PlanTableScanRequest(filter=filter_))
                for filter_ in FILTERS
            ]
            return json.dumps([documents, plans], indent=1, sort_keys=True)

        yield read


@pytest.fixture
def scans_of_all(monkeypatch):
    """The statements that read the rows of all files, since the list was cleared."""
    sent: list[str] = []
    run = CatalogConnection.run

    def counted(self, sql, *arguments, **parameters):
        is_whole = "first_new" not in parameters
        if is_whole and ("bool_and(f.end_snapshot" in sql or "WITH RECURSIVE walk" in sql):
            sent.append(sql)
        return run(self, sql, *arguments, **parameters)

    monkeypatch.setattr(CatalogConnection, "run", counted)
    monkeypatch.setattr(file_sums, "LEAST_FILES", 1)
    return sent


@pytest.fixture
def changed(lake, moto):
    """A lake with the index of values, and functions that change it as DuckDB, or by hand."""
    written = lake.write("growing_sums", SCRIPT)
    with connect(LAKE, moto) as duckdb, closing(written.database.connect()) as con:
        attach(duckdb, written, read_only=False)
        duckdb.execute("USE lake")
        con.run(f"CREATE INDEX ON ducklake_file_partition_value {INDEXED_VALUES}")
        yield written, duckdb.execute, con.run


APPEND = (
    "INSERT INTO t BY NAME"
    " SELECT j AS i, 'new' AS s, DATE '2024-02-0{}' AS d FROM range(10) AS r(j)"
)


@pytest.mark.parametrize("limit", ["1000", "3"])
def test_appends_are_added_to_what_was_read(changed, scans_of_all, limit):
    """With few snapshots listed, the sums of older ones are one."""
    written, native, by_hand = changed
    with process(written.database, SNAPSHOT_LIMIT=limit) as warm:
        warm()
        for number in range(1, 5):
            native(APPEND.format(number))
            scans_of_all.clear()
            answer = warm()
            assert scans_of_all == [], number
            with process(written.database, SNAPSHOT_LIMIT=limit) as fresh:
                assert answer == fresh()
            assert scans_of_all, "a new process reads all rows"
        by_hand("CREATE TABLE elsewhere()")
        scans_of_all.clear()
        assert warm() == answer
        assert scans_of_all == []
        # Older ones are listed then.
        by_hand(
            "DELETE FROM ducklake_snapshot"
            " WHERE (SELECT max(snapshot_id) FROM ducklake_snapshot) - snapshot_id"
            " IN (1, 2, 3, 6, 7)"
        )
        with process(written.database, SNAPSHOT_LIMIT=limit) as fresh:
            assert warm() == fresh()


NATIVE = {
    "inlined": "INSERT INTO t VALUES (7000 + {}, 'inlined', '2024-01-02')",
    "another_table": "INSERT INTO other FROM range(50)",
    "some_rows_deleted": "DELETE FROM t WHERE i % 100 = 7",
    "files_deleted": "DELETE FROM t WHERE d = DATE '2024-01-02'",
    "updated": "UPDATE t SET s = 'changed' WHERE i % 100 = 9",
    "merged": "CALL ducklake_merge_adjacent_files('lake')",
    "flushed": "CALL ducklake_flush_inlined_data('lake')",
    "rewritten": "CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0.01)",
    "expired": "CALL ducklake_expire_snapshots('lake', older_than => now())",
    "null_partition": "INSERT INTO t SELECT j, 'n', NULL FROM range(10) AS r(j)",
    "partitioned_otherwise": "ALTER TABLE t SET PARTITIONED BY (s)",
    "column_added": "ALTER TABLE t ADD COLUMN more{} INTEGER",
}
OLDEST = "data_file_id = (SELECT min(data_file_id) FROM ducklake_data_file)"
NEWEST = "data_file_id = (SELECT max(data_file_id) FROM ducklake_data_file WHERE table_id = 1)"
VALUES = "ducklake_file_partition_value"
BY_HAND = {
    "a_file_again": f"UPDATE ducklake_data_file SET record_count = record_count WHERE {OLDEST}",
    "another_count": f"UPDATE ducklake_data_file SET record_count = 11 WHERE {OLDEST}",
    "a_file_ended": "UPDATE ducklake_data_file SET end_snapshot ="
    f" (SELECT max(snapshot_id) FROM ducklake_snapshot) WHERE {OLDEST}",
    "one_file_for_another": f"DELETE FROM ducklake_data_file WHERE {OLDEST};"
    " INSERT INTO ducklake_data_file (data_file_id, table_id, begin_snapshot, path,"
    " path_is_relative, file_format, record_count, file_size_bytes, footer_size, row_id_start,"
    " partition_id) SELECT 900 + {}, table_id, begin_snapshot, 'd=2024-01-05/other.parquet',"
    " path_is_relative, file_format, record_count, file_size_bytes, footer_size, 10000,"
    f" partition_id FROM ducklake_data_file WHERE {NEWEST}",
    "a_value_gone": f"DELETE FROM {VALUES} WHERE {OLDEST}",
    "another_value": f"UPDATE {VALUES} SET partition_value = '2024-02-01' WHERE {OLDEST}",
    "one_value_for_another": f"DELETE FROM {VALUES} WHERE {OLDEST};"
    f" INSERT INTO {VALUES} SELECT NULL, table_id, partition_key_index, partition_value"
    f" FROM {VALUES} WHERE {NEWEST}",
    "a_second_value": f"INSERT INTO {VALUES} SELECT data_file_id, table_id, partition_key_index,"
    f" '2024-02-01' FROM {VALUES} WHERE {OLDEST}",
    "a_value_of_another_key": f"INSERT INTO {VALUES} SELECT data_file_id, table_id, 5, 'x'"
    f" FROM {VALUES} WHERE {OLDEST}",
    "a_file_of_the_next_snapshot": "UPDATE ducklake_data_file SET begin_snapshot ="
    f" (SELECT max(snapshot_id) + 1 FROM ducklake_snapshot) WHERE {NEWEST}",
    "a_file_without_begin": f"UPDATE ducklake_data_file SET begin_snapshot = NULL WHERE {NEWEST}",
    "written_anew": "CREATE TABLE kept AS SELECT * FROM ducklake_data_file;"
    " TRUNCATE ducklake_data_file; INSERT INTO ducklake_data_file SELECT * FROM kept;"
    " DROP TABLE kept",
    # Without another row, and without a new version of any.
    "other_columns": "BEGIN; ALTER TABLE ducklake_data_file RENAME record_count TO kept;"
    " ALTER TABLE ducklake_data_file RENAME file_size_bytes TO record_count;"
    " ALTER TABLE ducklake_data_file RENAME kept TO file_size_bytes; COMMIT",
    "another_table_of_files": "CREATE TABLE kept AS SELECT * FROM ducklake_data_file;"
    " UPDATE kept SET record_count = 11; ALTER TABLE ducklake_data_file RENAME TO older{0};"
    " ALTER TABLE kept RENAME TO ducklake_data_file",
    "vacuumed": f"VACUUM FULL ducklake_data_file; VACUUM FREEZE {VALUES}",
    "rolled_back": f"BEGIN; DELETE FROM ducklake_data_file WHERE {OLDEST}; ROLLBACK",
    "in_a_subtransaction": "BEGIN; SAVEPOINT a;"
    f" DELETE FROM {VALUES} WHERE {OLDEST}; RELEASE a; COMMIT",
}


@pytest.mark.parametrize("what", [*NATIVE, *BY_HAND])
def test_any_change_is_seen(changed, scans_of_all, what):
    """Before an append and after it."""
    written, native, by_hand = changed
    with process(written.database) as warm:
        warm()
        for number in (1, 2):
            if what in NATIVE:
                native(NATIVE[what].format(number))
            else:
                for statement in BY_HAND[what].format(number).split("; "):
                    by_hand(statement)
            for append in ("", APPEND.format(number)):
                if append:
                    native(append)
                with process(written.database) as fresh:
                    assert warm() == fresh(), (number, append)


def test_rows_of_running_transactions_are_seen_when_they_have_ended(changed, scans_of_all):
    """Their ids are lower than those of transactions whose rows were counted already."""
    written, native, _ = changed
    statements = (
        f"UPDATE {VALUES} SET partition_value = '2024-02-01' WHERE {OLDEST}",
        f"DELETE FROM {VALUES} WHERE {NEWEST}",
    )
    with (
        process(written.database) as warm,
        closing(written.database.connect()) as first,
        closing(written.database.connect()) as second,
    ):
        warm()
        for con, statement in zip((first, second), statements, strict=True):
            con.run("BEGIN")
            con.run(statement)
        native(APPEND.format(1))
        scans_of_all.clear()
        warm()
        assert scans_of_all == []
        # While the first is running, the lowest and the highest id stay the same.
        for con in (second, first):
            con.run("COMMIT")
            with process(written.database) as fresh:
                assert warm() == fresh()


def test_a_commit_builds_on_what_was_read(lake, moto, scans_of_all):
    """Also its check, which sees rows that are not committed yet."""
    written = set_up_writes(lake.write("growing_commits", EMPTY))
    rows = pa.table({"i": pa.array(range(100), pa.int64())})
    with bridge(written, moto, writes=True) as served, closing(client_of(served)) as catalog:
        url = f"{served.catalog_uri}/v1/lake/namespaces/main/tables/t"
        catalog.create_table("main.t", rows.schema)
        for _ in range(2):  # after the first one there is something to begin with
            catalog.load_table("main.t").append(rows)
        for number in range(3):
            scans_of_all.clear()
            catalog.load_table("main.t").append(rows)
            assert scans_of_all == [], number
        catalog.load_table("main.t").delete("i < 10")
        catalog.load_table("main.t").overwrite(rows)
        answer = requests.get(url, timeout=60).json()
        reset_functions()
        assert requests.get(url, timeout=60).json() == answer
        assert catalog.load_table("main.t").scan().to_arrow().num_rows == len(rows)


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE ducklake_data_file RENAME TO kept;"
        " CREATE VIEW ducklake_data_file AS SELECT * FROM kept",
        "ALTER TABLE ducklake_data_file ENABLE ROW LEVEL SECURITY",
        "CREATE TABLE kept() INHERITS (ducklake_data_file)",
    ],
    ids=["view", "row_security", "child"],
)
def test_tables_that_may_change_without_an_id_are_read_each_time(changed, scans_of_all, statement):
    written, _, by_hand = changed
    for part in statement.split("; "):
        by_hand(part)
    with process(written.database) as warm:
        answers = [warm()]
        scans_of_all.clear()
        answers.append(warm())
    assert answers[0] == answers[1]
    assert scans_of_all
