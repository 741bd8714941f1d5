"""A Parquet file with more or fewer columns than the file whose bytes it begins with.

    bytes of the file up to its footer + new column chunks + zeros + a new footer + length + PAR1

Readers find all parts through the footer, which names the chunks of columns by their positions. So
a column with one value in all rows can be added, and a column can be left out or renamed, without
reading any row. To add a field to a struct, one only has to know in which rows the struct is NULL.
https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import NamedTuple

from ...runtime.isolation import isolated
from ..types import AddedField, Field, List, Map, Primitive
from .footer import (
    CONVERTED_TYPE,
    FIELD_ID,
    LOGICAL_TYPE,
    NAME,
    NESTED,
    NUM_CHILDREN,
    NUM_ROWS,
    REPEATED,
    REPETITION_TYPE,
    SCHEMA,
    TAIL,
    TIME,
    TIMESTAMP,
    TYPE,
    UNIT,
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
"""The key of Arrow's own types, which describe the columns that the file had before."""
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

OPTIONAL, BOOLEAN, INT32, FLOAT, UNCOMPRESSED = 1, 0, 1, 4, 0
PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY = 0, 2, 3, 8
DATA_PAGE, DICTIONARY_PAGE = 0, 2
PAGE_TYPE, UNCOMPRESSED_PAGE_SIZE, PAGE_SIZE = 1, 2, 3
DATA_PAGE_HEADER, DICTIONARY_PAGE_HEADER = 5, 7
"""Fields of PageHeader."""
ENCODING = 2
"""The field of DataPageHeader with the encoding of the values."""
OWN = {REPETITION_TYPE, NAME, FIELD_ID}
"""The fields of SchemaElement that do not describe the type of a column."""

UNSIGNED = {11: 8, 12: 16, 13: 32}
"""The converted types UINT_8, UINT_16 and UINT_32, and their bits."""
SIGNED = {15: 8, 16: 16}
"""The same of INT_8 and INT_16."""
INTEGER, BITS, IS_SIGNED = 10, 1, 2
"""The member of the union LogicalType, and its fields."""
STRING, JSON = 1, 12
"""Members of it."""
CONVERTED_STRING, CONVERTED_JSON = 0, 19
GROUPS = {1: 2, 3: 3}
"""The members MAP and LIST of it by the converted types of the same names."""

MILLIS = 1
"""The member of the union TimeUnit."""
CONVERTED_MILLIS = frozenset((7, 9))
"""The converted types TIME_MILLIS and TIMESTAMP_MILLIS."""

TYPE_ORDER: Struct = {1: struct({})}
"""ColumnOrder: the order that the column's type defines."""

Path = tuple[str, ...]
"""The names from the top of a file down to a column, as `footer.Column` has them."""


