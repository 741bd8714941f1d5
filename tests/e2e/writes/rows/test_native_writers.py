"""Native DuckLake writers before, during and after Iceberg commits to the same table."""

from contextlib import closing
from copy import copy

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.exceptions import BadRequestError

from tests.support.servers.in_process import bridge
from tests.support.writes.writable import EMPTY, client_of, judging, set_up_writes

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])


@pytest.fixture(scope="module")
def served(lake, moto):
    one = set_up_writes(lake.write("mixed", EMPTY))
    with bridge(one, moto, writes=True) as served:
        yield one, served


@pytest.fixture
def catalog(served):
    with closing(client_of(served[1])) as found:
        yield found


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "s": [f"row {id_}" for id_ in ids]}, schema=SCHEMA)


# Statements of native DuckLake, and the same for the expected rows.
BETWEEN = [
    ("INSERT INTO {t} VALUES (100, 'native')", True),
    ("DELETE FROM {t} WHERE id % 7 = 3", True),
    ("UPDATE {t} SET s = 'changed' WHERE id % 5 = 1", True),
    ("CALL ducklake_merge_adjacent_files('lake')", False),
    ("CALL lake.set_option('data_inlining_row_limit', 10)", False),
    ("INSERT INTO {t} VALUES (101, 'inlined')", True),
    ("DELETE FROM {t} WHERE id = 101 OR id = 4", True),
    ("INSERT INTO {t} VALUES (102, 'inlined')", True),
    ("CALL ducklake_flush_inlined_data('lake')", False),
    ("ALTER TABLE {t} ADD COLUMN more INTEGER", True),
    ("UPDATE {t} SET more = id WHERE id > 4", True),
    ("CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)", False),
]


@pytest.mark.slow
def test_native_writers_go_on_after_each_append(catalog, judge):
    catalog.create_table("main.mixed", SCHEMA)
    judge.con.execute("CREATE TABLE memory.main.mixed (id BIGINT, s VARCHAR)")
    next_id, seen = 1, {}
    for statement, changes in BETWEEN:
        data = rows(next_id, next_id + 1, next_id + 2)
        next_id += 3
        catalog.load_table("main.mixed").append(data)
        more = {"id": data["id"], "s": data["s"]}
        judge.con.register("appended", pa.table(more))
        judge.con.execute("INSERT INTO memory.main.mixed BY NAME FROM appended")
        judge.con.execute(statement.format(t="lake.main.mixed"))
        if changes:
            judge.con.execute(statement.format(t="memory.main.mixed"))
        judge.check("main.mixed", "mixed")
        ids = dict(judge.query("SELECT id, rowid FROM lake.main.mixed"))
        assert len(set(ids.values())) == len(ids)
        # A row keeps its row id, and none has one that another row had.
        assert all(seen.get(rowid, id_) == id_ for id_, rowid in ids.items())
        seen |= {rowid: id_ for id_, rowid in ids.items()}
    found = catalog.load_table("main.mixed").scan().to_arrow().sort_by("id")
    wanted = judge.con.execute("FROM memory.main.mixed ORDER BY id").to_arrow_table()
    assert found.to_pylist() == wanted.to_pylist()
    judge.con.execute("CALL lake.set_option('data_inlining_row_limit', 0)")


def test_the_change_feed_tells_each_append_once(catalog, judge):
    table = catalog.create_table("main.fed", SCHEMA)
    table.append(rows(1, 2))
    judge.con.execute("DELETE FROM lake.main.fed WHERE id = 1")
    table.refresh().append(rows(3))
    [[last]] = judge.query("SELECT max(snapshot_id) FROM ducklake_snapshots('lake')")
    told = judge.query(
        "SELECT change_type, id FROM "
        f"ducklake_table_changes('lake', 'main', 'fed', 0, {last}) ORDER BY snapshot_id, id"
    )
    assert told == [("insert", 1), ("insert", 2), ("delete", 1), ("insert", 3)]


# What a native transaction does that begins before an append and commits after it.
CONCURRENT = [
    "INSERT INTO {t} VALUES (7, 'x')",
    "DELETE FROM {t} WHERE id = 1",
    "UPDATE {t} SET s = 'y' WHERE id = 2",
    "ALTER TABLE {t} ADD COLUMN more INTEGER",
    "ALTER TABLE {t} RENAME TO renamed_{n}",
    "DROP TABLE {t}",
    "CREATE TABLE {t}_2 (a INTEGER)",
]


@pytest.mark.versions("1.0")
@pytest.mark.slow("[1]", "[3]", "[5]")
@pytest.mark.parametrize("number", range(len(CONCURRENT)))
def test_a_native_transaction_meets_an_append_as_it_meets_a_native_insert(
    served, moto, catalog, judge, number
):
    outcomes = []
    for writer in ("iceberg", "native"):
        name = f"{writer}_{number}"
        catalog.create_table(f"main.{name}", SCHEMA).append(rows(1, 2))
        with judging(served[0], moto) as other:
            other.con.execute("BEGIN")
            other.con.execute(CONCURRENT[number].format(t=f"lake.main.{name}", n=name))
            if writer == "iceberg":
                catalog.load_table(f"main.{name}").append(rows(3))
            else:
                judge.con.execute(f"INSERT INTO lake.main.{name} VALUES (3, 'row 3')")
            outcomes.append(_commits(other))
        if f"main.{name}" in {".".join(one) for one in catalog.list_tables("main")}:
            found = judge.query(f"SELECT id FROM lake.main.{name} ORDER BY id")
            outcomes[-1] = (outcomes[-1], found)
    assert outcomes[0] == outcomes[1]


def _commits(other) -> bool:
    try:
        other.con.execute("COMMIT")
    except duckdb.Error:
        return False
    return True


def test_a_file_that_ducklake_has_removed_cannot_be_added_again(catalog, judge):
    """While it waits for its deletion, and before: it would be deleted under the new row."""
    table = catalog.create_table("main.removed", SCHEMA)
    table.append(rows(1))
    table.append(rows(2))
    [file, _] = [task.file for task in table.scan().plan_files()]
    judge.con.execute("CALL ducklake_merge_adjacent_files('lake')")
    [[scheduled]] = judge.query(
        'SELECT count(*) FROM "__ducklake_metadata_lake".public'
        ".ducklake_files_scheduled_for_deletion"
    )
    assert scheduled >= 2
    transaction = table.refresh().transaction()
    with transaction.update_snapshot().fast_append() as update:
        update.append_data_file(copy(file))
    with pytest.raises(BadRequestError, match="in the catalog already, or was"):
        transaction.commit_transaction()
    assert judge.query("SELECT id FROM lake.main.removed ORDER BY id") == [(1,), (2,)]
