"""A client loads a table, others change and maintain it, and then the client writes.

Clients decide by the metadata whether their commit still fits. So the metadata must show every
change of rows since the client loaded the table, whatever DuckLake has made of its history. The
judge is a multiset in Python: either the client got an error and only the others' changes are
there, or its change follows theirs. With the isolation level `snapshot` the client may have missed
what the others added, but it removes the rows that it has seen, or fails.
"""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from polynya.mapping.rows_files import MOST_NEW
from polynya_local.clients.duckdb import LAKE as EXTENSIONS
from polynya_local.clients.duckdb import Process, connect
from polynya_local.clients.native import Lake, attach
from polynya_local.clients.pyiceberg import s3_properties
from polynya_local.processes.serving import Bridge
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import BadRequestError, CommitFailedException, ValidationException

from tests.e2e.writes.test_plain_clients import attached
from tests.support.servers.in_process import bridge
from tests.support.writes.starts import LAKE
from tests.support.writes.writable import set_up_writes

pytestmark = [
    pytest.mark.filterwarnings("ignore:Delete operation did not match any records"),
    pytest.mark.versions("1.1", "1.0"),
]

REFUSALS = (CommitFailedException, ValidationException, BadRequestError)

Rows = Counter[tuple[int, int]]
"""How often each (id, v) is there."""


def table(*ids: int, v: int = 0) -> Rows:
    return Counter((n, v) for n in ids)


STORED = "CALL lake.set_option('data_inlining_row_limit', 0)"
INLINE = "CALL lake.set_option('data_inlining_row_limit', 10)"
CREATE = "CREATE TABLE {t} (id INTEGER, v INTEGER, x INTEGER)"
FILE = "INSERT INTO {t} SELECT range, 0, 0 FROM range(1, 11)"
TEN = table(*range(1, 11))

STARTS = {
    "a file and inlined rows": (
        (STORED, CREATE, FILE, INLINE, "INSERT INTO {t} VALUES (20, 0, 0), (21, 0, 0)"),
        TEN + table(20, 21),
    ),
    "files": (
        (STORED, CREATE, FILE, "INSERT INTO {t} VALUES (20, 0, 0), (21, 0, 0)", INLINE),
        TEN + table(20, 21),
    ),
    "inlined rows": (
        (
            INLINE,
            CREATE,
            "INSERT INTO {t} VALUES (1, 0, 0), (5, 0, 0)",
            "INSERT INTO {t} VALUES (20, 0, 0)",
            "INSERT INTO {t} VALUES (21, 0, 0)",
        ),
        table(1, 5, 20, 21),
    ),
}

DELETE = "DELETE FROM {t} WHERE id = 5"
UPDATE = "UPDATE {t} SET v = 7 WHERE id = 5"
INSERT = "INSERT INTO {t} VALUES (50, 0, 0)"
INSERT_MANY = "INSERT INTO {t} SELECT 50 + range, 0, 0 FROM range(12)"
FLUSH = "CALL ducklake_flush_inlined_data('lake', table_name => '{name}')"
MERGE = "CALL ducklake_merge_adjacent_files('lake', '{name}')"
REWRITE = "CALL ducklake_rewrite_data_files('lake', '{name}', delete_threshold => 0)"
EXPIRE_LAST = "EXPIRE THE LAST"
"""The newest snapshot but one: that of the statement before the last one."""
OTHER_TABLE = "CREATE TABLE lake.other_{name} (i INTEGER)"


def same(rows: Rows) -> Rows:
    return rows


def without_5(rows: Rows) -> Rows:
    return Counter({row: n for row, n in rows.items() if row[0] != 5})


def updated_5(rows: Rows) -> Rows:
    return without_5(rows) + table(5, v=7)


def with_50(rows: Rows) -> Rows:
    return rows + table(50)


def with_many(rows: Rows) -> Rows:
    return rows + table(*range(50, 62))


