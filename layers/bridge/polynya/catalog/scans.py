"""planTableScan and fetchScanTasks: the files of a scan, from one statement on the catalog.

Nothing is kept between two requests: the status is always `completed`, and a plan task holds what
its answer needs.
"""

from dataclasses import dataclass

from ..ducklake.connection.database import Database, retried
from ..ducklake.faults import MAX_ID
from ..iceberg.table_metadata import Snapshot, TableMetadata
from ..mapping.manifests import fingerprint
from ..rest.answers import PlanTableScanResult, ScanTasks
from ..rest.planning import FetchScanTasksRequest, PlanTableScanRequest, filter_of
from ..runtime.errors import BadRequest, NoSuchPlanTask, Refused, Unsupported
from ..runtime.namespaces import Namespace
from ..scan_planning.plans import PlanTask, filter_text, locations, plan_task_of, scan_answer
from ..virtual_files.table_files import VirtualTable
from .reader import Catalog, OpenTable


@dataclass(frozen=True, slots=True)
class ScanPlanner:
    """Plans the scans of one caller."""

    catalog: Catalog
    caller: str
    """Who asks; empty if nobody is known."""

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
            Unsupported: the changes between two snapshots are wanted.
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
                raise NoSuchPlanTask("the plan task is one of another table or caller")
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
        """Raises Refused if clients have to plan the scans of a snapshot themselves."""
        if reason := self.catalog.planned_by_client(opened, files, snapshot_id):
            raise Refused(
                f"scans of the table {files.history.full_name} are planned by the client: "
                f"{reason}; set the client's scan-planning-mode to `client`"
            )

    @property
    def _caller(self) -> str:
        return fingerprint(self.caller)


def _snapshot(document: TableMetadata, snapshot_id: int | None) -> Snapshot | None:
    """The snapshot of a scan: the newest one if none is named; None for a table without any.

    Raises:
        BadRequest: the table lists no such snapshot.
    """
    if snapshot_id is None:
        return document.snapshots[-1] if document.snapshots else None
    for snapshot in document.snapshots:
        if snapshot.snapshot_id == snapshot_id:
            return snapshot
    raise BadRequest(f"snapshot-id: the table does not list the snapshot {snapshot_id}")
