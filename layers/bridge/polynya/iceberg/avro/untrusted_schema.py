"""Readers of records that others wrote, made from the schema in the file.

A schema is its writer's choice, and a general decoder follows it wherever it leads: to records that
contain themselves, to 2^40 items of no bytes, to decimals of megabytes. These readers know only the
types that Iceberg's metadata has, decode only the fields that are used, and skip the others.
Logical types change no bytes and are ignored; Java, PyIceberg and iceberg-go mark partition values
with them (date, timestamp-micros, decimal, uuid, map).

https://avro.apache.org/docs/1.12.0/specification/#binary-encoding
"""

import json
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, NamedTuple

from ...runtime import budget


class Malformed(ValueError):
    """The file does not have the form that its format requires; the message does not quote it."""


LONGEST_SCHEMA = 1024 * 1024
LONGEST_TEXT = 4096
"""The longest text that is read: keys in S3 have 1,024 bytes at most."""
MOST_TYPES = 2000
"""In a schema; manifests have about a hundred, and two for each partition field."""
DEEPEST = 20
"""The deepest nesting of types; manifests have eight levels."""
MOST_PAIRS = 100_000
"""In a map or a list that is read: one for each column."""
MOST_ITEMS = 1_000_000
"""In an array that is skipped: one for each column or row group."""
LONGEST_NUMBER = 10
"""In bytes; 64 bits need so many."""
AT_A_TIME = 1000
"""The items between two checks of the time budget."""

Skip = Callable[[bytes, int], int]
"""(data, start of a value) -> its end."""
Read = Callable[[bytes, int], tuple[Any, int]]
"""(data, start of a value) -> the value and its end."""


class ReadAs(Enum):
    """How a value is read whose type is no record of `Fields`."""

    VALUE = 1
    """A whole number or a text; None of other types."""
    TUPLE = 2
    """The values of a record's fields, in order."""
    PAIRS = 3
    """An array of records with the fields `key` and `value`, as a map."""
    LIST = 4
    """The whole numbers or texts of an array."""


Fields = Mapping[str, Any]
"""The fields of a record that are read, each ReadAs or Fields."""


class _Type(NamedTuple):
    read: Read
    skip: Skip
    has_bytes: bool = True
    """Every value has at least one byte."""
    numbers: int = 0
    """How many whole numbers a value consists of, which are skipped several times as fast; 0: it
    has other parts."""


def record_reader(schema: bytes, fields: Fields) -> Read:
    """Make the reader of a file's records, which returns dicts of these fields, where present.

    Reading raises Malformed or IndexError for broken data, and OutOfTime.

    Raises:
        Malformed: it is no schema, or has a type that Iceberg's metadata does not have.
    """
    if len(schema) > LONGEST_SCHEMA:
        raise Malformed("its schema is too long")
    try:
        reader = _Schema().type(json.loads(schema), fields, 0)
    except Malformed:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise _foreign() from None
    # `Container` refuses a block with more records than bytes.
    if not reader.has_bytes:
        raise _foreign()
    return reader.read


def _foreign() -> Malformed:
    return Malformed("its schema is not one of Iceberg's")


