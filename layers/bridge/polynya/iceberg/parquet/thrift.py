"""Structs in Thrift's compact protocol, read and written without a loss.

Unknown fields are kept as they are, so that a footer which is changed in one place stays the same
elsewhere.
https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

MOST_LEVELS = 100
"""The deepest nesting of columns and of structs that is read; real tables have less."""

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, STRUCT = *range(1, 11), 12
"""The types of the compact protocol. Parquet has no maps."""


class Thrift:
    """A reader of the compact protocol: a struct becomes a dict of values by field number."""

    def __init__(self, data: bytes) -> None:
        self._data, self._offset, self._depth = data, 0, 0

    @property
    def consumed(self) -> bytes:
        """The bytes that have been read."""
        return self._data[: self._offset]

    def struct(self, until: int | None = None) -> dict[int, Any]:
        """The struct that begins here.

        Args:
            until: the last field that is read.
        """
        fields: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) != 0:
            # The high bits are the distance from the field before; 0: the number itself follows.
            number = number + (head >> 4) if head >> 4 else self._integer()
            fields[number] = self._value(head & 0x0F, within_list=False)
            if number == until:
                break
        return fields

    def _value(self, type_: int, *, within_list: bool) -> Any:
        if type_ in {1, 2}:  # a boolean: within a struct the type is the value
            return self._byte() == 1 if within_list else type_ == 1
        self._depth += 1
        if self._depth > MOST_LEVELS:
            raise IndexError(self._depth)
        value = READERS[type_](self)
        self._depth -= 1
        return value

    def _list(self) -> list[Any]:
        head = self._byte()
        return [self._value(head & 0x0F, within_list=True) for _ in range(self._length(head))]

    def _length(self, head: int) -> int:
        """The length of a list that begins with this byte."""
        length = head >> 4 if head >> 4 < 15 else self._varint()  # 15: the length follows
        if length > len(self._data) - self._offset:  # no value is shorter than a byte
            raise IndexError(length)
        return length

    def _byte(self) -> int:
        value = self._data[self._offset]
        self._offset += 1
        return value

    def _bytes(self, length: int) -> bytes:
        value = self._data[self._offset : self._offset + length]
        if len(value) < length:
            raise IndexError(length)
        self._offset += length
        return value

    def _binary(self) -> bytes:
        return self._bytes(self._varint())

    def _double(self) -> bytes:
        return self._bytes(8)

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
            if shift > 63:
                raise IndexError(shift)
        return value | byte << shift

    def _integer(self) -> int:
        """A signed number, written as zigzag: its lowest bit is the sign."""
        value = self._varint()
        return (value >> 1) ^ -(value & 1)


READERS: dict[int, Callable[[Thrift], Any]] = {
    3: Thrift._byte,
    4: Thrift._integer,
    5: Thrift._integer,
    6: Thrift._integer,
    7: Thrift._double,
    8: Thrift._binary,
    9: Thrift._list,
    12: Thrift.struct,
}
"""Readers by type number. Sets and maps do not occur in a schema."""


class Value(NamedTuple):
    """The value of a field, with its type.

    An integer is an int, a struct a `Struct`, a list a `Values`, and all else bytes; a boolean is
    its type within a struct, and a byte in a list.
    """

    type: int
    value: Any


Struct = dict[int, Value]
"""The fields of a struct by their numbers, in the order in which they were read."""


class Values(NamedTuple):
    """The items of a list, which have one type."""

    type: int
    items: list[Any]


def i32(number: int) -> Value:
    """A number of 32 bits."""
    return Value(I32, number)


def i64(number: int) -> Value:
    """A number of 64 bits."""
    return Value(I64, number)


def listed(type_: int, items: Iterable[Any]) -> Value:
    """A list."""
    return Value(LIST, Values(type_, [*items]))


def struct(fields: Struct) -> Value:
    """A struct within another one."""
    return Value(STRUCT, fields)


class Reader(Thrift):
    """Reads structs with the types of their fields; IndexError: they are broken."""

    def fields(self) -> Struct:
        """The struct that begins here."""
        fields: Struct = {}
        number = 0
        while (head := self._byte()) != 0:
            number = number + (head >> 4) if head >> 4 else self._integer()
            if number in fields:
                raise IndexError(number)  # of two, readers take the last one
            fields[number] = Value(head & 0x0F, self._read(head & 0x0F, within_list=False))
        return fields

    def _read(self, type_: int, *, within_list: bool) -> Any:
        if type_ in {TRUE, FALSE}:
            return self._bytes(1) if within_list else b""
        self._depth += 1
        if self._depth > MOST_LEVELS:
            raise IndexError(self._depth)
        value = self._read_type(type_)
        self._depth -= 1
        return value

    def _read_type(self, type_: int) -> Any:
        if type_ in {I16, I32, I64}:
            return self._integer()
        if type_ == BINARY:
            return self._binary()
        if type_ == STRUCT:
            return self.fields()
        if type_ in {LIST, SET}:
            head = self._byte()
            item = head & 0x0F
            items = [self._read(item, within_list=True) for _ in range(self._length(head))]
            return Values(item, items)
        if type_ in FIXED:
            return self._bytes(FIXED[type_])
        raise IndexError(type_)


FIXED = {BYTE: 1, DOUBLE: 8}
"""Bytes of values of one length."""


def written(fields: Struct) -> bytes:
    """The bytes of a struct."""
    parts: list[bytes] = []
    _put_struct(fields, parts)
    return b"".join(parts)


def _put_struct(fields: Struct, parts: list[bytes]) -> None:
    before = 0
    for number, (type_, value) in fields.items():
        distance = number - before
        if 0 < distance < 16:
            parts.append(bytes([distance << 4 | type_]))
        else:
            parts.append(bytes([type_]) + zigzag(number))
        _put(type_, value, parts)
        before = number
    parts.append(b"\0")


def _put(type_: int, value: Any, parts: list[bytes]) -> None:
    if type_ in {I16, I32, I64}:
        parts.append(zigzag(value))
    elif type_ == BINARY:
        parts += (varint(len(value)), value)
    elif type_ == STRUCT:
        _put_struct(value, parts)
    elif type_ in {LIST, SET}:
        length = len(value.items)
        short = length < 15
        parts.append(bytes([(length if short else 15) << 4 | value.type]))
        if not short:
            parts.append(varint(length))
        for item in value.items:
            _put(value.type, item, parts)
    else:
        parts.append(value)


def varint(number: int) -> bytes:
    """A number that is not negative: 7 bits to a byte, lowest first."""
    groups = []
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    return bytes([*groups, number])


def zigzag(number: int) -> bytes:
    """A signed number: its lowest bit is the sign."""
    return varint(number << 1 if number >= 0 else (-number << 1) - 1)
