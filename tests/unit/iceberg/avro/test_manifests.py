"""Manifests and manifest lists, read again with PyIceberg and fastavro; ids from the spec's tables.

https://iceberg.apache.org/spec/#manifests, https://iceberg.apache.org/spec/#manifest-lists
"""

import io
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import fastavro
import pyiceberg.manifest
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polynya.iceberg.avro.manifests import (
    manifest_bytes,
    manifest_file,
    manifest_list_bytes,
    summary_of,
)
from polynya.iceberg.manifest import (
    DataFile,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    PartitionField,
    PartitionSpec,
    Status,
)
from polynya.iceberg.types import Field, Primitive, TableSchema
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import construct_partition_summaries, read_manifest_list
from pyiceberg.partitioning import PartitionSpec as IcebergSpec
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record

SCHEMA = TableSchema(4, (Field(1, "ünï", Primitive("int")), Field(2, "s", Primitive("string"))))

# Field id: (name, type in Avro, required), copied from the specification.
ENTRY_FIELDS = {
    0: ("status", "int", True),
    1: ("snapshot_id", "long", False),
    3: ("sequence_number", "long", False),
    4: ("file_sequence_number", "long", False),
    2: ("data_file", "record r2", True),
    134: ("content", "int", True),
    100: ("file_path", "string", True),
    101: ("file_format", "string", True),
    102: ("partition", "record r102", True),
    103: ("record_count", "long", True),
    104: ("file_size_in_bytes", "long", True),
    108: ("column_sizes", "map k117_v118", False),
    117: ("key", "int", True),
    118: ("value", "long", True),
    109: ("value_counts", "map k119_v120", False),
    119: ("key", "int", True),
    120: ("value", "long", True),
    110: ("null_value_counts", "map k121_v122", False),
    121: ("key", "int", True),
    122: ("value", "long", True),
    137: ("nan_value_counts", "map k138_v139", False),
    138: ("key", "int", True),
    139: ("value", "long", True),
    125: ("lower_bounds", "map k126_v127", False),
    126: ("key", "int", True),
    127: ("value", "bytes", True),
    128: ("upper_bounds", "map k129_v130", False),
    129: ("key", "int", True),
    130: ("value", "bytes", True),
    143: ("referenced_data_file", "string", False),
}
LIST_FIELDS = {
    500: ("manifest_path", "string", True),
    501: ("manifest_length", "long", True),
    502: ("partition_spec_id", "int", True),
    517: ("content", "int", True),
    515: ("sequence_number", "long", True),
    516: ("min_sequence_number", "long", True),
    503: ("added_snapshot_id", "long", True),
    504: ("added_files_count", "int", True),
    505: ("existing_files_count", "int", True),
    506: ("deleted_files_count", "int", True),
    512: ("added_rows_count", "long", True),
    513: ("existing_rows_count", "long", True),
    514: ("deleted_rows_count", "long", True),
    507: ("partitions", "list 508", False),
    509: ("contains_null", "boolean", True),
    518: ("contains_nan", "boolean", False),
    510: ("lower_bound", "bytes", False),
    511: ("upper_bound", "bytes", False),
}
METRICS = (
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
)


def entry(status=Status.ADDED, snapshot_id=5, sequence_number=5, **of_file) -> ManifestEntry:
    content = of_file.pop("content", FileContent.DATA)
    file = {"file_path": "s3://b/d/f.parquet", "record_count": 3, "file_size_in_bytes": 700}
    data_file = DataFile(content, **(file | of_file))
    return ManifestEntry(status, snapshot_id, sequence_number, sequence_number, data_file)


def manifest(
    *entries: ManifestEntry,
    content=ManifestContent.DATA,
    spec=PartitionSpec(0, ()),  # noqa: B008
    snapshot_id=5,
) -> bytes:
    return manifest_bytes(list(entries), content, SCHEMA, spec, snapshot_id)


def with_fastavro(body: bytes) -> fastavro.reader:
    return fastavro.reader(io.BytesIO(body))


def fields(schema: Any) -> Iterator[tuple[int, tuple[str, str, bool]]]:
    """Every field of an Avro schema, at all levels: its id, and the value as in ENTRY_FIELDS."""
    for field in schema["fields"]:
        required = not isinstance(field["type"], list)
        if not required:
            null, type_ = field["type"]
            assert null == "null" and field["default"] is None, field
        else:
            type_ = field["type"]
        name = type_ if isinstance(type_, str) else type_["type"]
        inner = type_
        if name == "array":
            assert "element-id" not in field
            is_map = type_.get("logicalType") == "map"
            name = f"map {type_['items']['name']}" if is_map else f"list {type_['element-id']}"
            inner = type_["items"]
        elif name == "record":
            name = f"record {type_['name']}"
        yield field["field-id"], (field["name"], name, required)
        if isinstance(inner, dict):
            yield from fields(inner)


