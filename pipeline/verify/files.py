"""Level storage: every file is there, with its size; with footers, also what is in it."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..common import storage, texts
from ..common.columns import leaves
from ..common.errors import JobError
from . import nan_bounds
from .catalog import CatalogFile, CatalogTable

FIRST_RESERVED_ID = 2_147_483_448  # Iceberg's, and DuckLake's, for row ids and the like
NO_FIELD_ID = -1
NOTES = {"nan-unknown"}
"""Checks that tell what is worth knowing and is no fault."""
COMPARED_BYTES = 64
"""Longer strings may be cut in footers."""


def check_presence(
    table: CatalogTable, files: list[CatalogFile], known: set[str]
) -> tuple[list[tuple[str, str]], list[str]]:
    """Findings, and the files below the table's directory that nobody knows.

    One listing of the directory tells of a thousand files at once; only files elsewhere are asked
    for one by one.
    """
    listed = dict(storage.sizes(table.location))
    found = []
    for file in files:
        size = listed.get(file.location)
        if size is None and not file.location.startswith(table.location):
            size = storage.size(file.location)
        if size is None:
            found.append(("missing-file", f"{file.location} is not there"))
        elif size != file.file_size_bytes:
            words = f"{file.location} has {size} bytes; the catalog says {file.file_size_bytes}"
            found.append(("file-size", words))
    return found, sorted(location for location in listed if location not in known)


@dataclass(frozen=True, slots=True)
class Chunk:
    table: CatalogTable
    files: tuple[CatalogFile, ...]
    bounds: dict[int, dict[int, tuple[str | None, str | None]]]
    """By data file and column: what the catalog says."""
    contains_nan: dict[int, dict[int, bool | None]]
    """The same; None: unknown."""


def check_footers(chunk: Chunk) -> list[tuple[str, str]]:
    found = []
    for file in chunk.files:
        try:
            footer = _footer(file)
        except (OSError, JobError, pa.ArrowInvalid, ValueError) as error:
            words = str(error).splitlines()[0] if str(error) else type(error).__name__
            found.append(("footer", f"{file.location} cannot be read: {words}"))
            continue
        except Exception as error:  # what botocore raises
            found.append(("footer", f"{file.location} cannot be read: {type(error).__name__}"))
            continue
        found += _checked(chunk, file, footer)
    return found


def _footer(file: CatalogFile) -> pq.FileMetaData:
    length = file.footer_size or min(file.file_size_bytes, 1 << 20)
    tail = storage.read(file.location, max(0, file.file_size_bytes - length - 8), length + 8)
    if tail[-4:] != b"PAR1":
        raise ValueError("no Parquet magic at its end")
    if file.footer_size and int.from_bytes(tail[-8:-4], "little") != file.footer_size:
        raise ValueError(f"its footer is not of {file.footer_size} bytes, as the catalog says")
    return pq.read_metadata(io.BytesIO(b"PAR1" + tail))


def _checked(chunk: Chunk, file: CatalogFile, footer: pq.FileMetaData) -> Iterator[tuple[str, str]]:
    if footer.num_rows != file.record_count:
        words = f"{file.location} holds {footer.num_rows} rows; the catalog says"
        yield "row-count", f"{words} {file.record_count}"
    if file.kind != "data":
        return
    ids = {} if file.is_added else _field_ids(footer)
    yield from nan_bounds.check(file, footer, ids, chunk.contains_nan.get(file.file_id, {}))
    if file.is_added:
        return
    allowed = set(chunk.table.column_ids)
    if any(leaf.column_type == "variant" for leaf in leaves(chunk.table.columns)):
        allowed.add(NO_FIELD_ID)  # its parts have none
    strange = sorted({i for i in ids.values() if i < FIRST_RESERVED_ID} - allowed)
    if strange or not ids:
        yield "field-ids", f"{file.location} has field ids that are no columns: {strange}"
    bounds = chunk.bounds.get(file.file_id, {})
    types = {leaf.column_id: leaf.column_type for leaf in leaves(chunk.table.columns)}
    for index, field_id in ids.items():
        if field_id in types and field_id in bounds:
            yield from _narrow(file, footer, index, field_id, types[field_id], bounds[field_id])


def _field_ids(footer: pq.FileMetaData) -> dict[int, int]:
    """By the number of the leaf column."""
    numbers: dict[int, int] = {}

    def visit(field: pa.Field, index: int) -> int:
        below = _children(field.type)
        if not below:
            text = (field.metadata or {}).get(b"PARQUET:field_id")
            numbers[index] = int(text) if text else NO_FIELD_ID
            return index + 1
        for child in below:
            index = visit(child, index)
        return index

    index = 0
    for field in footer.schema.to_arrow_schema():
        index = visit(field, index)
    return numbers


def _children(type: pa.DataType) -> list[pa.Field]:
    if pa.types.is_map(type):
        return [type.key_field, type.item_field]
    if pa.types.is_list(type):
        return [type.value_field]
    if pa.types.is_struct(type):
        return [type.field(i) for i in range(type.num_fields)]
    return []


def _narrow(
    file: CatalogFile,
    footer: pq.FileMetaData,
    index: int,
    column_id: int,
    column_type: str,
    bounds: tuple[str | None, str | None],
) -> Iterator[tuple[str, str]]:
    """Bounds of the catalog that do not cover those of the footer."""
    for group in range(footer.num_row_groups):
        chunk = footer.row_group(group).column(index)
        statistics = chunk.statistics
        if statistics is None or not statistics.has_min_max:
            continue
        if chunk.physical_type == "FLOAT":
            column_type = "float32"  # also where the column has become a double since
        try:
            low, high = (_plain(value) for value in (statistics.min, statistics.max))
        except (OverflowError, ValueError):  # a date that Python does not have
            return
        least, most = (_parsed(column_type, text) for text in bounds)
        if low is None or high is None:
            return
        of = f"column {column_id} of {file.location}"
        if least is not None and _is_less(low, least):
            yield "file-min", f"{of} holds {statistics.min!r}; the catalog's min is {bounds[0]!r}"
            return
        if most is not None and _is_less(most, high):
            yield "file-max", f"{of} holds {statistics.max!r}; the catalog's max is {bounds[1]!r}"
            return


def _plain(value: Any) -> Any:
    """A value of a footer as `texts.comparable` gives it; None: not compared."""
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return value if len(value) <= COMPARED_BYTES else None
    return value if isinstance(value, bool | int | float) else None


def _parsed(column_type: str, text: str | None) -> Any:
    if text is None:
        return None
    try:
        return texts.comparable(column_type, text)
    except ValueError:
        return None


def _is_less(one: Any, other: Any) -> bool:
    try:
        return bool(one < other)
    except TypeError:
        return False
