"""The part of a Parquet file that shows some columns of the top level, and nothing of the others.

    a footer that names these columns alone, and the places of their chunks

Nothing is taken over that is not known: of the fields of a footer only those of the shapes below,
and of the bytes only the chunks of the columns, without page indexes and Bloom filters.
https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ...runtime.isolation import isolated
from .footer import FIELD_ID, NAME, NUM_CHILDREN, SCHEMA, NotParquet
from .footer_limits import check_footers
from .new_footer import (
    BLOOM_FILTER,
    COLUMN_ORDERS,
    COLUMNS,
    COMPRESSED_SIZE,
    CRYPTO_METADATA,
    DATA_PAGE_OFFSET,
    DICTIONARY_PAGE_OFFSET,
    ENCRYPTED_METADATA,
    ENCRYPTION_ALGORITHM,
    MAGIC,
    META_DATA,
    PAGE_INDEXES,
    ROW_GROUPS,
    SMALL_FOOTER,
    Named,
    Path,
)
from .thrift import (
    BINARY,
    BYTE,
    FALSE,
    I16,
    I32,
    I64,
    LIST,
    STRUCT,
    TRUE,
    Reader,
    Struct,
    Value,
    i32,
    listed,
    written,
)

OTHER_FILE = 1
"""The field of ColumnChunk with the path of another file that has the chunk."""
INDEX_PAGE_OFFSET = 10
"""A field of ColumnMetaData."""

Shape = int | list[Any] | dict[int, Any]
"""The type of a value; of a list that of its items, of a struct those of its fields."""

BOOL = TRUE  # within a struct the type is the value
TIME_UNIT: Shape = {1: {}, 2: {}, 3: {}}
LOGICAL: Shape = {
    **{number: {} for number in (1, 2, 3, 4, 6, 11, 12, 13, 14, 15)},
    5: {1: I32, 2: I32},
    **{number: {1: BOOL, 2: TIME_UNIT} for number in (7, 8)},
    10: {1: BYTE, 2: BOOL},
    16: {1: BYTE},
    17: {1: BINARY},
    18: {1: BINARY, 2: I32},
}
ELEMENT: Shape = {**dict.fromkeys((1, 2, 3, 5, 6, 7, 8, 9), I32), 4: BINARY, 10: LOGICAL}
STATISTICS: Shape = {
    **dict.fromkeys((1, 2, 5, 6), BINARY),
    **dict.fromkeys((3, 4), I64),
    **dict.fromkeys((7, 8), BOOL),
}
META: Shape = {
    **dict.fromkeys((1, 4), I32),
    **dict.fromkeys((5, 6, 7, 9, 10, 11), I64),
    2: [I32],
    3: [BINARY],
    12: STATISTICS,
    13: [{1: I32, 2: I32, 3: I32}],
}
CHUNK: Shape = {2: I64, 3: META}
GROUP: Shape = {1: [CHUNK], **dict.fromkeys((2, 3, 5, 6), I64), 7: I16}
FILE: Shape = {1: I32, 2: [ELEMENT], 3: I64, 4: [GROUP], 6: BINARY, 7: [{1: {}}]}
"""What is taken over of a footer: no texts by key, no order of rows, no page indexes and no Bloom
filters."""

Range = tuple[int, int]
"""The first byte, and the one after the last."""


class VisiblePart(NamedTuple):
    """What may be shown of a file."""

    footer: bytes
    """Without the eight bytes after it."""
    ranges: tuple[Range, ...]
    """In order, and apart from each other."""


def visible_part(
    footer: bytes, start: int, shown_ids: Collection[int], names: Mapping[Path, Named] | None = None
) -> VisiblePart:
    """The part of a file with some of its columns.

    Args:
        footer: that of the file, which nobody has checked.
        start: its position in the file.
        shown_ids: field ids of columns of the top level.
        names: as `FooterChanges.names`: the ids of a file that has none of ours.

    Raises:
        NotParquet: the file is encrypted, or its footer is broken, or its columns share bytes or
            field ids.
    """
    make = _part if len(footer) <= SMALL_FOOTER else _part_of_large
    return make(footer, start, shown_ids, names)


def _part(
    footer: bytes, start: int, shown_ids: Collection[int], names: Mapping[Path, Named] | None
) -> VisiblePart:
    check_footers([footer])
    try:
        return _checked_part(footer, start, shown_ids, names)
    except NotParquet:
        raise
    except (LookupError, TypeError, AttributeError, ValueError, OverflowError):
        raise NotParquet("its footer is broken") from None


@isolated
def _part_of_large(
    footer: bytes, start: int, shown_ids: Collection[int], names: Mapping[Path, Named] | None
) -> VisiblePart:
    return _part(footer, start, shown_ids, names)


def _checked_part(
    footer: bytes, start: int, shown_ids: Collection[int], names: Mapping[Path, Named] | None
) -> VisiblePart:
    reader = Reader(footer)
    file = reader.fields()
    if ENCRYPTION_ALGORITHM in file:
        raise NotParquet("it is encrypted")
    if reader.consumed != footer:
        raise NotParquet("something follows its footer")
    root, *elements = file[SCHEMA].value.items
    columns = [*_columns(elements)]
    if sum(len(column.elements) for column in columns) != len(elements):
        raise IndexError(SCHEMA)
    shown = [column for column in columns if _id_of(column, names) in shown_ids]
    if len({_id_of(column, names) for column in shown}) != len(shown):
        raise NotParquet("two columns have the same field id")
    leaves = [leaf for column in shown for leaf in column.leaves]
    left_out = {*range(sum(len(column.leaves) for column in columns))} - {*leaves}
    visible: list[Range] = [(0, len(MAGIC))]
    hidden: list[Range] = []
    for group in file[ROW_GROUPS].value.items:
        chunks = group[COLUMNS].value.items
        if len(chunks) != len(leaves) + len(left_out):
            raise IndexError(COLUMNS)
        visible += [_place(chunks[leaf], start) for leaf in leaves]
        hidden += [place for leaf in left_out for place in _places(chunks[leaf], start)]
        group[COLUMNS] = listed(STRUCT, [chunks[leaf] for leaf in leaves])
    new_root = dict(sorted((root | {NUM_CHILDREN: i32(len(shown))}).items()))
    new_elements = [element for column in shown for element in column.elements]
    file[SCHEMA] = listed(STRUCT, [new_root, *new_elements])
    if COLUMN_ORDERS in file:
        orders = file[COLUMN_ORDERS].value.items
        file[COLUMN_ORDERS] = listed(STRUCT, [orders[leaf] for leaf in leaves])
    ranges = _joined(visible)
    if _overlap(ranges, hidden):
        raise NotParquet("columns share bytes")
    return VisiblePart(written(_shaped(file, FILE)), ranges)


class _Column(NamedTuple):
    """A column of the top level."""

    elements: Sequence[Struct]
    """It, and all in it."""
    leaves: range
    """The numbers of its leaf columns in the file."""


def _columns(elements: Sequence[Struct]) -> Iterator[_Column]:
    place = leaf = 0
    while place < len(elements):
        first, first_leaf, coming = place, leaf, 1
        while coming:
            element = elements[place]
            children = element[NUM_CHILDREN].value if NUM_CHILDREN in element else 0
            if children < 0:
                raise IndexError(children)
            leaf += not children
            coming += children - 1
            place += 1
        yield _Column(elements[first:place], range(first_leaf, leaf))


def _id_of(column: _Column, names: Mapping[Path, Named] | None) -> int | None:
    element = column.elements[0]
    if names is not None:
        named = names.get((element[NAME].value.decode(),))
        return None if named is None else named.field_id
    return element[FIELD_ID].value if FIELD_ID in element else None


def _shaped(value: Any, shape: Shape) -> Any:
    """What a struct, the items of a list, or another value has of its shape.

    Raises:
        IndexError: a field has another type, or a union a member that is not known.
    """
    if isinstance(shape, dict):
        fields = {n: _shaped_field(value[n], shape[n]) for n in value if n in shape}
        if value and shape and not fields:
            raise IndexError(min(value))
        return fields
    if isinstance(shape, list):
        return value._replace(items=[_shaped(item, shape[0]) for item in value.items])
    return value


def _shaped_field(field: Value, shape: Shape) -> Value:
    is_right = field.type == _type_of(shape) or (shape == BOOL and field.type == FALSE)
    if is_right and isinstance(shape, list):
        # An empty list may have any type.
        is_right = not field.value.items or field.value.type == _type_of(shape[0])
    if not is_right:
        raise IndexError(field.type)
    return field._replace(value=_shaped(field.value, shape))


def _type_of(shape: Shape) -> int:
    if isinstance(shape, int):
        return shape
    return STRUCT if isinstance(shape, dict) else LIST


def _place(chunk: Struct, start: int) -> Range:
    """The bytes of a chunk."""
    if {CRYPTO_METADATA, ENCRYPTED_METADATA} & chunk.keys():
        raise NotParquet("it is encrypted")
    if OTHER_FILE in chunk:
        raise NotParquet("another file has a part of it")
    meta = chunk[META_DATA].value
    if not meta[COMPRESSED_SIZE].value:  # in a row group without rows, of Arrow
        return len(MAGIC), len(MAGIC)
    fields = (DATA_PAGE_OFFSET, INDEX_PAGE_OFFSET, DICTIONARY_PAGE_OFFSET)
    # Some writers have 0 for a page that is not there.
    first = min(meta[of].value for of in fields if of in meta and meta[of].value)
    end = first + meta[COMPRESSED_SIZE].value
    if not len(MAGIC) <= first <= end <= start:
        raise NotParquet("a column is outside of it")
    return first, end


def _places(chunk: Struct, start: int) -> Iterator[Range]:
    """The bytes of a chunk, and of what else the file has of it."""
    yield _place(chunk, start)
    of_meta, (offset_index, offset_length, index, index_length) = (
        chunk[META_DATA].value,
        PAGE_INDEXES,
    )
    for fields, place, length in (
        (chunk, offset_index, offset_length),
        (chunk, index, index_length),
        (of_meta, *BLOOM_FILTER),
    ):
        if place in fields:
            first = fields[place].value
            yield first, first + (max(0, fields[length].value) if length in fields else 1)


def _joined(ranges: Sequence[Range]) -> tuple[Range, ...]:
    joined: list[Range] = []
    for first, end in sorted(ranges):
        if joined and first <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        elif first < end:
            joined.append((first, end))
    return tuple(joined)


def _overlap(visible: Sequence[Range], hidden: Sequence[Range]) -> bool:
    """Whether a hidden range has bytes that are visible."""
    marked = [(*place, False) for place in visible]
    marked += [(*place, True) for place in _joined(hidden)]
    return any(
        after[0] < before[1] and after[2] != before[2] for before, after in pairwise(sorted(marked))
    )
