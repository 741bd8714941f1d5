"""Tables of inlined rows that DuckLake creates after the table's last ALTER, or together with it.

The judge is a plain DuckDB without DuckLake that runs the same statements. DuckLake 1.5.5 itself
reads such rows with the first columns of the table as soon as another schema version follows,
unless the reading process has seen the version as the newest (docs/developers/ducklake.md).
"""

from contextlib import closing
from dataclasses import dataclass, field
from itertools import count

import pytest
from polynya_local.clients import pyiceberg
from polynya_local.clients.canonical import (
    Canonical,
    Columns,
    canonical,
    columns_of,
    difference,
    from_arrow,
)
from polynya_local.clients.duckdb import LAKE, connect, literal
from polynya_local.clients.native import Lake
from polynya_pipeline.verify.job import verify

from tests.support import rest
from tests.support.servers.in_process import standing_in

OFF, ON = 0, 10
"""DATA_INLINING_ROW_LIMIT of two writers; the second one is DuckLake's default."""

NUMBERS = count(1)
EVOLVED = [
    (OFF, "CREATE TABLE t(a INTEGER, b VARCHAR, s STRUCT(x INTEGER, y VARCHAR))"),
    (OFF, "INSERT INTO t VALUES (1, 'one', {'x': 10, 'y': 'ten'}), (2, 'two', NULL)"),
    (OFF, "ALTER TABLE t ADD COLUMN s.z INTEGER"),
    (OFF, "ALTER TABLE t DROP COLUMN s.x"),
    (OFF, "ALTER TABLE t RENAME COLUMN b TO c"),
    (OFF, "ALTER TABLE t ADD COLUMN d INTEGER DEFAULT 7"),
    (ON, "INSERT INTO t VALUES (3, 'three', {'y': 'thirty', 'z': 33}, 3), (4, NULL, NULL, NULL)"),
    (ON, "DELETE FROM t WHERE a = 1"),
]
LATER = [
    (ON, "ALTER TABLE t ADD COLUMN s.w INTEGER"),
    (ON, "INSERT INTO t VALUES (5, 'five', {'y': 'fifty', 'z': 55, 'w': 5}, 5)"),
    (ON, "UPDATE t SET c = 'changed' WHERE a = 3"),
    (ON, "ALTER TABLE t DROP COLUMN a"),
]
UPKEEP = [
    (ON, "CALL ducklake_flush_inlined_data('lake')"),
    (ON, "INSERT INTO t VALUES ('six', NULL, 6)"),
    (ON, "CALL ducklake_flush_inlined_data('lake')"),
    (ON, "CALL ducklake_merge_adjacent_files('lake')"),
]
# One snapshot creates two inlined tables: the schema version of the first belongs to no snapshot.
TWO_AT_ONCE = [
    (OFF, "CREATE TABLE t(a INTEGER)"),
    (OFF, "CREATE TABLE u(a INTEGER)"),
    (OFF, "ALTER TABLE t ADD COLUMN b INTEGER"),
    (OFF, "ALTER TABLE u RENAME COLUMN a TO z"),
    (ON, "BEGIN; INSERT INTO t VALUES (1, 2); INSERT INTO u VALUES (3); COMMIT"),
]
WITH_AN_ALTER = [
    (ON, "CREATE TABLE t(a INTEGER)"),
    (ON, "INSERT INTO t VALUES (1)"),
    (OFF, "CREATE TABLE u(a INTEGER)"),
    (
        ON,
        "BEGIN; ALTER TABLE t ADD COLUMN b INTEGER; INSERT INTO t VALUES (2, 3);"
        " INSERT INTO u VALUES (4); COMMIT",
    ),
]
HISTORIES = {
    "evolved": [*EVOLVED, *LATER, *UPKEEP],
    "two at once": TWO_AT_ONCE,
    "with an alter": WITH_AN_ALTER,
}


@dataclass
class Then:
    columns: Columns
    rows: Canonical


@dataclass
class History:
    """What two writers did to a lake, and the rows of a plain DuckDB at each snapshot."""

    lake: Lake
    s3_endpoint: str
    truth: dict[str, dict[int, Then]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._plain = connect()
        self._writers = {limit: self._writer(limit) for limit in (OFF, ON)}

    def _writer(self, limit: int):
        con = connect(LAKE, self.s3_endpoint)
        options = f"DATA_PATH {literal(self.lake.data_path)}, DATA_INLINING_ROW_LIMIT {limit}"
        source = literal(f"ducklake:postgres:{self.lake.database.libpq}")
        con.execute(f"ATTACH {source} AS lake ({options})")
        con.execute("USE lake")
        return con

    def add(self, limit: int, sql: str) -> None:
        for statement in sql.split("; "):
            self._writers[limit].execute(statement)
            if not statement.startswith("CALL"):
                self._plain.execute(statement)
        [[newest]] = self.ask("SELECT max(snapshot_id) FROM ducklake_snapshot")
        for name, *_ in self._plain.execute("SHOW TABLES").fetchall():
            columns = columns_of(self._plain, name)
            then = Then(columns, canonical(self._plain, name, columns))
            self.truth.setdefault(name, {})[newest] = then

    def ask(self, sql: str) -> list:
        with closing(self.lake.database.connect()) as con:
            return con.run(sql)

    def at(self, name: str, snapshot_id: int | None) -> Then:
        known = self.truth[name]
        return known[max(n for n in known if snapshot_id is None or n <= snapshot_id)]

    def expire(self, *snapshots: int) -> None:
        versions = f"versions => {[*snapshots]}"
        self._writers[ON].execute(f"CALL ducklake_expire_snapshots('lake', {versions})")

    def close(self) -> None:
        for con in (self._plain, *self._writers.values()):
            con.close()


@pytest.fixture
def history(postgres_server, moto, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto)
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "true")
    name = f"late_inlining_{next(NUMBERS)}"
    lake = Lake(name, postgres_server.create_database(name), f"s3://lakes/{name}")
    with closing(History(lake, moto)) as history:
        yield history


