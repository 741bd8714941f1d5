"""planTableScan and fetchScanTasks: the files of a scan, from one statement on the catalog.

No plan is kept between two requests: the status is always `completed`, and a plan task has all that
its answer needs: the scan and a range of data files. Any instance can answer it.
"""

import base64
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

from ..ducklake.connection.database import Database, retried
from ..ducklake.faults import MAX_ID
from ..ducklake.rows.files import PlannedFile
from ..iceberg.table_metadata import Snapshot, TableMetadata
from ..mapping.conditions import FilteredColumns, condition_of
from ..mapping.manifests import fingerprint, fingerprint_of_bytes
from ..mapping.scan_tasks import scan_tasks
from ..rest.answers import PlanTableScanResult, ScanTasks
from ..rest.planning import FetchScanTasksRequest, PlanTableScanRequest, filter_of
from ..runtime.errors import BadRequest, NoSuchPlanTask, PlannedByClient, Refused, Unsupported
from ..runtime.namespaces import Namespace
from ..virtual_files.scan_files import ScanFiles
from ..virtual_files.virtual_files import VirtualTable
from .reader import Catalog, OpenTable

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
    """The limits of the pages of a scan."""

    residual_bytes: int
    plan_task_bytes: int
    have_deletes: bool
    """Each file may have a delete file, which names it again."""

    @property
    def files(self) -> int:
        """The most files of a page."""
        # With locations of 100 bytes; `fitting` counts those that they have.
        return max(1, min(MOST_FILES, MOST_PAGE_BYTES // self._bytes(100)))

    @property
    def plan_tasks(self) -> int:
        """The most plan tasks of an answer."""
        return max(1, min(MOST_PLAN_TASKS, MOST_PLAN_TASK_BYTES // self.plan_task_bytes))

    def fitting(self, locations: Sequence[str]) -> int:
        """How many of the files fit into an answer, at least one."""
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
    """The fingerprint of the caller that may send the plan task."""
    filter: str
    """As JSON, as the client sent it."""
    is_case_sensitive: bool
    use_snapshot_schema: bool
    first_id: int
    last_id: int
    """The range of data_file_ids, both included."""

    @property
    def is_possible(self) -> bool:
        """Whether a plan task of this catalog can have this range and this filter."""
        try:
            is_filter = filter_text(json.loads(self.filter)) == self.filter
        except BadRequest:
            return False
        return is_filter and 0 <= self.first_id <= self.last_id <= MAX_ID

    def encoded(self) -> str:
        """The text for the client."""
        claims = json.dumps([VERSION, *asdict(self).values()], separators=(",", ":"))
        # Not signed: it holds no secret and grants nothing. The rights of the caller, the table,
        # the snapshot, the filter and the range are checked again, so an invented plan task gives
        # no more than `planTableScan` gives the same caller. The digest finds texts that were cut
        # or mixed up.
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
    raise BadRequest("the plan-task is not from this catalog: plan the scan again")


def _unpacked(text: str) -> bytes:
    coded, _, digest = text.partition(".")
    body = base64.b64decode(coded, altchars=b"-_", validate=True)
    if fingerprint_of_bytes(body) != digest:
        raise ValueError("another digest")
    inflate = zlib.decompressobj()
    # A few bytes can stand for gigabytes.
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
    data_files = [*files.data_files(snapshot_id, page)]
    fitting = size.fitting([file.file_path for file in data_files])
    files.put_data_files(snapshot_id, page[:fitting])
    rows = files.rows_files(snapshot_id, condition) if is_first else []
    deletes = files.delete_files(snapshot_id, page[:fitting])
    answer = scan_tasks([*rows, *data_files[:fitting]], deletes, residual)
    spans = later_spans(planned, fitting, size.files, task.last_id)
    later_tasks = (replace(task, first_id=first, last_id=last) for first, last in spans)
    if plan_tasks := [later.encoded() for later in later_tasks]:
        answer["plan-tasks"] = plan_tasks
    return answer


def locations(answer: ScanTasks) -> set[str]:
    """The locations of all files of an answer."""
    files = [task["data-file"] for task in answer["file-scan-tasks"]]
    return {file["file-path"] for file in (*files, *answer.get("delete-files", []))}


def _columns(files: ScanFiles, task: PlanTask) -> FilteredColumns:
    """The columns that the filter may mean."""
    schemas = [files.schemas.schema_at(task.snapshot_id)]
    # Names of both schemas: PyIceberg never requests the snapshot's schema, although it uses its
    # names.
    if not task.use_snapshot_schema:
        schemas.insert(0, files.schemas.schema_at(task.named_at))
    return FilteredColumns(
        files.schemas,
        files.partitions,
        task.snapshot_id,
        schemas,
        is_case_sensitive=task.is_case_sensitive,
    )


@dataclass(frozen=True, slots=True)
class ScanPlanner:
    """Plans the scans of one caller."""

    catalog: Catalog
    caller: str
    """The caller; empty if it is unknown."""

    @property
    def database(self) -> Database:
        """The catalog database."""
        return self.catalog.database

    @retried
    def plan_table_scan(
        self,
        namespace: Namespace,
        table: str,
        request: PlanTableScanRequest,
        *,
        with_credentials: bool = False,
    ) -> PlanTableScanResult:
        """The answer to planTableScan.

        Args:
            with_credentials: vend credentials for exactly the files of the plan, if the settings
                vend any, a session policy has room for them, and the plan has one page.

        Raises:
            NoSuchTable: the table or its namespace does not exist.
            BadRequest: the filter is not understood, or the snapshot is not listed.
            Unsupported: the request is for the changes between two snapshots.
            Refused: the table cannot be served exactly, or only to clients that plan themselves.
        """
        if request.start_snapshot_id is not None or request.end_snapshot_id is not None:
            raise Unsupported("the changes between two snapshots are planned by the client")
        text = filter_text(request.filter)
        filter_of(request.filter)
        with self.catalog.open_table(namespace, table) as opened:
            files = self.catalog.table_files(opened)
            snapshot = _snapshot(files.metadata(), request.snapshot_id)
            if snapshot is None:
                return {"status": "completed", "plan-id": "empty", "file-scan-tasks": []}
            snapshot_id = snapshot.sequence_number
            self._check(opened, files, snapshot_id)
            scan = PlanTask(
                table_uuid=files.history.table.table_uuid,
                snapshot_id=snapshot_id,
                named_at=files.history.snapshot_id,
                data=files.scan_files().fingerprint(snapshot_id),
                caller=self._caller,
                filter=text,
                is_case_sensitive=request.case_sensitive,
                use_snapshot_schema=request.use_snapshot_schema,
                first_id=0,
                last_id=MAX_ID,
            )
            answer = scan_answer(files.scan_files(), scan, is_first=True)
            is_whole = with_credentials and "plan-tasks" not in answer
            scope = self.catalog.plan_scope(opened, locations(answer)) if is_whole else None
        result: PlanTableScanResult = {
            "status": "completed",
            "plan-id": fingerprint(scan.encoded()),
            **answer,  # type: ignore[typeddict-item]
        }
        if scope and (vended := self.catalog.plan_credentials(scope, namespace, table)):
            result["storage-credentials"] = vended
        return result

    @retried
    def fetch_scan_tasks(
        self, namespace: Namespace, table: str, request: FetchScanTasksRequest
    ) -> ScanTasks:
        """The answer to fetchScanTasks.

        Raises:
            NoSuchTable: the table or its namespace does not exist.
            NoSuchPlanTask: the plan task is one of another table or caller, or its snapshot has
                expired or was rewritten.
            BadRequest: it is no plan task.
            Refused: as `plan_table_scan`.
        """
        task = plan_task_of(request.plan_task)
        with self.catalog.open_table(namespace, table) as opened:
            files = self.catalog.table_files(opened)
            if (task.table_uuid, task.caller) != (files.history.table.table_uuid, self._caller):
                raise NoSuchPlanTask(
                    "the plan task is of another table or caller: plan the scan again"
                )
            snapshot_id, scan_files = task.snapshot_id, files.scan_files()
            listed = {snapshot.sequence_number for snapshot in files.metadata().snapshots}
            if snapshot_id not in listed or scan_files.fingerprint(snapshot_id) != task.data:
                raise NoSuchPlanTask(
                    "the snapshot of the plan task has expired, or DuckLake has rewritten its "
                    "files; plan the scan again"
                )
            self._check(opened, files, snapshot_id)
            return scan_answer(scan_files, task)

    def _check(self, opened: OpenTable, files: VirtualTable, snapshot_id: int) -> None:
        """Refuse scans of a snapshot that clients have to plan themselves."""
        if reason := self.catalog.planned_by_client(opened, files, snapshot_id):
            raise PlannedByClient(
                f"scans of the table {files.history.full_name} are planned by the client: "
                f"{reason}; set the client's scan-planning-mode to `client`"
            )

    @property
    def _caller(self) -> str:
        # A plan task is for one lake: another one may have a table of the same uuid.
        lake = self.catalog.settings.lake
        return fingerprint(self.caller, *([lake] if lake else []))


def _snapshot(document: TableMetadata, snapshot_id: int | None) -> Snapshot | None:
    """The snapshot of a scan: the newest one if none is named; None for a table without any.

    Raises:
        BadRequest: the table lists no such snapshot.
        Refused: it is of another branch than main.
    """
    if snapshot_id is None:
        return document.snapshots[-1] if document.snapshots else None
    for snapshot in document.snapshots:
        if snapshot.snapshot_id == snapshot_id:
            return snapshot
    if any(snapshot.snapshot_id == snapshot_id for snapshot in document.staged):
        raise Refused(
            "scans of snapshots that are not of the branch main are planned by the client; set the "
            "client's scan-planning-mode to `client`"
        )
    raise BadRequest(f"snapshot-id: the table does not list the snapshot {snapshot_id}")
