"""Summaries are also stored in pages: a new summary changes only its own page."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from polynya_pipeline.publish.published_files import PublishedFiles
from polynya_pipeline.publish.report import PAGE, pack, pages, unpack

MANY = 1_000
KEYS = [f"p/t/g3/data-{number}.avro.summary" for number in range(MANY)]


class Memory:
    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}
        self.requested: list[str] = []

    def get(self, key: str) -> bytes | None:
        self.requested.append(key)
        return self.bodies.get(key)

    def put(self, key: str, body: bytes) -> bytes:
        return self.bodies.setdefault(key, body)


@pytest.fixture
def store() -> Memory:
    store = Memory()
    store.bodies |= {key: body_of(key) for key in KEYS}
    return store


def body_of(key: str) -> bytes:
    return f'{{"key": "{key}"}}'.encode()


def published_files(store: Memory) -> PublishedFiles:
    """The files at the start of a run of `publish`."""
    return PublishedFiles(store, lambda keys: store.bodies.keys() & set(keys))


@given(st.lists(st.text(), unique=True, max_size=200))
def test_pages_contain_every_key_once_and_in_order(keys):
    found = list(pages(keys))
    assert list(itertools.chain(*found)) == (keys if len(keys) > PAGE else [])
    assert all(found)


@given(st.integers(0, MANY - 1), st.sampled_from(["another", "new", "gone"]))
def test_a_change_touches_few_pages(at, change):
    put = [] if change == "gone" else [f"{change} {at}"]
    after = [*KEYS[:at], *put, *KEYS[at + (change != "new") :]]
    # The page of the key, or two pages if one begins with the key.
    assert len(set(pages(after)) - set(pages(KEYS))) <= 2


@given(st.lists(st.binary().filter(lambda body: b"\n" not in body), min_size=1))
def test_a_page_is_unpacked_to_its_bodies(bodies):
    assert unpack(pack(bodies)) == bodies


def test_many_files_are_read_with_few_requests(store):
    first = published_files(store)
    assert first.missing(KEYS) == []
    assert first.get_many(KEYS) == [body_of(key) for key in KEYS]
    changed = [*KEYS[:-1], "p/t/g3/data-new.avro.summary"]
    store.bodies[changed[-1]] = body_of(changed[-1])
    store.requested.clear()
    second = published_files(store)
    assert second.missing(changed) == []
    assert second.get_many(changed) == [body_of(key) for key in changed]
    *others, last = pages(changed)
    # All pages, and each file of the last page, because it has changed.
    assert len(store.requested) == len(others) + 1 + len(last) < MANY / 5


def test_a_page_does_not_prove_that_a_file_exists(store):
    """A bucket that deletes objects by age deletes the page later, because it is newer."""
    first = published_files(store)
    first.missing(KEYS)
    first.get_many(KEYS)
    lost = KEYS[17]
    del store.bodies[lost]
    second = published_files(store)
    assert second.missing(KEYS) == [lost]
    assert second.get_many(KEYS)[17] is None
    assert published_files(store).get_many(KEYS)[17] is None  # without a call of `missing`
