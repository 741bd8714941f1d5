"""Fingerprints are part of the names of files: they may change only with GENERATOR."""

import datetime as dt
import hashlib
import itertools
import re

import pytest
from polynya.mapping.manifests import fingerprint

# The first 80 bits of SHA-256 of the text; the text contains what is hashed.
PINNED = [
    ((), b"[]"),
    (("list", 7), b'["list",7]'),
    (("ünï", None, 1.5, True), b'["\\u00fcn\\u00ef",null,1.5,true]'),
    (({"b": 1, "a": [2]},), b'[{"a":[2],"b":1}]'),
    ((("a", 1),), b'[["a",1]]'),
    ((2**70,), b"[1180591620717411303424]"),
    ((dt.date(2024, 2, 29),), b'["2024-02-29"]'),
]


@pytest.mark.parametrize(("parts", "text"), PINNED)
def test_fingerprint_is_80_bits_of_the_sha_256_of_the_json(parts, text):
    assert fingerprint(*parts) == hashlib.sha256(text).hexdigest()[:20]


def test_fingerprint_never_changes():
    assert fingerprint("g1", "s3://b/t", {"id": 1}, 0) == "ec715f4fe6ea01863f67"


def test_fingerprint_depends_on_the_order_of_parts_and_not_of_keys():
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    assert fingerprint("a", "b") != fingerprint("b", "a")


def test_different_parts_have_different_fingerprints():
    alike = [(), ("",), ("", ""), (None,), (0,), ("0",), (False,), ("ab",), ("a", "b"), (["ab"],)]
    seen = [fingerprint(*parts) for parts in alike]
    assert all(one != other for one, other in itertools.combinations(seen, 2))
    assert all(re.fullmatch("[0-9a-f]{20}", one) for one in seen)
