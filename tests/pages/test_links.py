"""Names of the lake as parts of addresses: every name comes back, and no browser changes it."""

from urllib.parse import unquote, urlsplit

import pytest
from polynya.runtime.namespaces import dotted, parsed
from polynya_local.page.links import link, name_of, namespace_of, segment, table_path, with_query

NAMES = [
    "orders",
    "Größe",
    "a/b",
    "..",
    ".",
    "...",
    "",
    "~2F",
    "~00~",
    "a%2Fb",
    "a\\b",
    "a b?c#d&e=f",
    "\n\t\x7f",
    "<script>",
    "鴨",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_one_segment_and_comes_back(name):
    path = f"/tables/{segment(name)}/x"
    assert len(urlsplit(path).path.split("/")) == 4
    assert name_of(unquote(segment(name))) == name
    assert unquote(segment(name)) not in (".", "..", "")


NAMESPACES = [
    *((name,) for name in NAMES),
    ("a", "b"),
    ("a.b",),
    ("a.", "b"),
    ("a", ".b"),
    ("a~", "b"),
    ("a", "~.b"),
    ("a~.b",),
    ("", "", "a"),
    ('a"b', "c"),
]


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_a_namespace_is_one_segment_and_comes_back(namespace):
    path = table_path(dotted(*namespace), "t")
    _, _, one, name = urlsplit(path).path.split("/")
    assert (namespace_of(unquote(one)), name) == (dotted(*namespace), "t")
    assert parsed(namespace_of(unquote(one))) == namespace


def test_names_have_different_segments():
    assert len({segment(name) for name in NAMES}) == len(NAMES)
    paths = {table_path(dotted(*namespace), "t") for namespace in NAMESPACES}
    assert len(paths) == len(NAMESPACES)


LINKS = [
    (link("/"), "/"),
    (link("/", snapshot=None, search=""), "/"),
    (link("/", snapshot=0), "/?snapshot=0"),
    (link("/", search="a&b=c"), "/?search=a%26b%3Dc"),
    (table_path("a/b", "c", "view"), "/views/a~2Fb/c"),
    (with_query("/x", {"snapshot": "3", "page": "2"}, page=None), "/x?snapshot=3"),
    (with_query("/x", {"snapshot": "3"}, page=4), "/x?snapshot=3&page=4"),
]


@pytest.mark.parametrize(("made", "wanted"), LINKS)
def test_a_link_has_what_is_given(made, wanted):
    assert made == wanted
