"""File scan tasks of the REST catalog, and the texts and values that filters are compared with.

`literal_text` spells a literal of a filter like the texts of DuckLake's statistics. Clients write
dates and times as text or as numbers since 1970. A literal that is not certain is None, and keeps
every file.

`may_hold` compares a filter with the partition values of inlined rows. Daft drops a condition on a
partition column, because it expects that all files of a plan were chosen by it (Daft issue 7428):
files of other values would give it wrong rows.

In `scan_tasks` every file has the unpartitioned spec: the server has skipped files already, clients
disagree on the form of partition values, and Java would bind the residual of a partitioned spec to
the current schema. Bounds are left out: the specification and the clients disagree on their form
too.
"""

import math
import re
import struct
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from ..ducklake import text_values
from ..ducklake.rows.files import AllOf, AnyOf, ColumnTest, Condition
from ..ducklake.text_values import EPOCH, EPOCH_DAY
from ..iceberg.manifest import DataFile, FileContent, PartitionSpec
from ..rest.answers import ScanTasks
from .types import value

Literal = bool | int | float | str

MOST_DIGITS = 100
MICROS_PER_DAY = 86_400_000_000
MICROSECONDS = re.compile(r".*:[0-9]{2}(?:\.[0-9]{1,6})?(?:Z|[+-][0-9:]{5})?")
"""A time of day without nanoseconds, which Python would cut off."""


def literal_text(form: str, literal: Literal) -> str | None:
    """Spell a literal in one of `ducklake.rows.files.FORMS`; None if it is not certain."""
    try:
        return TEXTS[form](literal)
    except (ValueError, TypeError, OverflowError, struct.error):
        return None


def _boolean(literal: Literal) -> str:
    if not isinstance(literal, bool):
        raise TypeError(literal)
    return str(int(literal))


def _integer(literal: Literal) -> str:
    text = str(_number(literal))
    if len(text) > MOST_DIGITS:
        raise ValueError(text)
    return text


def _decimal(literal: Literal) -> str:
    if not isinstance(literal, str):
        return _integer(literal)
    if not text_values.NUMBER.fullmatch(literal):
        raise ValueError(literal)
    return literal


def _double(literal: Literal) -> str:
    if isinstance(literal, bool | str) or not math.isfinite(number := float(literal)):
        raise TypeError(literal)
    return repr(number)


def _float(literal: Literal) -> str:
    [nearest] = struct.unpack("<f", struct.pack("<f", float(_double(literal))))
    return repr(nearest)


def _string(literal: Literal) -> str:
    if not isinstance(literal, str) or "\0" in literal:  # no text of PostgreSQL holds it
        raise TypeError(literal)
    literal.encode()
    return literal


def _binary(literal: Literal) -> str:
    if not isinstance(literal, str):
        raise TypeError(literal)
    return bytes.fromhex(literal).hex().upper()


def _date(literal: Literal) -> str:
    if isinstance(literal, str):
        return date.fromordinal(text_values.days(literal) + EPOCH_DAY).isoformat()
    return date.fromordinal(_number(literal) + EPOCH_DAY).isoformat()


def _time(literal: Literal) -> str:
    micros = text_values.time(literal) if isinstance(literal, str) else _number(literal)
    if not 0 <= micros < MICROS_PER_DAY:
        raise ValueError(micros)
    return _trimmed((EPOCH + timedelta(microseconds=micros)).time().isoformat())


def _timestamp(literal: Literal) -> str:
    return _moment(literal, text_values.timestamp)


def _timestamptz(literal: Literal) -> str:
    return _moment(literal, text_values.timestamptz)


def _moment(literal: Literal, parse: Callable[[str], int]) -> str:
    """Spell a time as DuckDB does: `isoformat` too writes four digits for years before 1000."""
    if isinstance(literal, str) and not MICROSECONDS.fullmatch(literal):
        raise ValueError(literal)
    micros = parse(literal) if isinstance(literal, str) else _number(literal)
    moment: datetime = EPOCH + timedelta(microseconds=micros)
    return _trimmed(moment.astimezone(UTC).replace(tzinfo=None).isoformat(" "))


