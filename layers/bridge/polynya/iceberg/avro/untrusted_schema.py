"""Readers of records that others wrote, made of the schema in their file.

A schema is its writer's choice, and a general decoder follows it wherever it leads: to records that
contain themselves, to 2^40 items of no bytes, to decimals of megabytes. These readers know only the
types that Iceberg's metadata has, decode only the fields that are used, and skip the others.
Logical types change no bytes and are ignored; Java, PyIceberg and iceberg-go mark partition values
with them (date, timestamp-micros, decimal, uuid, map).

https://avro.apache.org/docs/1.12.0/specification/#binary-encoding

The error of Avro files that others wrote.
"""

import json
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, NamedTuple

from ...runtime import budget


class Malformed(ValueError):
    """The file is not what it has to be; the message says why, without its content."""


LONGEST_SCHEMA = 1024 * 1024
LONGEST_TEXT = 4096
"""Of a value that is read: keys in S3 have 1,024 bytes at most."""
MOST_TYPES = 2000
"""In a schema; manifests have about a hundred, and two for each partition field."""
DEEPEST = 20
"""The deepest nesting of types; manifests have eight levels."""
MOST_PAIRS = 100_000
"""Of a map that is read: one for each column."""
MOST_ITEMS = 1_000_000
"""Of an array that is skipped: one for each column or row group."""
LONGEST_NUMBER = 10
"""In bytes; 64 bits need so many."""
AT_A_TIME = 1000
"""Items between two looks at the clock."""

Skip = Callable[[bytes, int], int]
"""(data, start of a value) -> its end."""
Read = Callable[[bytes, int], tuple[Any, int]]
"""(data, start of a value) -> the value and its end."""


class Wanted(Enum):
    """What is read of a type that is no record with wanted fields."""

    VALUE = 1
    """A whole number or a text; None of other types."""
    TUPLE = 2
    """The values of a record's fields, in order."""
    PAIRS = 3
    """The map that an array of records with the fields `key` and `value` stands for."""


Fields = Mapping[str, Any]
"""The fields of a record that are read, each Wanted or Fields."""


class _Type(NamedTuple):
    read: Read
    skip: Skip
    has_bytes: bool = True
    """Every value has at least one byte."""
    numbers: int = 0
    """It is nothing but so many whole numbers: they are skipped several times as fast."""


def record_reader(schema: bytes, fields: Fields) -> Read:
    """The reader of the records of a file, which become dicts of these fields, where present.

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
    if not reader.has_bytes:
        raise _foreign()
    return reader.read


def _foreign() -> Malformed:
    return Malformed("its schema is none of Iceberg's")


class _Schema:
    """Translates one schema; names stand for fixed types only, as decimal and uuid have them."""

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}
        self._types = 0

    def type(self, schema: Any, wanted: Wanted | Fields | None, depth: int) -> _Type:
        """The type that a part of the schema describes."""
        self._types += 1
        if self._types > MOST_TYPES or depth > DEEPEST:
            raise _foreign()
        match schema:
            case str():
                return self._named(schema, wanted)
            case [first, second] if _is_null(first) != _is_null(second):
                inner = self.type(second if _is_null(first) else first, wanted, depth + 1)
                return _union(inner, is_null_first=_is_null(first))
            case {"namespace": _} | {"aliases": _}:
                raise _foreign()
            case {"type": "record", "fields": list(fields)}:
                return self._record(fields, wanted, depth)
            case {"type": "array", "items": items}:
                return self._array(items, wanted, depth)
            case {"type": "fixed", "size": int(size), "name": str(name)} if size > 0:
                if "." in name or self._sizes.setdefault(name, size) != size:
                    raise _foreign()
                return self._named(name, wanted)
            case {"type": inner}:
                return self.type(inner, wanted, depth + 1)
        raise _foreign()

    def _named(self, name: str, wanted: Wanted | Fields | None) -> _Type:
        if wanted is not None and wanted is not Wanted.VALUE:
            raise _foreign()
        if name in PRIMITIVES:
            return PRIMITIVES[name]
        return _fixed(self._sizes[name])

    def _record(self, fields: list[Any], wanted: Wanted | Fields | None, depth: int) -> _Type:
        if isinstance(wanted, Wanted) and wanted is not Wanted.TUPLE:
            raise _foreign()
        types: dict[str, _Type] = {}
        keys: dict[str, Any] = {}
        for field in fields:
            name = field["name"]
            if not isinstance(name, str) or name in types or "aliases" in field:
                raise _foreign()
            of_field = wanted.get(name) if isinstance(wanted, Mapping) else wanted and Wanted.VALUE
            types[name] = self.type(field["type"], of_field, depth + 1)
            keys[name] = name if of_field is not None else None
        members = list(types.values())
        read = _tuple(members) if wanted is Wanted.TUPLE else _fields(types, keys)
        has_bytes = any(member.has_bytes for member in members)
        numbers = [member.numbers for member in members]
        skip = _skipped([member.skip for member in members])
        return _Type(read, skip, has_bytes, sum(numbers) if all(numbers) else 0)

    def _array(self, items: Any, wanted: Wanted | Fields | None, depth: int) -> _Type:
        if wanted is not None and wanted is not Wanted.PAIRS:
            raise _foreign()
        pair = {"key": Wanted.VALUE, "value": Wanted.VALUE} if wanted else None
        item = self.type(items, pair, depth + 1)
        if not item.has_bytes:
            raise _foreign()
        return _Type(_pairs(item.read), _skipped_array(item))


def _is_null(schema: Any) -> bool:
    return schema in ("null", {"type": "null"})


def long_at(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins at a position, and its end."""
    byte = data[at]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at + 1
    value = byte & 0x7F
    for shift in range(7, LONGEST_NUMBER * 7, 7):
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at + 1
    raise _endless()


