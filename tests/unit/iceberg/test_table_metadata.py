"""The table metadata document, parsed and validated by PyIceberg."""

import json
from dataclasses import replace

import pytest
from polynya.iceberg.manifest import PartitionField, PartitionSpec
from polynya.iceberg.table_metadata import Snapshot, SortField, TableMetadata
from polynya.iceberg.types import Field, Primitive, TableSchema
from pyiceberg.table.metadata import TableMetadataUtil, TableMetadataV2, TableMetadataV3

ID = Field(1, "id", Primitive("long"))
LATER = Field(2, "later", Primitive("int"), 42)


UNPARTITIONED = PartitionSpec(0, ())
BY_BUCKET = PartitionSpec(2, (PartitionField(1, 1001, "id_16", "bucket[16]", "int"),))
BY_ID = PartitionSpec(1, (PartitionField(1, 1000, "id", "identity", "long"),))


def snapshot(snapshot_id: int, parent: int | None, schema_id: int = 0) -> Snapshot:
    return Snapshot(
        snapshot_id=snapshot_id,
        sequence_number=snapshot_id,
        parent_snapshot_id=parent,
        timestamp_ms=1_700_000_000_000 + snapshot_id,
        manifest_list=f"s3://b/list-{snapshot_id}.avro",
        schema_id=schema_id,
        summary={"operation": "append", "total-records": "3"},
    )


TWO = TableMetadata(
    format_version=2,
    table_uuid="0198c3f4-0000-7000-8000-000000000000",
    location="s3://b/polynya/t",
    last_updated_ms=1_700_000_000_009,
    last_column_id=2,
    specs=(UNPARTITIONED,),
    default_spec_id=0,
    sort_fields=(),
    docs={},
    schemas=[TableSchema(0, (ID,))],
    current_schema_id=0,
    properties={"polynya.hidden-columns": '["x"]'},
    snapshots=[snapshot(3, None), snapshot(4, 3), snapshot(9, 4)],
    next_row_id=17,
)
THREE = replace(
    TWO,
    format_version=3,
    schemas=[TableSchema(0, (ID,)), TableSchema(1, (ID, LATER))],
    current_schema_id=1,
    snapshots=[snapshot(3, None), snapshot(9, 3, schema_id=1)],
)
EMPTY = replace(TWO, snapshots=[])


def parsed(document: dict):
    return TableMetadataUtil.parse_raw(json.dumps(document))


@pytest.mark.parametrize(("ours", "kind"), [(TWO, TableMetadataV2), (THREE, TableMetadataV3)])
def test_pyiceberg_reads_every_part(ours, kind):
    theirs = parsed(ours.json())
    assert type(theirs) is kind
    assert theirs.format_version == ours.format_version
    assert str(theirs.table_uuid) == ours.table_uuid
    assert theirs.location == ours.location
    assert theirs.last_updated_ms == ours.last_updated_ms
    assert theirs.last_column_id == ours.last_column_id
    assert theirs.last_sequence_number == 9
    assert theirs.properties == ours.properties
    assert [schema.schema_id for schema in theirs.schemas] == [s.schema_id for s in ours.schemas]
    assert theirs.schema().schema_id == ours.current_schema_id
    assert theirs.current_snapshot().snapshot_id == 9
    assert theirs.snapshot_by_name("main").snapshot_id == 9
    assert theirs.spec().is_unpartitioned() and theirs.last_partition_id == 999
    assert theirs.sort_order().is_unsorted
    for one, read in zip(ours.snapshots, theirs.snapshots, strict=True):
        assert read.snapshot_id == read.sequence_number == one.snapshot_id
        assert read.parent_snapshot_id == one.parent_snapshot_id
        assert read.timestamp_ms == one.timestamp_ms
        assert read.manifest_list == one.manifest_list
        assert read.schema_id == one.schema_id
        assert read.summary.operation.value == "append"
        assert read.summary["total-records"] == "3"
    log = [(one.snapshot_id, one.timestamp_ms) for one in ours.snapshots]
    assert [(entry.snapshot_id, entry.timestamp_ms) for entry in theirs.snapshot_log] == log


