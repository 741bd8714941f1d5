"""Data files and delete files as file scan tasks of the REST catalog.

Every file has the unpartitioned spec: the server has skipped files already, clients disagree on the
form of partition values, and Java would bind the residual of a partitioned spec to the current
schema. Bounds are left out: the specification and the clients disagree on their form too.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ...iceberg.manifest import DataFile, FileContent
from ...iceberg.rest import ScanTasks

CONTENTS = {FileContent.DATA: "data", FileContent.POSITION_DELETES: "position-deletes"}


def scan_tasks(
    files: Iterable[DataFile], deletes: Mapping[str, DataFile], residual: Any
) -> ScanTasks:
    """File scan tasks and their delete files, which are numbered within one answer.

    Args:
        deletes: by the location of a data file.
        residual: what the client has still to filter by; for every file.
    """
    tasks: list[dict[str, Any]] = []
    delete_files: list[dict[str, Any]] = []
    for file in files:
        task = {"data-file": content_file(file), "residual-filter": residual}
        if found := deletes.get(file.file_path):
            task["delete-file-references"] = [len(delete_files)]
            delete_files.append(content_file(found))
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