OTHERS: dict[str, tuple[tuple[str, ...], Callable[[Rows], Rows]]] = {
    "delete and flush in one transaction": (("BEGIN", DELETE, FLUSH, "COMMIT"), without_5),
    "update and flush in one transaction": (("BEGIN", UPDATE, FLUSH, "COMMIT"), updated_5),
    "insert and flush in one transaction": (("BEGIN", INSERT, FLUSH, "COMMIT"), with_50),
    "delete, then flush": ((DELETE, FLUSH), without_5),
    "update, then flush": ((UPDATE, FLUSH), updated_5),
    "insert, then flush": ((INSERT, FLUSH), with_50),
    "insert, then merge": ((INSERT_MANY, MERGE), with_many),
    "insert, flush, merge": ((INSERT, FLUSH, INSERT_MANY, MERGE), lambda r: with_many(with_50(r))),
    "flush": ((FLUSH,), same),
    "merge": ((MERGE,), same),
    "flush, then merge": ((FLUSH, MERGE), same),
    "delete, then rewrite": ((DELETE, REWRITE), without_5),
    "delete, flush, rewrite": ((DELETE, FLUSH, REWRITE), without_5),
    "insert": ((INSERT,), with_50),
    "insert many": ((INSERT_MANY,), with_many),
    "more inserts than have files of their own": (
        tuple(f"INSERT INTO {{t}} VALUES ({n}, 0, 0)" for n in range(50, 52 + MOST_NEW)),
        lambda rows: rows + table(*range(50, 52 + MOST_NEW)),
    ),
    "delete twice": ((DELETE, "DELETE FROM {t} WHERE id = 1"), lambda r: without_1(without_5(r))),
    "add a column": (("ALTER TABLE {t} ADD COLUMN y INTEGER",), same),
    "rename a column": (("ALTER TABLE {t} RENAME COLUMN x TO y",), same),
    "partition": (("ALTER TABLE {t} SET PARTITIONED BY (id)",), same),
    "add a column, then insert": (
        ("ALTER TABLE {t} ADD COLUMN y INTEGER", "INSERT INTO {t} VALUES (50, 0, 0, 0)"),
        with_50,
    ),
    "delete, whose snapshot expires": ((DELETE, OTHER_TABLE, EXPIRE_LAST), without_5),
    "insert, whose snapshot expires": ((INSERT, OTHER_TABLE, EXPIRE_LAST), with_50),
    "insert many, whose snapshot expires": ((INSERT_MANY, OTHER_TABLE, EXPIRE_LAST), with_many),
    "delete that expires, then insert": (
        (DELETE, INSERT, EXPIRE_LAST),
        lambda r: with_50(without_5(r)),
    ),
    "insert that expires, then merge": ((INSERT_MANY, MERGE, EXPIRE_LAST), with_many),
    "insert that expires, then flush": ((INSERT, FLUSH, EXPIRE_LAST), with_50),
    "rename the table": (
        ("ALTER TABLE {t} RENAME TO {name}_2", "ALTER TABLE {t}_2 RENAME TO {name}"),
        same,
    ),
    "comment": (("COMMENT ON TABLE {t} IS 'new'",), same),
}


class Write(NamedTuple):
    """What a client does."""

    run: Callable
    removes: Callable[[tuple[int, int]], bool]
    adds: Rows


def without_1(rows: Rows) -> Rows:
    return Counter({row: n for row, n in rows.items() if row[0] != 1})


NEW = pa.table(
    {
        "id": pa.array([50], pa.int32()),
        "v": pa.array([9], pa.int32()),
        "x": pa.array([0], pa.int32()),
    }
)

WRITES = {
    "delete 1": Write(lambda t: t.delete("id = 1"), lambda row: row[0] == 1, Counter()),
    "overwrite 50": Write(
        lambda t: t.overwrite(NEW, "id = 50"), lambda row: row[0] == 50, table(50, v=9)
    ),
    "overwrite": Write(lambda t: t.overwrite(NEW), lambda row: True, table(50, v=9)),
    "delete": Write(lambda t: t.delete(), lambda row: True, Counter()),
}

ISOLATION = "write.delete.isolation-level"


