"""`warehouse=lake@N`: every table as of one DuckLake snapshot, so that tables are consistent.

Other Iceberg catalogs lack this, because the snapshot of a table does not refer to other tables.
"""

import itertools
import threading
from collections import Counter
from contextlib import closing, contextmanager

import pytest
from polynya_local.clients import duckdb, pyiceberg
from polynya_local.clients.canonical import canonical, columns_of, difference, from_arrow
from polynya_local.clients.duckdb import LAKE, connect, identifier
from polynya_local.clients.native import attach

from tests.support import rest
from tests.support.servers import in_process
from tests.support.shared_duckdb import SharedDuckDB

CLIENTS = [pytest.param(client, id=client.NAME.lower()) for client in (pyiceberg, duckdb)]


def in_ci(only) -> list:
    """Both clients, the other one in `make test-slow`."""
    slow = [pytest.mark.slow]
    return [
        pytest.param(client, id=client.NAME.lower(), marks=slow * (client is not only))
        for client in (pyiceberg, duckdb)
    ]


PINNED_LAKES = ["08"]
PINNED_LAKES += [pytest.param(number, marks=pytest.mark.slow) for number in ("14", "25", "36")]
NO_SUCH_WAREHOUSE = (404, "NoSuchWarehouseException")
READINGS = 3
# Seconds between two commits of the writer that never stops. A commit takes as long, so without a
# pause it would use one of two cores for the length of the test.
PAUSE_S = 0.5
CHANGE_S = 60.0  # longer than all COMMITS take
# Each commits to both tables at once.
CHANGES = (
    "BEGIN; INSERT INTO lake.main.a VALUES ({n}, 'pair'); INSERT INTO lake.main.b VALUES ({n}, "
    "'pair'); COMMIT",
    "BEGIN; DELETE FROM lake.main.a WHERE i = {n} - 1; DELETE FROM lake.main.b WHERE i = {n} - 1; "
    "INSERT INTO lake.main.a SELECT {n} + i, 'pair' FROM range(20) AS r(i); "
    "INSERT INTO lake.main.b SELECT {n} + i, 'pair' FROM range(20) AS r(i); COMMIT",
    "BEGIN; UPDATE lake.main.a SET i = i + 100000 WHERE i = {n} - 1; "
    "UPDATE lake.main.b SET i = i + 100000 WHERE i = {n} - 1; COMMIT",
)
# The last ones rewrite the past of the tables without changing rows.
COMMITS = (
    *CHANGES,
    "CALL ducklake_flush_inlined_data('lake')",
    "CALL ducklake_merge_adjacent_files('lake')",
)


class Owner:
    """DuckLake itself: it writes, and gives the true rows of every snapshot."""

    def __init__(self, lake, s3_endpoint: str, *, read_only: bool = True) -> None:
        self.con = connect(LAKE, s3_endpoint)
        attach(self.con, lake, read_only=read_only)

    def newest(self) -> int:
        return self.con.execute(
            "SELECT max(snapshot_id) FROM ducklake_snapshots('lake')"
        ).fetchone()[0]

    def snapshots(self) -> list[int]:
        rows = self.con.execute("SELECT snapshot_id FROM ducklake_snapshots('lake') ORDER BY 1")
        return [id_ for (id_,) in rows.fetchall()]

    def tables(self, snapshot_id: int) -> list[tuple[str, str]]:
        rows = self.con.execute(f"""
            SELECT s.schema_name, t.table_name
            FROM __ducklake_metadata_lake.ducklake_table AS t
            JOIN __ducklake_metadata_lake.ducklake_schema AS s USING (schema_id)
            WHERE {visible("t", snapshot_id)} AND {visible("s", snapshot_id)}""")
        return sorted(rows.fetchall())

    def truth(self, namespace: str, table: str, snapshot_id: int):
        """The columns and the rows of a table."""
        name = f"lake.{identifier(namespace)}.{identifier(table)}"
        source = f"{name} AT (VERSION => {snapshot_id})"
        columns = columns_of(self.con, source)
        return columns, canonical(self.con, source, columns)

    def commit(self, n: int) -> None:
        for statement in self.con.extract_statements(COMMITS[n % len(COMMITS)].format(n=n)):
            self.con.execute(statement)

    def close(self) -> None:
        self.con.close()


def visible(alias: str, n: int) -> str:
    ended = f"{n} < {alias}.end_snapshot OR {alias}.end_snapshot IS NULL"
    ended = f"{alias}.end_snapshot"
    return f"{n} >= {alias}.begin_snapshot AND ({n} < {ended} OR {ended} IS NULL)"


@pytest.fixture
def changing(lake, moto):
    """A lake that tests may change: its owner, and the bridge, which lists every snapshot."""
    with writable(lake, moto, {"SNAPSHOT_LIMIT": "1000"}) as pair:
        yield pair