def _endless() -> Malformed:
    return Malformed("a number in it is too long")


def length_at(data: bytes, at: int) -> tuple[int, int]:
    """The length of the bytes that follow, and their start."""
    length, at = long_at(data, at)
    if not 0 <= length <= len(data) - at:
        raise cut_off()
    return length, at


def cut_off() -> Malformed:
    """The error of a file that says more bytes than it has."""
    return Malformed("it is cut off")


def _skipped_long(data: bytes, at: int) -> int:
    if data[at] < 0x80:
        return at + 1
    for end in range(at + 1, at + LONGEST_NUMBER):
        if data[end] < 0x80:
            return end + 1
    raise _endless()


def _skipped_bytes(data: bytes, at: int) -> int:
    length, at = length_at(data, at)
    return at + length


def _text_at(data: bytes, at: int) -> tuple[str, int]:
    length, at = length_at(data, at)
    if length > LONGEST_TEXT:
        raise Malformed("a text in it is too long")
    return data[at : at + length].decode(), at + length


def _not_read(skip: Skip) -> Read:
    return lambda data, at: (None, skip(data, at))


def _fixed(size: int) -> _Type:
    def skip(data: bytes, at: int) -> int:
        if at + size > len(data):
            raise cut_off()
        return at + size

    return _Type(_not_read(skip), skip)


PRIMITIVES = {
    "null": _Type(lambda data, at: (None, at), lambda data, at: at, has_bytes=False),
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

    def read(data: bytes, at: int) -> tuple[Any, int]:
        branch = data[at]
        if branch == other:
            return inner.read(data, at + 1)
        if branch != null:
            raise Malformed("a union in it has no such type")
        return None, at + 1

    def skip(data: bytes, at: int) -> int:
        return inner.skip(data, at + 1) if data[at] == other else read(data, at)[1]

    return _Type(read, skip)


def _fields(types: Mapping[str, _Type], keys: Mapping[str, str | None]) -> Read:
    steps = [(keys[name], of.read, of.skip) for name, of in types.items()]

    def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        for key, read_field, skip_field in steps:
            if key is None:
                at = skip_field(data, at)
            else:
                found[key], at = read_field(data, at)
        return found, at

    return read


def _tuple(types: list[_Type]) -> Read:
    def read(data: bytes, at: int) -> tuple[tuple[Any, ...], int]:
        values = []
        for of in types:
            value, at = of.read(data, at)
            values.append(value)
        return tuple(values), at

    return read


def _skipped(skips: list[Skip]) -> Skip:
    def skip(data: bytes, at: int) -> int:
        for skip_field in skips:
            at = skip_field(data, at)
        return at

    return skip


def _pairs(read_item: Read) -> Read:
    def read(data: bytes, at: int) -> tuple[dict[Any, Any], int]:
        found: dict[Any, Any] = {}
        while True:
            count, at = long_at(data, at)
            if count < 0:  # the block's size follows, for readers that skip it
                count, at = -count, length_at(data, at)[1]
            if count == 0:
                return found, at
            if count > MOST_PAIRS:
                raise Malformed("a map in it has too many entries")
            budget.check()
            for _ in range(count):
                pair, at = read_item(data, at)
                found[pair["key"]] = pair["value"]
            if len(found) > MOST_PAIRS:
                raise Malformed("a map in it has too many entries")

    return read


def _skipped_array(item: _Type) -> Skip:
    skip_items = _skipped_numbers(item.numbers) if item.numbers else _skipped_items(item.skip)

    def skip(data: bytes, at: int) -> int:
        while True:
            count, at = long_at(data, at)
            if count == 0:
                return at
            budget.check()
            if count < 0:
                size, at = length_at(data, at)
                at += size
                continue
            if count > MOST_ITEMS:
                raise Malformed("an array in it has too many items")
            at = skip_items(data, at, count)

    return skip


def _skipped_items(skip_item: Skip) -> Callable[[bytes, int, int], int]:
    def skip(data: bytes, at: int, count: int) -> int:
        for number in range(count):
            if number % AT_A_TIME == 0:
                budget.check()
            at = skip_item(data, at)
        return at

    return skip


def _skipped_numbers(numbers: int) -> Callable[[bytes, int, int], int]:
    def skip(data: bytes, at: int, count: int) -> int:
        left = count * numbers
        while left:
            budget.check()
            few = min(left, AT_A_TIME)
            left -= few
            at = _skipped_longs(data, at, few)
        return at

    return skip


def _skipped_longs(data: bytes, at: int, count: int) -> int:
    for end, byte in enumerate(data[at : at + count * LONGEST_NUMBER], at + 1):
        if byte < 0x80:
            count -= 1
            if not count:
                return end
    raise _endless()