def _number(literal: Literal) -> int:
    if isinstance(literal, bool) or not isinstance(literal, int):
        raise TypeError(literal)
    return literal


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


TEXTS: dict[str, Callable[[Literal], str]] = {
    "boolean": _boolean,
    "integer": _integer,
    "decimal": _decimal,
    "float": _float,
    "double": _double,
    "string": _string,
    "binary": _binary,
    "date": _date,
    "time": _time,
    "timestamp": _timestamp,
    "timestamptz": _timestamptz,
}


Partition = tuple[Any, ...]


def may_hold(condition: Condition, spec: PartitionSpec, partition: Partition | None) -> bool:
    """Whether a file of a partition may hold a row that a filter selects.

    Only identity fields are compared: their values are those of the column.
    """
    fields = zip(spec.fields, partition or (), strict=bool(partition))
    identities = {
        field.source_id: (field.result_type, constant)
        for field, constant in fields
        if field.transform == "identity"
    }
    return _may_hold(condition, identities)


def _may_hold(condition: Condition, identities: Mapping[int, tuple[str, Any]]) -> bool:
    match condition:
        case AllOf(parts):
            return all(_may_hold(part, identities) for part in parts)
        case AnyOf(parts):
            return any(_may_hold(part, identities) for part in parts)
        case ColumnTest(column) if column.column_id in identities:
            return _passes(condition, *identities[column.column_id])
    return True


def _passes(test: ColumnTest, type_name: str, constant: Any) -> bool:
    if test.operation not in COMPARED or constant is None:
        return test.operation not in (NEVER_NULL if constant is None else {"is-null"})
    try:
        values = [value(type_name, text) for text in test.values]
    except ValueError:
        return True  # a value that the column cannot have
    return COMPARED[test.operation](constant, values)


NEVER_NULL = {"not-null", "is-nan", "lt", "lt-eq", "gt", "gt-eq", "in", "one-of", "starts-with"}
"""The operations that a NULL does not pass. Clients disagree on the negated ones."""

COMPARED: dict[str, Callable[[Any, list[Any]], bool]] = {
    "lt": lambda constant, values: constant < values[0],
    "lt-eq": lambda constant, values: constant <= values[0],
    "gt": lambda constant, values: constant > values[0],
    "gt-eq": lambda constant, values: constant >= values[0],
    "in": lambda constant, values: constant in values,
    "one-of": lambda constant, values: constant in values,
    "not-in": lambda constant, values: constant not in values,
    "starts-with": lambda constant, values: constant.startswith(values[0]),
    "not-starts-with": lambda constant, values: not constant.startswith(values[0]),
}
"""Whether a value passes."""


CONTENTS = {FileContent.DATA: "data", FileContent.POSITION_DELETES: "position-deletes"}


def scan_tasks(
    files: Iterable[DataFile], deletes: Mapping[str, DataFile], residual: Any
) -> ScanTasks:
    """File scan tasks and their delete files, which are numbered within one answer.

    Args:
        deletes: delete files by the location of their data file.
        residual: the filter that the client still has to apply to each file.
    """
    tasks: list[dict[str, Any]] = []
    delete_files: list[dict[str, Any]] = []
    for file in files:
        task = {"data-file": content_file(file), "residual-filter": residual}
        if delete := deletes.get(file.file_path):
            task["delete-file-references"] = [len(delete_files)]
            delete_files.append(content_file(delete))
        tasks.append(task)
    answer: ScanTasks = {"file-scan-tasks": tasks}
    if delete_files:  # absent, not empty
        answer["delete-files"] = delete_files
    return answer


def content_file(file: DataFile) -> dict[str, Any]:
    """`ContentFile` of the specification. Keys without a value are left out: Java takes no null."""
    json: dict[str, Any] = {
        "content": CONTENTS[file.content],
        "file-path": file.file_path,
        "file-format": "parquet",
        "spec-id": 0,
        "partition": [],
        "file-size-in-bytes": file.file_size_in_bytes,
        "record-count": file.record_count,
    }
    if file.referenced_data_file is not None:
        json["referenced-data-file"] = file.referenced_data_file
    if file.first_row_id is not None:
        json["first-row-id"] = file.first_row_id
    return json