class _Schema:
    """Translates one schema, in which only fixed types have names, as for decimal and uuid."""

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}
        self._types = 0

    def type(self, schema: Any, selection: ReadAs | Fields | None, depth: int) -> _Type:
        """The type that a part of the schema describes."""
        self._types += 1
        if self._types > MOST_TYPES or depth > DEEPEST:
            raise _foreign()
        match schema:
            case str():
                return self._named(schema, selection)
            case [first, second] if _is_null(first) != _is_null(second):
                inner = self.type(second if _is_null(first) else first, selection, depth + 1)
                return _union(inner, is_null_first=_is_null(first))
            # With these a name can mean two types: records that contained themselves under two
            # namespaces ended the process.
            case {"namespace": _} | {"aliases": _}:
                raise _foreign()
            case {"type": "record", "fields": list(fields)}:
                return self._record(fields, selection, depth)
            case {"type": "array", "items": items}:
                return self._array(items, selection, depth)
            case {"type": "fixed", "size": int(size), "name": str(name)} if size > 0:
                if "." in name or self._sizes.setdefault(name, size) != size:
                    raise _foreign()
                return self._named(name, selection)
            case {"type": inner}:
                return self.type(inner, selection, depth + 1)
        raise _foreign()

    def _named(self, name: str, selection: ReadAs | Fields | None) -> _Type:
        if selection is not None and selection is not ReadAs.VALUE:
            raise _foreign()
        if name in PRIMITIVES:
            return PRIMITIVES[name]
        return _fixed(self._sizes[name])

    def _record(self, fields: list[Any], selection: ReadAs | Fields | None, depth: int) -> _Type:
        if isinstance(selection, ReadAs) and selection is not ReadAs.TUPLE:
            raise _foreign()
        types: dict[str, _Type] = {}
        keys: dict[str, Any] = {}
        for field in fields:
            name = field["name"]
            if not isinstance(name, str) or name in types or "aliases" in field:
                raise _foreign()
            of_field = (
                selection.get(name)
                if isinstance(selection, Mapping)
                else selection and ReadAs.VALUE
            )
            types[name] = self.type(field["type"], of_field, depth + 1)
            keys[name] = name if of_field is not None else None
        members = list(types.values())
        read = _tuple(members) if selection is ReadAs.TUPLE else _fields(types, keys)
        has_bytes = any(member.has_bytes for member in members)
        numbers = [member.numbers for member in members]
        skip = _skipped([member.skip for member in members])
        return _Type(read, skip, has_bytes, sum(numbers) if all(numbers) else 0)

    def _array(self, items: Any, selection: ReadAs | Fields | None, depth: int) -> _Type:
        if selection is not None and selection not in ITEMS:
            raise _foreign()
        item = self.type(items, selection and ITEMS[selection], depth + 1)
        # 2^40 items of no bytes fit into a small file.
        if not item.has_bytes:
            raise _foreign()
        read = _list(item.read) if selection is ReadAs.LIST else _pairs(item.read)
        return _Type(read, _skipped_array(item))


ITEMS: Mapping[Any, Any] = {
    ReadAs.PAIRS: {"key": ReadAs.VALUE, "value": ReadAs.VALUE},
    ReadAs.LIST: ReadAs.VALUE,
}
"""What is read of the items of an array."""


def _is_null(schema: Any) -> bool:
    return schema in ("null", {"type": "null"})


def long_at(data: bytes, offset: int) -> tuple[int, int]:
    """The number that begins at a position, and its end."""
    byte = data[offset]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), offset + 1
    value = byte & 0x7F
    for shift in range(7, LONGEST_NUMBER * 7, 7):
        offset += 1
        byte = data[offset]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), offset + 1
    raise _endless()


def _endless() -> Malformed:
    return Malformed("a number in it is too long")


def length_at(data: bytes, offset: int) -> tuple[int, int]:
    """The length of the bytes that follow, and their start."""
    length, offset = long_at(data, offset)
    if not 0 <= length <= len(data) - offset:
        raise cut_off()
    return length, offset


def cut_off() -> Malformed:
    """The error for a file that ends before the bytes that it announces."""
    return Malformed("it is cut off")


def _skipped_long(data: bytes, offset: int) -> int:
    if data[offset] < 0x80:
        return offset + 1
    for end in range(offset + 1, offset + LONGEST_NUMBER):
        if data[end] < 0x80:
            return end + 1
    raise _endless()


def _skipped_bytes(data: bytes, offset: int) -> int:
    length, offset = length_at(data, offset)
    return offset + length


def _text_at(data: bytes, offset: int) -> tuple[str, int]:
    length, offset = length_at(data, offset)
    if length > LONGEST_TEXT:
        raise Malformed("a text in it is too long")
    return data[offset : offset + length].decode(), offset + length


def _not_read(skip: Skip) -> Read:
    return lambda data, offset: (None, skip(data, offset))


def _fixed(size: int) -> _Type:
    def skip(data: bytes, offset: int) -> int:
        if offset + size > len(data):
            raise cut_off()
        return offset + size

    return _Type(_not_read(skip), skip)


