"""The answer for some files of a scan: file scan tasks, their delete files, and plan tasks."""

import json

from ..files.scans.scan_files import ScanFiles
from ..iceberg.planning.filters import filter_of
from ..iceberg.rest import ScanTasks
from ..translate.planning.conditions import condition_of
from ..translate.planning.filtered_columns import FilteredColumns
from ..translate.planning.tasks import scan_tasks
from .pages import PageSize, later_spans
from .plan_tasks import PlanTask


def scan_answer(files: ScanFiles, task: PlanTask, *, is_first: bool = False) -> ScanTasks:
    """The first page of the files of a plan task, and plan tasks for the others.

    Args:
        is_first: also the inlined rows, of which there are few files.

    Raises:
        BadRequest: the filter names a column that the table does not have.
        Refused: a file cannot be served exactly.
        ServiceUnavailable: the files of deletes take longer to build than a request may.
    """
    at, last_id = task.snapshot_id, task.last_id
    filter_ = json.loads(task.filter)
    condition = condition_of(filter_of(filter_), _columns(files, task))
    residual = True if filter_ is None else filter_
    size = PageSize(len(task.filter.encode()), len(task.encoded()), files.have_deletes(at))
    found = files.find(at, (task.first_id, last_id), condition, size.files, size.plan_tasks + 1)
    page = [one.file for one in found if one.place <= size.files]
    data_files = [*files.data_files(page)]
    fitting = size.fitting([file.file_path for file in data_files])
    rows = files.rows_files(at, condition) if is_first else []
    deletes = files.delete_files(at, page[:fitting])
    answer = scan_tasks([*rows, *data_files[:fitting]], deletes, residual)
    spans = later_spans(found, fitting, size.files, last_id)
    if left := [task.of_files(*span).encoded() for span in spans]:
        answer["plan-tasks"] = left
    return answer


def locations(answer: ScanTasks) -> set[str]:
    """The locations of all files of an answer."""
    files = [task["data-file"] for task in answer["file-scan-tasks"]]
    return {file["file-path"] for file in (*files, *answer.get("delete-files", []))}


def _columns(files: ScanFiles, task: PlanTask) -> FilteredColumns:
    """The columns that the filter may mean.

    PyIceberg never asks for the snapshot's schema, although it uses its names.
    """
    schemas = [files.schemas.at(task.snapshot_id)]
    if not task.use_snapshot_schema:
        schemas.insert(0, files.schemas.at(task.named_at))
    return FilteredColumns(
        files.schemas,
        files.partitions,
        task.snapshot_id,
        schemas,
        is_case_sensitive=task.is_case_sensitive,
    )
