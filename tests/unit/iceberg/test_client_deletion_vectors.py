"""Deletion vectors of clients: a few bytes can stand for billions of positions, and manifests can
name bytes that are none.
"""

import zlib
from dataclasses import replace

import pytest
from polynya.commits.request.client_files import ClientDeletes
from polynya.iceberg.avro.client_manifests import WrittenFile
from polynya.iceberg.deletion_vector import MAGIC, vector_positions
from polynya.runtime.errors import BadRequest, NoSuchKey
from polynya.storage.objects import ObjectReader
from pyroaring import BitMap64


def blob(*positions):
    vector = MAGIC + BitMap64(positions).serialize()
    return len(vector).to_bytes(4, "big") + vector + zlib.crc32(vector).to_bytes(4, "big")


def test_positions_ascend():
    assert list(vector_positions(blob(9, 2**33, 0), 3)) == [0, 9, 2**33]


@pytest.mark.parametrize(
    "body", [b"", b"\0" * 40, blob(1)[:-1], blob(1)[:12] + b"x" + blob(1)[13:]]
)
def test_a_damaged_vector_is_refused(body):
    with pytest.raises(ValueError, match=r"vector|bitmap"):
        vector_positions(body, 10)


def test_a_vector_of_too_many_positions_is_refused():
    many = BitMap64()
    many.add_range(0, 2**31)
    vector = MAGIC + many.serialize()
    body = len(vector).to_bytes(4, "big") + vector + zlib.crc32(vector).to_bytes(4, "big")
    assert len(body) < 1_000_000
    with pytest.raises(ValueError, match="too many"):
        vector_positions(body, 1_000_000)


@pytest.mark.parametrize("position", [2**63, 2**64 - 1])
def test_a_position_that_is_no_long_is_refused(position):
    """Not taken for one below zero."""
    assert list(vector_positions(blob(1, 2**63 - 1), 10)) == [1, 2**63 - 1]
    with pytest.raises(ValueError, match="2\\^63"):
        vector_positions(blob(1, position), 10)


DATA = "s3://bucket/data/"
VECTOR = WrittenFile(
    status=1,
    content=1,
    file_path=f"{DATA}d.puffin",
    file_format="PUFFIN",
    record_count=2,
    file_size_in_bytes=1000,
    partition_spec_id=0,
    partition=(),
    without_nan=frozenset(),
    referenced_data_file=f"{DATA}a.parquet",
    content_offset=4,
    content_size_in_bytes=len(blob(3, 5)),
)
POSITIONS = replace(VECTOR, file_path=f"{DATA}d.parquet", file_format="PARQUET")


def read(*files: WrittenFile):
    """The positions, and the ranges that are read of an object with one vector in it."""
    ranges = []

    def read_range(location, first, end):
        ranges.append((first, end))
        if first >= 4 + len(blob(3, 5)):
            raise NoSuchKey("")
        return (b"PFA1" + blob(3, 5))[first:end]

    reader = ObjectReader(None, read_range)
    deletes = ClientDeletes(reader, DATA, (), format_version=3)
    try:
        return {path: list(of) for path, of in deletes.positions(files).items()}, ranges
    except BadRequest as error:
        return str(error), ranges


def test_a_vector_within_a_file():
    assert read(VECTOR) == ({f"{DATA}a.parquet": [3, 5]}, [(4, 4 + len(blob(3, 5)))])


GIB = 1 << 30
SPANS = {
    "no bytes": (replace(VECTOR, content_size_in_bytes=0), "has no bytes", 0),
    "no bytes after an offset": (
        replace(VECTOR, content_offset=5, content_size_in_bytes=0),
        "has no bytes",
        0,
    ),
    "too many bytes": (replace(VECTOR, content_size_in_bytes=GIB), "256 MB of delete files", 0),
    "a part of a large Parquet file": (
        replace(POSITIONS, file_size_in_bytes=GIB),
        "256 MB of delete files",
        0,
    ),
    "an offset after the end": (replace(VECTOR, content_offset=10**6), "does not exist", 1),
    "another size": (replace(VECTOR, content_size_in_bytes=500), "has another size", 1),
    "a Parquet file with an offset after its end": (
        replace(POSITIONS, content_offset=5000),
        "has another size",
        1,
    ),
}


@pytest.mark.parametrize("case", SPANS)
def test_bytes_that_are_none_are_not_asked_for(case):
    file, message, reads = SPANS[case]
    answer, ranges = read(file)
    assert message in answer
    assert len(ranges) == reads
    assert all(0 <= first < end for first, end in ranges)
