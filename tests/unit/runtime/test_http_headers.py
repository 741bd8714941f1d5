"""The Range header and conditional headers, by the rules and examples of RFC 9110."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from polynya.http.conditions import byte_range, matches_etag
from polynya.runtime.errors import InvalidRange

SIZE = 10_000
# 14.1.2, "Byte Ranges": its examples, for a representation of length 10000
RANGES = [
    ("bytes=0-499", (0, 499)),
    ("bytes=500-999", (500, 999)),
    ("bytes=-500", (9500, 9999)),
    ("bytes=9500-", (9500, 9999)),
    ("bytes=0-0", (0, 0)),
    ("bytes=-1", (9999, 9999)),
    ("bytes=0-", (0, 9999)),
    ("bytes=9999-", (9999, 9999)),
    ("bytes=9999-9999", (9999, 9999)),
    # "If the last-pos value is … greater than or equal to the current length, the byte range is
    # interpreted as the remainder of the representation."
    ("bytes=0-10000", (0, 9999)),
    ("bytes=9500-99999999999999999999", (9500, 9999)),
    # "If the selected representation is shorter than the specified suffix-length, the entire
    # representation is used."
    ("bytes=-10000", (0, 9999)),
    ("bytes=-10001", (0, 9999)),
    ("  bytes=0-1  ", (0, 1)),
]


@pytest.mark.parametrize(("header", "expected"), RANGES)
def test_range_is_the_first_and_the_last_byte(header, expected):
    assert byte_range(header, SIZE) == expected


# "A server MAY ignore the Range header field"; like S3, we ignore an invalid one.
IGNORED = [
    None,
    "",
    "bytes",
    "bytes=",
    "bytes=-",
    "bytes=1-0",  # "invalid if the last-pos value is present and less than first-pos"
    "bytes=500-499",
    "bytes=99999-1",
    "bytes=0-1,5-6",
    "bytes=0-0,-1",
    "bytes=a-b",
    "bytes=0x0-1",
    "bytes=--1",
    "bytes=1.5-2",
    "bytes =0-1",
    "items=0-1",
    "0-1",
    "bytes=0-1\nX: y",
]


@pytest.mark.parametrize("header", IGNORED)
def test_header_other_than_a_single_range_of_bytes_is_ignored(header):
    assert byte_range(header, SIZE) is None


# "satisfiable if it contains a first-pos that is less than the current length, or a suffix-range
# with a non-zero suffix-length"
UNSATISFIABLE = [
    ("bytes=10000-", SIZE),
    ("bytes=10000-10001", SIZE),
    ("bytes=99999999999999999999-", SIZE),
    ("bytes=-0", SIZE),
    ("bytes=0-", 0),
    ("bytes=0-0", 0),
    ("bytes=-5", 0),
    ("bytes=1-", 1),
]


@pytest.mark.parametrize(("header", "size"), UNSATISFIABLE)
def test_range_without_a_byte_of_the_file_is_an_error(header, size):
    with pytest.raises(InvalidRange):
        byte_range(header, size)


NUMBERS = st.integers(0, 300).map(str) | st.just("")


@given(body=st.binary(max_size=200), first=NUMBERS, last=NUMBERS)
def test_a_range_has_the_same_bytes_as_a_python_slice(body, first, last):
    try:
        cut = byte_range(f"bytes={first}-{last}", len(body))
    except InvalidRange:
        cut = (0, -1)
    if cut is None:
        assert not (first or last) or (first and last and int(last) < int(first))
        return
    if first:
        expected = body[int(first) : int(last) + 1 if last else None]
    else:
        expected = body[-int(last) :] if int(last) else b""
    assert body[cut[0] : cut[1] + 1] == expected


ETAG = '"xyzzy"'

# 8.8.3, 13.1.1 and 13.1.2: their examples, and headers of S3 clients
CONDITIONS = [
    ('"xyzzy"', True),
    ('"xyzzy", "r2d2xxxx", "c3piozzzz"', True),
    ('"r2d2xxxx", "c3piozzzz"', False),
    ('W/"xyzzy", W/"r2d2xxxx", W/"c3piozzzz"', True),
    ("*", True),
    (" * ", True),
    ("xyzzy", True),  # users of boto3 omit the quotes
    ("W/xyzzy", True),
    ('"r2d2xxxx",xyzzy', True),
    ('"a,xyzzy,b"', False),  # a comma may be in a tag
    ('"xyzzy2"', False),
    ('"xyz"', False),
    ('"', False),
    ("", False),
]


@pytest.mark.parametrize(("header", "expected"), CONDITIONS)
def test_condition_names_the_tag(header, expected):
    assert matches_etag(header, ETAG) is expected
