"""Manifests and manifest lists that clients wrote, here by PyIceberg, with bytes that are wrong."""

import re
from decimal import Decimal
from uuid import UUID

import pytest
from polynya.iceberg.avro import limits
from polynya.iceberg.avro.client_manifests import files_in, manifests_in
from polynya.iceberg.avro.untrusted_schema import Malformed
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestamptzType,
    UUIDType,
)

from tests.support.writes.hostile_avro import READERS, in_limits

SCHEMA = Schema(NestedField(1, "k", LongType(), required=False))
SPEC = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "k"), spec_id=3)
SNAPSHOT = 7


def data_file(number: int, *partition: object) -> DataFile:
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"s3://bucket/{number}.parquet",
        file_format=FileFormat.PARQUET,
        partition=Record(*partition),
        record_count=5,
        file_size_in_bytes=100,
        nan_value_counts={1: 0},
        spec_id=3,
    )


def entry(file: DataFile) -> ManifestEntry:
    return ManifestEntry.from_args(
        status=ManifestEntryStatus.ADDED, snapshot_id=SNAPSHOT, data_file=file
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("avro")


@pytest.fixture(scope="module")
def written(folder):
    """A manifest of three files, and the list of it, with each codec."""
    io, found = PyArrowFileIO(), {}
    for codec in ("null", "deflate"):
        paths = {kind: folder / f"{kind}-{codec}.avro" for kind in READERS}
        outputs = {kind: io.new_output(str(path)) for kind, path in paths.items()}
        with write_manifest(2, SPEC, SCHEMA, outputs["manifest"], SNAPSHOT, codec) as manifest:
            for number in range(3):
                manifest.add_entry(entry(data_file(number, number)))
        with write_manifest_list(2, outputs["list"], SNAPSHOT, None, 1, codec) as manifests:
            manifests.add_manifests([manifest.to_manifest_file()])
        found |= {(kind, codec): path.read_bytes() for kind, path in paths.items()}
    return found


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_what_pyiceberg_wrote(codec, written):
    files = files_in(written["manifest", codec], 3)
    assert [(one.file_path, one.partition) for one in files] == [
        (f"s3://bucket/{number}.parquet", ((1, "identity", number),)) for number in range(3)
    ]
    [listed] = manifests_in(written["list", codec])
    assert listed.manifest_path.endswith(f"manifest-{codec}.avro")
    assert listed.partition_spec_id == 3


def test_a_field_without_a_name(written):
    body, count = re.subn(rb'"name"(: ?"status")', rb'"nXme"\1', written["manifest", "null"])
    with pytest.raises(Malformed):
        files_in(body, 3)
    assert count == 1


PARTITION = {
    "i": (IntegerType(), 1, 1),
    "amount": (DecimalType(9, 2), Decimal("1.25"), None),
    "price": (DecimalType(9, 2), Decimal("-1.25"), None),
    "on": (DateType(), 2, 2),
    "at": (TimestamptzType(), 10**6, 10**6),
    "u": (UUIDType(), UUID(int=5), None),
    "u2": (UUIDType(), None, None),
    "f": (FixedType(3), b"abc", None),
    "d": (DoubleType(), 1.5, None),
    "b": (BooleanType(), True, None),
    "s": (StringType(), "text", "text"),
    "n": (LongType(), None, None),
}
"""A partition field of each type: the type, a value, and what is read of it. The second decimal and
the second uuid repeat the name of a type."""


def test_partition_values_of_each_type(tmp_path):
    types = [type_ for type_, _, _ in PARTITION.values()]
    schema = Schema(
        *(NestedField(n, name, types[n - 1], required=False) for n, name in enumerate(PARTITION, 1))
    )
    spec = PartitionSpec(
        *(
            PartitionField(n, 999 + n, IdentityTransform(), name)
            for n, name in enumerate(PARTITION, 1)
        ),
        spec_id=3,
    )
    file = data_file(1, *(value for _, value, _ in PARTITION.values()))
    output = PyArrowFileIO().new_output(str(tmp_path / "m.avro"))
    with write_manifest(2, spec, schema, output, SNAPSHOT, "deflate") as manifest:
        manifest.add_entry(entry(file))
    [found] = files_in((tmp_path / "m.avro").read_bytes(), 3)
    assert [value for _, _, value in found.partition] == [read for *_, read in PARTITION.values()]
    assert (found.file_path, found.without_nan) == (file.file_path, {1})


def test_several_manifests_have_one_allowance(written, monkeypatch):
    monkeypatch.setattr(limits, "MOST_RECORDS", 5)
    allowance = limits.Allowance()
    files_in(written["manifest", "deflate"], 3, allowance)
    with pytest.raises(Malformed, match="more than 5 entries in all: commit fewer files at a time"):
        files_in(written["manifest", "deflate"], 3, allowance)


def test_hostile_files_end_in_an_answer():
    """Not in a signal, without memory, or after the time that a request has."""
    counts = in_limits()
    assert counts.get("Malformed", 0) > 20, counts


@pytest.mark.parametrize(
    ("seed", "inputs"), [(0, 1000), pytest.param(1, 200_000, marks=pytest.mark.slow)]
)
def test_wrong_bytes_are_malformed_or_are_read(seed, inputs, folder, written):
    """Never another error, which would be the server's instead of the client's."""
    counts = in_limits(str(folder), str(seed), str(inputs), seconds=600)
    assert counts.pop("Malformed") > inputs / 2
    assert counts.keys() == {"read"}
