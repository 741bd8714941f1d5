"""Same input, same bytes, in every process: clients read ranges of a file from many instances."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from polynya.iceberg.avro import columnar
from polynya.iceberg.avro.manifests import (
    manifest_bytes,
    manifest_file,
    manifest_list_bytes,
    summary_of,
)
from polynya.iceberg.avro.row_encoder import ColumnMetrics, DataFiles, Integers, Texts
from polynya.iceberg.manifest import (
    DataFile,
    FileContent,
    ManifestContent,
    ManifestEntry,
    PartitionField,
    PartitionSpec,
    Status,
)
from polynya.iceberg.parquet.generated_files import Rows, position_deletes_bytes, rows_bytes
from polynya.iceberg.table_metadata import Snapshot, SortField, TableMetadata
from polynya.iceberg.types import Field, List, Map, Primitive, Struct, TableSchema
from polynya.mapping.manifests import fingerprint

ROOT = Path(__file__).parents[4]
FIELDS = (
    Field(1, "i", Primitive("int"), 7),
    Field(2, "s", Struct((Field(3, "l", List(4, Primitive("string"))),))),
    Field(5, "m", Map(6, Primitive("string"), 7, Primitive("double"))),
    Field(8, "t", Primitive("timestamptz")),
)


SPEC = PartitionSpec(
    1,
    (
        PartitionField(1, 1000, "i", "identity", "int"),
        PartitionField(8, 1001, "t_day", "day", "int"),
    ),
)


def manifest() -> bytes:
    def entry(number: int) -> ManifestEntry:
        counts = {3: number, 1: 2, 2: 3}
        file = DataFile(
            FileContent.DATA,
            f"s3://b/{number}.parquet",
            number,
            700,
            column_sizes=counts,
            partition=(number % 7, None),
            value_counts=counts,
            null_value_counts=counts,
            nan_value_counts=counts,
            lower_bounds={1: b"\x00", 3: b"z"},
            upper_bounds={3: b"z", 1: b"\x01"},
            referenced_data_file="s3://b/x.parquet",
        )
        return ManifestEntry(Status.ADDED, number, number, number, file)

    entries = [entry(number) for number in range(100)]
    return manifest_bytes(entries, ManifestContent.DATA, TableSchema(2, FIELDS), SPEC, 99)


def columnar_manifest() -> bytes:
    numbers = np.arange(100)
    words = Texts(np.frombuffer(b"word" * 100, np.uint8), np.full(100, 4), None)
    metrics = [
        ColumnMetrics(1, Integers(numbers), lower_bounds=words),
        ColumnMetrics(3, Integers(numbers, numbers % 2 == 0), upper_bounds=words),
    ]
    partition = [(numbers % 7).tolist(), [None] * 100]
    files = DataFiles(
        numbers % 3, numbers, numbers, words, numbers, numbers, partition=partition, metrics=metrics
    )
    return columnar.manifest_bytes(files, TableSchema(2, FIELDS), SPEC, 99)


def manifest_list() -> bytes:
    return manifest_list_bytes([manifest_file("s3://b/m.avro", summary_of(manifest()))], 99)


def rows() -> bytes:
    select = [
        "c0::INTEGER",
        "{'l': [c1]}",
        "MAP {c1: 1.5::DOUBLE}",
        "'2024-01-01 00:00'::TIMESTAMPTZ",
    ]
    columns = [("VARCHAR", ["1", None] * 300), ("VARCHAR", ["a", "b", "c"] * 200)]
    return rows_bytes([Rows(columns, select, 600), Rows(columns, select, 600)], FIELDS)


def position_deletes() -> bytes:
    return position_deletes_bytes("s3://b/x.parquet", range(0, 3000, 7))


def table_metadata() -> bytes:
    document = TableMetadata(
        format_version=3,
        table_uuid="0198c3f4-0000-7000-8000-000000000000",
        location="s3://b/polynya/t",
        last_updated_ms=1,
        last_column_id=8,
        specs=(PartitionSpec(0, ()), SPEC),
        default_spec_id=1,
        sort_fields=(SortField(1, "asc", "nulls-last"),),
        docs={1: "a number", 2: "ü"},
        schemas=[TableSchema(0, FIELDS)],
        current_schema_id=0,
        properties={"b": "1", "a": "2"},
        snapshots=[Snapshot(3, 3, None, 1, "s3://b/l.avro", 0, {"operation": "append", "x": "1"})],
        next_row_id=3,
    )
    return json.dumps(document.json()).encode()


def fingerprints() -> bytes:
    return fingerprint({"b": 1, "a": 2}, ["x", 3], "ünï").encode()


FILES = (
    manifest,
    columnar_manifest,
    manifest_list,
    rows,
    position_deletes,
    table_metadata,
    fingerprints,
)


def digests() -> dict[str, str]:
    return {make.__name__: hashlib.sha256(make()).hexdigest() for make in FILES}


@pytest.fixture(scope="module")
def elsewhere():
    """The digests of two more processes, which have another order of sets and a later time."""
    processes = [
        subprocess.Popen(
            [sys.executable, __file__],
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": seed, "TZ": zone},
            stdout=subprocess.PIPE,
        )
        for seed, zone in (("1", "UTC"), ("4242", "Asia/Tokyo"))
    ]
    printed = [process.communicate()[0] for process in processes]
    return list(map(json.loads, printed))


@pytest.mark.parametrize("make", FILES, ids=lambda make: make.__name__)
def test_another_process_makes_the_same_bytes(make, elsewhere):
    here = hashlib.sha256(make()).hexdigest()
    assert [found[make.__name__] for found in elsewhere] == [here, here]


@pytest.mark.parametrize("make", FILES, ids=lambda make: make.__name__)
def test_the_same_process_makes_the_same_bytes_again(make):
    assert make() == make()


if __name__ == "__main__":
    print(json.dumps(digests()))
