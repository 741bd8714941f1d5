"""The difference of two snapshots of a table."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from ...reports.tables.difference import difference as difference_of
from ..visit import LARGEST, PageNumber, TableOf, VisitOf

router = APIRouter()

Id = Annotated[int, Query(ge=0, le=LARGEST)]
Before = Annotated[int, Query(alias="from", ge=0, le=LARGEST)]


@router.get("/tables/{namespace}/{name}/difference")
async def difference(
    visit: VisitOf, wanted: TableOf, before: Before, to: Id, page: PageNumber = 1
) -> Response:
    """Both snapshots are in the query, as `from` and `to`."""
    site = visit.site
    report = site.read(lambda con: difference_of(site.generator, con, wanted, before, to, page))
    return visit.answer("difference.html", report)
