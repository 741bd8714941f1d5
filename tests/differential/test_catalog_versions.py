"""Every catalog version is served exactly: 0.2, 0.3, 0.4, 1.0 after a migration, 1.1.

The old catalogs are real ones (`tests/lakes/old`), and the judge is the DuckDB that wrote them;
for catalogs that DuckDB 1.5.5 has migrated, it is DuckDB 1.5.5. (It cannot migrate 0.2: "Postgres
tables only support RENAME TABLE, RENAME COLUMN, ADD COLUMN and DROP COLUMN".)

Version 1.1 is 1.0 after a script that does what DuckLake's own migration does
(`tests/support/catalog_versions.py`): no package on PyPI writes it. test_rows.py reads all lakes in
it, test_lakes_of_1_1.py lakes that DuckLake's extension of that version wrote.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from threading import Event

import pyarrow as pa
import pytest
from pg8000.native import identifier
from polynya.ducklake import queries
from polynya.ducklake.connection.database import Database, retried
from polynya_local.clients import duckdb, native, pyiceberg
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
from pyiceberg.expressions import EqualTo, IsNull

from tests.differential.test_rows import opened, spread
from tests.support import rest
from tests.support.catalog_versions import OLD, WRITTEN, restored, to_1_1
from tests.support.native_lakes import snapshots
from tests.support.servers import in_process

MIGRATED = ["0.3-inlined migrated"]
# The second one has inlined rows in types of PostgreSQL until then.
STAND_INS = ["1.1 of 14", "1.1 of 0.3-inlined migrated"]
# The version that each catalog must record, so that no two cases test the same version.
VERSION = dict.fromkeys(MIGRATED, "1.0") | dict.fromkeys(STAND_INS, "1.1")
NESTED = {"list", "struct", "map"}


@dataclass(frozen=True, slots=True)
class Then:
    """A table at one snapshot."""

    columns: Columns
    rows: Canonical


Truth = dict[int, dict[int, Then]]
"""By table id and snapshot id; a missing snapshot is the same as the one before it."""


@dataclass(frozen=True, slots=True)
class Case:
    lake: Lake
    truth: Truth

    def tables(self) -> dict[int, tuple[str, str]]:
        rows = self.ask("""
            SELECT t.table_id, s.schema_name, t.table_name
            FROM ducklake_table AS t JOIN ducklake_schema AS s USING (schema_id)
            WHERE t.end_snapshot IS NULL AND s.end_snapshot IS NULL ORDER BY 1""")
        return {table_id: (schema, name) for table_id, schema, name in rows}

    def at(self, table_id: int, snapshot_id: int | None) -> Then:
        known = self.truth[table_id]
        return known[max(n for n in known if snapshot_id is None or n <= snapshot_id)]

    def changes(self, table_id: int) -> set[int]:
        """The snapshots at which the columns or rows changed."""
        then = sorted(self.truth[table_id].items())
        changes = {n for (_, old), (n, new) in pairwise(then) if old != new}
        return changes | {n for n, first in then[:1] if first.rows.rows}

    def ask(self, sql: str) -> list:
        con = self.lake.database.connect()
        try:
            return con.run(sql)
        finally:
            con.close()


def recorded_truth(name: str) -> Truth:
    """What the old DuckDB read: values in its text form, which every later DuckDB reads alike."""
    truth: Truth = {}
    with connect() as con:
        for table_id, snapshots in json.loads((OLD / name / "truth.json").read_text()).items():
            for snapshot_id, then in snapshots.items():
                texts = (
                    zip(*then["rows"], strict=True)
                    if then["rows"]
                    else [[] for _ in then["columns"]]
                )
                arrays = [pa.array(column, pa.string()) for column in texts]
                con.register("texts", pa.table(arrays, [f"c{n}" for n in range(len(arrays))]))
                values = ", ".join(
                    f"CAST(c{n} AS {type}) AS {identifier(column)}"
                    for n, (column, type) in enumerate(then["columns"].items())
                )
                source = f"(SELECT {values} FROM texts)"
                columns = columns_of(con, source)
                rows = canonical(con, source, columns)
                truth.setdefault(int(table_id), {})[int(snapshot_id)] = Then(columns, rows)
    return truth


def read_natively(lake: Lake, s3_endpoint: str) -> Truth:
    reader = native.open(lake, s3_endpoint)
    alive = {table.table_id: table for table in reader.tables()}
    truth: Truth = {table_id: {} for table_id in alive}
    for snapshot_id, changes in snapshots(reader).items():
        visible = alive.keys() & {then.table_id for then in reader.tables(snapshot_id)}
        for table_id in visible:
            if not truth[table_id] or f":{table_id}" in changes:
                where = (alive[table_id].namespace, alive[table_id].name, snapshot_id)
                now = Then(reader.columns(*where), reader.canonical(*where))
                truth[table_id][snapshot_id] = now
    reader.close()
    return truth


def migrate(lake: Lake, s3_endpoint: str) -> None:
    source = literal(f"ducklake:postgres:{lake.database.libpq}")
    with connect(LAKE, s3_endpoint) as con:
        con.execute(f"ATTACH {source} AS lake (AUTOMATIC_MIGRATION TRUE)")


def case_of(name: str, lakes, server, s3_endpoint: str) -> Case:
    if name in STAND_INS:
        before = name.removeprefix("1.1 of ")
        if before in MIGRATED:
            case = case_of(before, lakes, server, s3_endpoint)
        else:
            lake = lakes.fresh(before)
            case = Case(lake, read_natively(lake, s3_endpoint))
        to_1_1(case.lake)
        return case
    if name in MIGRATED:
        lake = restored(name.split()[0], "-migrated", server, s3_endpoint)
        migrate(lake, s3_endpoint)
        return Case(lake, read_natively(lake, s3_endpoint))
    return Case(restored(name, "", server, s3_endpoint), recorded_truth(name))


# test_rows.py reads lakes of DuckDB 1.5.5 that were migrated to 1.1.
IN_CI = {*WRITTEN, *MIGRATED, STAND_INS[1]}
CASES = [
    pytest.param(name, marks=[pytest.mark.slow] * (name not in IN_CI))
    for name in [*WRITTEN, *MIGRATED, *STAND_INS]
]


@pytest.fixture(scope="module", params=CASES)
def case(request, lake, postgres_server, moto):
    case = case_of(request.param, lake, postgres_server, moto)
    version = case.ask("SELECT value FROM ducklake_metadata WHERE key = 'version'")
    assert version == [[VERSION.get(request.param, request.param.removesuffix("-inlined"))]]
    return case


@pytest.fixture(scope="module")
def bridge(case, moto):
    # Only files that are read are generated: loadTable lists every snapshot.
    how = {"delivery": "object-lambda", "settings": {"CHUNK_FILES": "3"}}
    with in_process.bridge(case.lake, moto, **how) as bridge:
        yield bridge


# Each client, and the most snapshots of a table that it reads.
CLIENTS = [
    pytest.param(pyiceberg, 1, id="pyiceberg"),
    pytest.param(duckdb, 2, id="duckdb"),
    pytest.param(pyiceberg, 1000, id="pyiceberg-everywhere", marks=pytest.mark.slow),
    pytest.param(duckdb, 1000, id="duckdb-everywhere", marks=pytest.mark.slow),
]


@pytest.mark.slow("[0.4-", "[0.3-pyiceberg]")
@pytest.mark.parametrize(("client", "most"), CLIENTS)
def test_client_reads_what_the_writer_reads(client, most, case, bridge, shared_duckdb):
    wrong = []
    with opened(client, bridge, shared_duckdb) as reader:
        for table_id, name in case.tables().items():
            for snapshot_id in [*spread(listed(bridge, name)[:-1], most), None]:
                then = case.at(table_id, snapshot_id)
                try:
                    rows = from_arrow(reader.rows(*name, snapshot_id), then.columns)
                    report = difference(then.rows, rows)
                except Exception as error:
                    report = [f"{type(error).__name__}: {error}"]
                wrong += [f"{name} at {snapshot_id}: {line}" for line in report]
    assert not wrong, "\n".join(wrong)


def test_every_change_is_listed(case, bridge):
    """Also if merged or flushed files hold rows of later snapshots, in every format of the ids."""
    for table_id, name in case.tables().items():
        assert case.changes(table_id) <= set(listed(bridge, name)), name


@pytest.mark.slow("[0.3]", "[0.4]", "[1.1 of", "migrated]")
def test_filters_find_what_the_writer_has(case, bridge):
    """Statistics never prune a matching row, though their table and meaning vary by version."""
    reader = pyiceberg.open(bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint)
    for table_id, name in case.tables().items():
        now = case.at(table_id, None)
        truth = now.rows
        table = reader._catalog.load_table(name)
        for place, column in enumerate(truth.columns):
            if now.columns[column].id in NESTED:
                continue  # "Cannot explicitly project List or Map types"
            nulls = sum(times for row, times in truth.rows.items() if row[place] is None)
            assert table.scan(IsNull(column)).to_arrow().num_rows == nulls, (name, column)
        first = truth.columns[0]
        if now.columns[first].id in {"integer", "bigint"}:
            for value in sorted({int(row[0]) for row in truth.rows if row[0] is not None})[::5]:
                assert table.scan(EqualTo(first, value)).to_arrow().num_rows == 1, (name, value)
    reader.close()


def test_a_pinned_warehouse_serves_a_dropped_table(case, bridge):
    """It shows the last snapshot; after a migration DuckDB 1.5.5 has nothing to compare with."""
    alive = case.tables()
    for table_id in case.truth.keys() - alive.keys():
        last = max(case.truth[table_id])
        pinned = replace(bridge, warehouse=f"{bridge.warehouse}@{last}")
        reader = pyiceberg.open(pinned.catalog_uri, pinned.warehouse, pinned.s3_endpoint)
        then = case.at(table_id, last)
        rows = from_arrow(reader.rows("main", "gone"), then.columns)
        assert then.rows.rows and not difference(then.rows, rows)
        reader.close()


def listed(bridge, name: tuple[str, str]) -> list[int]:
    metadata = rest.Rest(bridge.catalog_uri, bridge.warehouse).load_table(*name)
    assert "polynya.hidden-columns" not in metadata["properties"]
    return sorted(snapshot["snapshot-id"] for snapshot in metadata.get("snapshots", []))


# A lake that is migrated while it is served


def test_clients_read_a_lake_while_it_is_migrated(lake, moto):
    """Nothing fails, no row differs, and no file has another name: what is planned stays valid."""
    lake = lake.fresh("13")
    truth = read_natively(lake, moto)
    migrated = Event()
    with in_process.bridge(lake, moto, delivery="object-lambda") as bridge:
        catalog = rest.Rest(bridge.catalog_uri, bridge.warehouse)
        case = Case(lake, truth)
        names = case.tables()

        def documents() -> list[dict]:
            return [catalog.load_table(*name) for name in names.values()]

        def read_on() -> int:
            rounds, last = 0, False
            while not last:
                last = migrated.is_set()  # one whole round comes after it
                with closing(pyiceberg.open(*where)) as reader:
                    for table_id, name in names.items():
                        for snapshot_id in (None, listed(bridge, name)[rounds % 3]):
                            then = case.at(table_id, snapshot_id)
                            rows = from_arrow(reader.rows(*name, snapshot_id), then.columns)
                            assert not difference(then.rows, rows), (name, snapshot_id, rounds)
                rounds += 1
            return rounds

        where = (bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint)
        before = documents()
        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(read_on)
            try:
                to_1_1(lake)
            finally:
                migrated.set()
            assert reading.result() >= 1
        assert documents() == before
        assert case.ask("SELECT value FROM ducklake_metadata WHERE key = 'version'") == [["1.1"]]


def test_a_transaction_that_began_before_the_migration_is_tried_again(lake):
    """It still sees the columns of inlined tables under the old names, which are gone."""
    lake = lake.fresh("13")
    database = Database(lake.database.url, lake.metadata_schema)
    tries = []

    @retried
    def inlined_rows() -> int:
        with database.transaction() as con:
            layout = queries.lake().run(con)
            tables = queries.inlined(layout, 1, 0).run(con).tables
            tries.append(tables[0].system_columns[0])
            if len(tries) == 1:
                to_1_1(lake)
            newest = layout.snapshot_id
            found = queries.inlined_rows_at(tables, newest, 0, newest + 1).run(con)
            return sum(len(part.records) for part in found)

    assert inlined_rows() > 0
    assert tries == ["row_id", "_ducklake_row_id"]
    database.close()


# DuckDB 1.5.5 drops the default when it renames the field; the migration to 1.1 repairs that.
RENAMED_FIELD = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT LIMIT_);
USE lake;
CREATE TABLE t(k BIGINT, s STRUCT(a INTEGER));
INSERT INTO t VALUES (1, {'a': 1}), (2, NULL);
ALTER TABLE t ADD COLUMN s.c INTEGER DEFAULT 5;
INSERT INTO t VALUES (3, {'a': 7, 'c': 8});
ALTER TABLE t RENAME COLUMN s.c TO d;
INSERT INTO t VALUES (4, {'a': 7, 'd': 9});
"""
REPAIR = """
UPDATE ducklake_column AS c SET initial_default = o.initial_default FROM ducklake_column AS o
WHERE o.table_id = c.table_id AND o.column_id = c.column_id AND o.end_snapshot = c.begin_snapshot
  AND c.initial_default IS NULL AND c.parent_column IS NOT NULL"""


