"""The same table as real Iceberg: what PyIceberg writes for the entries that Polynya serves.

Each manifest has the same entries, so that clients can skip the same number of them. Only the
newest snapshot's manifest list exists, because nothing reads another one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from polynya_local.clients.native import Lake
from polynya_local.clients.pyiceberg import s3_properties
from pyiceberg.avro.codecs import AvroCompressionCodec
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    ManifestEntry,
    ManifestFile,
    read_manifest_list,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.schema import Schema
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil, TableMetadataV2
from pyiceberg.table.snapshots import Snapshot

from .bridge import Bridge, opened
from .lakes import BUCKET
from .workshop import Workshop

CODEC: AvroCompressionCodec = "deflate"
"""PyIceberg's default codec, which Polynya uses too."""


@dataclass(frozen=True, slots=True)
class Original:
    """A table as Polynya serves it, in PyIceberg's records."""

    metadata: TableMetadata
    manifests: Iterable[tuple[int, list[ManifestEntry]]]
    """The partition spec and the entries of each manifest."""
    locations: list[str]
    """The locations at which Polynya serves the newest manifest list and its manifests."""


def served_metadata(bridge: Bridge) -> TableMetadata:
    return TableMetadataUtil.parse_obj(bridge.document())


def newest_snapshot(metadata: TableMetadata) -> Snapshot:
    snapshot = metadata.current_snapshot()
    assert snapshot is not None, "the table has no snapshot"
    return snapshot


def original(bridge: Bridge, io: FileIO, folder: Path) -> Original:
    """The table; its manifests are read one by one, by way of files in the folder."""
    metadata = served_metadata(bridge)
    # PyIceberg reads files, not bytes.
    manifest_list = folder / "list.avro"
    location = newest_snapshot(metadata).manifest_list
    manifest_list.write_bytes(bridge.read(location))
    manifests = list(read_manifest_list(io.new_input(str(manifest_list))))
    locations = [location, *(m.manifest_path for m in manifests)]
    return Original(metadata, _copies(bridge, io, folder, manifests), locations)


def _copies(
    bridge: Bridge, io: FileIO, folder: Path, manifests: list[ManifestFile]
) -> Iterator[tuple[int, list[ManifestEntry]]]:
    for number, served in enumerate(manifests):
        manifest = folder / f"manifest-{number}.avro"
        manifest.write_bytes(bridge.read(served.manifest_path))
        copy = ManifestFile.from_args(
            manifest_path=str(manifest),
            manifest_length=served.manifest_length,
            partition_spec_id=served.partition_spec_id,
            content=served.content,
            sequence_number=served.sequence_number,
            added_snapshot_id=served.added_snapshot_id,
        )
        yield served.partition_spec_id, copy.fetch_manifest_entry(io, discard_deleted=False)


def write_manifests(of: Original, io: FileIO, folder: str) -> list[str]:
    """Write the newest snapshot's manifest list and its manifests; return their locations."""
    manifest_list = f"{folder}/list.avro"
    snapshot = newest_snapshot(of.metadata)
    written = [
        _write_manifest(of, io, f"{folder}/manifest-{number}-copy.avro", spec_id, entries)
        for number, (spec_id, entries) in enumerate(of.manifests)
    ]
    with write_manifest_list(
        2,
        io.new_output(manifest_list),
        snapshot.snapshot_id,
        snapshot.parent_snapshot_id,
        snapshot.sequence_number,
        CODEC,
    ) as writer:
        writer.add_manifests(written)
    return [manifest_list, *(manifest.manifest_path for manifest in written)]


def _write_manifest(
    of: Original, io: FileIO, location: str, spec_id: int, entries: list[ManifestEntry]
) -> ManifestFile:
    schema: Schema = of.metadata.schema()
    snapshot_id = newest_snapshot(of.metadata).snapshot_id
    spec = of.metadata.specs()[spec_id]
    with write_manifest(2, spec, schema, io.new_output(location), snapshot_id, CODEC) as writer:
        for entry in entries:
            writer.add_entry(entry)
    return writer.to_manifest_file()


def write_metadata(served: TableMetadata, io: FileIO, folder: str) -> str:
    """Write the table metadata document as PyIceberg's appends leave it; return its location."""
    location = f"{folder}/v1.metadata.json"
    ToOutputFile.table_metadata(_metadata(served, folder), io.new_output(location), overwrite=True)
    return location


def _metadata(served: TableMetadata, folder: str) -> TableMetadata:
    document = served.model_dump(by_alias=True, mode="json")
    document["location"] = folder
    for snapshot in document["snapshots"]:
        newest = snapshot["snapshot-id"] == document["current-snapshot-id"]
        number = f"{snapshot['snapshot-id']:019d}"
        name = "list" if newest else f"metadata/snap-{number}-0-{document['table-uuid']}"
        snapshot["manifest-list"] = f"{folder}/{name}.avro"
        snapshot["summary"] = _summary(snapshot["summary"])
    return TableMetadataV2.model_validate(document)


def _summary(ours: dict[str, str]) -> dict[str, str]:
    """The summary with the keys that PyIceberg's append writes and Polynya does not."""
    return {
        **ours,
        "added-files-size": ours["total-files-size"],
        "added-records": ours["total-records"],
        "total-delete-files": "0",
        "total-equality-deletes": "0",
        "total-position-deletes": "0",
    }


def write_real(shop: Workshop, lake: Lake, key: str) -> tuple[str, bytes]:
    """Write a table as real Iceberg to the S3, below a key.

    Returns:
        The location of the metadata document, and the document.
    """
    io = PyArrowFileIO(s3_properties(shop.s3_endpoint))
    location = f"s3://{BUCKET}/{key}"
    with opened(lake) as ours, TemporaryDirectory(dir=shop.folder) as folder:
        table = original(ours, PyArrowFileIO(), Path(folder))
        write_manifests(table, io, location)
    document = write_metadata(table.metadata, io, location)
    return document, io.new_input(document).open().read()
