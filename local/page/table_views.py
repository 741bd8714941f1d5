"""A table: its columns, its order on disk and its history."""

from fastapi import APIRouter, Response

from ...reports.tables.overview import table_overview
from .. import charts
from ..visit import SnapshotId, TableOf, VisitOf

router = APIRouter()


@router.get("/tables/{namespace}/{name}")
async def table(visit: VisitOf, wanted: TableOf, until: SnapshotId = None) -> Response:
    """The table; `until` is the newest snapshot of the history that is shown."""
    site = visit.site
    report = site.read(lambda con: table_overview(site.generator, con, wanted, until))
    chart = charts.history(report.moments, report.head.snapshot.snapshot_id)
    return visit.answer("table.html", report, chart=chart)
