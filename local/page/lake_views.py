"""The lake: its namespaces, tables and views."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response

from ...reports.lake.report import Search, lake_report, with_statuses
from ...reports.reading.place import Place
from ...reports.reading.snippets import FIRST_CLIENTS, client, connect_blocks
from ..visit import PageNumber, Visit, VisitOf

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
    connect = {name: connect_blocks(client(name), _place(visit)) for name in FIRST_CLIENTS}
    return visit.answer("lake.html", with_statuses(report, site.statuses), connect=connect)


def _place(visit: Visit) -> Place:
    """The lake at the shown snapshot; no table of it."""
    addresses = visit.site.addresses
    return Place(
        catalog_uri=addresses.catalog_uri,
        warehouse=addresses.warehouse,
        s3_endpoint=addresses.s3_endpoint,
        namespace="",
        table="",
        lake_snapshot=visit.snapshot,
    )
