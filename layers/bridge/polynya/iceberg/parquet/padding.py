"""Parquet files whose size is fixed before they are written.

A plan of a scan names files that nobody has built, and clients open a file by its size. So it names
a size that the file certainly fits into. Zeros between the pages and the footer fill the rest:
readers begin at the end of a file, and the footer says where each page is.
"""

from collections.abc import Iterator, Sequence

from ..types import Field, List, Map, Primitive, Struct, Type
from .footer import TAIL

FILE, COLUMN, VALUE = 4096, 1024, 48
"""Bytes besides texts: of a file, of a column in a row group, and of a value. A value has at most
16 bytes, once in a page and once in a dictionary, an index, two levels, and bits of a filter."""

TEXT_COPIES = 8
"""A text is in a page or a dictionary; the smallest and the largest one are four times in the
footer; and compression may make incompressible bytes a sixth longer."""

GROUP = 100_000
"""Rows of a row group, at least."""


def rows_size(fields: Sequence[Field], rows: int, text_bytes: int) -> int:
    """A size that a file of rows does not exceed.

    Args:
        text_bytes: the length of all rows as text. A value in a list or a map takes at least one.
    """
    names = [*_leaves(fields)]
    is_nested = any(isinstance(field.type, List | Map | Struct) for field in fields)
    values = rows * len(names) + (text_bytes if is_nested else 0)
    texts = text_bytes + (rows + (text_bytes if is_nested else 0)) * _default_bytes(fields)
    return _size(names, rows, values, texts)


def deletes_size(data_file: str, positions: int) -> int:
    """A size that a position delete file of one data file does not exceed."""
    # The path is one entry of a dictionary, and eight times in the statistics of a row group.
    names = [f"file_path{data_file * TEXT_COPIES}", "pos"]
    return _size(names, positions, 2 * positions, len(data_file))


def padded(body: bytes, size: int) -> bytes:
    """Fill a file up to exactly this size.

    Raises:
        ValueError: the file is larger.
    """
    if len(body) > size:
        raise ValueError(f"{len(body)} bytes are more than {size}")
    footer = len(body) - TAIL - int.from_bytes(body[-TAIL:-4], "little")
    return body[:footer] + bytes(size - len(body)) + body[footer:]


def _size(names: Sequence[str], rows: int, values: int, text_bytes: int) -> int:
    # Its schema has each name once, and each row group twice: as a path, and in the statistics.
    of_group = sum(COLUMN + 3 * len(name.encode()) for name in names)
    return FILE + (rows // GROUP + 2) * of_group + VALUE * values + TEXT_COPIES * text_bytes


LEVELS: dict[type[Type], str] = {List: "list.", Map: "key_value."}
"""Parquet's levels between a type and its members."""


def _leaves(members: Sequence[Field], prefix: str = "") -> Iterator[str]:
    """The paths of the columns in Parquet."""
    for member in members:
        path = f"{prefix}{member.name}."
        if isinstance(member.type, Primitive):
            yield path
        yield from _leaves(member.type.members, path + LEVELS.get(type(member.type), ""))


def _default_bytes(members: Sequence[Field]) -> int:
    """The length of the defaults, which rows have that are older than the columns."""
    return sum(
        _default_bytes(member.type.members) + _length(member.initial_default) for member in members
    )


def _length(default: object) -> int:
    return 0 if default is None else len(str(default).encode())
