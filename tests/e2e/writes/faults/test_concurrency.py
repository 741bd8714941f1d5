"""Many writers at once, native DuckLake ones among them: every row is there exactly once."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import duckdb
import pyarrow as pa
import pytest
from polynya_local.processes.serving import Bridge, serving
from pyiceberg.exceptions import CommitFailedException, ValidationException

from tests.support.servers.in_process import bridge
from tests.support.writes.writable import EMPTY, Judge, client_of, judging, set_up_writes

pytestmark = pytest.mark.versions("1.0")

SCHEMA = pa.schema([("id", pa.int64()), ("writer", pa.string())])
TABLES = ("one", "two", "three")
LEFT_BEHIND = "Cannot find starting snapshot"
"""PyIceberg's, if more snapshots than a table lists were committed since the table was loaded."""
# Iceberg writers, native ones, appends of each, processes of `polynya serve`.
SIZES = [pytest.param(3, 2, 5, 0), pytest.param(5, 3, 25, 2, marks=pytest.mark.slow)]


@contextmanager
def catalogs(lake, moto, processes: int) -> Iterator[list[Bridge]]:
    """Servers of one lake; each commits one after the other. 0: this process is one."""
    with ExitStack() as stack:
        if not processes:
            yield [stack.enter_context(bridge(lake, moto, writes=True))]
        else:
            where = lake.database.url, moto
            yield [stack.enter_context(serving(*where, writes=True)) for _ in range(processes)]


def until_it_lands(write) -> None:
    """Repeat a write that other writers were faster than."""
    while True:
        try:
            return write()
        except (CommitFailedException, duckdb.TransactionException):
            continue
        except ValidationException as error:
            if LEFT_BEHIND not in str(error):
                raise


def iceberg_writer(served: Bridge, number: int, appends: int) -> None:
    with closing(client_of(served)) as catalog:
        for turn in range(appends):
            row = {"id": [number * 1000 + turn], "writer": [f"iceberg {number}"]}
            data = pa.Table.from_pydict(row, schema=SCHEMA)
            name = f"main.{TABLES[turn % len(TABLES)]}"
            until_it_lands(lambda data=data, name=name: catalog.load_table(name).append(data))


def native_writer(lake, moto, number: int, appends: int) -> None:
    with judging(lake, moto) as judge:
        for turn in range(appends):
            name = f"lake.main.{TABLES[turn % len(TABLES)]}"
            values = f"({number * 1000 + turn}, 'native {number}')"
            until_it_lands(
                lambda name=name, values=values: judge.query(f"INSERT INTO {name} VALUES {values}")
            )


@pytest.mark.parametrize(("iceberg", "native", "appends", "processes"), SIZES)
def test_appends_of_many_writers(lake, moto, iceberg, native, appends, processes):
    one = set_up_writes(lake.write("many", EMPTY))
    with catalogs(one, moto, processes) as served:
        with closing(client_of(served[0])) as catalog:
            for name in TABLES:
                catalog.create_table(f"main.{name}", SCHEMA)
        jobs = [
            (iceberg_writer, served[number % len(served)], number, appends)
            for number in range(iceberg)
        ]
        jobs += [(native_writer, one, moto, iceberg + n, appends) for n in range(native)]
        run_all(jobs)
    ids = [n * 1000 + turn for n in range(iceberg + native) for turn in range(appends)]
    with judging(one, moto) as judge:
        check(judge, ids)


def test_an_append_that_began_before_the_listed_snapshots_is_repeated_as_a_whole(lake, moto):
    one = set_up_writes(lake.write("left_behind", EMPTY))
    row = pa.Table.from_pydict({"id": [9], "writer": ["iceberg"]}, schema=SCHEMA)
    with (
        bridge(one, moto, writes=True, settings={"SNAPSHOT_LIMIT": "2"}) as served,
        closing(client_of(served)) as catalog,
        judging(one, moto) as judge,
    ):
        catalog.create_table("main.one", SCHEMA)
        judge.query("INSERT INTO lake.main.one VALUES (0, 'native')")
        table = catalog.load_table("main.one")
        for id_ in (1, 2):
            judge.query(f"INSERT INTO lake.main.one VALUES ({id_}, 'native')")
        with pytest.raises(ValidationException, match=LEFT_BEHIND):
            table.append(row)
        assert judge.query("SELECT id FROM lake.main.one ORDER BY id") == [(0,), (1,), (2,)]
        catalog.load_table("main.one").append(row)
        found = judge.query("SELECT id FROM lake.main.one ORDER BY id")
        assert found == [(0,), (1,), (2,), (9,)]


def run_all(jobs) -> None:
    failed: list[BaseException] = []

    def run(write, *arguments) -> None:
        try:
            write(*arguments)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def check(judge: Judge, ids: list[int]) -> None:
    union = " UNION ALL ".join(f"SELECT rowid, id, '{t}' AS t FROM lake.main.{t}" for t in TABLES)
    assert judge.query(f"SELECT id FROM ({union}) ORDER BY id") == [(id_,) for id_ in sorted(ids)]
    duplicates = f"SELECT t, rowid FROM ({union}) GROUP BY t, rowid HAVING count(*) > 1"
    assert judge.query(duplicates) == []
    catalog = '"__ducklake_metadata_lake".public'
    for name in TABLES:
        [[next_row_id, greatest]] = judge.query(
            f"SELECT next_row_id, (SELECT max(rowid) FROM lake.main.{name}) "
            f"FROM {catalog}.ducklake_table_stats "
            f"JOIN {catalog}.ducklake_table USING (table_id) WHERE table_name = '{name}'"
        )
        assert next_row_id == greatest + 1
    snapshots = [
        id_ for (id_,) in judge.query("SELECT snapshot_id FROM ducklake_snapshots('lake')")
    ]
    assert snapshots == list(range(len(snapshots)))
    assert len(snapshots) == len(ids) + len(TABLES) + FIRST_SNAPSHOTS


FIRST_SNAPSHOTS = 2
"""Of the script of the lake: its creation and a schema."""
