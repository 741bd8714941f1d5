"""What Iceberg clients see of a table: the metadata document, the manifest list, the manifests."""

from dataclasses import dataclass, replace
from typing import Any

from pg8000.native import Connection
from polynya.runtime.errors import BadRequest

from .generator import Generator, OpenedTable
from .lake import Paging
from .manifests import File, Manifest, ManifestList, manifest_page, manifests_in
from .opened_table import TableAt, TableHead, TableRef, open_at
from .table_report import ALL_IDS, LISTS, Snapshot, Source, snapshot_of, sources_of

PAGE_SIZE = 25
RANGE = slice(1, 3)
"""Where a manifest's name has the first and the last id of its data files."""


@dataclass(frozen=True, slots=True)
class IcebergHead:
    """The metadata document, and the names of the files below it."""

    head: TableHead
    metadata_location: str
    document: dict[str, Any]
    """Without its snapshots."""
    document_bytes: int
    listed: int
    """How many snapshots it lists."""
    shown: Snapshot | None
    """The newest of them; None: the table has none yet."""
    manifest_list: str
    """Where that snapshot's manifest list is; empty: there is none."""


@dataclass(frozen=True, slots=True)
class IcebergReport:
    """The document, and the manifests of its newest snapshot without their entries."""

    iceberg: IcebergHead
    files: ManifestList


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of a manifest, and where it comes from."""

    file: File
    source: Source


@dataclass(frozen=True, slots=True)
class ManifestReport:
    """A manifest with a page of its entries."""

    iceberg: IcebergHead
    manifest: Manifest
    """Its entries are below, with their sources."""
    entries: list[Entry]
    paging: Paging


def iceberg_head(generator: Generator, con: Connection, ref: TableRef) -> IcebergHead:
    """Read the metadata document; no other file is generated.

    Raises:
        NoSuchTable: the lake has none of this name at the snapshot.
    """
    return _head(open_at(generator, con, ref, limit=0))


def iceberg_report(generator: Generator, con: Connection, ref: TableRef) -> IcebergReport:
    """Generate the manifest list and its manifests, and read them.

    Raises:
        BadRequest: clients get no manifest list of the table.
    """
    table = open_at(generator, con, ref, limit=0)
    head = _head(table)
    return IcebergReport(head, manifests_in(_opened(table, head), head.manifest_list))


def manifest_report(
    generator: Generator, con: Connection, ref: TableRef, name: str, page: int
) -> ManifestReport:
    """Read a page of the entries of a manifest.

    Args:
        name: the manifest's file name.

    Raises:
        BadRequest: there is no such manifest or page.
    """
    table = open_at(generator, con, ref, limit=0)
    head = _head(table)
    opened = _opened(table, head)
    path = f"{head.manifest_list.rpartition('/')[0]}/{name}"
    listing = manifest_page(opened, head.manifest_list, path, (page - 1) * PAGE_SIZE, PAGE_SIZE)
    paging = Paging(page, PAGE_SIZE, listing.total)
    paging.check()
    assert head.shown is not None
    files = listing.manifest.entries
    sources = sources_of(opened, head.shown.snapshot_id, files, _ids(opened, path))
    entries = [Entry(file, sources[file.path]) for file in files]
    return ManifestReport(head, replace(listing.manifest, entries=[]), entries, paging)


def _head(table: TableAt) -> IcebergHead:
    opened = table.opened
    if opened is None:
        return IcebergHead(table.head, "", {}, 0, 0, None, "")
    metadata = opened.metadata
    document = metadata.json()
    listed = document.pop("snapshots")
    for name in LISTS:
        document.pop(name)
    changes = {
        snapshot.snapshot_id: snapshot.changes_made for snapshot in opened.history.snapshots[-1:]
    }
    return IcebergHead(
        head=table.head,
        metadata_location=table.files.metadata_location(metadata),
        document=document,
        document_bytes=len(metadata.body),
        listed=len(listed),
        shown=snapshot_of(listed[-1], changes) if listed else None,
        manifest_list=metadata.snapshots[-1].manifest_list if listed else "",
    )


def _opened(table: TableAt, head: IcebergHead) -> OpenedTable:
    if table.opened is None or not head.manifest_list:
        raise BadRequest("Iceberg clients get no manifest list of this table")
    return table.opened


def _ids(opened: OpenedTable, path: str) -> tuple[int, int]:
    """The ids of the data files that a manifest is about."""
    name = opened.virtual_name(path)
    if name is None or len(name.numbers) < RANGE.stop:
        return ALL_IDS
    first, last = name.numbers[RANGE]
    return first, last
