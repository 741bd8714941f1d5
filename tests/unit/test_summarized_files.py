"""Summaries of many files are kept on pages too: a new file leaves the other pages as they are."""

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from polynya.kept import Kept, Recent
from polynya.summarized_files import PAGE, SummarizedFiles, pages
from polynya.translate.fingerprints import fingerprint
from polynya.virtual_names import Name

MANY = 1_000


def names(count: int, version: str = "") -> list[Name]:
    """Of files whose lengths are their numbers."""
    uuid = "01234567-0123-0123-0123-0123456789ab"
    return [Name(uuid, "rows", (n, 1), fingerprint(n, version)) for n in range(count)]


class Memory:
    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}
        self.asked: list[str] = []

    def get(self, key: str) -> bytes | None:
        self.asked.append(key)
        return self.bodies.get(key)

    def put(self, key: str, body: bytes) -> bytes:
        return self.bodies.setdefault(key, body)


@pytest.fixture
def store() -> Memory:
    return Memory()


def files_in(store: Memory, built: list[Name]) -> SummarizedFiles:
    """As a process sees them that has asked for nothing yet."""

    def build(name: Name) -> bytes:
        built.append(name)
        return bytes(name.numbers[0])

    return SummarizedFiles(Kept(store, Recent()), lambda name: name.key("p"), build)


def lengths(of: Sequence[Name]) -> list[dict[str, int]]:
    return [{"file_size_in_bytes": name.numbers[0]} for name in of]


@given(st.lists(st.text("0123456789abcdef", min_size=20, max_size=20), max_size=200))
def test_pages_hold_every_file_once_and_in_order(fingerprints):
    of = [Name("t", "data", (0, 0, 0, 1), digest) for digest in fingerprints]
    found = list(pages(of))
    assert list(itertools.chain(*found)) == (of if len(of) > PAGE else [])
    assert all(found)


@given(st.integers(0, MANY - 1), st.sampled_from(["other", "new", "gone"]))
def test_a_change_touches_few_pages(at, change):
    before = names(MANY)
    [another] = names(at + 1, "another")[-1:]
    put = [] if change == "gone" else [another]
    after = [*before[:at], *put, *before[at + (change != "new") :]]
    # Its own; or it begins a page, or the page that it began joins its neighbour.
    assert len(set(pages(after)) - set(pages(before))) <= 2


def test_of_many_files_few_are_asked_for(store):
    of, built = names(MANY), []
    assert files_in(store, built).summaries(of) == lengths(of)
    assert built == of
    store.asked.clear()
    changed = [*of[:-1], *names(MANY, "later")[-1:]]
    files = files_in(store, built)
    assert files.unknown(changed) == changed[-1:]
    assert files.summaries(changed) == lengths(changed)
    assert built == [*of, changed[-1]]
    *_, last = pages(changed)
    count = sum(1 for _ in pages(changed))
    # All pages; one by one the last page's; twice what is not there, and its body.
    assert len(store.asked) <= count + len(last) + 5 < MANY / 5


def test_a_page_does_not_prove_that_a_file_is_there(store):
    of = names(MANY)
    files_in(store, []).summaries(of)
    lost = of[17]
    del store.bodies[lost.key("p")], store.bodies[f"{lost.key('p')}.summary"]
    assert files_in(store, []).missing(of) == [lost]


def test_few_files_have_no_pages(store):
    of = names(PAGE)
    assert files_in(store, []).summaries(of) == lengths(of)
    assert [key for key in store.bodies if key.endswith(".summaries")] == []
