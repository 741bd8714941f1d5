"""Texts, JSON, binary data and UUIDs."""

import re
from uuid import UUID

from .records import DuckLakeType, IcebergType, Literal


def _string_text(literal: Literal) -> str:
    if not isinstance(literal, str) or "\0" in literal:  # PostgreSQL's texts cannot hold it
        raise TypeError(literal)
    # A lone surrogate is no UTF-8: it raises a ValueError, so that every file is kept.
    literal.encode()
    return literal


def _binary_text(literal: Literal) -> str:
    if not isinstance(literal, str):
        raise TypeError(literal)
    return digits(bytes.fromhex(literal))


BLOB = re.compile(r"(?:[^\\\x80-\U0010FFFF]|\\x[0-9A-Fa-f]{2})*")
"""A BLOB as DuckDB writes it: ASCII, and `\\x` with two digits for other bytes."""


def blob(text: str) -> bytes:
    """Parse a BLOB as DuckDB writes it in defaults; statistics are in hexadecimal.

    Raises:
        ValueError: the text is not such a BLOB.
    """
    if not BLOB.fullmatch(text):
        raise ValueError(f"not a BLOB: {text!r}")
    return re.sub(r"\\x(..)", lambda match: chr(int(match[1], 16)), text).encode("latin-1")


def blob_text(data: bytes) -> str:
    """Binary data as a text that DuckDB reads as a BLOB."""
    return "".join(f"\\x{byte:02X}" for byte in data)


def digits(data: bytes) -> str:
    """Binary data as DuckLake writes it."""
    return data.hex().upper()


def hyphenated(data: bytes) -> str:
    """A UUID as DuckLake writes it."""
    text = data.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


STRING = IcebergType(
    "string",
    ducklake="varchar",
    parse=str,
    to_bytes=str.encode,
    avro="string",
    has_identity=True,
    truncated=lambda text, width: text[:width],
    hashed=str.encode,
    form="string",
    literal=_string_text,
    has_cut_bounds=True,
)
UUID_TYPE = IcebergType(
    "uuid",
    ducklake="uuid",
    hive="string",
    parse=lambda text: UUID(text).bytes,
    to_bytes=bytes,
    default=lambda text: str(UUID(text)),
    hashed=bytes,
    # Java's UUID.compareTo is signed, DuckDB's order is unsigned: a bound would be ambiguous.
    has_bounds=False,
)
BINARY = IcebergType(
    "binary",
    ducklake="blob",
    parse=bytes.fromhex,
    to_bytes=bytes,
    default=lambda text: blob(text).hex(),
    avro="bytes",
    truncated=lambda data, width: data[:width],
    hashed=bytes,
    form="binary",
    literal=_binary_text,
    has_cut_bounds=True,
)
ICEBERG = (STRING, UUID_TYPE, BINARY)

DUCKLAKE = (
    DuckLakeType(
        "varchar",
        STRING,
        duckdb="VARCHAR",
        postgres="bytea",
        order=str.encode,
        in_files=frozenset({"VARCHAR"}),
        has_same_buckets=True,
        spark="string",
        arrow=("string",),
    ),
    DuckLakeType(
        "json",
        STRING,
        duckdb="VARCHAR",
        postgres="bytea",
        order=str.encode,
        in_files=frozenset({"VARCHAR", "JSON"}),
        read_as="string",
        accepts=("string",),
        arrow=("json_",),
    ),
    DuckLakeType(
        "blob",
        BINARY,
        duckdb="BLOB",
        postgres="bytea",
        order=bytes.fromhex,
        text=digits,
        in_files=frozenset({"BLOB"}),
        has_same_buckets=True,
        spark="binary",
        arrow=("binary",),
    ),
    DuckLakeType(
        "uuid",
        UUID_TYPE,
        duckdb="UUID",
        postgres="uuid",
        order=lambda text: bytes.fromhex(text.replace("-", "")),
        text=hyphenated,
        in_files=frozenset({"UUID", "FIXED(16)"}),
        read_as="string",
        accepts=("string",),
        arrow=("uuid",),
    ),
)
