"""Other writers commit while a commit with delete files takes place, or the commit fails."""

from contextlib import suppress

import duckdb
import pytest
from polynya.catalog import writer
from polynya.commits.write.delete_uploads import DeleteFiles
from polynya.runtime.errors import CommitFailed
from polynya_local.clients.duckdb import LAKE as EXTENSIONS
from polynya_local.clients.duckdb import connect
from polynya_local.clients.native import attach

from tests.support.writes.starts import DO_NOT_INLINE, STARTS

pytestmark = pytest.mark.versions("1.1", "1.0")

START = (*STARTS["both deletes"], DO_NOT_INLINE)
DELETE = "DELETE FROM {t} WHERE id IN (1, 6)"

NEWEST = """
SELECT DISTINCT d.partial_max FROM ducklake_delete_file AS d
JOIN ducklake_table AS t USING (table_id) WHERE t.table_name = :name"""


@pytest.fixture
def after_upload(monkeypatch):
    """Run something once, between the upload of delete files and the claim of the snapshot."""
    uploaded = DeleteFiles.uploaded

    def patch(action):
        left = [action]

        def patched(*arguments):
            plan = uploaded(*arguments)
            if left:
                left.pop()()
            return plan

        monkeypatch.setattr(DeleteFiles, "uploaded", patched)

    return patch


def test_another_table_changes_before_the_claim(twin, change, after_upload):
    """The files name the snapshot that the commit has in the end."""
    twin.native(*START)
    other = f"lake.main.other_{twin.name}"
    twin.con.execute(f"CREATE TABLE {other} (id BIGINT)")
    before = rows(twin)
    after_upload(lambda: twin.con.execute(f"INSERT INTO {other} VALUES (1)"))
    change(DELETE, others=1)
    assert twin.lake.database.run(NEWEST, name=twin.name) == [[twin.newest()]]
    assert rows(twin, f"AT (VERSION => {twin.newest() - 1})") == before
    twin.check()


def test_the_table_changes_before_the_claim(twin, change, after_upload):
    """The commit is refused, because the client has read another snapshot."""
    twin.native(*START)
    after_upload(lambda: twin.native("DELETE FROM {t} WHERE id = 5"))
    with pytest.raises(RuntimeError, match="Failed to commit"):
        change(DELETE)
    change(DELETE)
    twin.check()


def test_a_commit_that_fails_leaves_files_that_ducklake_removes(twin, change, monkeypatch):
    twin.native(*START)
    before, files = rows(twin), objects(twin)

    def fail():
        raise CommitFailed("the time is up")

    with monkeypatch.context() as patch, pytest.raises(RuntimeError, match="Failed to commit"):
        patch.setattr(writer, "check_time", fail)
        change(DELETE)
    assert rows(twin) == before
    left = objects(twin) - files
    assert {name.rpartition("-")[2] for name in left} >= {"delete.parquet"}
    change(DELETE)
    twin.con.execute("CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)")
    assert not objects(twin) & left
    twin.check()


NATIVE = {
    "delete": "DELETE FROM {t} WHERE id = 4",
    "delete the same row": "DELETE FROM {t} WHERE id = 1",
    "update": "UPDATE {t} SET s = 'native' WHERE id IN (1, 5)",
    "merge": "CALL ducklake_merge_adjacent_files('lake', '{name}')",
    "rewrite": "CALL ducklake_rewrite_data_files('lake', '{name}', delete_threshold => 0)",
    "flush": "CALL ducklake_flush_inlined_data('lake', table_name => '{name}')",
}


@pytest.mark.versions("1.0")
@pytest.mark.slow(
    but=["[delete-both deletes]", "[flush-both deletes]", "[merge-files]", "[update-files]"]
)
@pytest.mark.parametrize("start", ["files", "both deletes"])
@pytest.mark.parametrize("native", NATIVE)
def test_a_native_transaction_runs_meanwhile(twin, change, served, moto, start, native):
    """It fails, or both have taken place: no row returns, and none is lost.

    Two native transactions lose deletes here: a delete file that replaces another is no conflict.
    """
    twin.native(*STARTS[start], DO_NOT_INLINE)
    with connect(EXTENSIONS, moto) as con:
        attach(con, served[0], read_only=False)
        con.execute("BEGIN")
        con.execute(NATIVE[native].format(t=twin.source, name=twin.name))
        try:
            change(DELETE)
        except RuntimeError:
            assert native == "flush", "a native transaction locks rows that it has flushed"
            return
        with suppress(duckdb.Error):
            con.execute("COMMIT")
            if "CALL" not in NATIVE[native]:
                twin.con.execute(NATIVE[native].format(t=twin.memory))
    assert rows(twin) == twin.con.execute(f"FROM {twin.memory} ORDER BY ALL").fetchall()


def rows(twin, at=""):
    """The rows of the table natively, at the newest snapshot or another."""
    return twin.con.execute(f"FROM {twin.source} {at} ORDER BY ALL").fetchall()


def objects(twin):
    """The delete files in S3, committed or not, as DuckLake names them."""
    pattern = f"{twin.lake.data_path}/main/{twin.name}/ducklake-*"
    return {path for (path,) in twin.con.execute(f"FROM glob('{pattern}')").fetchall()}
