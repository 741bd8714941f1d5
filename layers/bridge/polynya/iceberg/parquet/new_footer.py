"""A Parquet file that says more or less than the file that it begins with, byte for byte.

    bytes of the file up to its footer + new column chunks + zeros + a new footer + length + PAR1

Readers find everything through the footer, which names the chunks of columns by their places. So
a column can be added that has one value in all rows, and a column can be left out, without a look
at any row.
https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from ...runtime.isolation import isolated
from ..types import Field
from .footer import (
    FIELD_ID,
    NAME,
    NUM_CHILDREN,
    NUM_ROWS,
    REPETITION_TYPE,
    SCHEMA,
    TAIL,
    TYPE,
    NotParquet,
    footer_start,
)
from .footer_limits import check_footers
from .thrift import (
    BINARY,
    I32,
    STRUCT,
    Reader,
    Struct,
    Value,
    i32,
    i64,
    listed,
    struct,
    varint,
    written,
)

MAGIC = b"PAR1"

ROW_GROUPS, KEY_VALUES, COLUMN_ORDERS, ENCRYPTION_ALGORITHM = 4, 5, 7, 8
"""Fields of FileMetaData."""
KEY = 1
"""The field of KeyValue with the key."""
ARROW_SCHEMA = b"ARROW:schema"
"""The key of Arrow's own types, which are those of the columns that the file had."""
COLUMNS, TOTAL_BYTE_SIZE, GROUP_ROWS, SORTING_COLUMNS, TOTAL_COMPRESSED_SIZE = 1, 2, 3, 4, 6
"""Fields of RowGroup."""
FILE_OFFSET, META_DATA, CRYPTO_METADATA, ENCRYPTED_METADATA = 2, 3, 8, 9
"""Fields of ColumnChunk."""
CHUNK_TYPE, ENCODINGS, PATH, CODEC, NUM_VALUES, UNCOMPRESSED_SIZE, COMPRESSED_SIZE = range(1, 8)
DATA_PAGE_OFFSET, DICTIONARY_PAGE_OFFSET = 9, 11
"""Fields of ColumnMetaData."""
COLUMN_INDEX = 1
"""The field of SortingColumn that has the number of a leaf column."""

OPTIONAL, BOOLEAN, UNCOMPRESSED = 1, 0, 0
PLAIN, RLE, RLE_DICTIONARY = 0, 3, 8
DATA_PAGE, DICTIONARY_PAGE = 0, 2
PAGE_TYPE, UNCOMPRESSED_PAGE_SIZE, PAGE_SIZE = 1, 2, 3
DATA_PAGE_HEADER, DICTIONARY_PAGE_HEADER = 5, 7
"""Fields of PageHeader."""
ENCODING = 2
"""The field of DataPageHeader with the encoding of the values."""
OWN = {REPETITION_TYPE, NAME, FIELD_ID, NUM_CHILDREN}
"""The fields of SchemaElement that do not say what the type of a column is."""

TYPE_ORDER: Struct = {1: struct({})}
"""ColumnOrder: the order that the column's type defines."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A column that has the same value in all rows; it is optional."""

    name: str
    field_id: int
    element: Struct
    """The fields of its SchemaElement that say what its type is."""
    value: bytes
    """The value in the encoding PLAIN; of a boolean its byte, 0 or 1."""

    @property
    def physical_type(self) -> int:
        """Parquet's type."""
        number: int = self.element[TYPE].value
        return number


def constants(file: bytes) -> list[Constant]:
    """The columns of a file with one row, which are to have that value in all rows of others.

    Args:
        file: as DuckDB writes it without compression: a page for each column, which is plain. No
            value is NULL, and none is a list, a map or a struct.
    """
    start = footer_start(lambda first, end: file[first:end], len(file))
    metadata = Reader(file[start:-TAIL]).fields()
    [group] = metadata[ROW_GROUPS].value.items
    _, *elements = metadata[SCHEMA].value.items
    columns = []
    for element, chunk in zip(elements, group[COLUMNS].value.items, strict=True):
        page = file[chunk[META_DATA].value[DATA_PAGE_OFFSET].value :]
        reader = Reader(page)
        header = reader.fields()
        body = page[len(reader.consumed) :][: header[PAGE_SIZE].value]
        if header[DATA_PAGE_HEADER].value[ENCODING].value != PLAIN:
            raise AssertionError("DuckDB writes one value otherwise")
        levels = 4 + int.from_bytes(body[:4], "little")
        columns.append(
            Constant(
                name=element[NAME].value.decode(),
                field_id=element[FIELD_ID].value,
                element={key: value for key, value in element.items() if key not in OWN},
                value=body[levels:],
            )
        )
    return columns


@dataclass(frozen=True, slots=True)
class NewFooter:
    """What follows the bytes of a file up to its footer."""

    pages: bytes
    footer: bytes

    @property
    def size(self) -> int:
        """The length without zeros."""
        return len(self.pages) + len(self.footer) + 4 + len(MAGIC)

    def tail(self, size: int) -> bytes:
        """All of it, filled up to a size.

        Raises:
            ValueError: it is larger.
        """
        if self.size > size:
            raise ValueError(f"{self.size} bytes are more than {size}")
        length = len(self.footer).to_bytes(4, "little")
        return self.pages + bytes(size - self.size) + self.footer + length + MAGIC


