"""The number of listed snapshots of a table does not change those that are listed.

With a limit, only the newest part of the history is read; the older part is one sum.
"""

from contextlib import closing

import pytest
from polynya.catalog.reader import Catalog
from polynya.ducklake import queries
from polynya.ducklake.connection.database import Database
from polynya.runtime.settings import Config
from polynya.storage.file_cache import FileCache, MemoryCache
from polynya.storage.objects import object_reader
from polynya.virtual_files.virtual_files import VirtualFiles

IN_CI = ("14", "71")  # inlined rows, deletes and a flush; expired snapshots
LAKES = [
    pytest.param(number, marks=[pytest.mark.slow] * (number not in IN_CI))
    for number in ("09", "13", "14", "19", "22", "36", "38", "53", "71", "72")
]
LIMITS = (1, 2, 3, 5)


@pytest.mark.parametrize("number", LAKES)
def test_newest_snapshots_are_the_same_under_any_limit(number, lake):
    one = lake(number)
    with closing(Database(one.database.url, one.metadata_schema)) as database:
        with database.transaction() as con:
            names = table_names(con)
        whole = {name: loaded(database, one, 1_000_000, name) for name in names}
        assert any(len(document["snapshots"]) > 1 for document in whole.values())
        for limit in LIMITS:
            for name in names:
                document = loaded(database, one, limit, name)
                assert document["snapshots"] == whole[name]["snapshots"][-limit:], (name, limit)
                for key in document.keys() - {"snapshots", "snapshot-log", "refs", "metadata-log"}:
                    assert document[key] == whole[name][key], (name, limit, key)
                log, whole_log = times(document), times(whole[name])
                assert log == whole_log[len(whole_log) - len(log) :], (name, limit)


LONG = """
INSERT INTO ducklake_snapshot SELECT n.last + i, s.snapshot_time + i * interval '1 ms',
  s.schema_version, s.next_catalog_id, s.next_file_id
FROM ducklake_snapshot AS s, (SELECT max(snapshot_id) AS last FROM ducklake_snapshot) AS n,
  generate_series(1, 20000) AS i WHERE s.snapshot_id = n.last;
INSERT INTO ducklake_snapshot_changes(snapshot_id, changes_made)
SELECT s.snapshot_id, 'inserted_into_table:' || t.table_id FROM ducklake_table AS t,
  ducklake_snapshot AS s LEFT JOIN ducklake_snapshot_changes AS c USING (snapshot_id)
WHERE c.snapshot_id IS NULL AND s.snapshot_id > 0;
ANALYZE"""
READ = """SELECT sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_xact_user_tables
WHERE relname IN ('ducklake_snapshot', 'ducklake_snapshot_changes')"""


def test_a_long_history_is_read_from_its_end(lake):
    """Not as a whole: a lake of one commit a second has millions of snapshots after a month."""
    one = lake.write(
        "long_history",
        """
        ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
        CREATE TABLE lake.t(i INTEGER);
        """,
    )
    with closing(one.database.connect()) as con:
        for statement in LONG.split(";"):
            con.run(statement)
    config = Config.from_env(
        {"DATABASE_URL": one.database.url, "VIRTUAL_BUCKET": "virtual", "SNAPSHOT_LIMIT": "10"}
    )
    with closing(Database(one.database.url, one.metadata_schema)) as database:
        files = VirtualFiles(config, database, FileCache(None, MemoryCache()), object_reader())
        catalog = Catalog(config, database, files)
        with catalog.open_table(("main",), "t") as opened:
            document = catalog.load_table_result(opened)["metadata"]
            [[rows]] = opened.readable.con.run(READ)
    assert len(document["snapshots"]) == 10
    assert rows < 1000


def times(document: dict) -> list[int]:
    """Those of the metadata log, which has the states since the oldest listed snapshot."""
    return [entry["timestamp-ms"] for entry in document["metadata-log"]]


def table_names(con) -> list[tuple[str, str]]:
    at = queries.lake().run(con).snapshot_id
    return [
        (schema.schema_name, table.table_name)
        for schema in queries.schemas_at(at).run(con)
        for table in queries.tables_at(at, schema.schema_id).run(con)
    ]


def loaded(database: Database, lake, limit: int, name: tuple[str, str]) -> dict:
    settings = {"DATABASE_URL": lake.database.url, "VIRTUAL_BUCKET": "virtual"}
    config = Config.from_env(settings | {"SNAPSHOT_LIMIT": str(limit)})
    virtual_files = VirtualFiles(config, database, FileCache(None, MemoryCache()), object_reader())
    return Catalog(config, database, virtual_files).load_table((name[0],), name[1]).body["metadata"]