class Stage(NamedTuple):
    """A served lake, with a native writer and PyIceberg."""

    lake: Lake
    con: Any
    catalog: RestCatalog
    served: Bridge

    def run(self, name: str, statements: Iterable[str]) -> None:
        """Run statements natively, each in a snapshot of its own outside of a transaction."""
        for sql in statements:
            if sql == EXPIRE_LAST:
                ids = self.lake.database.run("SELECT snapshot_id FROM ducklake_snapshot ORDER BY 1")
                sql = f"CALL ducklake_expire_snapshots('lake', versions => [{ids[-2][0]}])"
            self.con.execute(sql.format(t=f"lake.main.{name}", name=name))

    def rows(self, name: str) -> Rows:
        """The rows natively."""
        return Counter(self.con.execute(f"SELECT id, v FROM lake.main.{name}").fetchall())

    def table_id(self, name: str) -> int:
        """The id of the table that has this name now."""
        [[found]] = self.con.execute(
            "SELECT table_id FROM ducklake_table_info('lake') WHERE table_name = ?", [name]
        ).fetchall()
        return found

    def rows_of(self, table_id: int) -> Rows:
        """The values of the first two columns natively, whatever the names are now."""
        [[name]] = self.con.execute(
            "SELECT table_name FROM ducklake_table_info('lake') WHERE table_id = ?", [table_id]
        ).fetchall()
        rows = self.con.execute(f"FROM lake.main.{name}").fetchall()
        return Counter((id_, v) for id_, v, *_ in rows)


@pytest.fixture(scope="module")
def stage(lake, moto):
    made = set_up_writes(lake.write("stale", LAKE))
    settings = {"SNAPSHOT_LIMIT": "1000"}
    with (
        bridge(made, moto, writes=True, settings=settings) as served,
        connect(EXTENSIONS, moto) as con,
    ):
        attach(con, made, read_only=False)
        catalog = RestCatalog("c", uri=served.catalog_uri, warehouse="lake", **s3_properties(moto))
        with closing(catalog):
            yield Stage(made, con, catalog, served)


NUMBERS = itertools.count(1)


ISOLATIONS = ("serializable", "snapshot")


