"""An answer to loadTable that was kept is what the catalog says now, whatever has changed it."""

import json
import time
from contextlib import closing
from dataclasses import replace

import pytest
from polynya.access.policy import Rights
from polynya.catalog import reader as reader_module
from polynya.catalog.reader import Catalog
from polynya.ducklake.connection.catalog_connection import CatalogConnection
from polynya.ducklake.connection.database import Database
from polynya.mapping.properties import STATISTICS
from polynya.mapping.tables import SHOWN_MS
from polynya.runtime.errors import Misconfigured, NoSuchTable, ServiceUnavailable
from polynya.runtime.settings import Config
from polynya.storage.file_cache import FileCache, MemoryCache
from polynya.storage.objects import object_reader
from polynya.virtual_files.virtual_files import VirtualFiles
from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.clients.native import attach

SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE t(i INTEGER);
CREATE TABLE other(i INTEGER);
-- @repeat 4
INSERT INTO t SELECT {{i}} * 10 + j FROM range(5) AS r(j);
INSERT INTO other SELECT 1 FROM range(20);
DELETE FROM t WHERE i = 21;
"""

# By native DuckLake; `t` is what is loaded.
OF_OTHERS = {
    "rows of another table": "INSERT INTO other VALUES (2)",
    "deletes of another table": "DELETE FROM other WHERE i = 2",
    "inlined rows of another table": "INSERT INTO inlined VALUES (1)",
    "a merge of another table": "CALL ducklake_merge_adjacent_files('lake', 'other')",
    "several tables": "BEGIN; INSERT INTO other VALUES (3); INSERT INTO inlined VALUES (2); COMMIT",
}
NATIVE = {
    "rows": "INSERT INTO t VALUES (10)",
    "deletes": "DELETE FROM t WHERE i = 31",
    "rows beside those of another table": (
        "BEGIN; INSERT INTO other VALUES (4); INSERT INTO t VALUES (11); COMMIT"
    ),
    "a rewrite": "CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)",
    "a merge": "CALL ducklake_merge_adjacent_files('lake', 't')",
    "a column": "ALTER TABLE t ADD COLUMN s VARCHAR",
    "a comment": "COMMENT ON COLUMN t.i IS 'a number'",
    "a partitioning": "ALTER TABLE t SET PARTITIONED BY (i)",
    "an expired snapshot": "CALL ducklake_expire_snapshots('lake', versions => [3])",
    "an expired snapshot beside rows of another table": (
        "BEGIN; INSERT INTO other VALUES (5); "
        "CALL ducklake_expire_snapshots('lake', versions => [4]); COMMIT"
    ),
    "a name": "ALTER TABLE t RENAME TO u; ALTER TABLE u RENAME TO t",
    "another table of the name": "DROP TABLE t; CREATE TABLE t(j BIGINT)",
    "an option": "CALL lake.set_option('expire_older_than', '99 years')",
    "an option beside rows of another table": (
        "BEGIN; CALL lake.set_option('expire_older_than', '98 years'); "
        "INSERT INTO other VALUES (6); COMMIT"
    ),
    "an upkeep of everything": (
        "CALL lake.set_option('expire_older_than', '0 seconds'); CHECKPOINT lake"
    ),
}
BY_HAND = {
    "a comment": "INSERT INTO ducklake_tag(object_id, begin_snapshot, key, value) "
    "SELECT table_id, 1, 'comment', 'new' FROM ducklake_table WHERE table_name = 't'",
    "statistics": "UPDATE ducklake_file_column_stats SET max_value = '99'",
    "a snapshot": "DELETE FROM ducklake_snapshot WHERE snapshot_id = 5",
    "a snapshot's text": "UPDATE ducklake_snapshot_changes SET commit_message = 'text'",
}


class Reader:
    """A catalog, and the statements that it has sent."""

    def __init__(self, lake, sent: list[str]) -> None:
        self._config = Config.from_env(
            {"DATABASE_URL": lake.database.url, "VIRTUAL_BUCKET": "virtual"}
        )
        self.database, self._sent = Database(lake.database.url, "public"), sent
        files = self._files()
        self.catalog = Catalog(self._config, self.database, files)

    def _files(self) -> VirtualFiles:
        return VirtualFiles(
            self._config, self.database, FileCache(None, MemoryCache()), object_reader()
        )

    def load(self) -> tuple[bytes, int]:
        """The answer, and how many statements it took."""
        self._sent.clear()
        loaded = self.catalog.load_table(("main",), "t")
        return loaded.plain, len(self._sent)

    def load_anew(self) -> bytes:
        """The answer of a catalog that has kept nothing."""
        return Catalog(self._config, self.database, self._files()).load_table(("main",), "t").plain


@pytest.fixture
def sent(monkeypatch):
    statements: list[str] = []
    run = CatalogConnection.run

    def counted(self, sql, *arguments, **parameters):
        statements.append(sql)
        return run(self, sql, *arguments, **parameters)

    monkeypatch.setattr(CatalogConnection, "run", counted)
    return statements


@pytest.fixture
def one(lake, moto, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto)
    return lake.write("loaded_tables", SCRIPT)


@pytest.fixture
def reader(one, sent):
    reader = Reader(one, sent)
    with closing(reader.database):
        yield reader


@pytest.fixture
def native(one, moto):
    with connect(LAKE, moto) as con:
        attach(con, one, read_only=False)
        con.execute("USE lake")
        con.execute("CALL lake.set_option('data_inlining_row_limit', 10, table_name => 'other')")
        con.execute("CALL lake.set_option('data_inlining_row_limit', 0)")
        con.execute("CREATE TABLE inlined(i INTEGER)")
        con.execute("CALL lake.set_option('data_inlining_row_limit', 10, table_name => 'inlined')")
        con.execute("INSERT INTO inlined VALUES (0)")
        yield con


def test_commits_to_other_tables_leave_an_answer(reader, native):
    first, _ = reader.load()
    for what, statement in OF_OTHERS.items():
        for sql in statement.split("; "):
            native.execute(sql)
        answer, statements = reader.load()
        assert statements == 1, what
        assert answer == first == reader.load_anew(), what


def test_an_answer_is_what_the_catalog_says_after_native_changes(reader, native):
    reader.load()
    for what, statement in NATIVE.items():
        for sql in statement.split("; "):
            native.execute(sql)
        answer, statements = reader.load()
        assert answer == reader.load_anew(), what
        assert statements > 1, what
        assert reader.load() == (answer, 1), what


def test_an_answer_is_what_the_catalog_says_after_changes_by_hand(reader, one):
    reader.load()
    with closing(one.database.connect()) as con:
        for what, statement in BY_HAND.items():
            con.run(statement)
            answer, statements = reader.load()
            assert answer == reader.load_anew(), what
            assert statements > 1, what


def test_a_change_by_hand_is_seen_beside_a_snapshot(reader, native, one):
    """Also if it is committed between two commits that only change another table."""
    reader.load()
    with closing(one.database.connect()) as con:
        con.run("BEGIN")
        con.run(BY_HAND["a comment"])
        native.execute("INSERT INTO other VALUES (1)")
        _, statements = reader.load()
        assert statements == 1  # nobody sees the comment yet
        con.run("COMMIT")
        native.execute("INSERT INTO other VALUES (1)")
    answer, statements = reader.load()
    assert statements > 1
    assert b'"new"' in answer
    assert answer == reader.load_anew()


def test_a_savepoint_is_no_commit_of_its_own(reader, one):
    """A snapshot that is written within one does not stand for all of its transaction."""
    reader.load()
    with closing(one.database.connect()) as con:
        con.run("BEGIN; SAVEPOINT s")
        con.run(
            "INSERT INTO ducklake_snapshot SELECT snapshot_id + 1, now(), schema_version, "
            "next_catalog_id, next_file_id FROM ducklake_snapshot "
            "ORDER BY snapshot_id DESC LIMIT 1"
        )
        con.run(
            "INSERT INTO ducklake_snapshot_changes(snapshot_id, changes_made) "
            "SELECT max(snapshot_id), 'inserted_into_table:2' FROM ducklake_snapshot"
        )
        con.run("RELEASE s")
        con.run(BY_HAND["a comment"])
        reader.load()
        con.run("COMMIT")
    answer, statements = reader.load()
    assert statements > 1
    assert answer == reader.load_anew()


def test_an_aborted_transaction_leaves_an_answer(reader, one):
    first, _ = reader.load()
    with closing(one.database.connect()) as con:
        con.run("BEGIN")
        con.run(BY_HAND["a comment"])
        con.run("ROLLBACK")
        assert reader.load() == (first, 1)


def test_a_snapshot_that_says_nothing_may_have_changed_everything(reader, native, one):
    reader.load()
    with closing(one.database.connect()) as con:
        for text in ("", "inlined_data_insert", "inserted_into_table:x", "altered_table:2"):
            con.run("BEGIN")
            native_like = "SELECT snapshot_id + 1, now(), schema_version, next_catalog_id"
            con.run(
                f"INSERT INTO ducklake_snapshot {native_like}, next_file_id FROM ducklake_snapshot "
                "ORDER BY snapshot_id DESC LIMIT 1"
            )
            con.run(
                "INSERT INTO ducklake_snapshot_changes(snapshot_id, changes_made) "
                "SELECT max(snapshot_id), :text FROM ducklake_snapshot",
                text=text,
            )
            con.run("COMMIT")
            _, statements = reader.load()
            assert statements > 1, text


def test_callers_get_an_answer_as_far_as_they_may_read_the_table(reader):
    whole, _ = reader.load()
    everything = reader.catalog
    hidden = replace(everything, rights=Rights(((("main",), "other"),)))
    with pytest.raises(NoSuchTable):
        hidden.load_table(("main",), "t")
    visible = replace(everything, rights=Rights(((("main",), "t"),)))
    assert visible.load_table(("main",), "t").plain == whole


def test_a_table_is_answered_if_its_answer_cannot_be_kept(reader, monkeypatch):
    """Also that of a commit, which has taken place."""

    def fail(*arguments: object) -> None:
        raise ServiceUnavailable("the catalog database does not answer")

    expected = reader.load_anew()
    monkeypatch.setattr(Catalog, "_ask", fail)
    assert reader.load()[0] == expected


def test_answers_take_no_more_than_their_bytes(reader, native):
    loaded = reader.catalog.loaded
    loaded._capacity = 1
    reader.load()
    _, statements = reader.load()
    assert statements == 4  # BEGIN, the lake and the table, COMMIT; what has changed
    assert loaded._size == 0


def test_answers_are_kept_again_on_another_server(reader, one):
    """Also on one that has only counted anew: whoever watches it does so."""
    reader.load()
    with closing(one.database.connect()) as con:
        con.run("SELECT pg_stat_reset_shared('bgwriter')")
    answer, statements = reader.load()
    assert statements > 1
    assert reader.load() == (answer, 1)


def test_a_lake_without_snapshots_is_refused_as_before(reader, one):
    reader.load()
    with closing(one.database.connect()) as con:
        con.run("DELETE FROM ducklake_snapshot")
    with pytest.raises(Misconfigured, match="no snapshot"):
        reader.load()


def test_an_answer_that_says_now_is_not_kept_when_that_time_has_come(reader, one, monkeypatch):
    with closing(one.database.connect()) as con:
        con.run("UPDATE ducklake_snapshot SET snapshot_time = now() + interval '1 second'")
    loaded = reader_module._loaded

    def slow(*arguments, **options):
        time.sleep(1.5)
        return loaded(*arguments, **options)

    monkeypatch.setattr(reader_module, "_loaded", slow)
    reader.load()
    monkeypatch.undo()
    assert reader.load()[0] == reader.load_anew()


def test_statistics_end_in_an_answer_that_was_kept(reader, one):
    reader.load()
    file = {"snapshot-id": 1, "statistics-path": "s3://lakes/statistics.puffin"}
    ends_ms = int(time.time() * 1000) + 3000
    with closing(one.database.connect()) as con:
        con.run(
            "INSERT INTO ducklake_tag(object_id, begin_snapshot, key, value) "
            "SELECT table_id, 1, :key, :value FROM ducklake_table WHERE table_name = 't'",
            key=STATISTICS,
            value=json.dumps([{"at": ends_ms - SHOWN_MS, "file": file}]),
        )
    shown, _ = reader.load()
    assert b"statistics.puffin" in shown
    assert reader.load() == (shown, 1)
    time.sleep(max(0.0, ends_ms / 1000 - time.time()) + 0.01)
    answer, statements = reader.load()
    assert statements > 1
    assert b"statistics.puffin" not in answer
    assert reader.load() == (answer, 1)
