"""What changed in the lake, newest first."""

from fastapi import APIRouter, Response

from ...reports.lake.changes import changes_report
from ..visit import SnapshotId, VisitOf

router = APIRouter()


@router.get("/changes")
async def changes(visit: VisitOf, until: SnapshotId = None) -> Response:
    """A page of snapshots; `until` is the newest of them."""
    newest = until if until is not None else visit.snapshot
    report = visit.site.read(lambda con: changes_report(con, newest))
    return visit.answer("changes.html", report)
