"""File scan tasks of the REST catalog, and the texts and values that filters are compared with.

`literal_text` spells a literal of a filter like the texts of DuckLake's statistics. Clients write
dates and times as text or as numbers since 1970. A literal that is not certain is None, and keeps
every file.

`may_hold` compares a filter with the partition values of inlined rows.
"""

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..ducklake.rows.files import AllOf, AnyOf, ColumnTest, Condition
from ..iceberg.deletion_vector import VECTOR_OFFSET
from ..iceberg.manifest import DataFile, FileContent, PartitionSpec
from ..rest.answers import ScanTasks
from ..types.names import FORMS, value
from ..types.records import Literal


def literal_text(form: str, literal: Literal) -> str | None:
    """Spell a literal in a form; None if it is not certain."""
    try:
        return FORMS[form].literal(literal)
    except (ValueError, TypeError, OverflowError, struct.error):
        return None


Partition = tuple[Any, ...]


def may_hold(condition: Condition, spec: PartitionSpec, partition: Partition | None) -> bool:
    """Whether a file of a partition may hold a row that a filter selects.

    Only identity fields are compared: their values are those of the column.
    """
    # Daft drops a condition on a partition column, because it expects that all files of a plan were
    # chosen by it (Daft issue 7428): files of other values would give it wrong rows.
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
    # Always the unpartitioned spec: the server has skipped files already, clients disagree on the
    # form of partition values, and Java would bind the residual of a partitioned spec to the
    # current schema. No bounds: the specification and the clients disagree on their form too.
    json: dict[str, Any] = {
        "content": CONTENTS[file.content],
        "file-path": file.file_path,
        "file-format": file.file_format.lower(),
        "spec-id": 0,
        "partition": [],
        "file-size-in-bytes": file.file_size_in_bytes,
        "record-count": file.record_count,
    }
    if file.referenced_data_file is not None:
        json["referenced-data-file"] = file.referenced_data_file
    if file.vector_size is not None:
        json["content-offset"] = VECTOR_OFFSET
        json["content-size-in-bytes"] = file.vector_size
    if file.first_row_id is not None:
        json["first-row-id"] = file.first_row_id
    return json