def test_manifest_has_the_specifications_field_ids():
    schema = with_fastavro(manifest(entry())).writer_schema
    assert schema["name"] == "manifest_entry"
    assert sorted(fields(schema)) == sorted(ENTRY_FIELDS.items())


def test_manifest_list_has_the_specifications_field_ids():
    schema = with_fastavro(manifest_list_bytes([], 5)).writer_schema
    assert schema["name"] == "manifest_file"
    assert sorted(fields(schema)) == sorted(LIST_FIELDS.items())


def test_pyiceberg_has_the_same_name_for_every_id():
    pairs = [
        (ENTRY_FIELDS, pyiceberg.manifest.MANIFEST_ENTRY_SCHEMAS[2]),
        (LIST_FIELDS, pyiceberg.manifest.MANIFEST_LIST_FILE_SCHEMAS[2]),
    ]
    later = {143}  # referenced_data_file: PyIceberg's version 2 schema is older
    for ours, schema in pairs:
        for field_id in ours.keys() - later:
            name = schema.find_column_name(field_id).split(".")[-1]
            assert name == ours[field_id][0]


def test_manifest_header_has_the_keys_of_the_specification():
    header = with_fastavro(manifest(entry())).metadata
    assert Schema.model_validate_json(header["schema"]).schema_id == 4
    assert json.loads(header["schema"]) == SCHEMA.json()
    required = ("schema-id", "partition-spec", "partition-spec-id", "format-version", "content")
    assert [header[key] for key in required] == ["4", "[]", "0", "2", "data"]
    assert header["avro.codec"] == "deflate"


def test_delete_manifest_header_has_its_content():
    body = manifest(
        entry(content=FileContent.POSITION_DELETES, referenced_data_file="s3://b/f.parquet"),
        content=ManifestContent.DELETES,
    )
    reader = with_fastavro(body)
    assert reader.metadata["content"] == "deletes"
    [file] = [record["data_file"] for record in reader]
    assert (file["content"], file["referenced_data_file"]) == (1, "s3://b/f.parquet")


def test_manifest_list_header_has_the_keys_of_the_specification():
    header = with_fastavro(manifest_list_bytes([], 17)).metadata
    keys = ("snapshot-id", "sequence-number", "format-version", "avro.codec")
    assert [header[key] for key in keys] == ["17", "17", "2", "deflate"]


LONGS = st.integers(0, 2**63 - 1)
IDS = st.integers(1, 2**31 - 1)
COUNTS = st.dictionaries(IDS, LONGS, max_size=5)
BOUNDS = st.dictionaries(IDS, st.binary(max_size=20), max_size=5)
DATA_FILES = st.builds(
    DataFile,
    content=st.sampled_from(FileContent),
    file_path=st.text(min_size=1),
    record_count=LONGS,
    file_size_in_bytes=LONGS,
    column_sizes=COUNTS,
    value_counts=COUNTS,
    null_value_counts=COUNTS,
    nan_value_counts=COUNTS,
    lower_bounds=BOUNDS,
    upper_bounds=BOUNDS,
    referenced_data_file=st.none() | st.text(),
)
ENTRIES = st.builds(
    ManifestEntry,
    status=st.sampled_from(Status),
    snapshot_id=LONGS,
    sequence_number=LONGS,
    file_sequence_number=LONGS,
    data_file=DATA_FILES,
)


@given(entries=st.lists(ENTRIES, max_size=4))
def test_fastavro_reads_every_entry_as_written(entries):
    records = list(with_fastavro(manifest(*entries)))
    assert len(records) == len(entries)
    for record, one in zip(records, entries, strict=True):
        file = record.pop("data_file")
        numbers = (one.status, one.snapshot_id, one.sequence_number, one.file_sequence_number)
        assert tuple(record.values()) == numbers
        for name in METRICS:
            pairs = {pair["key"]: pair["value"] for pair in file.pop(name)}
            assert pairs == getattr(one.data_file, name)
        assert file.pop("file_format") == "PARQUET" and file.pop("partition") == {}
        assert file == {name: getattr(one.data_file, name) for name in file}
        assert len(file) == 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("avro")


