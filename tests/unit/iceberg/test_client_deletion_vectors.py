"""Deletion vectors of clients: a few bytes can stand for billions of positions."""

import zlib

import pytest
from polynya.iceberg.deletion_vector import MAGIC, vector_positions
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