@pytest.fixture
def changing_fast(lake, moto):
    """The same with few snapshots, because `materialize` builds the files of each one again after
    a flush has rewritten them."""
    with writable(lake, moto, {"SNAPSHOT_LIMIT": "3"}) as pair:
        yield pair


@contextmanager
def writable(lake, s3_endpoint: str, settings: dict[str, str]):
    own_lake = lake.fresh("08")
    with (
        in_process.bridge(own_lake, s3_endpoint, settings=settings) as bridge,
        closing(Owner(own_lake, s3_endpoint, read_only=False)) as owner,
    ):
        yield owner, bridge


@contextmanager
def read_only(lake, s3_endpoint: str):
    """A lake that tests only read: its owner, and the bridge."""
    with (
        in_process.bridge(lake, s3_endpoint, delivery="object-lambda") as bridge,
        closing(Owner(lake, s3_endpoint)) as owner,
    ):
        yield owner, bridge


@contextmanager
def opened(client, bridge, pin: int | None, shared: SharedDuckDB | None = None):
    """A client of the lake at a snapshot or as it is; `shared` saves a process of DuckDB."""
    warehouse = bridge.warehouse if pin is None else f"{bridge.warehouse}@{pin}"
    where = (bridge.catalog_uri, warehouse, bridge.s3_endpoint)
    if client is duckdb and shared is not None:
        yield shared.attached_to(*where)
        return
    with closing(client.open(*where)) as reader:
        yield reader


@pytest.fixture(scope="module")
def two_duckdbs():
    with closing(SharedDuckDB()) as one, closing(SharedDuckDB()) as other:
        yield one, other


def refusal(do) -> tuple[int, str]:
    with pytest.raises(rest.Refused) as refused:
        do()
    return refused.value.status, refused.value.type


@pytest.mark.parametrize("number", PINNED_LAKES)
def test_at_each_snapshot_every_table_equals_ducklakes(number, lake, moto):
    """This includes dropped tables, and uses the names of that snapshot."""
    with read_only(lake(number), moto) as (owner, bridge):
        wrong = []
        with opened(duckdb, bridge, None) as one_process:
            for pin in owner.snapshots():
                assert sorted(pinned(bridge, pin).tables()) == owner.tables(pin), pin
                one_process.query(attach_pinned(bridge, pin))
                with opened(pyiceberg, bridge, pin) as reader:
                    for namespace, table in owner.tables(pin):
                        name = f"{identifier(namespace)}.{identifier(table)}"
                        columns, truth = owner.truth(namespace, table, pin)
                        for rows in (
                            reader.rows(namespace, table),
                            one_process.query(f"FROM at_{pin}.{name}"),
                        ):
                            lines = difference(truth, from_arrow(rows, columns))
                            wrong += [f"{namespace}.{table} at {pin}: {line}" for line in lines]
        assert not wrong, "\n".join(wrong)


def pinned(bridge, pin: int) -> rest.Rest:
    return rest.Rest(bridge.catalog_uri, f"{bridge.warehouse}@{pin}")


def attach_pinned(bridge, pin: int) -> str:
    """The statement that attaches one of several snapshots of a lake to one DuckDB."""
    return (
        f"ATTACH '{bridge.warehouse}@{pin}' AS at_{pin} (TYPE iceberg, ENDPOINT "
        f"'{bridge.catalog_uri}', AUTHORIZATION_TYPE 'none', ACCESS_DELEGATION_MODE 'none', "
        "DEFAULT_SCHEMA 'main')"
    )


@pytest.mark.parametrize("number", PINNED_LAKES)
def test_a_pinned_table_has_no_later_snapshots(number, lake, moto):
    with read_only(lake(number), moto) as (owner, bridge):
        for pin in owner.snapshots():
            catalog = pinned(bridge, pin)
            for namespace, table in catalog.tables():
                metadata = catalog.load_table(namespace, table)
                ids = [snapshot["snapshot-id"] for snapshot in metadata["snapshots"]]
                assert ids and max(ids) <= pin
                assert metadata["current-snapshot-id"] == max(ids)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_dropped_table_exists_at_an_earlier_snapshot(client, lake, moto):
    with read_only(lake("25"), moto) as (owner, bridge):
        head = owner.newest()
        pin = max(n for n in owner.snapshots() if ("main", "one") in owner.tables(n))
        assert ("main", "one") not in owner.tables(head)
        with opened(client, bridge, pin) as reader:
            columns, truth = owner.truth("main", "one", pin)
            assert truth.rows.total() == 1
            assert not difference(truth, from_arrow(reader.rows("main", "one"), columns))
        with opened(client, bridge, None) as reader, pytest.raises(Exception, match="one"):
            reader.rows("main", "one")


