"""The files of a table."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response

from ...reports.tables.data_files import FilesWanted, files_report
from .. import charts
from ..visit import PageNumber, TableOf, VisitOf

router = APIRouter()

Order = Literal["newest", "size", "smallest", "rows"]


@router.get("/tables/{namespace}/{name}/files")
async def files(
    visit: VisitOf,
    wanted: TableOf,
    sort: Order = "newest",
    column: Annotated[str, Query(max_length=10_000)] = "",
    page: PageNumber = 1,
) -> Response:
    """A page of files, and pictures of all of them."""
    site, which = visit.site, FilesWanted(sort, page, column)
    report = site.read(lambda con: files_report(site.generator, con, wanted, which))
    return visit.answer(
        "files.html",
        report,
        sizes=charts.sizes(report.sizes),
        bounds=charts.bounds(report.overlap),
    )
