"""Inlined rows of a partitioned table are in files of its spec, with the values that they have.

Daft ignores a condition on a partition column for files of another spec, so an unpartitioned file
in a partitioned table returns rows with other values: `make matrix` tests Daft itself.
"""

from collections import Counter
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from polynya_local.clients import native, pyiceberg
from polynya_local.clients.duckdb import identifier
from pyiceberg.expressions import EqualTo
from pyiceberg.table import Table

from tests.support.servers import in_process

LAKE = "82"
MOST_PARTITIONS = 32  # docs/exactness.md


class Served(NamedTuple):
    client: pyiceberg.PyIceberg
    judge: native.Native

    def table(self, name: str) -> Table:
        return self.client._catalog.load_table(("main", name))


@pytest.fixture(scope="module")
def served(lake, moto):
    one = lake(LAKE)
    with in_process.bridge(one, moto) as bridge:
        client = pyiceberg.open(bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint)
        judge = native.open(one, moto)
        yield Served(client, judge)
        judge.close()
        client.close()


def rows_files(table: Table, snapshot_id: int | None = None) -> list:
    """The files of inlined rows as a scan plans them."""
    tasks = table.scan(snapshot_id=snapshot_id).plan_files()
    return [task.file for task in tasks if "/rows-" in task.file.file_path]


def column(table: Table, path: str, field_id: int) -> list | None:
    """A file's column as Iceberg stores it (days, microseconds); None if the file lacks it."""
    with table.io.new_input(path).open() as file:
        rows = pq.read_table(pa.BufferReader(file.read()))
    for field in rows.schema:
        if field.metadata[b"PARQUET:field_id"] == str(field_id).encode():
            values = rows.column(field.name)
            if pa.types.is_temporal(values.type):
                values = values.cast(pa.int32() if pa.types.is_date(values.type) else pa.int64())
            return values.to_pylist()
    return None


@pytest.mark.slow("[by_parts-4]")
@pytest.mark.parametrize(
    ("name", "most_fields"),
    [("by_day", 1), ("by_odd_day", 1), ("by_parts", 4), ("many", 1), ("flushed", 1)],
)
def test_every_row_of_a_file_has_the_partition_of_the_file(name, most_fields, served):
    """By PyIceberg's transforms, at every listed snapshot."""
    table = served.table(name)
    schemas, specs, seen = table.schemas(), table.specs(), Counter()
    for snapshot in table.snapshots():
        for file in rows_files(table, snapshot.snapshot_id):
            spec = specs[file.spec_id]
            seen[len(spec.fields)] += 1
            for field, value in zip(spec.fields, file.partition, strict=True):
                type_ = schemas[snapshot.schema_id].find_type(field.source_id)
                of = field.transform.transform(type_)
                values = column(table, file.file_path, field.source_id)
                assert {of(one) for one in values} == {value}, (snapshot.snapshot_id, field)
    assert max(seen) == most_fields and seen[most_fields] > 1


def test_uncertain_values_are_in_one_file_without_a_partition(served):
    """PyIceberg has no infinity and no year -43; DuckLake does, and they are in the file."""
    table = served.table("by_odd_day")
    alone = [file for file in rows_files(table) if file.spec_id == 0]
    assert sum(file.record_count for file in alone) == 2
    days = {value for file in alone for value in column(table, file.file_path, 1)}
    assert days == {2**31 - 1, -735160}  # as DuckDB writes infinity, and 0044-03-15 (BC)


def test_rows_of_too_many_partitions_are_in_one_file(served):
    table = served.table("many")
    counts = {
        snapshot.snapshot_id: len(rows_files(table, snapshot.snapshot_id))
        for snapshot in table.snapshots()
    }
    assert max(counts.values()) == 40  # 30 earlier rows, and the last 10
    [alone] = rows_files(table)  # all rows that the delete left
    assert (alone.spec_id, alone.record_count) == (0, 37)
    assert alone.record_count > MOST_PARTITIONS


@pytest.mark.parametrize("name", ["by_day", "by_parts", "many", "flushed"])
def test_a_condition_on_a_partition_column_finds_what_ducklake_has(name, served):
    table = served.table(name)
    asked = 0
    for field in table.spec().fields:
        if str(field.transform) != "identity":
            continue
        source = table.schema().find_field(field.source_id)
        place = f"lake.main.{identifier(name)}"
        groups = served.judge.query(
            f"SELECT {identifier(source.name)}, count(*) FROM {place} "
            f"WHERE {identifier(source.name)} IS NOT NULL GROUP BY 1"
        )
        for value, count in groups:
            found = table.scan(row_filter=EqualTo(source.name, value)).to_arrow()
            assert found.num_rows == count, value
            asked += 1
    assert asked > 1