def pairs(reader, table: str) -> Counter:
    """The rows that one transaction always writes to both tables."""
    rows = reader.rows("main", table).to_pylist()
    return Counter(row["i"] for row in rows if row["s"] == "pair")


def truth_of_pairs(owner: Owner, pin: int) -> Counter:
    sql = f"SELECT i FROM lake.main.a AT (VERSION => {pin}) WHERE s = 'pair'"
    return Counter(i for (i,) in owner.con.execute(sql).fetchall())


@pytest.mark.parametrize("client", in_ci(pyiceberg))
def test_half_of_a_transaction_is_never_seen(client, changing, two_duckdbs):
    """The commit happens between the reads of the two tables."""
    owner, bridge = changing
    one, other = two_duckdbs
    halves = 0
    for n in range(200, 200 + len(COMMITS) + 1):
        pin = owner.newest()
        expected = truth_of_pairs(owner, pin)
        with (
            opened(client, bridge, pin, one) as fixed,
            opened(client, bridge, None, other) as free,
        ):
            first, first_of_all = pairs(fixed, "a"), pairs(free, "a")
            owner.commit(n)
            assert first == pairs(fixed, "b") == pairs(fixed, "a") == expected, f"at {pin}"
            halves += first_of_all != pairs(free, "b")
    assert halves, "without a pin readers see halves; otherwise this test proves nothing"


@pytest.mark.slow
@pytest.mark.parametrize("client", CLIENTS)
def test_half_of_a_transaction_is_never_seen_while_another_commits(
    client, changing_fast, two_duckdbs
):
    """Commits happen all the time, and at least one changes rows between the two reads."""
    owner, bridge = changing_fast
    seen = []
    with committing(owner) as changed:
        while len(seen) < READINGS:
            pin = newest(bridge)
            with opened(client, bridge, pin, two_duckdbs[0]) as fixed:
                a = pairs(fixed, "a")
                changed.clear()
                assert changed.wait(CHANGE_S), "no row has changed between the two reads"
                seen.append((pin, a, pairs(fixed, "b")))
    for pin, a, b in seen:
        assert a == b == truth_of_pairs(owner, pin), f"at {pin}"


@contextmanager
def committing(owner: Owner):
    """Commit continuously in a thread; yields an event, set after each commit that changes rows."""
    failures: list[BaseException] = []
    changed, done = threading.Event(), threading.Event()

    def commit_continuously() -> None:
        try:
            for n in itertools.count(1000):
                owner.commit(n)
                if n % len(COMMITS) < len(CHANGES):
                    changed.set()
                if done.wait(PAUSE_S):
                    return
        except BaseException as error:
            failures.append(error)

    writer = threading.Thread(target=commit_continuously)
    writer.start()
    try:
        yield changed
    finally:
        done.set()
        writer.join()
    assert not failures


def newest(bridge) -> int:
    """The newest snapshot of any table, as a reader sees it."""
    catalog = rest.Rest(bridge.catalog_uri, bridge.warehouse)
    return max(
        catalog.load_table(*name)["current-snapshot-id"] for name in (("main", "a"), ("main", "b"))
    )


def test_the_prefix_contains_the_pin(lake, moto):
    with read_only(lake("08"), moto) as (_, bridge):
        catalog = pinned(bridge, 4)
        config = catalog._get("../config", {"warehouse": f"{bridge.warehouse}@4"})
        assert config["overrides"]["prefix"] == f"{bridge.warehouse}--at-4"
        assert catalog._base.endswith(f"/{bridge.warehouse}--at-4")


def test_a_snapshot_that_never_existed_is_no_warehouse(lake, moto):
    with read_only(lake("08"), moto) as (_, bridge):
        for pin in (6, 999_999, 10**17):
            assert refusal(lambda pin=pin: pinned(bridge, pin)) == NO_SUCH_WAREHOUSE


def test_an_expired_snapshot_is_no_warehouse(changing):
    owner, bridge = changing
    catalog = pinned(bridge, 3)
    assert catalog.load_table("main", "a")["current-snapshot-id"] == 3
    owner.con.execute("CALL ducklake_expire_snapshots('lake', versions => [3])")
    for ask in (
        lambda: pinned(bridge, 3),
        lambda: catalog.load_table("main", "a"),
        catalog.tables,
    ):
        assert refusal(ask) == NO_SUCH_WAREHOUSE
    # The neighbouring snapshots are unchanged.
    for pin in (2, 4, 5):
        columns, truth = owner.truth("main", "a", pin)
        with opened(pyiceberg, bridge, pin) as reader:
            assert not difference(truth, from_arrow(reader.rows("main", "a"), columns)), pin
