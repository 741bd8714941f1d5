"""Native DuckLake and a client change a table at the same time: no row is lost, none returns."""

from collections import Counter
from contextlib import suppress

import duckdb
import pytest
from polynya_local.clients.duckdb import LAKE as EXTENSIONS
from polynya_local.clients.duckdb import connect
from polynya_local.clients.native import attach
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    ServiceUnavailableError,
    ValidationException,
)

from tests.support.writes.starts import FILES, INLINE, INLINED

STARTS = {
    "files": FILES,
    "deletes": (*FILES, "DELETE FROM {t} WHERE id = 7", INLINE, "DELETE FROM {t} WHERE id = 2"),
    "inlined": INLINED,
}

NATIVE = {
    "delete": "DELETE FROM {t} WHERE id = 4",
    "delete the same row": "DELETE FROM {t} WHERE id = 1",
    "update": "UPDATE {t} SET s = 'native' WHERE id IN (1, 5)",
    "insert": "INSERT INTO {t} VALUES (50, 'native', 0)",
    "merge": "CALL ducklake_merge_adjacent_files('lake', '{name}')",
    "rewrite": "CALL ducklake_rewrite_data_files('lake', '{name}', delete_threshold => 0)",
    "flush": "CALL ducklake_flush_inlined_data('lake', table_name => '{name}')",
}

REFUSALS = (CommitFailedException, ValidationException)


@pytest.mark.slow(but=["[deletes-delete]", "[deletes-flush]"])
@pytest.mark.parametrize("native", NATIVE)
@pytest.mark.parametrize("start", STARTS)
def test_native_changes_between_a_clients_load_and_its_commit(started, start, native):
    twin = started
    table = twin.table()
    twin.native(NATIVE[native])
    after_native = rows(twin)
    try:
        table.delete("id = 1")
    except REFUSALS:
        pass
    except BadRequestError as error:
        assert start == "inlined" and "have moved to another file" in str(error)
    assert rows(twin) in (after_native, without_1(after_native))


@pytest.mark.versions("1.0")
@pytest.mark.slow(but=["[deletes-update]", "[deletes-rewrite]"])
@pytest.mark.parametrize("native", NATIVE)
@pytest.mark.parametrize("start", STARTS)
def test_a_client_commits_while_a_native_transaction_runs(started, native, served, moto):
    twin = started
    before = rows(twin)
    with connect(EXTENSIONS, moto) as con:
        attach(con, served[0], read_only=False)
        con.execute("BEGIN")
        con.execute(NATIVE[native].format(t=twin.source, name=twin.name))
        try:
            twin.table().delete("id = 1")
        except ServiceUnavailableError:
            assert native == "flush", "a native transaction locks rows that it has flushed"
            assert rows(twin) == before
            return
        assert rows(twin) == without_1(before)
        with suppress(duckdb.Error):
            con.execute("COMMIT")
            if "CALL" not in NATIVE[native]:
                twin.con.execute(NATIVE[native].format(t=twin.memory))
    expected = without_1(Counter(twin.con.execute(f"FROM {twin.memory}").fetchall()))
    assert rows(twin) == expected


def rows(twin):
    return Counter(twin.con.execute(f"FROM {twin.source}").fetchall())


def without_1(found):
    return Counter({row: count for row, count in found.items() if row[0] != 1})
