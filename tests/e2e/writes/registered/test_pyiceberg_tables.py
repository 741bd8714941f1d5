"""Tables of PyIceberg's own catalog that are registered: all readers get the rows of the source."""

from datetime import UTC, date, datetime, timedelta

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from polynya.storage.s3_locations import bucket_and_key
from pyiceberg.partitioning import PartitionField
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, MonthTransform
from pyiceberg.types import StringType

from tests.support.writes.everywhere import MAINTENANCE
from tests.support.writes.registered import compare, register, scanned
from tests.support.writes.sources import ROOT

START = datetime(2024, 2, 28, tzinfo=UTC)
COUNT = 8
ROWS = pa.table(
    {
        "id": pa.array(range(COUNT), pa.int64()),
        "s": [None, *(f"s{n}" for n in range(1, COUNT))],
        "day": [date(2024, 2, 28) + timedelta(n) for n in range(COUNT)],
        "at": pa.array(
            [START + timedelta(hours=12 * n) for n in range(COUNT)], pa.timestamp("us", "UTC")
        ),
        # Without NaN, which DuckDB does not find by the bounds of PyArrow (docs/writes.md).
        "f": pa.array([0.5, -0.5, float("-inf"), None, 1, 2, 3, 4], pa.float64()),
        "b": [n % 2 == 0 for n in range(COUNT)],
        "d": pa.array([None, *range(1, COUNT)], pa.decimal128(9, 2)),
        "x": [b"\x00\xff", b"", None, *[b"x"] * (COUNT - 3)],
        "l": [[1, 2], [], *[[n] for n in range(2, COUNT)]],
    }
)
SPECS = {
    "days": [PartitionField(3, 1000, DayTransform(), "of_day")],
    "months of instants, and a bucket": [
        PartitionField(4, 1000, MonthTransform(), "month"),
        PartitionField(1, 1001, BucketTransform(2), "in_bucket"),
    ],
    "identity of a text": [PartitionField(2, 1000, IdentityTransform(), "s")],
    "a bucket": [PartitionField(2, 1000, BucketTransform(3), "s_bucket")],
}


FILTERS = "day = '2024-03-01'", "s = 's5'", "id = 4", "at > '2024-03-01T00:00:00+00:00'"


@pytest.mark.slow(but=["months of instants, and a bucket]"])
@pytest.mark.parametrize("case", SPECS)
def test_partitions(lake_of, source, moto, case, version):
    at, name = lake_of, lake_of.new("partitions")
    table = source.create_table(
        f"main.{name}",
        ROWS.schema,
        properties={"write.parquet.compression-codec": "zstd", "s3.acl": "x", "team": "ice"},
    )
    with table.update_spec() as spec:
        for field in SPECS[case]:
            spec.add_field(ROWS.column_names[field.source_id - 1], field.transform, field.name)
    with table.update_sort_order() as order:
        order.asc("id", IdentityTransform())
    table.append(ROWS)
    table.append(ROWS.slice(2, 3))
    table.delete("id = 3")
    register(at, name, table.metadata_location)
    compare(at, name, table.scan().to_arrow(), moto)
    ours = at.catalog.load_table(f"main.{name}")
    assert [(f.source_id, f.transform) for f in ours.spec().fields] == [
        (f.source_id, f.transform) for f in SPECS[case]
    ]
    assert [f.source_id for f in ours.sort_order().fields] == [1]
    assert ours.properties["write.parquet.compression-codec"] == "zstd"
    assert ours.properties["polynya.tag.team"] == "ice"
    assert "s3.acl" not in ours.properties
    summary = ours.current_snapshot().summary
    assert summary["polynya.registered-from"] == table.metadata_location
    assert "other snapshots; the properties s3.acl" in summary["polynya.left-behind"]
    assert ours.current_snapshot().snapshot_id == table.current_snapshot().snapshot_id
    for condition in (
        "day = '2024-03-01'",
        "s = 's5'",
        "id = 4",
        "at > '2024-03-01T00:00:00+00:00'",
    ):
        expected = table.scan(row_filter=condition).to_arrow().num_rows
        assert scanned(at, name, row_filter=condition).num_rows == expected, condition
    with at.commits():
        ours.append(ROWS.slice(0, 2))
    with at.commits():
        at.catalog.load_table(f"main.{name}").delete("s = 's5'")
    at.native(f"INSERT INTO main.{name} (id, s, day) VALUES (99, 'native', '2024-02-29')")
    at.check(name)
    if version == "1.0":  # DuckLake 1.0 cannot merge what has partitions in 1.1, and is elsewhere
        at.native(*MAINTENANCE)
        at.check(name)


