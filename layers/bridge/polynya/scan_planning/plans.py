"""The answer for some files of a scan: file scan tasks, delete files, and plan tasks for the rest.

A plan task is a text that any instance can answer. It says which scan it belongs to, and a range of
data files. It holds no secret and grants nothing: the rights of the caller, the table, the
snapshot, the filter and the range are checked again, so a plan task that somebody makes up gives no
more than `planTableScan` gives the same caller. So it is not signed: no secret exists that all
instances share (with IAM authentication there is not even a password), and a key of its own would
protect nothing. The digest finds texts that were cut or mixed up.
"""

import base64
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

from ..ducklake.faults import MAX_ID
from ..ducklake.rows.files import PlannedFile
from ..mapping.conditions import FilteredColumns, condition_of
from ..mapping.manifests import fingerprint_of_bytes
from ..mapping.scan_tasks import scan_tasks
from ..rest.answers import ScanTasks
from ..rest.planning import filter_of
from ..runtime.errors import BadRequest
from ..virtual_files.scan_files import ScanFiles

MOST_FILTER_BYTES = 65_536
"""The residual is repeated for each file, and the filter in each plan task."""

MOST_FILES = 10_000
MOST_PAGE_BYTES = 5_000_000
"""Lambda may answer 6 MB."""
MOST_PLAN_TASK_BYTES = 1_000_000
MOST_PLAN_TASKS = 500
"""The last plan task of an answer leads to all files after it."""

TASK_BYTES = 300
DELETE_BYTES = 350
"""The length of a file scan task and of a delete file as JSON, without locations and residual."""