def with_pyiceberg(folder, *bodies: bytes, snapshot_id=5):
    """Manifests behind a manifest list, as PyIceberg reads them: (manifest file, its entries)."""
    files = PyArrowFileIO()
    listed = []
    for number, body in enumerate(bodies):
        (folder / f"m{number}.avro").write_bytes(body)
        listed.append(manifest_file(str(folder / f"m{number}.avro"), summary_of(body)))
    (folder / "list.avro").write_bytes(manifest_list_bytes(listed, snapshot_id))
    read = read_manifest_list(files.new_input(str(folder / "list.avro")))
    return [(one, one.fetch_manifest_entry(files, discard_deleted=False)) for one in read]


def test_pyiceberg_reads_every_entry_as_written(folder):
    metrics = {
        name: {1: b"\x01", 2**31 - 1: b""} if "bounds" in name else {1: 1, 2: 2**63 - 1}
        for name in METRICS
    }
    ours = [
        entry(Status.ADDED, 5, 5, **metrics),
        entry(Status.EXISTING, 3, 2, file_path="s3://b/ünï %2F//x.parquet"),
        entry(Status.DELETED, 5, 1, record_count=0),
    ]
    [(_, read)] = with_pyiceberg(folder, manifest(*ours))
    for one, theirs in zip(ours, read, strict=True):
        assert int(theirs.status) == one.status
        assert theirs.snapshot_id == one.snapshot_id
        assert theirs.sequence_number == one.sequence_number
        assert theirs.file_sequence_number == one.file_sequence_number
        assert theirs.data_file.file_path == one.data_file.file_path
        assert theirs.data_file.file_format == "PARQUET"
        assert theirs.data_file.record_count == one.data_file.record_count
        assert theirs.data_file.file_size_in_bytes == one.data_file.file_size_in_bytes
        assert list(theirs.data_file.partition) == []
        for name in METRICS:
            assert getattr(theirs.data_file, name) == getattr(one.data_file, name)


SUMMARIES = [
    [],
    [entry(Status.ADDED, 5, 5, record_count=0)],
    [entry(Status.ADDED, 5, 5, record_count=3), entry(Status.ADDED, 5, 5, record_count=4)],
    [entry(Status.EXISTING, 2, 2), entry(Status.ADDED, 5, 5)],
    [entry(Status.DELETED, 5, 1, record_count=9), entry(Status.EXISTING, 3, 3)],
    [entry(Status.DELETED, 5, 1)],
    [entry(status, 4, 4) for status in (*Status, *Status, Status.ADDED)],
]


@pytest.mark.parametrize("entries", SUMMARIES)
@pytest.mark.parametrize("content", ManifestContent)
def test_manifest_list_has_the_counts_that_pyiceberg_finds_in_the_manifest(
    entries, content, folder
):
    body = manifest(*entries, content=content)
    [(listed, read)] = with_pyiceberg(folder, body)
    live = [one for one in read if one.status != Status.DELETED]
    assert listed.manifest_length == len(body)
    assert int(listed.content) == content
    assert (listed.sequence_number, listed.added_snapshot_id) == (5, 5)
    assert listed.min_sequence_number == min((one.sequence_number for one in live), default=5)
    assert listed.partition_spec_id == 0
    for status in Status:
        rows = [one.data_file.record_count for one in read if one.status == status]
        name = status.name.lower()
        assert getattr(listed, f"{name}_files_count") == len(rows)
        assert getattr(listed, f"{name}_rows_count") == sum(rows)


# Result type, and the values of some files; PyIceberg computes the expected summary.
PARTITIONED = [
    ("identity", "int", [3, -1, None]),
    ("identity", "long", [2**40, 2]),
    ("identity", "boolean", [True, None, False]),
    ("identity", "string", ["b", "a", "ü", ""]),
    ("identity", "date", [19723, -1, None]),
    ("identity", "timestamp", [1, -(2**40)]),
    ("identity", "decimal(9, 2)", [Decimal("1.50"), Decimal("-0.01")]),
    ("identity", "decimal(38, 10)", [Decimal("-" + "9" * 28 + "." + "9" * 10), Decimal("0E-10")]),
    ("bucket[16]", "int", [15, 0]),
    ("month", "int", [-1, 640]),
    ("identity", "int", [None, None]),
    ("identity", "int", []),
]


