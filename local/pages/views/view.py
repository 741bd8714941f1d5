"""A view: its text, and what Iceberg clients get of it."""

from fastapi import APIRouter, Response

from ...reports.lake.view_report import view_report
from ..visit import TableOf, VisitOf

router = APIRouter()


@router.get("/views/{namespace}/{name}")
async def view(visit: VisitOf, wanted: TableOf) -> Response:
    """The view at the snapshot."""
    names = (wanted.namespace, wanted.name, wanted.snapshot_id)
    location = visit.site.generator.virtual_location
    report = visit.site.read(lambda con: view_report(con, *names, location))
    return visit.answer("view.html", report)
