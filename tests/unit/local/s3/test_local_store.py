"""The lakes' files in folders, as the catalog reads and writes them without S3."""

import os

import pytest
from polynya.runtime.errors import Misconfigured, NoSuchKey, ServiceUnavailable
from polynya.storage.object_store import ObjectStore
from polynya.storage.objects import TooLarge
from polynya_local.s3 import local_store as module
from polynya_local.s3.local_bucket import CatalogFiles, LocalBucket
from polynya_local.s3.local_store import local_store

BUCKET = "s3://lake"
LARGE = b"0123456789abcdef" * 400_000  # S3 copies such a file in parts


@pytest.fixture
def calls():
    return []


@pytest.fixture
def store(tmp_path, calls) -> ObjectStore:
    """The store of a bucket that is a folder; it notes the calls that are about another one."""
    (tmp_path / "a.parquet").write_bytes(b"0123456789")
    (tmp_path / "lake.ducklake").write_bytes(b"catalog")
    (tmp_path.parent / "outside.parquet").write_bytes(b"outside")
    (tmp_path / "link.parquet").symlink_to(tmp_path.parent / "outside.parquet")
    catalogs = CatalogFiles.from_paths([tmp_path / "lake.ducklake"])

    def noted(*arguments):
        calls.append(arguments)
        return b""

    others = ObjectStore(noted, noted, noted, noted)
    return local_store({"lake": LocalBucket("lake", tmp_path, catalogs)}, others)


def test_a_file_is_read_as_from_s3(store):
    assert store.read(f"{BUCKET}/a.parquet") == b"0123456789"
    assert store.read_range(f"{BUCKET}/a.parquet", 2, 5) == b"234"
    assert store.read_range(f"{BUCKET}/a.parquet", 8, 20) == b"89"  # S3 sends what there is
    with pytest.raises(NoSuchKey):
        store.read_range(f"{BUCKET}/a.parquet", 10, 12)
    with pytest.raises(NoSuchKey):
        store.read_range(f"{BUCKET}/a.parquet", 2, 2)


@pytest.mark.parametrize(
    "key", ["none.parquet", "lake.ducklake", "link.parquet", "../outside.parquet", "", "x/../a"]
)
def test_what_is_no_file_of_the_folder_is_missing(store, key):
    with pytest.raises(NoSuchKey):
        store.read(f"{BUCKET}/{key}")
    with pytest.raises(NoSuchKey):
        store.read_range(f"{BUCKET}/{key}", 0, 1)
    with pytest.raises(NoSuchKey):
        store.copy_with_end(f"{BUCKET}/{key}", f"{BUCKET}/copy.parquet", 1, b"end")


def test_too_large_a_file_is_not_read(store, monkeypatch):
    monkeypatch.setattr(module, "LARGEST", 9)
    with pytest.raises(TooLarge):
        store.read(f"{BUCKET}/a.parquet")


def test_a_new_file_is_written_whole_and_replaces_none(store, tmp_path):
    store.write(f"{BUCKET}/t/new.parquet", b"new")
    assert (tmp_path / "t" / "new.parquet").read_bytes() == b"new"
    assert os.listdir(tmp_path / "t") == ["new.parquet"]
    for key in ("a.parquet", "lake.ducklake", "lake.ducklake.wal", "../out.parquet"):
        with pytest.raises(Misconfigured):
            store.write(f"{BUCKET}/{key}", b"other")
    assert (tmp_path / "a.parquet").read_bytes() == b"0123456789"
    assert (tmp_path / "lake.ducklake").read_bytes() == b"catalog"
    assert not (tmp_path.parent / "out.parquet").exists()


def test_a_file_of_any_size_is_copied_with_another_end(store, tmp_path):
    (tmp_path / "large.parquet").write_bytes(LARGE)
    start = len(LARGE) - 5
    for _ in range(2):  # a commit that is planned again copies again
        store.copy_with_end(f"{BUCKET}/large.parquet", f"{BUCKET}/copy.parquet", start, b"end")
        assert (tmp_path / "copy.parquet").read_bytes() == LARGE[:start] + b"end"
    with pytest.raises(Misconfigured):
        store.copy_with_end(f"{BUCKET}/large.parquet", f"{BUCKET}/copy.parquet", start, b"else")
    with pytest.raises(NoSuchKey):
        store.copy_with_end(f"{BUCKET}/a.parquet", f"{BUCKET}/short.parquet", 11, b"end")
    assert not (tmp_path / "short.parquet").exists()


def test_other_buckets_are_asked_for_elsewhere(store, calls):
    asked = [
        (store.read, ("s3://other/a",)),
        (store.read_range, ("s3://other/a", 0, 1)),
        (store.write, ("s3://other/a", b"x")),
        (store.copy_with_end, ("s3://other/a", "s3://other/b", 1, b"x")),
    ]
    for function, arguments in asked:
        function(*arguments)
    assert calls == [arguments for _, arguments in asked]


def test_a_disk_that_fails_is_asked_again_later(store, monkeypatch):
    class Broken:
        def read(self, size):
            raise OSError(5, "Input/output error")

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

    monkeypatch.setattr(LocalBucket, "open", lambda self, key: Broken())
    with pytest.raises(ServiceUnavailable, match="Input/output error"):
        store.read(f"{BUCKET}/a.parquet")
