"""Level storage: every file exists with its size; with footers, also rows, field ids and bounds."""

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from polynya.ducklake.column_tree import leaves

from ..common import storage
from ..common.errors import JobError
from . import statistics
from .catalog import CatalogFile, CatalogTable
from .findings import Problem

FIRST_RESERVED_ID = 2_147_483_448
"""Iceberg's spec, Reserved Field IDs: those above 2147483447 are for row ids and the like."""
NO_FIELD_ID = -1
WITHOUT = {"variant", "geometry"}
"""The types for which DuckLake writes no statistics, or statistics of another form."""
MISSING = "does not exist, or this role may not read it"
COMPARED_BYTES = 64
"""Longer strings may be truncated in footers."""


@dataclass(slots=True)
class Presence:
    """What a listing of a table's directory says about its files."""

    problems: list[Problem] = field(default_factory=list)
    faulty: set[str] = field(default_factory=set)
    """The locations of files that are missing or have another size."""
    orphans: list[str] = field(default_factory=list)
    """The locations of files in the directory that no snapshot names."""


def check_presence(table: CatalogTable, files: list[CatalogFile], referenced: set[str]) -> Presence:
    """Compare the files of a table with a listing of its directory.

    Args:
        referenced: the locations of all files that the catalog names, also of older snapshots.

    Raises:
        Unavailable: the storage does not answer.
    """
    # One request lists a thousand files; only files elsewhere are requested one by one.
    listed = dict(storage.list_files(table.location))
    presence = Presence(orphans=sorted(listed.keys() - referenced))
    for file in files:
        size, missing = listed.get(file.location), "does not exist"
        if size is None and not file.location.startswith(table.location):
            # A role that may not list the bucket gets the same answer in both cases.
            size, missing = storage.file_size(file.location), MISSING
        if size is None:
            presence.problems.append(("missing-file", f"{file.location} {missing}"))
        elif size != file.file_size_bytes:
            message = f"{file.location} has {size} bytes; the catalog says {file.file_size_bytes}"
            presence.problems.append(("file-size", message))
        else:
            continue
        presence.faulty.add(file.location)
    return presence


@dataclass(frozen=True, slots=True)
class FooterTask:
    """Files whose footers one task reads. Spark sends it to the executors."""

    table: CatalogTable
    files: tuple[CatalogFile, ...]
    bounds: dict[int, dict[int, tuple[str | None, str | None]]]
    """Minimum and maximum in the catalog, by data file id and column id."""
    contains_nan: dict[int, dict[int, bool | None]]
    """As in the catalog, by data file id and column id; None: it does not say."""


