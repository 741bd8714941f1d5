"""Manifests and manifest lists that clients wrote, here by PyIceberg, with bytes that are wrong."""

import re
from random import Random

import pytest
from polynya.iceberg.avro.malformed import Malformed
from polynya.iceberg.avro.written import files_in, manifests_in
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
from pyiceberg.types import LongType, NestedField

SCHEMA = Schema(NestedField(1, "k", LongType(), required=False))
SPEC = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "k"), spec_id=3)
SNAPSHOT = 7
READERS = {"manifest": lambda body: files_in(body, 3), "list": manifests_in}


def entry(number: int) -> ManifestEntry:
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"s3://bucket/{number}.parquet",
        file_format=FileFormat.PARQUET,
        partition=Record(number),
        record_count=5,
        file_size_in_bytes=100,
        nan_value_counts={1: 0},
        spec_id=3,
    )
    return ManifestEntry.from_args(
        status=ManifestEntryStatus.ADDED, snapshot_id=SNAPSHOT, data_file=file
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A manifest of three files, and the list of it, with each codec."""
    io, folder = PyArrowFileIO(), tmp_path_factory.mktemp("avro")
    found = {}
    for codec in ("null", "deflate"):
        paths = {kind: folder / f"{kind}-{codec}.avro" for kind in READERS}
        outputs = {kind: io.new_output(str(path)) for kind, path in paths.items()}
        with write_manifest(2, SPEC, SCHEMA, outputs["manifest"], SNAPSHOT, codec) as manifest:
            for number in range(3):
                manifest.add_entry(entry(number))
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


@pytest.mark.parametrize("kind", READERS)
def test_wrong_bytes_are_malformed_or_are_read(kind, written):
    """Never another error, which would be the server's instead of the client's."""
    random, refused = Random(0), 0
    for _ in range(400):
        body = bytearray(written[kind, random.choice(["null", "deflate"])])
        for _ in range(random.choice([1, 1, 3, 30])):
            body[random.randrange(len(body))] = random.choice([0, 255, random.randrange(256)])
        try:
            READERS[kind](bytes(body))
        except Malformed:
            refused += 1
    assert refused > 100
