"""What Iceberg clients see of a table: the metadata document, the manifest list, the manifests."""

from typing import Any

from fastapi import APIRouter, Response

from ...reports.generator import Generator
from ...reports.tables.metadata_files import (
    IcebergHead,
    iceberg_head,
    iceberg_report,
    manifest_report,
)
from ...reports.tables.opened import Wanted
from ..visit import PageNumber, TableOf, Visit, VisitOf
from ..work import Job

router = APIRouter()

SECONDS = 1.5
"""How long a visitor waits for files that are generated."""


@router.get("/tables/{namespace}/{name}/iceberg")
async def iceberg(visit: VisitOf, wanted: TableOf) -> Response:
    """The document and the manifests of its newest snapshot."""
    head = _head(visit, wanted)
    if not head.manifest_list:
        return visit.answer("iceberg_none.html", head)

    def task(generator: Generator, job: Job) -> Any:
        return generator.read(lambda con: iceberg_report(generator, con, _at(wanted, head)))

    job = visit.site.files.job((head.manifest_list, ""), task, seconds=SECONDS)
    return visit.answer_when_done("iceberg.html", head.head, job)


@router.get("/tables/{namespace}/{name}/iceberg/metadata")
async def metadata(visit: VisitOf, wanted: TableOf) -> Response:
    """The metadata document as it is."""
    return visit.answer("metadata.html", _head(visit, wanted))


@router.get("/tables/{namespace}/{name}/iceberg/{manifest}")
async def manifest(
    visit: VisitOf, wanted: TableOf, manifest: str, page: PageNumber = 1
) -> Response:
    """A manifest with a page of its entries."""
    head = _head(visit, wanted)

    def task(generator: Generator, job: Job) -> Any:
        at = _at(wanted, head)
        return generator.read(lambda con: manifest_report(generator, con, at, manifest, page))

    job = visit.site.files.job((head.manifest_list, manifest, page), task, seconds=SECONDS)
    return visit.answer_when_done("manifest.html", head.head, job)


def _head(visit: Visit, wanted: Wanted) -> IcebergHead:
    site = visit.site
    return site.read(lambda con: iceberg_head(site.generator, con, wanted))


def _at(wanted: Wanted, head: IcebergHead) -> Wanted:
    """The table at the snapshot that the visitor has seen, though the lake may have gone on."""
    return Wanted(wanted.namespace, wanted.name, head.head.snapshot.snapshot_id)
