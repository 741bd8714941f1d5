"""Keys of virtual files: each has one spelling, and any other text names nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from polynya.runtime.errors import NoSuchKey
from polynya.runtime.settings import CLIENTS
from polynya.virtual_files.names import GENERATOR, KINDS, Name, is_virtual, parse
from polynya.virtual_files.virtual_files import ALL_KINDS

UUID = "0198c3f4-1234-7abc-8def-0123456789ab"
FINGERPRINT = "0123456789abcdef0123"
NUMBER = st.integers(0, 10**18 - 1)


@st.composite
def names(draw):
    kind = draw(st.sampled_from(sorted(KINDS)))
    numbers = tuple(draw(NUMBER) for _ in KINDS[kind].numbers)
    fingerprint = draw(st.text("0123456789abcdef", min_size=20, max_size=20))
    clients = draw(st.sampled_from([None, frozenset(), frozenset({"spark"}), CLIENTS]))
    hidden_ids = tuple(sorted(draw(st.sets(st.integers(0, 10**18 - 1), max_size=3))))
    own = draw(st.booleans()), clients, hidden_ids
    return Name(str(draw(st.uuids())), kind, numbers, fingerprint, *own)


PREFIXES = st.sampled_from(["polynya", "a/b", "p.q", "x+y", "ünï", "polynya/polynya"])


@given(name=names(), prefix=PREFIXES)
def test_a_name_is_read_from_its_key(name, prefix):
    key = name.key(prefix)
    assert parse(key, prefix) == name
    assert is_virtual(key, prefix)


@given(one=names(), other=names())
def test_two_names_have_two_keys(one, other):
    assert (one.key("p") == other.key("p")) == (one == other)


def test_the_last_number_is_the_snapshot():
    assert Name(UUID, "data", (1, 0, 999, 7, 7), FINGERPRINT).snapshot_id == 7
    assert all(kind.numbers[-1] == "snapshot_id" for kind in KINDS.values())


# Clients recognise the type of a file by the end of its name.
KEYS = [
    ("table", (7,), f"7-table-{FINGERPRINT}.metadata.json"),
    ("earlier", (3, 7), f"earlier-3-7-{FINGERPRINT}.metadata.json"),
    ("list", (7,), f"list-7-{FINGERPRINT}.avro"),
    ("expired-list", (7,), f"expired-list-7-{FINGERPRINT}.avro"),
    ("data", (1, 0, 999, 6, 7), f"data-1-0-999-6-7-{FINGERPRINT}.avro"),
    ("rows-manifest", (1, 7, 7), f"rows-manifest-1-7-7-{FINGERPRINT}.avro"),
    ("rows", (0, 2, 7), f"rows-0-2-7-{FINGERPRINT}.parquet"),
    ("deletes-manifest", (1, 0, 999, 7, 7), f"deletes-manifest-1-0-999-7-7-{FINGERPRINT}.avro"),
    ("deletes", (3, 7), f"deletes-3-7-{FINGERPRINT}.parquet"),
    ("vector", (3, 7), f"vector-3-7-{FINGERPRINT}.puffin"),
    ("data-file", (9000, 3, 7), f"data-file-9000-3-7-{FINGERPRINT}.parquet"),
    ("padded-rows", (9000, 2, 0, 7), f"padded-rows-9000-2-0-7-{FINGERPRINT}.parquet"),
    ("padded-deletes", (9000, 3, 7), f"padded-deletes-9000-3-7-{FINGERPRINT}.parquet"),
]


@pytest.mark.parametrize(("kind", "numbers", "file"), KEYS)
def test_key_has_this_spelling(kind, numbers, file):
    assert Name(UUID, kind, numbers, FINGERPRINT).key("polynya") == f"polynya/{UUID}/g3/{file}"
    marked = file.replace(FINGERPRINT, f"v3-{FINGERPRINT}")
    assert Name(UUID, kind, numbers, FINGERPRINT, True).key("p") == f"p/{UUID}/g3/{marked}"


def test_every_kind_has_a_spelling_above():
    assert {kind for kind, *_ in KEYS} == KINDS.keys() and GENERATOR == "g3"


def test_every_kind_can_be_built():
    assert sorted(kind.kind for kind in ALL_KINDS) == sorted(KINDS)


def key(
    prefix="polynya/",
    uuid=UUID,
    generator="/g3",
    file=f"/list-7-{FINGERPRINT}.avro",
) -> str:
    return prefix + uuid + generator + file


REFUSED = {
    "another prefix": key(prefix="polyny/"),
    "no prefix": key(prefix=""),
    "a prefix before it": key(prefix="x/polynya/"),
    "the prefix twice": key(prefix="polynya/polynya/"),
    "two slashes": key(prefix="polynya//"),
    "a slash in front": key(prefix="/polynya/"),
    "upper case in the uuid": key(uuid=UUID.upper()),
    "a uuid in braces": key(uuid="{" + UUID + "}"),
    "a uuid without hyphens": key(uuid=UUID.replace("-", "")),
    "no uuid": key(uuid="x"),
    "another generator": key(generator="/g1"),
    "no generator": key(generator=""),
    "an unknown kind": key(file=f"/manifest-7-{FINGERPRINT}.avro"),
    "no number": key(file=f"/list-{FINGERPRINT}.avro"),
    "too many numbers": key(file=f"/list-7-7-{FINGERPRINT}.avro"),
    "too few numbers": key(file=f"/data-0-7-{FINGERPRINT}.avro"),
    "a zero in front": key(file=f"/list-07-{FINGERPRINT}.avro"),
    "a sign": key(file=f"/list-+7-{FINGERPRINT}.avro"),
    "a negative number": key(file=f"/list--7-{FINGERPRINT}.avro"),
    "digits of another script": key(file=f"/list-٧-{FINGERPRINT}.avro"),
    "a number of 19 digits": key(file=f"/list-{10**18}-{FINGERPRINT}.avro"),
    "another mark": key(file=f"/list-7-v2-{FINGERPRINT}.avro"),
    "a mark in front": key(file=f"/v3-list-7-{FINGERPRINT}.avro"),
    "two marks": key(file=f"/list-7-v3-v3-{FINGERPRINT}.avro"),
    "a short fingerprint": key(file=f"/list-7-{FINGERPRINT[1:]}.avro"),
    "a long fingerprint": key(file=f"/list-7-{FINGERPRINT}0.avro"),
    "upper case in the fingerprint": key(file=f"/list-7-{FINGERPRINT.upper()}.avro"),
    "another kind's suffix": key(file=f"/list-7-{FINGERPRINT}.parquet"),
    "a document's number at the other end": key(file=f"/table-7-{FINGERPRINT}.metadata.json"),
    "a list's number at the other end": key(file=f"/7-list-{FINGERPRINT}.avro"),
    "numbers at both ends": key(file=f"/7-table-7-{FINGERPRINT}.metadata.json"),
    "no suffix": key(file=f"/list-7-{FINGERPRINT}"),
    "two suffixes": key(file=f"/list-7-{FINGERPRINT}.avro.avro"),
    "a newline at the end": key() + "\n",
    "a slash at the end": key() + "/",
    "a query": key() + "?x=1",
    "an escape": key().replace("-7-", "%2D7-"),
    "a way up": key(prefix="polynya/../polynya/"),
    "a NUL": key() + "\0",
    "nothing": "",
    "the prefix alone": "polynya/",
    "a real object": "main/t/ducklake-0198.parquet",
}


@pytest.mark.parametrize("what", REFUSED)
def test_key_with_another_spelling_names_nothing(what):
    with pytest.raises(NoSuchKey):
        parse(REFUSED[what], "polynya")


def test_the_correct_key_names_a_file():
    assert parse(key(), "polynya") == Name(UUID, "list", (7,), FINGERPRINT)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("polynya/x", True),
        ("polynya/", True),
        ("polynya", False),
        ("polynya2/x", False),
        ("", False),
    ],
)
def test_only_keys_below_the_prefix_are_virtual(text, expected):
    assert is_virtual(text, "polynya") == expected