@pytest.mark.parametrize(("transform", "type_", "values"), PARTITIONED)
def test_partition_values_and_their_summary_are_those_of_pyiceberg(
    transform, type_, values, folder
):
    source = "int" if transform == "bucket[16]" else "date" if transform == "month" else type_
    schema = TableSchema(0, (Field(1, "c", Primitive(source)),))
    spec = PartitionSpec(3, (PartitionField(1, 1005, "c_p", transform, type_),))
    entries = [entry(partition=(value,)) for value in values]
    body = manifest_bytes(entries, ManifestContent.DATA, schema, spec, 5)
    assert [
        list(record["data_file"]["partition"].values())
        for record in with_fastavro(body)
        if source not in {"date", "timestamp"}
    ] == [[value] for value in values if source not in {"date", "timestamp"}]
    theirs = IcebergSpec(**spec.json())
    [(listed, read)] = with_pyiceberg(folder, body)
    assert listed.partition_spec_id == 3
    assert [list(one.data_file.partition) for one in read] == [[value] for value in values]
    [summary] = listed.partitions
    [expected] = construct_partition_summaries(
        theirs, Schema.model_validate(schema.json()), [Record(value) for value in values]
    )
    assert summary.contains_null == expected.contains_null
    assert summary.lower_bound == expected.lower_bound
    assert summary.upper_bound == expected.upper_bound
    assert summary.contains_nan is False


def test_header_names_the_partition_spec():
    spec = PartitionSpec(3, (PartitionField(1, 1005, "c_p", "bucket[16]", "int"),))
    header = with_fastavro(manifest(entry(partition=(7,)), spec=spec)).metadata
    assert header["partition-spec-id"] == "3"
    [field] = json.loads(header["partition-spec"])
    assert field == {"source-id": 1, "field-id": 1005, "name": "c_p", "transform": "bucket[16]"}


def test_partition_field_has_its_id_in_the_manifest():
    spec = PartitionSpec(3, (PartitionField(1, 1005, "a name / not for Avro", "day", "int"),))
    schema = with_fastavro(manifest(entry(partition=(7,)), spec=spec)).writer_schema
    found = dict(fields(schema))
    assert found.keys() - ENTRY_FIELDS.keys() == {1005}
    assert found[1005][1:] == ("int", False)


def test_manifest_list_keeps_the_order_of_its_manifests(folder):
    bodies = [manifest(entry(), snapshot_id=n) for n in (5, 3, 4)]
    read = with_pyiceberg(folder, *bodies, snapshot_id=9)
    assert [listed.added_snapshot_id for listed, _ in read] == [5, 3, 4]


def test_manifest_file_is_the_whole_record_of_the_list():
    body = manifest(entry(Status.EXISTING, 2, 2), snapshot_id=7)
    [record] = with_fastavro(
        manifest_list_bytes([manifest_file("s3://b/m.avro", summary_of(body))], 8)
    )
    assert record == {
        "manifest_path": "s3://b/m.avro",
        "manifest_length": len(body),
        "partition_spec_id": 0,
        "content": 0,
        "sequence_number": 7,
        "min_sequence_number": 2,
        "added_snapshot_id": 7,
        "added_files_count": 0,
        "existing_files_count": 1,
        "deleted_files_count": 0,
        "added_rows_count": 0,
        "existing_rows_count": 3,
        "deleted_rows_count": 0,
        "partitions": [],
    }
    assert ManifestFile(**record) == manifest_file("s3://b/m.avro", summary_of(body))


def test_metrics_are_written_in_the_order_of_ids():
    one = manifest(entry(value_counts={1: 10, 2: 20}, lower_bounds={1: b"a", 2: b"b"}))
    other = manifest(entry(value_counts={2: 20, 1: 10}, lower_bounds={2: b"b", 1: b"a"}))
    assert one == other


@pytest.mark.parametrize("content", ManifestContent)
def test_lists_of_format_version_3_have_the_row_ids_of_data_manifests(content):
    """Java refuses the row id of a manifest of deletes, and ignores a data manifest without one."""
    entries = [entry()]
    body = manifest_bytes(entries, content, SCHEMA, PartitionSpec(0, ()), 5, format_version=3)
    listed = [manifest_file("s3://b/m.avro", summary_of(body))]
    reader = with_fastavro(manifest_list_bytes(listed, 5, format_version=3))
    [record] = reader
    assert record["first_row_id"] == (0 if content == ManifestContent.DATA else None)
    assert reader.metadata["format-version"] == "3"
    [record] = with_fastavro(manifest_list_bytes(listed, 5))
    assert "first_row_id" not in record
