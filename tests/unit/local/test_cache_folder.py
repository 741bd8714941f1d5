"""The folder of what is generated: a folder for each lake, one limit, and anybody may delete it."""

import os
import shutil
import time
from contextlib import suppress
from threading import Event

import pytest
from polynya_local.cache_folder import CacheFolder, folder_name

BODY = b"x" * 1000
A, B, C = (folder_name(name, "host:5432/lake", "public", "s3://data/") for name in "abc")


def size(folder) -> int:
    total = 0
    for parent, _, names in os.walk(folder):  # passes over folders that are deleted meanwhile
        for name in names:
            with suppress(FileNotFoundError):
                total += os.stat(os.path.join(parent, name)).st_size
    return total


def trimmed(cache: CacheFolder) -> CacheFolder:
    """The folder, when what is too much is deleted."""
    cache._trimming.join()
    return cache


def age(folder, seconds: int) -> None:
    """Let files have been read before."""
    for path in folder.rglob("*"):
        os.utime(path, (time.time() - seconds,) * 2)


def test_lakes_share_no_file(tmp_path):
    cache = CacheFolder(tmp_path)
    assert cache.store(A).put("key", b"a") == b"a"
    assert cache.store(B).get("key") is None
    assert cache.store(B).put("key", b"b") == b"b"
    assert (cache.store(A).get("key"), cache.store(B).get("key")) == (b"a", b"b")
    assert cache.store(A).lease("other") and cache.store(B).lease("other")


def test_the_name_of_a_folder_tells_lakes_apart_and_nothing_else():
    names = {
        folder_name(*identity)
        for identity in (("a", "b"), ("ab", ""), ("a", "b", ""), ('a", "b',), ("a",))
    }
    assert len(names) == 5
    assert all(name.isalnum() and len(name) == 16 for name in names)


@pytest.mark.parametrize("seconds", [0, 0.02])
def test_all_lakes_together_have_one_limit(tmp_path, monkeypatch, seconds):
    """However long it takes to count the files."""
    count = CacheFolder._files

    def count_slowly(cache):
        time.sleep(seconds)
        return count(cache)

    monkeypatch.setattr(CacheFolder, "_files", count_slowly)
    limit = 20 * len(BODY)
    cache = CacheFolder(tmp_path, limit)
    for number in range(30):
        for lake in (A, B, C):
            cache.store(lake).put(f"{number}", BODY)
            assert size(tmp_path) <= limit + limit // 10
    assert all(cache.store(lake).get("29") == BODY for lake in (A, B, C))


def test_neither_the_start_nor_a_request_waits_until_the_files_are_counted(tmp_path, monkeypatch):
    events, is_stored = [], Event()

    def count(cache):
        is_stored.wait(5)
        events.append("counted")
        return iter(())

    monkeypatch.setattr(CacheFolder, "_files", count)
    cache = CacheFolder(tmp_path)
    assert cache.store(A).put("key", BODY) == BODY
    events.append("stored")
    is_stored.set()
    trimmed(cache)
    assert events == ["stored", "counted"]


def test_a_lake_that_nobody_uses_goes_first_and_its_folder_too(tmp_path):
    cache = CacheFolder(tmp_path, 20 * len(BODY))
    for number in range(5):
        cache.store(A).put(f"{number}", BODY)
        cache.store(B).put(f"{number}", BODY)
    age(tmp_path / A, 2000)
    age(tmp_path / B, 1000)
    for number in range(5):
        assert cache.store(B).get(f"{number}")  # which is a use
        cache.store(C).put(f"{number}", BODY)
    later = trimmed(CacheFolder(tmp_path, 11 * len(BODY)))
    assert {path.name for path in tmp_path.iterdir()} == {B, C}
    assert all(later.store(C).get(f"{number}") == BODY for number in range(5))


def test_what_older_servers_have_left_counts(tmp_path):
    cache = CacheFolder(tmp_path)
    cache.store(A).put("key", BODY)
    (tmp_path / A / "files").rename(tmp_path / A / "searches")
    age(tmp_path, 1000)
    cache.store(B).put("key", BODY)
    trimmed(CacheFolder(tmp_path, limit=1500))
    assert {path.name for path in tmp_path.iterdir()} == {B}


def test_nothing_else_in_the_folder_is_deleted(tmp_path):
    others = [
        tmp_path / "notes" / "files" / "ab" / f"ab{'0' * 62}",
        tmp_path / "objects" / "ab" / ("0" * 38),
        tmp_path / A / "files" / "ab" / "mine",
        tmp_path / "ab",
    ]
    for path in others:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_bytes(BODY)
    cache = CacheFolder(tmp_path, limit=1)
    cache.store(A).put("key", BODY)
    trimmed(cache)
    assert all(path.exists() for path in others)
    assert size(tmp_path) == len(BODY) * len(others)


@pytest.mark.parametrize("deleted", ["all", "lake", "part"])
def test_the_folder_may_be_deleted_at_any_time(tmp_path, deleted):
    cache = tmp_path / "cache"
    store = CacheFolder(cache).store(A)
    assert store.lease("key")
    store.put("key", BODY)
    [written] = (path for path in cache.rglob("*") if path.is_file())
    shutil.rmtree({"all": cache, "lake": cache / A, "part": written.parent}[deleted])
    assert store.get("key") is None
    assert store.lease("key")
    assert not CacheFolder(cache).store(A).lease("key")
    assert store.put("key", BODY) == BODY
    assert store.get("key") == BODY
    assert store.lease("key")  # its lease has ended


def test_what_is_damaged_is_not_there(tmp_path):
    store = CacheFolder(tmp_path).store(A)
    store.put("key", BODY)
    [written] = (path for path in tmp_path.rglob("*") if path.is_file())
    written.write_bytes(written.read_bytes()[:-1])
    assert store.get("key") is None
    assert not written.exists()


def test_the_first_copy_stays(tmp_path):
    cache = CacheFolder(tmp_path)
    assert cache.store(A).put("key", b"first") == b"first"
    assert CacheFolder(tmp_path).store(A).put("key", b"second") == b"first"