def check_footers(task: FooterTask) -> list[Problem]:
    """Compare the Parquet footers of data files and delete files with the catalog."""
    problems: list[Problem] = []
    for file in task.files:
        try:
            footer = _footer(file)
        except (OSError, JobError, pa.ArrowInvalid, ValueError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            problems.append(("footer", f"{file.location} cannot be read: {reason}"))
            continue
        except Exception as error:  # botocore's
            problems.append(("footer", f"{file.location} cannot be read: {type(error).__name__}"))
            continue
        problems += _check_footer(task, file, footer)
    return problems


def _footer(file: CatalogFile) -> pq.FileMetaData:
    length = file.footer_size or min(file.file_size_bytes, 1 << 20)
    start = max(0, file.file_size_bytes - length - 8)
    tail = storage.read_range(file.location, start, length + 8)
    if tail is None:
        raise ValueError(f"it {MISSING}")
    if tail[-4:] != b"PAR1":
        raise ValueError("no Parquet magic at its end")
    if file.footer_size and int.from_bytes(tail[-8:-4], "little") != file.footer_size:
        raise ValueError(f"its footer does not have the catalog's {file.footer_size} bytes")
    return pq.read_metadata(io.BytesIO(b"PAR1" + tail))


def _check_footer(
    task: FooterTask, file: CatalogFile, footer: pq.FileMetaData
) -> Iterator[Problem]:
    if footer.num_rows != file.record_count:
        message = f"{file.location} has {footer.num_rows} rows; the catalog says"
        yield "row-count", f"{message} {file.record_count}"
    if file.kind != "data":
        return
    ids = {} if file.is_added else _field_ids(footer)
    yield from statistics.check(file, footer, ids, task.contains_nan.get(file.file_id, {}))
    if not file.is_added:
        yield from _check_field_ids(task.table, file, ids)
        yield from _check_bounds(task, file, footer, ids)
        yield from _check_statistics(task, file, ids)


def _check_field_ids(
    table: CatalogTable, file: CatalogFile, ids: dict[int, int]
) -> Iterator[Problem]:
    allowed = set(table.column_ids)
    if any(leaf.column_type == "variant" for leaf in leaves(table.columns)):
        allowed.add(NO_FIELD_ID)  # the parts of a variant have no field ids
    unknown = sorted({i for i in ids.values() if i < FIRST_RESERVED_ID} - allowed)
    if unknown or not ids:
        yield "field-ids", f"{file.location} has field ids that are no column ids: {unknown}"


def _check_bounds(
    task: FooterTask, file: CatalogFile, footer: pq.FileMetaData, ids: dict[int, int]
) -> Iterator[Problem]:
    bounds = task.bounds.get(file.file_id, {})
    types = {leaf.column_id: leaf.column_type for leaf in leaves(task.table.columns)}
    for index, field_id in ids.items():
        if field_id in types and field_id in bounds:
            where = f"column {field_id} of {file.location}"
            yield from _too_narrow(where, footer, index, types[field_id], bounds[field_id])


def _check_statistics(
    task: FooterTask, file: CatalogFile, ids: dict[int, int]
) -> Iterator[Problem]:
    """Find columns of a file without statistics: DuckLake does not read them."""
    bounds = task.bounds.get(file.file_id, {})
    columns = {c.column_id for c in leaves(task.table.columns) if c.column_type not in WITHOUT}
    for column_id in sorted(columns & set(ids.values()) - bounds.keys()):
        yield (
            "missing-stats",
            f"the catalog has no statistics of column {column_id} of {file.location}",
        )


def _field_ids(footer: pq.FileMetaData) -> dict[int, int]:
    """The field id of each leaf column, by the index of the leaf column."""
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
    for top in footer.schema.to_arrow_schema():
        index = visit(top, index)
    return numbers


def _children(type: pa.DataType) -> list[pa.Field]:
    if pa.types.is_map(type):
        return [type.key_field, type.item_field]
    if pa.types.is_list(type):
        return [type.value_field]
    if pa.types.is_struct(type):
        return [type.field(i) for i in range(type.num_fields)]
    return []


def _too_narrow(
    where: str,
    footer: pq.FileMetaData,
    index: int,
    column_type: str,
    bounds: tuple[str | None, str | None],
) -> Iterator[Problem]:
    """Find bounds in the catalog that do not cover those of the footer."""
    for group in range(footer.num_row_groups):
        chunk = footer.row_group(group).column(index)
        extremes = chunk.statistics
        if extremes is None or not extremes.has_min_max:
            continue
        if chunk.physical_type == "FLOAT":
            column_type = "float32"  # also if the column has been promoted to double since
        try:
            low, high = (_footer_value(value) for value in (extremes.min, extremes.max))
        except (OverflowError, ValueError):  # a date outside the range of Python's dates
            return
        least, most = (statistics.value_of(column_type, text) for text in bounds)
        if low is None or high is None:
            return
        if least is not None and _is_less(low, least):
            message = f"{where} has the minimum {extremes.min!r}; the catalog says {bounds[0]!r}"
            yield "file-min", message
            return
        if most is not None and _is_less(most, high):
            message = f"{where} has the maximum {extremes.max!r}; the catalog says {bounds[1]!r}"
            yield "file-max", message
            return


def _footer_value(value: Any) -> Any:
    """A bound in a footer, comparable with `types.names.comparable`; None: it is not compared."""
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return value if len(value) <= COMPARED_BYTES else None
    return value if isinstance(value, bool | int | float) else None


def _is_less(left: Any, right: Any) -> bool:
    try:
        return bool(left < right)
    except TypeError:
        return False