def cases() -> Iterator[Any]:
    """All combinations; CI runs what the others do once, each with another start and write."""
    for number, others in enumerate(OTHERS):
        in_ci = (number // 2 % 3, number % 4, number % 2)
        for places in itertools.product(range(3), range(4), range(2)):
            names = zip((STARTS, WRITES, ISOLATIONS), places, strict=True)
            start, write, isolation = (list(table)[place] for table, place in names)
            marks = [pytest.mark.slow] * (places != in_ci)
            yield pytest.param(start, others, write, isolation, marks=marks)


@pytest.mark.parametrize(("start", "others", "write", "isolation"), list(cases()))
def test_pyiceberg(stage, start, others, write, isolation):
    name = f"stale_{next(NUMBERS)}"
    statements, before = STARTS[start]
    stage.run(name, statements)
    stale = stage.catalog.load_table(("main", name))
    if isolation == "snapshot":
        stale.transaction().set_properties({ISOLATION: isolation}).commit_transaction()
    statements, changed = OTHERS[others]
    stage.run(name, statements)
    after = changed(before)
    assert stage.rows(name) == after, "the others' changes natively"
    operation = WRITES[write]
    try:
        operation.run(stale)
    except REFUSALS:
        assert stage.rows(name) == after
        return
    seen = after if isolation == "serializable" else before
    removed = Counter({row: n for row, n in seen.items() if operation.removes(row)})
    kept = after.copy()
    kept.subtract(removed)
    assert stage.rows(name) == +kept + operation.adds
    assert min(kept.values(), default=0) >= 0, "a row was removed twice"


def updated(row: tuple[int, int]) -> tuple[int, int]:
    return row[0], 9


class Statement(NamedTuple):
    """A statement of Spark."""

    sql: str
    changes: Callable[[Rows], tuple[Rows, Rows]]
    """The rows that it removes, and those that it adds."""


def of_id(rows: Rows, id_: int) -> Rows:
    return Counter({row: n for row, n in rows.items() if row[0] == id_})


def with_9(rows: Rows) -> Rows:
    return Counter({updated(row): n for row, n in rows.items()})


STATEMENTS = {
    "delete 1": Statement("DELETE FROM {t} WHERE id = 1", lambda r: (of_id(r, 1), Counter())),
    "update 1": Statement(
        "UPDATE {t} SET v = 9 WHERE id = 1", lambda r: (of_id(r, 1), with_9(of_id(r, 1)))
    ),
    "merge 50": Statement(
        "MERGE INTO {t} AS t USING (SELECT 50 AS id) AS s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = 9 "
        "WHEN NOT MATCHED THEN INSERT (id, v, x) VALUES (50, 9, 0)",
        lambda r: (of_id(r, 50), with_9(of_id(r, 50)) or table(50, v=9)),
    ),
}
MODES = ("copy-on-write", "merge-on-read")
OF_OPERATIONS = ("delete", "update", "merge")


@pytest.fixture(scope="module")
def spark(stage):
    """Spark with a catalog that keeps the tables which it has loaded."""
    from polynya_local.clients import spark

    client = spark.Spark(stage.served.catalog_uri, "lake", stage.served.s3_endpoint)
    prefix = f"spark.sql.catalog.{client.catalog}.cache"
    spark.session().conf.set(f"{prefix}-enabled", "true")
    spark.session().conf.set(f"{prefix}.expiration-interval-ms", "-1")
    return client.catalog, spark.session()


def statements() -> Iterator[Any]:
    """Each start with all that others do and each statement, in a mode and isolation level."""
    for number, names in enumerate(itertools.product(STARTS, OTHERS, STATEMENTS)):
        yield pytest.param(*names, MODES[number % 2], ISOLATIONS[number // 2 % 2])


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(("start", "others", "statement", "mode", "isolation"), list(statements()))
def test_spark(stage, spark, start, others, statement, mode, isolation):
    name = f"stale_{next(NUMBERS)}"
    catalog, session = spark
    sql, before = STARTS[start]
    stage.run(name, sql)
    settings = {f"write.{what}.mode": mode for what in OF_OPERATIONS}
    settings |= {f"write.{what}.isolation-level": isolation for what in OF_OPERATIONS}
    settings["commit.retry.num-retries"] = "3"  # some of them could be tried for ever
    loaded = stage.catalog.load_table(("main", name))
    loaded.transaction().set_properties(settings).commit_transaction()
    source = f"{catalog}.main.{name}"
    session.sql(f"SELECT count(*) FROM {source}").collect()  # from now on Spark has the table
    sql, changed = OTHERS[others]
    stage.run(name, sql)
    after = changed(before)
    try:
        session.sql(STATEMENTS[statement].sql.format(t=source)).collect()
    except Exception as error:
        assert re.search(REFUSED_BY_SPARK, str(error)), error
        assert stage.rows(name) == after
        return
    seen = after if isolation == "serializable" else before
    removed, added = STATEMENTS[statement].changes(seen)
    found = stage.rows(name)
    if found != after - removed + added:  # Spark may have loaded the table again
        removed, added = STATEMENTS[statement].changes(after)
        assert found == after - removed + added


# The last one is Iceberg Java's, before it commits: it looks for the partitioning of a manifest
# among those of the table that it had loaded (ManifestFilterManager).
REFUSED_BY_SPARK = (
    "ValidationException|BadRequestException|CommitFailedException|Found conflicting files"
    "|Missing required files|Cannot commit|Cannot determine history"
    r"|NullPointerException: Cannot invoke .*PartitionSpec\.partitionType"
)


class Transaction(NamedTuple):
    """Statements of DuckDB."""

    statements: tuple[str, ...]
    changes: Callable[[Rows], tuple[Rows, Rows]]
    """The rows that they remove, and those that they add."""


TRANSACTIONS = {
    "insert 50": Transaction(
        ("INSERT INTO {t} (id, v) VALUES (50, 9)",), lambda r: (Counter(), table(50, v=9))
    ),
    "delete 1": Transaction(("DELETE FROM {t} WHERE id = 1",), lambda r: (of_id(r, 1), Counter())),
    "update 1": Transaction(
        ("UPDATE {t} SET v = 9 WHERE id = 1",), lambda r: (of_id(r, 1), with_9(of_id(r, 1)))
    ),
    "delete 50, insert 50": Transaction(
        ("DELETE FROM {t} WHERE id = 50", "INSERT INTO {t} (id, v) VALUES (50, 9)"),
        lambda r: (of_id(r, 50), table(50, v=9)),
    ),
    "insert what is there": Transaction(
        ("INSERT INTO {t} (id, v) SELECT id, 9 FROM {t} WHERE id = 5",),
        lambda r: (Counter(), with_9(of_id(r, 5))),
    ),
    "rename the table, insert 50": Transaction(
        ("ALTER TABLE {t} RENAME TO {name}_new", "INSERT INTO {t}_new (id, v) VALUES (50, 9)"),
        lambda r: (Counter(), table(50, v=9)),
    ),
    "add a column, insert 50": Transaction(
        ("ALTER TABLE {t} ADD COLUMN z INTEGER", "INSERT INTO {t} (id, v) VALUES (50, 9)"),
        lambda r: (Counter(), table(50, v=9)),
    ),
    "rename a column, insert 50": Transaction(
        ("ALTER TABLE {t} RENAME COLUMN v TO w", "INSERT INTO {t} (id, w) VALUES (50, 9)"),
        lambda r: (Counter(), table(50, v=9)),
    ),
}

WITHOUT_A_SNAPSHOT = {"comment", "rename the table"}
"""What others do of which Iceberg has no snapshot: all that clients do still fits."""


@pytest.fixture(scope="module")
def duckdb(stage):
    where = stage.served.catalog_uri, stage.served.s3_endpoint
    with closing(Process(attached, *where)) as client:
        yield client


def transactions() -> Iterator[Any]:
    """Each start with all that others do and each transaction; CI runs what the others do once."""
    combinations = itertools.product(enumerate(OTHERS), enumerate(STARTS), enumerate(TRANSACTIONS))
    for (number, others), (start_number, start), (own_number, own) in combinations:
        in_ci = number % 4 == 0 and (start_number, own_number) == (number // 4 % 3, number // 4)
        yield pytest.param(start, others, own, marks=[pytest.mark.slow] * (not in_ci))


@pytest.mark.slow("[a file and inlined rows")
@pytest.mark.parametrize(("start", "others", "transaction"), list(transactions()))
def test_duckdb(stage, duckdb, start, others, transaction):
    """DuckDB does not try again: its COMMIT fails, or its change follows those of the others."""
    name = f"stale_{next(NUMBERS)}"
    sql, before = STARTS[start]
    stage.run(name, sql)
    source = f"ice.main.{name}"
    table_id = stage.table_id(name)
    duckdb.query("BEGIN")
    counted = duckdb.query(f"SELECT count(*) AS n FROM {source}").to_pylist()
    assert counted == [{"n": before.total()}]
    sql, changed = OTHERS[others]
    stage.run(name, sql)
    after = changed(before)
    try:
        for statement in TRANSACTIONS[transaction].statements:
            duckdb.query(statement.format(t=source, name=name))
        duckdb.query("COMMIT")
    except RuntimeError as error:
        with suppress(RuntimeError):  # a COMMIT that failed has ended the transaction
            duckdb.query("ROLLBACK")
        assert re.search(REFUSED_BY_DUCKDB, str(error)) and others not in WITHOUT_A_SNAPSHOT, error
        assert stage.rows_of(table_id) == after
        return
    removed, added = TRANSACTIONS[transaction].changes(after)
    assert stage.rows_of(table_id) == after - removed + added


REFUSED_BY_DUCKDB = "CommitFailedException"