@dataclass(frozen=True, slots=True)
class PageSize:
    """How large the pages of a scan are."""

    residual_bytes: int
    plan_task_bytes: int
    have_deletes: bool
    """Each file may have a delete file, which names it again."""

    @property
    def files(self) -> int:
        """The most files of a page."""
        return max(1, min(MOST_FILES, MOST_PAGE_BYTES // self._bytes(100)))

    @property
    def plan_tasks(self) -> int:
        """The most plan tasks of an answer."""
        return max(1, min(MOST_PLAN_TASKS, MOST_PLAN_TASK_BYTES // self.plan_task_bytes))

    def fitting(self, locations: Sequence[str]) -> int:
        """How many of the files fit into an answer: at least one."""
        left = MOST_PAGE_BYTES
        for number, location in enumerate(locations):
            left -= self._bytes(len(location.encode()))
            if left < 0 and number:
                return number
        return len(locations)

    def _bytes(self, location_bytes: int) -> int:
        deletes = DELETE_BYTES + 3 * location_bytes if self.have_deletes else 0
        return TASK_BYTES + location_bytes + self.residual_bytes + deletes


def filter_text(filter_: Any) -> str:
    """A filter as JSON, which the answer repeats.

    Raises:
        BadRequest: it is too long, or no JSON that can be sent.
    """
    try:
        text = json.dumps(
            filter_,
            ensure_ascii=False,
            allow_nan=False,
            check_circular=False,
            separators=(",", ":"),
        )
        size = len(text.encode())
    except (ValueError, RecursionError):
        raise BadRequest("filter: it cannot be repeated as JSON") from None
    if size > MOST_FILTER_BYTES:
        raise BadRequest(
            f"filter: it is longer than {MOST_FILTER_BYTES} bytes; set the client's "
            "scan-planning-mode to `client`"
        )
    return text


def later_spans(
    planned: Sequence[PlannedFile], fitting: int, page_files: int, last_id: int
) -> Iterator[tuple[int, int]]:
    """The ranges of data_file_ids of the further pages.

    Args:
        planned: the files of the first page, and the first file of each further page.
        fitting: how many files of the first page are in the answer.
        last_id: the last data_file_id of all pages.
    """
    starts = [row.file.data_file_id for row in planned if row.place > page_files]
    if fitting < len(planned) - len(starts):
        starts.insert(0, planned[fitting].file.data_file_id)
    for start, following in pairwise([*starts, last_id + 1]):
        yield start, following - 1


VERSION = 1
MOST_BYTES = 200_000
"""The most bytes of an unpacked plan task: three times the longest filter."""


@dataclass(frozen=True, slots=True)
class PlanTask:
    """Some files of a scan."""

    table_uuid: str
    snapshot_id: int
    """DuckLake's."""
    named_at: int
    """The snapshot whose schema was the current one when the scan was planned."""
    data: str
    """The fingerprint of the data files: DuckLake may rewrite those of a past snapshot."""
    caller: str
    """The fingerprint of who may send the plan task."""
    filter: str
    """As JSON, as the client sent it."""
    is_case_sensitive: bool
    use_snapshot_schema: bool
    first_id: int
    last_id: int
    """The range of data_file_ids, both included."""

    def of_files(self, first_id: int, last_id: int) -> "PlanTask":
        """The plan task for other files of the same scan."""
        return replace(self, first_id=first_id, last_id=last_id)

    @property
    def is_possible(self) -> bool:
        """Whether a scan may have given this range and this filter."""
        try:
            is_filter = filter_text(json.loads(self.filter)) == self.filter
        except BadRequest:
            return False
        return is_filter and 0 <= self.first_id <= self.last_id <= MAX_ID

    def encoded(self) -> str:
        """The text for the client."""
        claims = json.dumps([VERSION, *asdict(self).values()], separators=(",", ":"))
        body = zlib.compress(claims.encode(), 1)
        return f"{base64.urlsafe_b64encode(body).decode()}.{fingerprint_of_bytes(body)}"


def plan_task_of(text: str) -> PlanTask:
    """The plan task of a text that `encoded` gave.

    Raises:
        BadRequest: it is no such text.
    """
    try:
        version, *claims = json.loads(_unpacked(text))
        if version == VERSION and list(map(type, claims)) == TYPES:
            task = PlanTask(*claims)
            if task.is_possible:
                return task
    except (ValueError, TypeError, zlib.error, RecursionError):
        pass
    raise BadRequest("plan-task is not one that this catalog gave out")


def _unpacked(text: str) -> bytes:
    coded, _, digest = text.partition(".")
    body = base64.b64decode(coded, altchars=b"-_", validate=True)
    if fingerprint_of_bytes(body) != digest:
        raise ValueError("another digest")
    inflate = zlib.decompressobj()
    unpacked = inflate.decompress(body, MOST_BYTES)
    if not inflate.eof:
        raise ValueError("too long, or cut")
    return unpacked


TYPES: list[Any] = [str, int, int, str, str, str, bool, bool, int, int]
"""The types of the fields of a `PlanTask`, in their order."""


def scan_answer(files: ScanFiles, task: PlanTask, *, is_first: bool = False) -> ScanTasks:
    """The first page of the files of a plan task, and plan tasks for the others.

    Args:
        is_first: adds the files of inlined rows, which are few.

    Raises:
        BadRequest: the filter names a column that the table does not have.
        Refused: a file cannot be served exactly.
        ServiceUnavailable: the files of deletes take longer to build than a request may.
    """
    snapshot_id = task.snapshot_id
    filter_ = json.loads(task.filter)
    condition = condition_of(filter_of(filter_), _columns(files, task))
    residual = True if filter_ is None else filter_
    have_deletes = files.have_deletes(snapshot_id)
    size = PageSize(len(task.filter.encode()), len(task.encoded()), have_deletes)
    span = (task.first_id, task.last_id)
    planned = files.find(snapshot_id, span, condition, size.files, size.plan_tasks + 1)
    page = [row.file for row in planned if row.place <= size.files]
    data_files = [*files.data_files(page)]
    fitting = size.fitting([file.file_path for file in data_files])
    rows = files.rows_files(snapshot_id, condition) if is_first else []
    deletes = files.delete_files(snapshot_id, page[:fitting])
    answer = scan_tasks([*rows, *data_files[:fitting]], deletes, residual)
    spans = later_spans(planned, fitting, size.files, task.last_id)
    if plan_tasks := [task.of_files(*span).encoded() for span in spans]:
        answer["plan-tasks"] = plan_tasks
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