def differences(history: History, newest: int = 0) -> list[str]:
    """Differences in every table, now and at all listed snapshots or at the newest ones."""
    wrong = []
    with standing_in(history.lake, history.s3_endpoint) as bridge:
        where = (bridge.api_uri, "lake", bridge.s3_uri)
        catalog = rest.Rest(*where[:2])
        with closing(pyiceberg.open(*where)) as reader:
            for name in history.truth:
                metadata = catalog.load_table("main", name)
                listed = sorted(s["snapshot-id"] for s in metadata.get("snapshots", []))
                for snapshot_id in [*listed[-newest:], None]:
                    then = history.at(name, snapshot_id)
                    rows = from_arrow(reader.rows("main", name, snapshot_id), then.columns)
                    report = difference(then.rows, rows)
                    wrong += [f"{name} at {snapshot_id}: {line}" for line in report]
                then, now = history.at(name, listed[-1]), history.at(name, None)
                assert then.rows == now.rows, f"the newest change of {name} is not listed"
    return wrong


@pytest.mark.slow("[evolved]")
@pytest.mark.parametrize("name", HISTORIES)
def test_rows_are_read_in_the_columns_that_they_were_written_in(name, history):
    """Also while the history continues: what is cached at one snapshot is correct at the next."""
    for limit, sql in HISTORIES[name]:
        history.add(limit, sql)
        if limit == ON:
            assert differences(history, newest=1) == [], sql
    assert differences(history) == []


def test_verify_finds_nothing_wrong(history):
    for step in [*EVOLVED, *LATER[:1]]:
        history.add(*step)
    url = history.lake.database.url
    with standing_in(history.lake, history.s3_endpoint) as bridge:
        report = verify(
            database=url,
            levels=("catalog", "storage", "metadata"),
            footers=True,
            catalog_uri=bridge.api_uri,
            bridge_s3_endpoint=bridge.s3_uri,
        )
    assert report.findings == [] and report.tables == 1


def test_the_snapshot_that_created_the_table_may_be_expired(history):
    for step in [*EVOLVED, *LATER]:
        history.add(*step)
    [[newest]] = history.ask("SELECT max(snapshot_id) FROM ducklake_snapshot")
    history.expire(*range(1, newest))
    assert differences(history) == []


def uncertain(history: History) -> int:
    """Make a table with rows whose columns are no longer certain; return their snapshot.

    The table of inlined rows exists and is empty when the struct gets another field. A writer that
    does not inline creates no other one for it, and DuckLake writes the next rows into the old one.
    """
    for step in [
        (OFF, "CREATE TABLE t(a INTEGER, s STRUCT(x INTEGER))"),
        (OFF, "ALTER TABLE t ADD COLUMN b INTEGER"),
        (ON, "INSERT INTO t VALUES (1, {'x': 1}, 1)"),
        (ON, "CALL ducklake_flush_inlined_data('lake')"),
        (OFF, "ALTER TABLE t ADD COLUMN s.y INTEGER"),
        (OFF, "INSERT INTO t VALUES (2, {'x': 2, 'y': 2}, 2)"),
    ]:
        history.add(*step)
    [[before]] = history.ask("SELECT max(snapshot_id) FROM ducklake_snapshot")
    history.add(ON, "INSERT INTO t VALUES (3, NULL, 3)")
    history.expire(*range(1, before))
    return before


def test_a_table_is_refused_while_the_columns_of_its_rows_are_not_certain(history):
    before = uncertain(history)
    with standing_in(history.lake, history.s3_endpoint) as bridge:
        words = "not certain which columns.*_inlined_data_1_"
        with pytest.raises(rest.Refused, match=words) as refusal:
            rest.Rest(bridge.api_uri, "lake").load_table("main", "t")
        assert refusal.value.status == 400
        pinned = rest.Rest(bridge.api_uri, f"lake@{before}").load_table("main", "t")
        assert [s["snapshot-id"] for s in pinned["snapshots"]] == [before]


def test_the_table_is_served_again_after_these_rows_are_deleted(history):
    uncertain(history)
    history.add(ON, "DELETE FROM t WHERE a = 3")
    assert differences(history) == []