def test_version_3_has_defaults_and_row_ids():
    theirs = parsed(THREE.json())
    assert theirs.schema().find_field("later").initial_default == 42
    assert theirs.next_row_id == 17
    assert "next-row-id" not in TWO.json()


@pytest.mark.parametrize("ours", [TWO, THREE])
def test_refs_only_contains_just_the_current_snapshot(ours):
    whole, short = ours.json(), ours.json(refs_only=True)
    theirs = parsed(short)
    assert [one.snapshot_id for one in theirs.snapshots] == [9]
    assert [entry.snapshot_id for entry in theirs.snapshot_log] == [9]
    assert theirs.current_snapshot() == parsed(whole).current_snapshot()
    shortened = {"snapshots", "snapshot-log"}
    for key in whole.keys() - shortened:
        assert short[key] == whole[key], key


@pytest.mark.parametrize("refs_only", [False, True])
def test_table_without_snapshots_has_no_current_one(refs_only):
    document = EMPTY.json(refs_only)
    theirs = parsed(document)
    assert theirs.current_snapshot() is None and theirs.snapshots == []
    assert theirs.refs == {} and theirs.last_sequence_number == 0
    assert "current-snapshot-id" not in document


def test_pyiceberg_reads_the_partition_specs():
    ours = replace(TWO, specs=(UNPARTITIONED, BY_ID, BY_BUCKET), default_spec_id=2)
    theirs = parsed(ours.json())
    assert theirs.default_spec_id == 2 and theirs.last_partition_id == 1001
    printed = {
        spec.spec_id: [
            (field.source_id, field.field_id, str(field.transform), field.name)
            for field in spec.fields
        ]
        for spec in theirs.partition_specs
    }
    assert printed == {
        0: [],
        1: [(1, 1000, "identity", "id")],
        2: [(1, 1001, "bucket[16]", "id_16")],
    }


def test_pyiceberg_reads_the_sort_order():
    fields = (SortField(1, "asc", "nulls-first"), SortField(2, "desc", "nulls-last"))
    theirs = parsed(replace(THREE, sort_fields=fields).json())
    assert theirs.sort_order().order_id == 1
    printed = [
        (field.source_id, str(field.transform), field.direction.value, field.null_order.value)
        for field in theirs.sort_order().fields
    ]
    assert printed == [(1, "identity", "asc", "nulls-first"), (2, "identity", "desc", "nulls-last")]


def test_comments_are_the_docs_of_fields():
    ours = replace(THREE, docs={2: "it's ü", 99: "of no field"})
    fields = parsed(ours.json()).schema().fields
    assert [field.doc for field in fields] == [None, "it's ü"]


def test_an_absent_parent_is_omitted_and_not_null():
    """Java's error would be "Cannot parse to a long value: parent-snapshot-id: null"."""
    first, second, _ = TWO.json()["snapshots"]
    assert "parent-snapshot-id" not in first
    assert second["parent-snapshot-id"] == 3


def test_every_value_of_properties_and_summaries_is_a_string():
    document = TWO.json()
    for texts in (document["properties"], *(one["summary"] for one in document["snapshots"])):
        assert all(isinstance(text, str) for text in texts.values())


# Specification, "Table Metadata Fields": required in version 2 and 3
REQUIRED = {
    "format-version",
    "table-uuid",
    "location",
    "last-sequence-number",
    "last-updated-ms",
    "last-column-id",
    "schemas",
    "current-schema-id",
    "partition-specs",
    "default-spec-id",
    "last-partition-id",
    "sort-orders",
    "default-sort-order-id",
}


@pytest.mark.parametrize("ours", [TWO, THREE, EMPTY])
@pytest.mark.parametrize("refs_only", [False, True])
def test_every_required_field_is_present(ours, refs_only):
    required = REQUIRED | ({"next-row-id"} if ours.format_version == 3 else set())
    assert required - ours.json(refs_only).keys() == set()
