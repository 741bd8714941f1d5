"""Faults of rows in DuckLake's file tables: the condition as SQL, and the sentence for the user.

Catalog tables have no constraints except a few primary keys, so a restored dump, a tool or a person
can leave any values in them. Polynya does not guess what such a row means: it does not serve the
snapshots that show the file.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ..runtime.errors import REMEDY

MAX_ID = 10**18 - 1
"""The largest data_file_id that is served: chunks of files end there, and names have 18 digits."""

MAX_ROWS = 10**12
"""The most rows of a file: the sum over a million files still fits 64 bits."""
MAX_BYTES = 10**14
"""The largest file: S3 stores 50 TB. The sum over 90,000 files of this size still fits 64 bits."""

SMALLEST = 12
"""Bytes of a Parquet file: its magic twice, and the length of the footer."""


class Fault(NamedTuple):
    """A condition that no valid row fulfils."""

    condition: str
    reason: str
    """The sentence, as a SQL expression."""


def _broken(table: str, what: str) -> str:
    return f"'broken rows in {table}: {what}{REMEDY}'"


def _is_not(number: str, least: int, most: int) -> str:
    return f"({number} IS NULL OR {number} NOT BETWEEN {least} AND {most})"


NO_PATH = "({0}.path IS NULL OR {0}.path = '' OR {0}.path_is_relative IS NULL)"

# `{data_partial_max}` differs between versions of the catalog: `queries.fragment`.
DATA_FILE_FAULTS = (
    Fault("f.encryption_key IS NOT NULL", "'encrypted data files'"),
    Fault(
        "(f.file_format <> 'parquet' AND lower(f.file_format) <> 'parquet')",
        "'data files of the format ' || f.file_format",
    ),
    Fault(
        f"f.data_file_id NOT BETWEEN 0 AND {MAX_ID}",
        _broken("ducklake_data_file", "a data_file_id is negative or too large"),
    ),
    Fault(
        "(f.begin_snapshot < 0 OR coalesce({data_partial_max} < 0, false))",
        _broken("ducklake_data_file", "a begin_snapshot or partial_max is negative"),
    ),
    Fault(NO_PATH.format("f"), _broken("ducklake_data_file", "a file has no path")),
    Fault(
        _is_not("f.record_count", 0, MAX_ROWS),
        _broken("ducklake_data_file", "a record_count is missing or impossible"),
    ),
    Fault(
        _is_not("f.file_size_bytes", SMALLEST, MAX_BYTES),
        _broken("ducklake_data_file", "a file_size_bytes is missing or impossible"),
    ),
)

DELETE_FILE_FAULTS = (
    Fault("d.format IS NULL", _broken("ducklake_delete_file", "a file has no format")),
    Fault(
        "lower(d.format) NOT IN ('parquet', 'puffin')", "'delete files of the format ' || d.format"
    ),
    Fault(NO_PATH.format("d"), _broken("ducklake_delete_file", "a file has no path")),
    Fault(
        _is_not("d.delete_count", 0, MAX_ROWS),
        _broken("ducklake_delete_file", "a delete_count is missing or impossible"),
    ),
    Fault(
        _is_not("d.file_size_bytes", 0, MAX_BYTES),
        _broken("ducklake_delete_file", "a file_size_bytes is missing or impossible"),
    ),
)

SHARED_FILE = (
    "the data file {location} is registered twice, and one of the two has deleted rows; Iceberg's "
    "deletes name a file by its location, so that clients would lose them in both: copy the rows "
    "into a new table and drop this one"
)

INLINED_DELETE_FAULT = (
    f"broken rows in ducklake_inlined_delete_…: a delete names no data file{REMEDY}"
)


def any_of(faults: Sequence[Fault]) -> str:
    """The condition that a row has one of the faults; it is never NULL for a sound row."""
    return f"({' OR '.join(fault.condition for fault in faults)})"


def reason_of(faults: Sequence[Fault]) -> str:
    """The reason of the first fault that a row has."""
    cases = " ".join(f"WHEN {fault.condition} THEN {fault.reason}" for fault in faults)
    return f"CASE {cases} END"


def number_or_zero(number: str, most: int) -> str:
    """A number to sum up; 0 if it is a fault, so that other snapshots keep correct sums."""
    return f"CASE WHEN {number} BETWEEN 0 AND {most} THEN {number} ELSE 0 END"


def inlined_fault(table_name: str | None, *, is_missing: bool) -> str:
    """Why the inlined rows of a table cannot be read."""
    what = "is not there" if is_missing else "is registered twice"
    return (
        f"the table of inlined rows {table_name!r} of ducklake_inlined_data_tables {what}{REMEDY}"
    )