class Named(NamedTuple):
    """The name and the field id of a column for clients."""

    field_id: int
    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A column that has the same value in all rows; it is optional."""

    name: str
    field_id: int
    element: Struct
    """The fields of its SchemaElement that describe its type."""
    value: bytes | None
    """The value in the encoding PLAIN; of a boolean its byte, 0 or 1. None: NULL."""
    parent: int | None = None
    """The field id of the struct that it is in; None: it is at the top level."""
    inner: Sequence[Struct] = ()
    """The schema elements in a list, a map or a struct, which is NULL and at the top level."""


PLACEHOLDER = Constant("_", 2**31 - 201, {TYPE: i32(BOOLEAN)}, b"\0")
"""The column of a file that loses all others: DuckDB cannot read one without columns. Its id is the
highest that Iceberg does not reserve, and it is not larger than what the file loses."""


@dataclass(frozen=True, slots=True)
class FooterChanges:
    """The differences between a new footer and the one that it is made from."""

    added: Sequence[Constant] = ()
    """Columns to add at the end, unless the file has them. A column whose struct the file does not
    have is not added: the struct is NULL."""
    left_out: Collection[int] = ()
    """The field ids of columns of the top level."""
    has_signed: bool = False
    """Remove the annotation of integers of up to 32 bits where that changes no value."""
    has_strings: bool = False
    """Make JSON a string."""
    has_logical_types: bool = False
    """Give lists and maps a logical type, in addition to the older converted type."""
    without_statistics: Collection[int] = ()
    """The field ids of columns whose statistics, page indexes and Bloom filters are left out."""
    has_plain_milliseconds: bool = False
    """Leave them out also for all columns in milliseconds."""
    doubles: Collection[int] = ()
    """Leave them out also for columns with these ids that are FLOAT in the file."""
    names: Mapping[Path, Named] | None = None
    """Ids and names for all columns of a file that has no field ids of the table; it loses columns
    without an entry. None: it keeps its own."""
    present: Mapping[int, bytes] = field(default_factory=dict)
    """By the field id of a struct to which a field is added: for each row, how many of the structs
    from the top down to it are not NULL. It is needed where `structs_with_null` says so."""


def constants(file: bytes) -> list[Constant]:
    """The columns of a file with one row, as constants with the values of that row.

    Args:
        file: as DuckDB writes it without compression: with one plain page for each column. All
            lists, maps and structs are NULL.
    """
    start = footer_start(file)
    metadata = Reader(file[start:-TAIL]).fields()
    [group] = metadata[ROW_GROUPS].value.items
    elements = metadata[SCHEMA].value.items
    _add_logical_types(elements)
    columns = []
    for node in _tree(elements).children:
        element, *inner = node.elements()
        own = {key: value for key, value in element.items() if key not in OWN}
        of_column = node.name, element[FIELD_ID].value, own
        if node.number is None:
            columns.append(Constant(*of_column, None, inner=inner))
            continue
        chunk = group[COLUMNS].value.items[node.number]
        page = file[chunk[META_DATA].value[DATA_PAGE_OFFSET].value :]
        reader = Reader(page)
        header = reader.fields()
        body = page[len(reader.consumed) :][: header[PAGE_SIZE].value]
        levels = 4 + int.from_bytes(body[:4], "little")
        is_null = body[levels - 1] == 0
        if not is_null and header[DATA_PAGE_HEADER].value[ENCODING].value != PLAIN:
            raise AssertionError("DuckDB writes one value otherwise")
        columns.append(Constant(*of_column, None if is_null else body[levels:]))
    return columns


@dataclass(frozen=True, slots=True)
class NewFooter:
    """The bytes that follow the bytes of a file up to its footer."""

    pages: bytes
    footer: bytes

    @property
    def size(self) -> int:
        """The length without zeros."""
        return len(self.pages) + len(self.footer) + 4 + len(MAGIC)

    def tail(self, size: int) -> bytes:
        """The bytes of it all, filled up to a size.

        Raises:
            ValueError: it is larger.
        """
        if self.size > size:
            raise ValueError(f"{self.size} bytes are more than {size}")
        length = len(self.footer).to_bytes(4, "little")
        return self.pages + bytes(size - self.size) + self.footer + length + MAGIC


SMALLEST_GROUP, SMALLEST_CHUNK = 30, 20
"""The bytes of a row group, and of a column chunk in it, in a footer, at least."""
OF_GROUP, OF_CHUNK, OF_NULLS, OF_ELEMENT, OF_LOGICAL_TYPE, OF_NAMED = 32, 256, 128, 64, 8, 16
"""How much larger a new footer and its pages are at most: for each row group; for each chunk,
besides its value and its column's name; for each chunk of NULL; for each column, besides its name;
for each logical type; and for each column, and each of its chunks, that gets an id and a name."""
LARGEST_FOOTER = 16 * 1024 * 1024


def largest_size(
    file_size: int,
    footer_size: int,
    record_count: int,
    added: Sequence[AddedField],
    logical_types: int = 0,
    names: Mapping[Path, Named] | None = None,
) -> int | None:
    """A size that a file with these columns never exceeds; None: its footer is not changed.

    Args:
        file_size, footer_size, record_count: of the file, as the catalog has them.
        added: columns with the value that they have in all rows.
        logical_types: how many lists and maps get one, at most.
        names: those that columns of the file get.
    """
    if not 0 < footer_size <= min(file_size, LARGEST_FOOTER) or record_count < 0:
        return None
    columns = sum(len(path) == 1 for path in names or ())
    smallest_group = max(SMALLEST_GROUP, columns * SMALLEST_CHUNK)
    # Arrow writes a row group without rows for a table without rows.
    groups = min(max(record_count, 1), footer_size // smallest_group)
    values = sum(len(str(of.field.initial_default).encode()) for of in added)
    new = [new for of in added for new in _elements(of.field)]
    paths = sum(path for path, _ in new)
    of_chunks = sum(chunk for _, chunk in new) + paths + values
    of_elements = len(new) * OF_ELEMENT + paths + logical_types * OF_LOGICAL_TYPE
    # The path of a field has the names of its structs, which are in the footer for each row group.
    of_structs = sum(footer_size + record_count * of.depth // 8 for of in added if of.depth)
    if names is not None:
        lengths = {path: len(named.name.encode()) for path, named in names.items()}
        of_elements += sum(lengths.values()) + len(names) * OF_NAMED
        prefixes = (path[: end + 1] for path in names for end in range(len(path)))
        of_chunks += sum(lengths.get(path, 0) for path in prefixes) + len(names) * OF_NAMED
    size = file_size + groups * (OF_GROUP + of_chunks) + of_elements + of_structs + OF_GROUP
    # A broken row of the catalog may have any number; a manifest has 64 bits for it.
    return size if size < 1 << 63 else None


REPEATED_NAME = len("key_value")
"""The longest name of the repeated group in a list or a map."""


def _elements(field: Field, above: int = 0) -> Iterator[tuple[int, int]]:
    """For each schema element of a new column: the bytes of its path, and of each of its chunks."""
    path = above + len(field.name.encode())
    if isinstance(field.type, Primitive):
        yield path, OF_NULLS if field.initial_default is None else OF_CHUNK
        return
    yield path, 0
    if isinstance(field.type, List | Map):
        path += REPEATED_NAME
        yield path, 0
    for member in field.type.members:
        yield from _elements(member, path)


SMALL_FOOTER = 64 * 1024
"""A footer of at most this length is read in this process, in some ten milliseconds, by Python
alone and after a check of its limits. Another process, which may have to start first, would take
longer. Each added column counts as another footer, because it has pages for each row group."""


def new_tail(footer: bytes, start: int, changes: FooterChanges, length: int) -> bytes:
    """The bytes that follow the first `start` bytes of a file with another footer.

    Args:
        footer: that of the file, unchecked.
        length: of the result.

    Raises:
        NotParquet: the footer is broken, or the file cannot have other columns.
        ValueError: the result would be longer.
    """
    new = sum(1 + len(column.inner) for column in changes.added)
    is_small = len(footer) * (1 + new) <= SMALL_FOOTER
    make = _tail if is_small else _tail_of_large
    return make(footer, start, changes, length)


def _tail(footer: bytes, start: int, changes: FooterChanges, length: int) -> bytes:
    check_footers([footer])
    return new_footer(footer, start, changes).tail(length)


@isolated
def _tail_of_large(footer: bytes, start: int, changes: FooterChanges, length: int) -> bytes:
    return _tail(footer, start, changes, length)


def old_tail(footer: bytes, length: int) -> bytes:
    """The bytes that follow the first bytes of a file that gets longer and is otherwise unchanged.

    Raises:
        ValueError: it is longer already.
    """
    return NewFooter(b"", footer).tail(length)


def change_footer(file: bytes, changes: FooterChanges) -> bytes:
    """A file of ours with another footer."""
    start = footer_start(file)
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
        groups = file[ROW_GROUPS].value.items
        root = _tree(elements)
        if changes.names is not None:
            _rename(root, changes.names)
        _add_columns(root, changes)
        leaves = [*_leaves_of(root)]
        levels = [*_levels(leaves, groups, changes.present)]
        if changes.has_signed:
            _change_unsigned(elements, groups)
        if changes.has_logical_types:
            _add_logical_types(elements)
        if changes.has_strings:
            _change_json(elements)
        if changes.without_statistics or changes.has_plain_milliseconds or changes.doubles:
            _remove_statistics(elements, groups, changes)
        file[SCHEMA] = listed(STRUCT, root.elements())
        pages: list[bytes] = []
        offset = start
        for group, of_group in zip(groups, levels, strict=True):
            if changes.names is not None:
                _change_paths(group, leaves)
            offset = _change_group(group, leaves, of_group, pages, offset)
        if KEY_VALUES in file:
            pairs = file[KEY_VALUES].value.items
            other_pairs = [pair for pair in pairs if pair[KEY].value != ARROW_SCHEMA]
            file[KEY_VALUES] = listed(STRUCT, other_pairs)
        if COLUMN_ORDERS in file:
            orders = file[COLUMN_ORDERS].value.items
            new = (TYPE_ORDER if leaf.number is None else orders[leaf.number] for leaf in leaves)
            file[COLUMN_ORDERS] = listed(STRUCT, new)
        if file[NUM_ROWS].value < 0:
            raise IndexError(NUM_ROWS)
        return NewFooter(b"".join(pages), written(file))
    except NotParquet:
        raise
    except (LookupError, TypeError, AttributeError, ValueError, OverflowError):
        raise NotParquet("its footer is broken") from None


class StructColumn(NamedTuple):
    """A leaf column in a struct, which shows where the structs that it is in are NULL."""

    field_id: int
    """That of the innermost struct."""
    are_optional: tuple[bool, ...]
    """Whether each of these structs, the outermost first, may be NULL."""
    chunks: tuple[tuple[int, int], ...]
    """Its chunks in the file: (first byte, number of bytes)."""
    end: bytes
    """The end of a file with this column alone, in which each name is that of `step`."""


def step(level: int) -> str:
    """The name of a struct, or of the column, at a level of `StructColumn.end`."""
    return f"step{level}"


def structs_with_null(footer: bytes, start: int, changes: FooterChanges) -> list[StructColumn]:
    """The structs that get a field and may be NULL, unless statistics say that they never are.

    Args, Raises: as `new_footer`.
    """
    if not any(column.parent for column in changes.added):
        return []
    try:
        file = Reader(footer).fields()
        root = _tree(file[SCHEMA].value.items)
        if changes.names is not None:
            _rename(root, changes.names)
        _add_columns(root, changes)
        groups = file[ROW_GROUPS].value.items
        structs: dict[int, StructColumn] = {}
        for leaf in _leaves_of(root):
            constant = leaf.constant
            if not constant or constant.parent is None or constant.parent in structs:
                continue
            if not leaf.structs or all(_has_no_null(leaf.way, group) for group in groups):
                continue
            sizes = {
                number: sum(meta[COMPRESSED_SIZE].value for meta in _metas(groups, number))
                for number in _plain_leaves(leaf.way[-2])
            }
            if not sizes:
                raise NotParquet("a struct has nothing but lists and maps in it")
            number = min(sizes, key=lambda number: sizes[number])
            structs[constant.parent] = StructColumn(
                constant.parent,
                tuple(node.repetition == OPTIONAL for node in leaf.way[:-1]),
                tuple(map(_place, _metas(groups, number))),
                _end_with(footer, start, number),
            )
        return [*structs.values()]
    except NotParquet:
        raise
    except (LookupError, TypeError, AttributeError, ValueError, OverflowError):
        raise NotParquet("its footer is broken") from None


def _place(meta: Struct) -> tuple[int, int]:
    first: int = meta[DATA_PAGE_OFFSET].value
    if DICTIONARY_PAGE_OFFSET in meta:
        first = min(first, meta[DICTIONARY_PAGE_OFFSET].value or first)
    return first, meta[COMPRESSED_SIZE].value


def _end_with(footer: bytes, start: int, number: int) -> bytes:
    """The end of a file that has one of the leaf columns, which is in no list and no map."""
    root = _tree(Reader(footer).fields()[SCHEMA].value.items)
    [leaf] = (leaf for leaf in _leaves_of(root) if leaf.number == number)
    path = tuple(node.name for node in leaf.way)
    names = {path[: n + 1]: Named(n + 1, step(n)) for n in range(len(path))}
    new = new_footer(footer, start, FooterChanges(names=names))
    return new.tail(new.size)


@dataclass(slots=True)
class _Node:
    """A column, at any level, or a repeated group in one."""

    element: Struct
    children: list["_Node"] = field(default_factory=list)
    number: int | None = None
    """Which of the leaf columns of the file it is; None: it is a group, or new."""
    constant: Constant | None = None

    @property
    def name(self) -> str:
        name: bytes = self.element[NAME].value
        return name.decode()

    @property
    def field_id(self) -> int | None:
        value = self.element.get(FIELD_ID)
        return value and value.value

    @property
    def repetition(self) -> int:
        value = self.element.get(REPETITION_TYPE)
        return value.value if value else 0

    def elements(self) -> Iterator[Struct]:
        """The schema elements of it and all in it."""
        number = {NUM_CHILDREN: i32(len(self.children))} if self.number is None else {}
        yield self.element if self.constant else self.element | number
        for child in self.children:
            yield from child.elements()

    def find(self, field_id: int, above: tuple["_Node", ...] = ()) -> tuple["_Node", ...] | None:
        """The path down to the column with an id; None: there is none."""
        for child in self.children:
            way = (*above, child)
            if child.field_id == field_id:
                return way
            if inner := child.find(field_id, way):
                return inner
        return None


def _tree(elements: list[Struct]) -> _Node:
    place = leaf = 0

    def node() -> _Node:
        nonlocal place, leaf
        element = elements[place]
        children = element[NUM_CHILDREN].value if NUM_CHILDREN in element else 0
        place += 1
        if not children and place > 1:
            leaf += 1
            return _Node(element, number=leaf - 1)
        return _Node(element, [node() for _ in range(children)])

    root = node()
    if place != len(elements):
        raise IndexError(place)
    return root


def _rename(root: _Node, names: Mapping[Path, Named]) -> None:
    root.children = [child for child in root.children if _has_name(child, names, (), "")]


def _has_name(node: _Node, names: Mapping[Path, Named], above: Path, within: str) -> bool:
    """Give a column, and all in it, ids and names.

    Args:
        within: the kind of group that it is in.

    Returns:
        bool: whether the file keeps it.
    """
    element = node.element
    if within in NESTED.values() and node.repetition == REPEATED and node.children:
        element.pop(FIELD_ID, None)
        inner = "ENTRY" if within == "LIST" else "PAIR"
        return all(_has_name(child, names, above, inner) for child in node.children)
    path = (*above, "element" if within == "ENTRY" else node.name)
    if path not in names:
        return False
    field_id, name = names[path]
    if within not in ("ENTRY", "PAIR"):  # there the names are Parquet's
        element[NAME] = Value(BINARY, name.encode())
    element[FIELD_ID] = i32(field_id)
    fields = sorted(element.items())
    element.clear()
    element.update(fields)
    kind = NESTED.get(element[CONVERTED_TYPE].value, "") if CONVERTED_TYPE in element else ""
    staying = [child for child in node.children if _has_name(child, names, path, kind)]
    if node.children and (not staying or (kind and len(staying) < len(node.children))):
        raise NotParquet("a list, a map or a struct has nothing in it that is known")
    node.children = staying
    return True


def _add_columns(root: _Node, changes: FooterChanges) -> None:
    """Leave out columns of the top level, and add those that a file does not have.

    New columns get names that are free in the file. If two have the same name, the last one keeps
    it.
    """
    named = [child for child in root.children if child.field_id is not None]
    if changes.added and len(named) < len(root.children):
        raise NotParquet("its columns have no ids")
    staying = [child for child in root.children if child.field_id not in changes.left_out]
    new: dict[int, list[_Node]] = {}
    for column in reversed(changes.added):
        if column.field_id in changes.left_out or root.find(column.field_id):
            continue
        group = root
        if column.parent is not None:
            way = root.find(column.parent)
            if way is None or way[0] not in staying:
                continue
            if any(node.repetition == REPEATED for node in way) or not way[-1].children:
                raise NotParquet("a field in a list or a map has a default")
            group = way[-1]
        siblings = new.setdefault(id(group), [])
        names = {node.name.lower() for node in (*group.children, *siblings)}
        name = column.name
        while name.lower() in names:
            name = f"{name}_{column.field_id}"
        siblings.append(_constant_node(replace(column, name=name)))
        if group is not root:
            group.children.append(siblings[-1])
    root.children = [*staying, *new.get(id(root), [])[::-1]]
    if not root.children:
        root.children = [_constant_node(PLACEHOLDER)]


def _constant_node(column: Constant) -> _Node:
    root = _tree([{NUM_CHILDREN: i32(1)}, _element(column), *column.inner])
    for leaf in _leaves_of(root):
        leaf.way[-1].number, leaf.way[-1].constant = None, column
    return root.children[0]


class _Leaf(NamedTuple):
    """A leaf column of the new footer."""

    number: int | None
    """Which one of the file it is; None: it is new."""
    way: tuple[_Node, ...]
    """From the top down to it."""

    @property
    def constant(self) -> Constant | None:
        return self.way[-1].constant

    @property
    def path(self) -> list[bytes]:
        return [node.element[NAME].value for node in self.way]

    @property
    def structs(self) -> tuple[_Node, ...]:
        """The structs that it is in and that may be NULL."""
        return tuple(node for node in self.way[:-1] if node.repetition == OPTIONAL)


def _leaves_of(node: _Node, above: tuple[_Node, ...] = ()) -> Iterator[_Leaf]:
    for child in node.children:
        way = (*above, child)
        if child.children:
            yield from _leaves_of(child, way)
        else:
            yield _Leaf(child.number, way)


def _change_paths(group: Struct, leaves: Sequence[_Leaf]) -> None:
    chunks = group[COLUMNS].value.items
    for leaf in leaves:
        if leaf.number is not None and META_DATA in chunks[leaf.number]:
            chunks[leaf.number][META_DATA].value[PATH] = listed(BINARY, leaf.path)


def _leaves(elements: list[Struct]) -> list[Struct]:
    return [e for e in elements[1:] if NUM_CHILDREN not in e or not e[NUM_CHILDREN].value]


def _metas(groups: Iterable[Struct], leaf: int) -> Iterator[Struct]:
    """The metadata of all chunks of a leaf column."""
    for group in groups:
        yield group[COLUMNS].value.items[leaf][META_DATA].value


def _change_unsigned(elements: list[Struct], groups: list[Struct]) -> None:
    """Remove the annotations of small integers, and of unsigned ones with the same signed values.

    Those of 8 and 16 bits always have the same values, and those of 32 bits if all statistics are
    below 2^31.
    """
    for place, element in enumerate(_leaves(elements)):
        if element[TYPE].value != INT32 or not (bits := _bits(element)):
            continue
        if bits < 32 or all(map(_is_below_2_31, _metas(groups, place))):
            element.pop(CONVERTED_TYPE, None)
            element.pop(LOGICAL_TYPE, None)


def _bits(element: Struct) -> int:
    """The bits of an unsigned or a small integer; 0 for other columns."""
    if LOGICAL_TYPE in element:
        integer = element[LOGICAL_TYPE].value.get(INTEGER)
        if integer is None:
            return 0
        bits = ord(integer.value[BITS].value)
        return bits if bits < 32 or integer.value[IS_SIGNED].type == FALSE else 0
    return (
        (UNSIGNED | SIGNED).get(element[CONVERTED_TYPE].value, 0)
        if CONVERTED_TYPE in element
        else 0
    )


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
    elements: list[Struct], groups: list[Struct], changes: FooterChanges
) -> None:
    """Remove all by which readers could skip row groups or pages by the values of some columns."""
    for place, element in enumerate(_leaves(elements)):
        field_id = element[FIELD_ID].value if FIELD_ID in element else None
        is_named = field_id in changes.without_statistics or (
            field_id in changes.doubles and element[TYPE].value == FLOAT
        )
        if not is_named and not (changes.has_plain_milliseconds and _has_milliseconds(element)):
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


def _has_milliseconds(element: Struct) -> bool:
    if LOGICAL_TYPE in element:
        logical = element[LOGICAL_TYPE].value
        return any(
            MILLIS in logical[of].value[UNIT].value for of in (TIME, TIMESTAMP) if of in logical
        )
    return CONVERTED_TYPE in element and element[CONVERTED_TYPE].value in CONVERTED_MILLIS


def _element(column: Constant) -> Struct:
    own = {
        REPETITION_TYPE: i32(OPTIONAL),
        NAME: Value(BINARY, column.name.encode()),
        FIELD_ID: i32(column.field_id),
    }
    return dict(sorted((column.element | own).items()))


def _change_group(
    group: Struct,
    leaves: Sequence[_Leaf],
    levels: Sequence["Levels"],
    pages: list[bytes],
    offset: int,
) -> int:
    """Change a row group, and return the position after the pages of its new columns.

    Args:
        levels: of the new columns, in order.
    """
    chunks = group[COLUMNS].value.items
    if any(CRYPTO_METADATA in chunk or ENCRYPTED_METADATA in chunk for chunk in chunks):
        raise NotParquet("it is encrypted")
    rows = group[GROUP_ROWS].value
    new_chunks, sizes = [], []
    of_leaf = iter(levels)
    for leaf in leaves:
        if leaf.number is not None:
            new_chunks.append(chunks[leaf.number])
            sizes.append(_sizes(new_chunks[-1]))
            continue
        chunk, body = _constant_chunk(leaf, next(of_leaf), rows, offset)
        new_chunks.append(chunk)
        sizes.append((len(body), len(body)))
        pages.append(body)
        offset += len(body)
    group[COLUMNS] = listed(STRUCT, new_chunks)
    group[TOTAL_BYTE_SIZE] = i64(sum(uncompressed for uncompressed, _ in sizes))
    if TOTAL_COMPRESSED_SIZE in group:
        group[TOTAL_COMPRESSED_SIZE] = i64(sum(compressed for _, compressed in sizes))
    if SORTING_COLUMNS in group:
        _change_sorting(group, [leaf.number for leaf in leaves if leaf.number is not None])
    return offset


Levels = bytes | int
"""The definition level of a column in each row of a row group, or the one that it has in all."""


def _levels(
    leaves: Sequence[_Leaf], groups: Sequence[Struct], present: Mapping[int, bytes]
) -> Iterator[list[Levels]]:
    """The levels of the new columns, for each row group."""
    row = 0
    for group in groups:
        rows = group[GROUP_ROWS].value
        yield [_levels_in(leaf, group, present, row) for leaf in leaves if leaf.number is None]
        row += rows


def _levels_in(leaf: _Leaf, group: Struct, present: Mapping[int, bytes], row: int) -> Levels:
    """The levels of a column in a row group; `row` is the number of rows before the group."""
    constant, structs, rows = leaf.constant, leaf.structs, group[GROUP_ROWS].value
    assert constant is not None
    has_value = constant.value is not None
    if constant.parent is None:
        return int(has_value)
    if not structs or _has_no_null(leaf.way, group):
        return len(structs) + has_value
    levels = present.get(constant.parent or 0, b"")[row : row + rows]
    if len(levels) < rows:
        raise NotParquet("it is not known where a struct is NULL")
    return levels.replace(bytes([len(structs)]), bytes([len(structs) + has_value]))


def _has_no_null(way: Sequence[_Node], group: Struct) -> bool:
    """Whether a column in the same struct has a value in all rows, by its statistics."""
    for number in _plain_leaves(way[-2]):
        [meta] = _metas([group], number)
        nulls = meta[STATISTICS].value.get(NULL_COUNT) if STATISTICS in meta else None
        if nulls is not None and nulls.value == 0:
            return True
    return False


def _plain_leaves(node: _Node) -> Iterator[int]:
    """The leaf columns in a struct that are in no list and no map in it."""
    for child in node.children:
        if child.repetition == REPEATED:
            continue
        if child.number is not None:
            yield child.number
        yield from _plain_leaves(child)


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


def _constant_chunk(leaf: _Leaf, levels: Levels, rows: int, offset: int) -> tuple[Struct, bytes]:
    """A column chunk at a place in the file, and its pages."""
    column = leaf.constant
    assert column is not None
    physical_type = leaf.way[-1].element[TYPE].value
    highest = len(leaf.structs) + 1
    encoded, values_count = _encoded_levels(levels, highest, rows)
    run = varint(values_count << 1)
    dictionary, encoding = b"", PLAIN
    if not values_count:
        values = b""
    elif physical_type == BOOLEAN:
        values = run + (column.value or b"")
        values = len(values).to_bytes(4, "little") + values
        encoding = RLE
    else:
        plain = column.value or b""
        dictionary = _page(DICTIONARY_PAGE, DICTIONARY_PAGE_HEADER, 1, plain, PLAIN)
        values = b"\1" + run + b"\0"  # one bit for each, and all are the value 0
        encoding = RLE_DICTIONARY
    body = len(encoded).to_bytes(4, "little") + encoded + values
    if any(node.repetition == REPEATED for node in leaf.way):  # each row has one level, no value
        repeated, _ = _encoded_levels(0, 1, rows)
        body = len(repeated).to_bytes(4, "little") + repeated + body
    data = _page(DATA_PAGE, DATA_PAGE_HEADER, rows, body, encoding, RLE, RLE)
    length = len(dictionary) + len(data)
    encodings = [PLAIN, RLE, RLE_DICTIONARY] if dictionary else sorted({RLE, encoding})
    meta: Struct = {
        CHUNK_TYPE: i32(physical_type),
        ENCODINGS: listed(I32, encodings),
        PATH: listed(BINARY, leaf.path),
        CODEC: i32(UNCOMPRESSED),
        NUM_VALUES: i64(rows),
        UNCOMPRESSED_SIZE: i64(length),
        COMPRESSED_SIZE: i64(length),
        DATA_PAGE_OFFSET: i64(offset + len(dictionary)),
    }
    if dictionary:
        meta[DICTIONARY_PAGE_OFFSET] = i64(offset)
    return {FILE_OFFSET: i64(0), META_DATA: struct(meta)}, dictionary + data


def _encoded_levels(levels: Levels, highest: int, rows: int) -> tuple[bytes, int]:
    """Definition levels in Parquet's hybrid of runs and packed bits, and how many are the highest.

    https://parquet.apache.org/docs/file-format/data-pages/encodings/#run-length-encoding--bit-packing-hybrid-rle--3
    """
    if isinstance(levels, int):
        return varint(rows << 1) + bytes([levels]), rows if levels == highest else 0
    runs = b"".join(varint(len([*run]) << 1) + bytes([level]) for level, run in groupby(levels))
    bits, eights = highest.bit_length(), -(-len(levels) // 8)
    if len(runs) > eights * bits:
        padded = levels.ljust(8 * eights, b"\0")
        runs = varint(eights << 1 | 1) + b"".join(
            sum(
                level << bits * place for place, level in enumerate(padded[first : first + 8])
            ).to_bytes(bits, "little")
            for first in range(0, len(padded), 8)
        )
    return runs, levels.count(highest)


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
