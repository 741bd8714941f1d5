"""Every test lake is extended under DuckLake's own settings, and then read.

CI extends some of them, `make test-all` every one. Most were written without inlining, and many
have evolved. Each table gets rows and loses one. The judge is the DuckDB that makes the changes. It
reads immediately, because after the next table of inlined rows is created it may read these rows
with wrong columns (docs/developers/ducklake.md).
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import duckdb as engine
import pytest
from polynya_local.clients.canonical import (
    Canonical,
    Columns,
    canonical,
    columns_of,
    difference,
    from_arrow,
)
from polynya_local.clients.duckdb import LAKE, connect, identifier
from polynya_local.clients.native import attach

from tests.differential.test_rows import refused_with_a_reason
from tests.support import rest
from tests.support.servers.in_process import standing_in

# Lakes with a flush and deletes, with partitions, and with evolution; plain lakes test less.
IN_BOTH_VERSIONS = False
TABLES = "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'lake'"
A_ROW = "INSERT INTO {0} SELECT * FROM {0} LIMIT 1"
NULLS = "INSERT INTO {0} SELECT {1}"  # for an empty table
DELETE = "DELETE FROM {0} WHERE rowid = (SELECT min(rowid) FROM {0})"


@dataclass(frozen=True)
class Then:
    """A table at one of the snapshots that were added."""

    name: tuple[str, str]
    snapshot_id: int
    hidden: frozenset[str]
    columns: Columns
    rows: Canonical


class Case:
    def __init__(self, lake, s3_endpoint: str) -> None:
        self.lake, self.name, self.number = lake, lake.name, lake.name.split("_")[0]
        self._s3_endpoint = s3_endpoint

    def extended(self, catalog: rest.Rest, left_out: list[str]) -> Iterator[Then]:
        with connect(LAKE, self._s3_endpoint) as con:
            attach(con, self.lake, read_only=False)
            for name in con.execute(TABLES).fetchall():
                try:
                    hidden = hidden_columns(catalog.load_table(*name))
                except rest.Refused as refusal:
                    refused_with_a_reason(self, ".".join(name), refusal, left_out)
                else:
                    yield from extended_table(con, name, hidden)


def extended_table(con, name: tuple[str, str], hidden: frozenset[str]) -> Iterator[Then]:
    source = f"lake.{identifier(name[0])}.{identifier(name[1])}"
    columns = columns_of(con, source)
    nulls = ", ".join("NULL" for _ in columns)
    [[is_empty]] = con.execute(f"SELECT count(*) = 0 FROM {source}").fetchall()
    for sql in (NULLS if is_empty else A_ROW, DELETE):
        before = newest(con)
        with suppress(engine.ConstraintException):  # NOT NULL
            con.execute(sql.format(source, nulls))
        if (snapshot_id := newest(con)) != before:
            yield Then(name, snapshot_id, hidden, columns, canonical(con, source, columns, hidden))


def newest(con) -> int:
    [[snapshot_id]] = con.execute("SELECT max(snapshot_id) FROM lake.snapshots()").fetchall()
    return snapshot_id


def hidden_columns(metadata: dict) -> frozenset[str]:
    return frozenset(json.loads(metadata["properties"].get("polynya.hidden-columns", "[]")))


@pytest.mark.slow(but=["[14_", "[17_", "[54_"])
def test_clients_read_the_rows_added_and_deleted_under_other_settings(
    lake_name, lake, moto, shared_duckdb, left_out
):
    case = Case(lake.copied(lake_name), moto)
    with standing_in(case.lake, moto, POWERTOOLS_METRICS_DISABLED="true") as bridge:
        where = (bridge.api_uri, "lake", bridge.s3_uri)
        try:
            catalog = rest.Rest(*where[:2])
        except rest.Refused as refusal:
            refused_with_a_reason(case, "the whole lake", refusal, left_out)
            return
        reader = shared_duckdb.attached_to(*where)
        added = list(case.extended(catalog, left_out))
        wrong = [line for then in added for line in wrong_in(then, reader)]
        for name in {then.name for then in added}:
            snapshots = catalog.load_table(*name)["snapshots"]
            unlisted = {then.snapshot_id for then in added if then.name == name}
            unlisted -= {snapshot["snapshot-id"] for snapshot in snapshots}
            wrong += [f"{name} at {snapshot_id} is not listed" for snapshot_id in unlisted]
    assert not wrong, "\n".join(wrong)


def wrong_in(then: Then, reader) -> list[str]:
    where = f"{then.name} at {then.snapshot_id}"
    try:
        rows = reader.rows(*then.name, then.snapshot_id)
    except RuntimeError as error:
        return [f"{where}: {error}"[:1000]]
    report = difference(then.rows, from_arrow(rows, then.columns, then.hidden))
    return [f"{where}: {line}" for line in report]
