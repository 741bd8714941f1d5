"""Other field ids in the footer of a Parquet file, which stays as long as it is.

https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from collections.abc import Mapping


def length(number: int) -> bytes:
    """Thrift compact protocol, the length before a text: 7 bits to a byte, lowest first."""
    groups = []
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    return bytes([*groups, number])


def _varint(number: int) -> bytes:
    """Thrift compact protocol, an i32 that is not negative: zigzag, then as a length."""
    return length(number << 1)


def with_field_ids(footer: bytes, ids: Mapping[int, int]) -> bytes | None:
    """The footer with other field ids; None if one of the old ids is not in it exactly once.

    Args:
        ids: the new ids by the old ones, each as long as the old one: from 2^27 on all are.
    """
    texts = {_varint(old): _varint(new) for old, new in ids.items()}
    if any(footer.count(old) != 1 for old in texts):
        return None
    for old, new in texts.items():
        footer = footer.replace(old, new)
    return footer
