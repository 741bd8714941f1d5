"""A Parquet file that says more or less than the file that it begins with, byte for byte.

    bytes of the file up to its footer + new column chunks + zeros + a new footer + length + PAR1

Readers find everything through the footer, which names the chunks of columns by their places. So
a column can be added that has one value in all rows, and a column can be left out, without a look
at any row.
https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ...runtime.isolation import isolated
from ..types import Field
from .footer import (
    CONVERTED_TYPE,
    FIELD_ID,
    LOGICAL_TYPE,
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
    FALSE,
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
PAGE_INDEXES = (4, 5, 6, 7)
"""Fields of ColumnChunk: these are the places and lengths of its offset index and column index."""
CHUNK_TYPE, ENCODINGS, PATH, CODEC, NUM_VALUES, UNCOMPRESSED_SIZE, COMPRESSED_SIZE = range(1, 8)
DATA_PAGE_OFFSET, DICTIONARY_PAGE_OFFSET, STATISTICS = 9, 11, 12
ENCODING_STATS, BLOOM_FILTER = 13, (14, 15)
"""Fields of ColumnMetaData: the last are the place and the length of the Bloom filter."""
NULL_COUNT, MAX_VALUE = 3, 5
"""Fields of Statistics."""
COLUMN_INDEX = 1
"""The field of SortingColumn that has the number of a leaf column."""

OPTIONAL, BOOLEAN, INT32, UNCOMPRESSED = 1, 0, 1, 0
PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY = 0, 2, 3, 8
DATA_PAGE, DICTIONARY_PAGE = 0, 2
PAGE_TYPE, UNCOMPRESSED_PAGE_SIZE, PAGE_SIZE = 1, 2, 3
DATA_PAGE_HEADER, DICTIONARY_PAGE_HEADER = 5, 7
"""Fields of PageHeader."""
ENCODING = 2
"""The field of DataPageHeader with the encoding of the values."""
OWN = {REPETITION_TYPE, NAME, FIELD_ID, NUM_CHILDREN}
"""The fields of SchemaElement that do not say what the type of a column is."""

UNSIGNED = {11: 8, 12: 16, 13: 32}
"""The converted types UINT_8, UINT_16 and UINT_32, and their bits."""
INTEGER, BITS, IS_SIGNED = 10, 1, 2
"""The member of the union LogicalType, and its fields."""
STRING, JSON = 1, 12
"""Members of it."""
CONVERTED_STRING, CONVERTED_JSON = 0, 19
GROUPS = {1: 2, 3: 3}
"""The members MAP and LIST of it by the converted types of the same names."""

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


PLACEHOLDER = Constant("_", 2**31 - 201, {TYPE: i32(BOOLEAN)}, b"\0")
"""The column of a file that loses all others: DuckDB cannot read one without columns. Its id is the
highest that Iceberg does not reserve, and it is not larger than what the file loses."""


@dataclass(frozen=True, slots=True)
class FooterChanges:
    """How a footer differs from the one that it is made of."""

    added: Sequence[Constant] = ()
    """Columns at the end, as far as the file does not have them."""
    left_out: Collection[int] = ()
    """The field ids of columns of the top level."""
    has_signed: bool = False
    """Unsigned integers of up to 32 bits are signed, where no value is another one then."""
    has_strings: bool = False
    """JSON is a string."""
    has_logical_types: bool = False
    """Lists and maps have a logical type, too, and not only the older converted type."""
    without_statistics: Collection[int] = ()
    """The field ids of columns whose statistics, page indexes and Bloom filters are left out."""


def constants(file: bytes) -> list[Constant]:
    """The columns of a file with one row, which are to have that value in all rows of others.

    Args:
        file: as DuckDB writes it without compression: a page for each column, which is plain. No
            value is NULL, and none is a list, a map or a struct.
    """
    start = _footer_start(file)
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


def _footer_start(file: bytes) -> int:
    return footer_start(lambda first, end: file[first:end], len(file))


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
OF_GROUP, OF_CHUNK, OF_ELEMENT, OF_LOGICAL_TYPE = 32, 256, 64, 8
"""How much a new footer and its pages are larger, at most: for each row group, for each chunk
besides its value and its column's name, for each column besides its name, and for each logical
type."""
LARGEST_FOOTER = 16 * 1024 * 1024


def largest_size(
    file_size: int,
    footer_size: int,
    record_count: int,
    added: Sequence[Field],
    logical_types: int = 0,
) -> int | None:
    """A size that a file with these columns never exceeds; None: its footer is not changed.

    Args:
        file_size, footer_size, record_count: of the file, as the catalog has them.
        added: columns with the default that they have in all rows.
        logical_types: how many lists and maps get one, at most.
    """
    if not 0 < footer_size <= min(file_size, LARGEST_FOOTER) or record_count < 0:
        return None
    # Arrow writes a row group without rows for a table without rows.
    groups = min(max(record_count, 1), footer_size // SMALLEST_GROUP)
    names = sum(len(field.name.encode()) for field in added)
    values = sum(len(str(field.initial_default).encode()) for field in added)
    of_chunks = len(added) * OF_CHUNK + names + values
    of_elements = len(added) * OF_ELEMENT + names + logical_types * OF_LOGICAL_TYPE
    return file_size + groups * (OF_GROUP + of_chunks) + of_elements + OF_GROUP


SMALL_FOOTER = 64 * 1024
"""A footer that is no longer is read here, in some ten milliseconds: by Python alone, after a check
of what it claims. To hand it to another process, which may have to start, takes longer. Each added
column counts as another footer, because it has pages for each row group."""


def new_tail(footer: bytes, start: int, changes: FooterChanges, length: int) -> bytes:
    """What follows the first `start` bytes of a file with another footer.

    Args:
        footer: that of the file, which nobody has checked.
        length: of the result.

    Raises:
        NotParquet: the footer is broken, or the file cannot have other columns.
        ValueError: the result would be longer.
    """
    is_small = len(footer) * (1 + len(changes.added)) <= SMALL_FOOTER
    make = _tail if is_small else _tail_of_large
    return make(footer, start, changes, length)


def _tail(footer: bytes, start: int, changes: FooterChanges, length: int) -> bytes:
    check_footers([footer])
    return new_footer(footer, start, changes).tail(length)


@isolated
def _tail_of_large(footer: bytes, start: int, changes: FooterChanges, length: int) -> bytes:
    return _tail(footer, start, changes, length)


def old_tail(footer: bytes, length: int) -> bytes:
    """What follows the first bytes of a file that stays as it is, and gets longer.

    Raises:
        ValueError: it is longer already.
    """
    return NewFooter(b"", footer).tail(length)


def drop_statistics(file: bytes, field_ids: Collection[int]) -> bytes:
    """A file of ours without the statistics of these columns."""
    start = _footer_start(file)
    changes = FooterChanges(without_statistics=field_ids)
    new = new_footer(file[start:-TAIL], start, changes)
    return file[:start] + new.tail(new.size)


def new_footer(footer: bytes, start: int, changes: FooterChanges) -> NewFooter:
    """The end of a file with other columns.

    Args:
        footer: that of the file, without the eight bytes after it; `check_footers` accepts it.
        start: its position in the file.

    Raises:
        NotParquet: the file is encrypted, its columns have no ids, or its footer is broken.
    """
    try:
        file = Reader(footer).fields()
        if ENCRYPTION_ALGORITHM in file:
            raise NotParquet("it is encrypted")
        elements = file[SCHEMA].value.items
        columns = [*_columns(elements)]
        added = _added_constants(changes, columns)
        staying = [column for column in columns if column.field_id not in changes.left_out]
        if not staying and not added:
            added = [PLACEHOLDER]
        leaves = [leaf for column in staying for leaf in column.leaves]
        groups = file[ROW_GROUPS].value.items
        if changes.has_signed:
            _change_unsigned(elements, groups)
        if changes.has_logical_types:
            _add_logical_types(elements)
        if changes.has_strings:
            _change_json(elements)
        if changes.without_statistics:
            _remove_statistics(elements, groups, changes.without_statistics)
        root = elements[0] | {NUM_CHILDREN: i32(len(staying) + len(added))}
        old = (element for column in staying for element in column.elements)
        file[SCHEMA] = listed(STRUCT, [root, *old, *map(_element, added)])
        pages: list[bytes] = []
        offset = start
        for group in groups:
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


def _added_constants(changes: FooterChanges, columns: Sequence[_Column]) -> list[Constant]:
    """The columns that a file does not have, under names that are free in it.

    If two have the same name, the last one keeps it.
    """
    ids = {column.field_id for column in columns}
    if None in ids and changes.added:
        raise NotParquet("its columns have no ids")
    names = {column.name.lower() for column in columns}
    missing = []
    gone = ids.union(changes.left_out)
    for column in reversed([column for column in changes.added if column.field_id not in gone]):
        name = column.name
        while name.lower() in names:
            name = f"{name}_{column.field_id}"
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


def _leaves(elements: list[Struct]) -> list[Struct]:
    return [e for e in elements[1:] if NUM_CHILDREN not in e or not e[NUM_CHILDREN].value]


def _metas(groups: Iterable[Struct], leaf: int) -> Iterator[Struct]:
    """The metadata of all chunks of a leaf column."""
    for group in groups:
        yield group[COLUMNS].value.items[leaf][META_DATA].value


def _change_unsigned(elements: list[Struct], groups: list[Struct]) -> None:
    """Make signed integers of unsigned ones whose values are the same as signed ones.

    Those of 8 and 16 bits always are. Those of 32 bits are below 2^31, where all statistics say so.
    """
    for place, element in enumerate(_leaves(elements)):
        if element[TYPE].value != INT32 or not (bits := _unsigned_bits(element)):
            continue
        if bits < 32 or all(map(_is_below_2_31, _metas(groups, place))):
            element.pop(CONVERTED_TYPE, None)
            element.pop(LOGICAL_TYPE, None)


def _unsigned_bits(element: Struct) -> int:
    """The bits of an unsigned integer; 0 for what is none."""
    if LOGICAL_TYPE in element:
        integer = element[LOGICAL_TYPE].value.get(INTEGER)
        if integer is None or integer.value[IS_SIGNED].type != FALSE:
            return 0
        return ord(integer.value[BITS].value)
    return UNSIGNED.get(element[CONVERTED_TYPE].value, 0) if CONVERTED_TYPE in element else 0


def _is_below_2_31(meta: Struct) -> bool:
    if not meta[NUM_VALUES].value:
        return True
    if STATISTICS not in meta:
        return False
    statistics = meta[STATISTICS].value
    if MAX_VALUE in statistics:
        return int.from_bytes(statistics[MAX_VALUE].value, "little") < 2**31
    return NULL_COUNT in statistics and statistics[NULL_COUNT].value == meta[NUM_VALUES].value


def _add_logical_types(elements: list[Struct]) -> None:
    for element in elements[1:]:
        if CONVERTED_TYPE in element and LOGICAL_TYPE not in element:
            member = GROUPS.get(element[CONVERTED_TYPE].value)
            if member:
                element[LOGICAL_TYPE] = struct({member: struct({})})


def _change_json(elements: list[Struct]) -> None:
    for element in _leaves(elements):
        if CONVERTED_TYPE in element and element[CONVERTED_TYPE].value == CONVERTED_JSON:
            element[CONVERTED_TYPE] = i32(CONVERTED_STRING)
        if LOGICAL_TYPE in element and JSON in element[LOGICAL_TYPE].value:
            element[LOGICAL_TYPE] = struct({STRING: struct({})})


def _remove_statistics(
    elements: list[Struct], groups: list[Struct], field_ids: Collection[int]
) -> None:
    """Leave no way to pass over row groups or pages by the values of these columns."""
    for place, element in enumerate(_leaves(elements)):
        if FIELD_ID not in element or element[FIELD_ID].value not in field_ids:
            continue
        for group in groups:
            chunk = group[COLUMNS].value.items[place]
            for key in PAGE_INDEXES:
                chunk.pop(key, None)
        for meta in _metas(groups, place):
            # Without ENCODING_STATS, and with another encoding than those of dictionaries, some
            # values may be in no dictionary.
            for key in (STATISTICS, ENCODING_STATS, *BLOOM_FILTER):
                meta.pop(key, None)
            encodings = meta[ENCODINGS].value.items
            if PLAIN_DICTIONARY in encodings and PLAIN not in encodings:
                meta[ENCODINGS] = listed(I32, [*encodings, PLAIN])


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
