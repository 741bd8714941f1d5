"""How each client reads a table."""

from fastapi import APIRouter, Response
from pg8000.native import Connection
from polynya.storage.s3 import bucket_and_key

from ...lakes.data_path import ALIAS
from ...reports.reading.place import Place
from ...reports.reading.report import ReadingReport, listed_snapshot, reading_report
from ...reports.tables.opened import Wanted, open_at
from ..site import Site
from ..visit import TableOf, VisitOf

router = APIRouter()


@router.get("/tables/{namespace}/{name}/read")
async def reading(visit: VisitOf, wanted: TableOf) -> Response:
    """The snippets of all clients, and what is wrong with each."""
    report = visit.site.read(lambda con: _report(visit.site, con, wanted))
    template = "reading.html" if report.clients else "not_served.html"
    return visit.answer(template, report, tab="read")


def _report(site: Site, con: Connection, wanted: Wanted) -> ReadingReport:
    table = open_at(site.generator, con, wanted, limit=1)
    virtual = bucket_and_key(table.files.table.location)
    is_past = wanted.snapshot_id is not None
    place = Place(
        catalog_uri=site.addresses.catalog_uri,
        warehouse=site.addresses.warehouse,
        s3_endpoint=site.addresses.s3_endpoint,
        namespace=table.head.namespace,
        table=table.head.name,
        lake_snapshot=table.at if is_past else None,
        snapshot_id=listed_snapshot(site.generator, table) if is_past else None,
        virtual_bucket=virtual[0] if virtual else ALIAS,
    )
    return reading_report(table, place)
