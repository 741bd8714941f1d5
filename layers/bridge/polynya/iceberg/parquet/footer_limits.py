"""Limits on footers that others wrote, which are checked before DuckDB reads the file.

DuckDB trusts the length that a list claims, and reads nested columns by recursion: 28 bytes can
take gigabytes, and 160 KB can end the process. So this module reads the whole footer first.

It knows the lists of `parquet.thrift`, because generated readers read their items by the type in
the specification, whatever type the list claims. Fields that are not known are skipped by their own
type, as generated readers skip them.
https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from ...runtime import budget
from ..sandbox import Unreadable
from .footer import NUM_CHILDREN, SCHEMA, TAIL, NotParquet, footer_start
from .thrift import (
    BINARY,
    BYTE,
    DOUBLE,
    FALSE,
    I16,
    I32,
    I64,
    LIST,
    MOST_LEVELS,
    SET,
    STRUCT,
    TRUE,
    Thrift,
)

INTEGERS = (I16, I32, I64)
FIXED = {TRUE: 1, FALSE: 1, BYTE: 1, DOUBLE: 8}
"""Bytes of items that have all the same size."""

MOST_COLUMNS = 20_000
"""With groups. DuckDB and we take 1.5 KB for each."""
DEEPEST_COLUMN = 2 * MOST_LEVELS
"""Each list or map of Iceberg has two levels in Parquet."""
MOST_MEMORY = 192 * 1024 * 1024
"""The memory that DuckDB may take for one footer; for the longest one, of 16 MB, it takes 80 MB if
the columns have statistics."""
MOST_MEMORY_IN_ALL = 1024 * 1024 * 1024
"""The memory that it would take for the footers of one batch together, of which Polynya keeps a
third."""
MOST_STEPS = 3_000_000
"""The most values that are read one by one, which takes 3 s; footers of common programs have
few."""
STEPS_BETWEEN_CHECKS = 10_000
"""How often the time budget is checked."""
MOST_SCHEMAS = 16
"""How many different schemas are recognised among the files."""


class Items(NamedTuple):
    """The items of a list."""

    type: int
    memory: int
    """Bytes of memory that DuckDB takes for each, rounded up."""
    struct: "Struct"


@dataclass(frozen=True, slots=True)
class Struct:
    """The lists within a struct, at any level, by field number."""

    lists: Mapping[int, Items] = field(default_factory=dict)
    structs: Mapping[int, "Struct"] = field(default_factory=dict)


OTHER = Struct()
"""A struct without lists, or an unknown one."""


def _items(type_: int, memory: int, struct: Struct = OTHER) -> Items:
    return Items(type_, memory, struct)


PAIRS = _items(STRUCT, 100)
SIZE_STATISTICS = Struct({2: _items(I64, 8), 3: _items(I64, 8)})
GEOSPATIAL_STATISTICS = Struct({2: _items(I32, 4)})
METADATA = Struct(
    {2: _items(I32, 4), 3: _items(BINARY, 32), 8: PAIRS, 13: _items(STRUCT, 50)},
    {16: SIZE_STATISTICS, 17: GEOSPATIAL_STATISTICS},
)
CRYPTO = Struct(structs={2: Struct({1: _items(BINARY, 32)})})
CHUNK = Struct(structs={3: METADATA, 8: CRYPTO})
ROW_GROUP = Struct({1: _items(STRUCT, 1000, CHUNK), 4: _items(STRUCT, 50)})
ELEMENT = Struct()
FILE = Struct(
    {
        SCHEMA: _items(STRUCT, 1500, ELEMENT),
        4: _items(STRUCT, 150, ROW_GROUP),
        5: PAIRS,
        7: _items(STRUCT, 300),
    }
)


def check_footers(footers: Iterable[bytes]) -> None:
    """Refuse footers that cost too much, or have another form than the specification's.

    Args:
        footers: each without the eight bytes after it.

    Raises:
        NotParquet: the message says why.
        OutOfTime: no time is left in the budget.
    """
    schemas: list[bytes] = []
    memory = 0
    for footer in footers:
        # Most files of a commit share a schema, which is checked once.
        start = next((len(schema) for schema in schemas if footer.startswith(schema)), 0)
        checker = _Checker(footer, start)
        try:
            checker.check_file()
        except IndexError:
            raise NotParquet("its footer is broken") from None
        memory += checker.memory
        if memory > MOST_MEMORY_IN_ALL:
            raise NotParquet(f"with the others its {TOO_MUCH}")
        if not start and len(schemas) < MOST_SCHEMAS:
            schemas.append(footer[: checker.end_of_schema])


def checked(file: bytes) -> bytes:
    """The same file, which DuckDB may read.

    Raises:
        Unreadable: its footer is refused; the message says why.
        OutOfTime: no time is left in the budget.
    """
    try:
        check_footers([file[footer_start(file) : -TAIL]])
    except NotParquet as error:
        raise Unreadable(str(error)) from None
    return file


TOO_MUCH = "footer needs too much memory: write fewer columns or row groups"


class _Checker(Thrift):
    """Checks one footer; IndexError: it is broken."""

    def __init__(self, footer: bytes, start: int) -> None:
        """Begin.

        Args:
            start: the end of a schema that is known; 0: at the beginning.
        """
        super().__init__(footer)
        self._offset = self.end_of_schema = start
        self.memory = self._steps = 0
        self._children: list[int] = []

    def check_file(self) -> None:
        """Check FileMetaData."""
        self._check_struct(FILE, SCHEMA if self.end_of_schema else 0)

    def _check_struct(self, struct: Struct, number: int = 0) -> None:
        children = 0
        while head := self._byte():
            self._count_step()
            number = number + (head >> 4) if head >> 4 else self._integer()
            if not 0 < number < 1 << 15:
                raise IndexError(number)
            if struct is ELEMENT and number == NUM_CHILDREN and head & 0x0F == I32:
                children = self._integer()
            else:
                self._check_field(struct, number, head & 0x0F)
        if struct is ELEMENT:
            self._children.append(children)

    def _check_field(self, struct: Struct, number: int, type_: int) -> None:
        if type_ in {TRUE, FALSE}:  # the type is the value
            return
        items = struct.lists.get(number)
        if type_ != LIST or items is None:
            self._check_value(type_, struct.structs.get(number, OTHER))
        elif items is FILE.lists[SCHEMA]:
            self._check_schema(items)
        else:
            self._check_items(items)

    def _check_value(self, type_: int, struct: Struct = OTHER) -> None:
        self._depth += 1
        if self._depth > MOST_LEVELS:
            raise IndexError(self._depth)
        if type_ == STRUCT:
            self._check_struct(struct)
        elif type_ in {LIST, SET}:
            self._check_items(None)
        elif type_ in INTEGERS:
            self._varint()
        elif type_ == BINARY:
            self._binary()
        else:
            self._bytes(FIXED.get(type_, len(self._data)))
        self._depth -= 1

    def _check_schema(self, items: Items) -> None:
        if self.end_of_schema:
            raise IndexError(SCHEMA)  # of two schemas, readers take the last one
        self._check_items(items)
        self.end_of_schema = self._offset
        _check_nesting(self._children)

    def _check_items(self, items: Items | None) -> None:
        """Check a list.

        Args:
            items: the type that it must have; None: the one that it claims.
        """
        head = self._byte()
        type_, length = head & 0x0F, self._length(head)
        if items is None:
            items = _items(type_, 0)
        elif type_ != items.type and not {type_, items.type} <= {*INTEGERS}:
            raise IndexError(type_)
        if items.struct is ELEMENT and length > MOST_COLUMNS:
            raise NotParquet(f"it has more than {MOST_COLUMNS:,} columns")
        self.memory += length * items.memory
        if self.memory > MOST_MEMORY:
            raise NotParquet(f"its {TOO_MUCH}")
        if type_ in FIXED:
            self._bytes(length * FIXED[type_])
            return
        common = _common_chunk() if items.struct is CHUNK else None
        for _ in range(length):
            self._count_step()
            chunk = common and common.match(self._data, self._offset)
            if chunk:
                self._offset = chunk.end()
            else:
                self._check_value(type_, items.struct)

    def _count_step(self) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise NotParquet("its footer has too many values: write fewer columns or row groups")
        if self._steps % STEPS_BETWEEN_CHECKS == 0:
            budget.check()


def _check_nesting(children: list[int]) -> None:
    """Refuse a schema whose columns are nested too deeply, or are not as many as its groups say.

    Args:
        children: how many each element has, in order; the first one is the root.
    """
    groups = [1]  # the number of missing members of each group, from the root down
    for count in children:
        while groups and not groups[-1]:
            groups.pop()
        if not groups or not 0 <= count <= len(children):
            raise IndexError(count)
        groups[-1] -= 1
        if len(groups) - 1 > DEEPEST_COLUMN:
            raise NotParquet(f"its columns are nested more than {DEEPEST_COLUMN} deep")
        if count:
            groups.append(count)
    if any(groups):
        raise IndexError(groups)


@cache
def _common_chunk() -> re.Pattern[bytes]:
    """A ColumnChunk as programs write it: with this, 60 MB of footers take 2 s instead of 20.

    Fields ascend, so the first three lists of its metadata are those of fields 2, 3, and 8 or 13.
    Other chunks do not match, and are read value by value.
    """

    def heads(*types: int) -> bytes:
        every = (bytes([delta << 4 | type_]) for type_ in types for delta in range(1, 16))
        return b"[" + b"".join(map(re.escape, every)) + b"]"

    def one_of(*patterns: bytes) -> bytes:
        return b"(?:" + b"|".join(patterns) + b")"

    def listed(types: tuple[int, ...], item: bytes, most: int) -> bytes:
        sizes = ((bytes([n << 4 | t]), b"{%d}" % n) for t in types for n in range(most + 1))
        return one_of(*(re.escape(head) + b"(?:" + item + b")" + count for head, count in sizes))

    number = rb"[\x80-\xff]{0,9}[\x00-\x7f]"
    text = one_of(*(re.escape(bytes([n])) + b"(?s:.){%d}" % n for n in range(64)))
    scalar = (
        heads(*INTEGERS) + number,
        heads(BINARY) + text,
        heads(TRUE, FALSE),
        heads(BYTE) + b"(?s:.)",
        heads(DOUBLE) + b"(?s:.){8}",
    )
    scalars = one_of(*scalar) + b"*"
    numbers = listed(INTEGERS[1:], number, 4)
    statistics = heads(STRUCT) + one_of(*scalar, heads(LIST) + numbers) + b"*\x00"
    structs = heads(LIST) + listed((STRUCT,), scalars + b"\x00", 3)
    metadata = (
        *(b"\x15", number, b"\x19", numbers, b"\x19", listed((BINARY,), text, 4)),
        *(one_of(*scalar, statistics, structs), b"*\x00"),
    )
    return re.compile(b"".join([scalars, heads(STRUCT), *metadata, scalars, b"\x00"]))