@pytest.mark.parametrize("limit", [pytest.param(0, marks=pytest.mark.slow), 10])
def test_the_default_of_a_renamed_field_is_as_the_catalog_has_it(limit, lake, moto):
    """Before the repair, after it, and in 1.1: inlined or not, and in files that were cached."""
    made = lake.write("renamed_field", RENAMED_FIELD.replace("LIMIT_", str(limit)))
    with in_process.bridge(made, moto, delivery="object-lambda") as bridge:
        before = check_newest_and_all(Case(made, read_natively(made, moto)), bridge)
        made.database.run(REPAIR)
        case = Case(made, read_natively(made, moto))
        after = check_newest_and_all(case, bridge)
        assert before != after
        to_1_1(made)
        assert check_newest_and_all(case, bridge) == after


def check_newest_and_all(case: Case, bridge) -> Canonical:
    """Compare each listed snapshot of the only table; the rows of the newest."""
    [(table_id, name)] = case.tables().items()
    with closing(duckdb.open(bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint)) as reader:
        for snapshot_id in (None, *listed(bridge, name)):
            then = case.at(table_id, snapshot_id)
            rows = from_arrow(reader.rows(*name, snapshot_id), then.columns)
            assert not difference(then.rows, rows), snapshot_id
    return case.at(table_id, None).rows