SMALLEST_GROUP = 30
"""The bytes of a row group in a footer, at least."""
OF_GROUP, OF_CHUNK, OF_ELEMENT = 32, 256, 64
"""How much a new footer and its pages are larger, at most: for each row group, for each chunk
besides its value and its column's name, and for each column besides its name."""
LARGEST_FOOTER = 16 * 1024 * 1024


def largest_size(
    file_size: int, footer_size: int, record_count: int, added: Sequence[Field]
) -> int | None:
    """A size that a file with these columns never exceeds; None: its footer is not changed.

    Args:
        file_size, footer_size, record_count: of the file, as the catalog has them.
        added: columns with the default that they have in all rows.
    """
    if not 0 < footer_size <= min(file_size, LARGEST_FOOTER) or record_count < 0:
        return None
    groups = min(record_count, footer_size // SMALLEST_GROUP)
    names = sum(len(field.name.encode()) for field in added)
    values = sum(len(str(field.initial_default).encode()) for field in added)
    of_chunks = len(added) * OF_CHUNK + names + values
    return file_size + groups * (OF_GROUP + of_chunks) + len(added) * OF_ELEMENT + names + OF_GROUP


@isolated
def new_tail(footer: bytes, start: int, added: Sequence[Constant], length: int) -> bytes:
    """What follows the first `start` bytes of a file that gets more columns.

    Args:
        footer: that of the file, which nobody has checked.
        length: of the result.

    Raises:
        NotParquet: the footer is broken, or the file cannot have more columns.
        ValueError: the result would be longer.
    """
    check_footers([footer])
    return new_footer(footer, start, added).tail(length)


def old_tail(footer: bytes, length: int) -> bytes:
    """What follows the first bytes of a file that stays as it is, and gets longer.

    Raises:
        ValueError: it is longer already.
    """
    return NewFooter(b"", footer).tail(length)


def new_footer(
    footer: bytes, start: int, added: Sequence[Constant], left_out: Collection[int] = ()
) -> NewFooter:
    """The end of a file with other columns.

    Args:
        footer: that of the file, without the eight bytes after it; `check_footers` accepts it.
        start: its position in the file.
        added: the columns that are added, at the end, as far as the file does not have them.
        left_out: the field ids of columns of the top level that are left out.

    Raises:
        NotParquet: the file is encrypted, its columns have no ids, or its footer is broken.
    """
    try:
        file = Reader(footer).fields()
        if ENCRYPTION_ALGORITHM in file:
            raise NotParquet("it is encrypted")
        elements = file[SCHEMA].value.items
        columns = [*_columns(elements)]
        added = _as_added(added, columns)
        staying = [column for column in columns if column.field_id not in left_out]
        leaves = [leaf for column in staying for leaf in column.leaves]
        root = elements[0] | {NUM_CHILDREN: i32(len(staying) + len(added))}
        old = (element for column in staying for element in column.elements)
        file[SCHEMA] = listed(STRUCT, [root, *old, *map(_element, added)])
        pages: list[bytes] = []
        offset = start
        for group in file[ROW_GROUPS].value.items:
            offset = _change_group(group, leaves, added, pages, offset)
        if KEY_VALUES in file:
            pairs = file[KEY_VALUES].value.items
            other_pairs = [pair for pair in pairs if pair[KEY].value != ARROW_SCHEMA]
            file[KEY_VALUES] = listed(STRUCT, other_pairs)
        if COLUMN_ORDERS in file:
            orders = file[COLUMN_ORDERS].value.items
            new = (TYPE_ORDER for _ in added)
            file[COLUMN_ORDERS] = listed(STRUCT, [*(orders[leaf] for leaf in leaves), *new])
        if file[NUM_ROWS].value < 0:
            raise IndexError(NUM_ROWS)
        return NewFooter(b"".join(pages), written(file))
    except NotParquet:
        raise
    except (LookupError, TypeError, AttributeError, ValueError, OverflowError):
        raise NotParquet("its footer is broken") from None


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the top level."""

    field_id: int | None
    elements: list[Struct]
    leaves: range

    @property
    def name(self) -> str:
        name: bytes = self.elements[0][NAME].value
        return name.decode()


def _as_added(added: Sequence[Constant], columns: Sequence[_Column]) -> list[Constant]:
    """The columns that a file does not have, under names that are free in it.

    If two have the same name, the last one keeps it.
    """
    ids = {column.field_id for column in columns}
    if None in ids and added:
        raise NotParquet("its columns have no ids")
    names = {column.name.lower() for column in columns}
    missing = []
    for column in reversed([column for column in added if column.field_id not in ids]):
        is_taken = column.name.lower() in names
        name = f"{column.name}_{column.field_id}" if is_taken else column.name
        names.add(name.lower())
        missing.append(replace(column, name=name))
    return missing[::-1]


def _columns(elements: list[Struct]) -> Iterator[_Column]:
    place, leaf = 1, 0
    for _ in range(elements[0][NUM_CHILDREN].value):
        end, first_leaf, missing = place, leaf, 1
        while missing:
            children = elements[end][NUM_CHILDREN].value if NUM_CHILDREN in elements[end] else 0
            missing += children - 1
            leaf += not children
            end += 1
        field_id = elements[place].get(FIELD_ID)
        yield _Column(field_id and field_id.value, elements[place:end], range(first_leaf, leaf))
        place = end
    if place != len(elements):
        raise IndexError(place)


def _element(column: Constant) -> Struct:
    own = {
        REPETITION_TYPE: i32(OPTIONAL),
        NAME: Value(BINARY, column.name.encode()),
        FIELD_ID: i32(column.field_id),
    }
    return dict(sorted((column.element | own).items()))


def _change_group(
    group: Struct, leaves: list[int], added: Sequence[Constant], pages: list[bytes], offset: int
) -> int:
    """Change a row group, and give the place after the pages of its new columns."""
    chunks = group[COLUMNS].value.items
    if any(CRYPTO_METADATA in chunk or ENCRYPTED_METADATA in chunk for chunk in chunks):
        raise NotParquet("it is encrypted")
    new_chunks = [chunks[leaf] for leaf in leaves]
    sizes = [_sizes(chunk) for chunk in new_chunks]
    rows = group[GROUP_ROWS].value
    for column in added:
        chunk, body = _constant_chunk(column, rows, offset)
        new_chunks.append(chunk)
        sizes.append((len(body), len(body)))
        pages.append(body)
        offset += len(body)
    group[COLUMNS] = listed(STRUCT, new_chunks)
    group[TOTAL_BYTE_SIZE] = i64(sum(uncompressed for uncompressed, _ in sizes))
    if TOTAL_COMPRESSED_SIZE in group:
        group[TOTAL_COMPRESSED_SIZE] = i64(sum(compressed for _, compressed in sizes))
    if SORTING_COLUMNS in group:
        _change_sorting(group, leaves)
    return offset


def _sizes(chunk: Struct) -> tuple[int, int]:
    meta = chunk[META_DATA].value
    return meta[UNCOMPRESSED_SIZE].value, meta[COMPRESSED_SIZE].value


def _change_sorting(group: Struct, leaves: list[int]) -> None:
    """Keep the order up to the first column that is left out."""
    places = {leaf: place for place, leaf in enumerate(leaves)}
    sorting: list[Struct] = []
    for column in group[SORTING_COLUMNS].value.items:
        place = places.get(column[COLUMN_INDEX].value)
        if place is None:
            break
        sorting.append(column | {COLUMN_INDEX: i32(place)})
    if sorting:
        group[SORTING_COLUMNS] = listed(STRUCT, sorting)
    else:
        del group[SORTING_COLUMNS]


def _constant_chunk(column: Constant, rows: int, offset: int) -> tuple[Struct, bytes]:
    """A column chunk at a place in the file, and its pages."""
    run = varint(rows << 1)
    is_present = run + b"\1"
    levels = len(is_present).to_bytes(4, "little") + is_present
    if column.physical_type == BOOLEAN:
        values = run + column.value
        dictionary, encoding = b"", RLE
        body = levels + len(values).to_bytes(4, "little") + values
    else:
        dictionary = _page(DICTIONARY_PAGE, DICTIONARY_PAGE_HEADER, 1, column.value, PLAIN)
        encoding = RLE_DICTIONARY
        body = levels + b"\1" + run + b"\0"  # one bit for each, and all are the value 0
    data = _page(DATA_PAGE, DATA_PAGE_HEADER, rows, body, encoding, RLE, RLE)
    length = len(dictionary) + len(data)
    meta: Struct = {
        CHUNK_TYPE: i32(column.physical_type),
        ENCODINGS: listed(I32, [PLAIN, RLE, RLE_DICTIONARY] if dictionary else [RLE]),
        PATH: listed(BINARY, [column.name.encode()]),
        CODEC: i32(UNCOMPRESSED),
        NUM_VALUES: i64(rows),
        UNCOMPRESSED_SIZE: i64(length),
        COMPRESSED_SIZE: i64(length),
        DATA_PAGE_OFFSET: i64(offset + len(dictionary)),
    }
    if dictionary:
        meta[DICTIONARY_PAGE_OFFSET] = i64(offset)
    return {FILE_OFFSET: i64(0), META_DATA: struct(meta)}, dictionary + data


def _page(type_: int, header: int, values: int, body: bytes, *encodings: int) -> bytes:
    """A page that is not compressed.

    Args:
        header: the field of PageHeader that describes pages of this type.
        values: how many it has, with NULLs.
        encodings: of the values, then of the two kinds of levels.
    """
    described = dict(enumerate(map(i32, (values, *encodings)), 1))
    sizes = dict.fromkeys((UNCOMPRESSED_PAGE_SIZE, PAGE_SIZE), i32(len(body)))
    page = {PAGE_TYPE: i32(type_), **sizes, header: struct(described)}
    return written(page) + body
