"""The lake: its namespaces, tables and views."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response

from ...reports.lake.report import Search, lake_report, with_statuses
from ..visit import PageNumber, VisitOf

router = APIRouter()

Order = Literal["name", "rows", "files", "bytes", "changed"]


@router.get("/")
async def lake(
    visit: VisitOf,
    search: Annotated[str, Query(max_length=1000)] = "",
    namespace: str | None = None,
    sort: Order = "name",
    page: PageNumber = 1,
) -> Response:
    """A page of the list."""
    site, wanted = visit.site, Search(search.strip(), namespace or None, sort, page)
    report = site.read(lambda con: lake_report(site.generator, con, visit.snapshot, wanted))
    return visit.answer("lake.html", with_statuses(report, site.statuses))