PRIMITIVES = {
    "null": _Type(
        lambda data, offset: (None, offset), lambda data, offset: offset, has_bytes=False
    ),
    "boolean": _fixed(1),
    "int": _Type(long_at, _skipped_long, numbers=1),
    "long": _Type(long_at, _skipped_long, numbers=1),
    "float": _fixed(4),
    "double": _fixed(8),
    "bytes": _Type(_not_read(_skipped_bytes), _skipped_bytes),
    "string": _Type(_text_at, _skipped_bytes),
}


def _union(inner: _Type, *, is_null_first: bool) -> _Type:
    """The union of null and another type."""
    null, other = (0, 2) if is_null_first else (2, 0)  # bytes of the numbers 0 and 1

    def read(data: bytes, offset: int) -> tuple[Any, int]:
        branch = data[offset]
        if branch == other:
            return inner.read(data, offset + 1)
        if branch != null:
            raise Malformed("a union in it has no such type")
        return None, offset + 1

    def skip(data: bytes, offset: int) -> int:
        return inner.skip(data, offset + 1) if data[offset] == other else read(data, offset)[1]

    return _Type(read, skip)


def _fields(types: Mapping[str, _Type], keys: Mapping[str, str | None]) -> Read:
    steps = [(keys[name], of.read, of.skip) for name, of in types.items()]

    def read(data: bytes, offset: int) -> tuple[dict[str, Any], int]:
        record: dict[str, Any] = {}
        for key, read_field, skip_field in steps:
            if key is None:
                offset = skip_field(data, offset)
            else:
                record[key], offset = read_field(data, offset)
        return record, offset

    return read


def _tuple(types: list[_Type]) -> Read:
    def read(data: bytes, offset: int) -> tuple[tuple[Any, ...], int]:
        values = []
        for of in types:
            value, offset = of.read(data, offset)
            values.append(value)
        return tuple(values), offset

    return read


def _skipped(skips: list[Skip]) -> Skip:
    def skip(data: bytes, offset: int) -> int:
        for skip_field in skips:
            offset = skip_field(data, offset)
        return offset

    return skip


def _list(read_item: Read) -> Read:
    def read(data: bytes, offset: int) -> tuple[list[Any], int]:
        values: list[Any] = []
        while True:
            count, offset = long_at(data, offset)
            if count < 0:  # the block's size follows, for readers that skip it
                count, offset = -count, length_at(data, offset)[1]
            if count == 0:
                return values, offset
            if count + len(values) > MOST_PAIRS:
                raise Malformed("a map or a list in it has too many entries")
            budget.check()
            for _ in range(count):
                value, offset = read_item(data, offset)
                values.append(value)

    return read


def _pairs(read_item: Read) -> Read:
    read_list = _list(read_item)

    def read(data: bytes, offset: int) -> tuple[dict[Any, Any], int]:
        pairs, offset = read_list(data, offset)
        return {pair["key"]: pair["value"] for pair in pairs}, offset

    return read


def _skipped_array(item: _Type) -> Skip:
    skip_items = _skipped_numbers(item.numbers) if item.numbers else _skipped_items(item.skip)

    def skip(data: bytes, offset: int) -> int:
        while True:
            count, offset = long_at(data, offset)
            if count == 0:
                return offset
            budget.check()
            if count < 0:
                # Such a block has its size in bytes before it.
                size, offset = length_at(data, offset)
                offset += size
                continue
            if count > MOST_ITEMS:
                raise Malformed("an array in it has too many items")
            offset = skip_items(data, offset, count)

    return skip


def _skipped_items(skip_item: Skip) -> Callable[[bytes, int, int], int]:
    def skip(data: bytes, offset: int, count: int) -> int:
        for number in range(count):
            if number % AT_A_TIME == 0:
                budget.check()
            offset = skip_item(data, offset)
        return offset

    return skip


def _skipped_numbers(numbers: int) -> Callable[[bytes, int, int], int]:
    def skip(data: bytes, offset: int, count: int) -> int:
        left = count * numbers
        while left:
            budget.check()
            few = min(left, AT_A_TIME)
            left -= few
            offset = _skipped_longs(data, offset, few)
        return offset

    return skip


def _skipped_longs(data: bytes, offset: int, count: int) -> int:
    for end, byte in enumerate(data[offset : offset + count * LONGEST_NUMBER], offset + 1):
        if byte < 0x80:
            count -= 1
            if not count:
                return end
    raise _endless()
