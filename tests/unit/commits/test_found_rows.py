"""What a search has found stays, whatever happens to the store."""

from array import array

from polynya.commits.plan.found_rows import FoundRows
from polynya.iceberg.types import Field, Primitive
from polynya_local.cache_folder import CacheFolder

UUID = "0a000000-0000-0000-0000-000000000001"
KEY = [Field(1, "id", Primitive("long"))]
FILES = [b"one", b"two"]
ROWS = {"s3://b/a.parquet": array("q", [0, 5, 2**40]), "s3://b/b.parquet": array("q")}


class Broken:
    def get(self, key):
        raise OSError

    put = get


def found(store, files=FILES, key=KEY, uuid=UUID):
    return FoundRows(store, uuid, files, key)


def test_the_next_request_has_what_was_kept(tmp_path):
    store = CacheFolder(tmp_path).store("lake")
    first = found(store)
    assert (first.positions, first.keep()) == ({}, False)
    first.add(ROWS, 10)
    assert first.keep()
    second = found(store, FILES[::-1])  # in any order
    assert (second.positions, second.bytes_read) == (ROWS, 10)
    second.add({"c": array("q", [1])}, 3)
    assert second.keep()
    assert not second.keep()
    second.add({"d": array("q", [2])}, 1)
    assert second.keep()
    third = found(store)
    assert third.positions == ROWS | {"c": array("q", [1]), "d": array("q", [2])}
    assert third.bytes_read == 14


def test_other_keys_and_tables_have_nothing_of_it(tmp_path):
    store = CacheFolder(tmp_path).store("lake")
    first = found(store)
    first.add(ROWS, 10)
    assert first.keep()
    others = {"files": [b"one"]}, {"key": [Field(2, "id", Primitive("long"))]}, {"uuid": UUID[::-1]}
    others += ({"files": [b"onetwo"]}, {"key": [Field(1, "id", Primitive("int"))]})
    for other in others:
        assert found(store, **other).positions == {}


def test_of_two_requests_at_the_same_time_the_first_counts(tmp_path):
    store = CacheFolder(tmp_path).store("lake")
    both = found(store), found(store)
    for number, one in enumerate(both):
        one.add({f"{number}": array("q", [number])}, 1)
        assert one.keep()
    assert found(store).positions == {"0": array("q", [0])}


def test_a_store_that_fails_keeps_nothing():
    one = found(Broken())
    assert one.positions == {}
    one.add(ROWS, 10)
    assert not one.keep()