def test_files_without_field_ids(lake_of, source, moto):
    """Columns are found by the name mapping of the source, after a rename too."""
    at, name = lake_of, lake_of.new("by_name")
    plain = ROWS.select(["id", "s", "l"])
    table = source.create_table(f"main.{name}", plain.schema)
    location = f"{ROOT}landing/{name}.parquet"
    with pq.ParquetWriter(sink := pa.BufferOutputStream(), plain.schema) as writer:
        writer.write_table(plain)
    bucket, key = bucket_and_key(location)
    s3 = boto3.client("s3", endpoint_url=moto, region_name="us-east-1")
    s3.put_object(Bucket=bucket, Key=key, Body=sink.getvalue().to_pybytes())
    table.add_files([location])
    with table.update_schema() as schema:
        schema.rename_column("s", "t")
    with table.update_schema() as schema:
        schema.add_column("s", StringType())
    table.append(table.scan().to_arrow().slice(0, 2))
    register(at, name, table.metadata_location)
    compare(at, name, table.scan().to_arrow(), moto)


def test_dropped_ids_stay_taken(lake_of, source, moto):
    """A new column has none of the ids that files may have, natively neither."""
    at, name = lake_of, lake_of.new("ids")
    table = source.create_table(f"main.{name}", ROWS.schema)
    table.append(ROWS)
    last = table.metadata.last_column_id
    with table.update_schema() as schema:
        schema.delete_column("l").delete_column("x")
    register(at, name, table.metadata_location)
    assert at.catalog.load_table(f"main.{name}").metadata.last_column_id == last
    at.native(f"ALTER TABLE main.{name} ADD COLUMN x BLOB")
    at.native(f"ALTER TABLE main.{name} ADD COLUMN l INTEGER[]")
    ids = at.lake.database.run(
        "SELECT column_id FROM ducklake_column WHERE column_name IN ('x', 'l') "
        "AND end_snapshot IS NULL AND table_id = :id",
        id=table_id(at, name),
    )
    assert min(id_ for [id_] in ids) > last
    rows = at.check(name)
    assert {row[-2:] for row in rows} == {(None, None)}


def test_the_rows_of_the_catalog(lake_of, source, moto):
    """What the catalog says of a registered table is what DuckLake says of the same files."""
    at, name, native = lake_of, lake_of.new("catalog"), lake_of.new("native")
    # Of floats, bytes and booleans DuckLake spells the bounds of added files in its own way.
    rows = ROWS.select(["id", "s", "day", "d"])
    table = source.create_table(f"main.{name}", rows.schema)
    table.append(rows)
    register(at, name, table.metadata_location)
    [file] = table.scan().plan_files()
    columns = "id BIGINT, s VARCHAR, day DATE, d DECIMAL(9, 2)"
    copied = f"{ROOT}landing/{native}.parquet"
    s3 = boto3.client("s3", endpoint_url=moto, region_name="us-east-1")
    of, to = bucket_and_key(file.file.file_path), bucket_and_key(copied)
    s3.copy_object(CopySource={"Bucket": of[0], "Key": of[1]}, Bucket=to[0], Key=to[1])
    at.native(
        f"CREATE TABLE main.{native} ({columns})",
        f"CALL ducklake_add_data_files('lake', '{native}', '{copied}')",
    )
    for rows_of in (
        "SELECT column_id, column_order, column_name, column_type, initial_default, default_value, "
        "nulls_allowed, parent_column, default_value_type, default_value_dialect "
        "FROM ducklake_column WHERE table_id = {id} ORDER BY 1",
        "SELECT record_count, next_row_id, file_size_bytes FROM ducklake_table_stats "
        "WHERE table_id = {id}",
        "SELECT column_id, contains_null, min_value, max_value FROM ducklake_table_column_stats "
        "WHERE table_id = {id} ORDER BY 1",
        "SELECT column_id, value_count, null_count, min_value, max_value "
        "FROM ducklake_file_column_stats WHERE table_id = {id} ORDER BY 1",
        "SELECT record_count, file_size_bytes, footer_size, row_id_start, partition_id, "
        "path_is_relative FROM ducklake_data_file WHERE table_id = {id}",
    ):
        found = [at.lake.database.run(rows_of.format(id=table_id(at, n))) for n in (name, native)]
        assert found[0] == found[1], rows_of


def table_id(at, name):
    [[id_]] = at.lake.database.run(
        "SELECT table_id FROM ducklake_table WHERE table_name = :name", name=name
    )
    return id_
