"""Level metadata: the documents that Iceberg clients get, compared with the catalog."""

import io
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

import fastavro

from ..common.errors import Unavailable
from .catalog import CatalogFile, CatalogTable
from .findings import Problem

SECONDS = 60
"""The timeout of a request to the catalog."""
DATA, DELETED = 0, 2
"""Iceberg's values of `content` and `status` in a manifest entry."""


class ServedCatalog:
    """The Iceberg REST catalog that serves the lake, pinned to one snapshot."""

    def __init__(
        self, catalog_uri: str, s3_endpoint: str | None, warehouse: str, snapshot_id: int
    ) -> None:
        """Raises:
        Unavailable: the catalog does not answer.
        """
        self.catalog_uri = catalog_uri.rstrip("/")
        self.warehouse = f"{warehouse}@{snapshot_id}"
        self.s3_endpoint = s3_endpoint
        config = self._get(f"/v1/config?warehouse={quote(self.warehouse, safe='')}")
        self._prefix = (config.get("overrides") or {}).get("prefix", "")

    def table_metadata(self, table: CatalogTable) -> dict[str, Any]:
        """The table metadata document.

        Raises:
            Unavailable: the catalog does not answer.
        """
        names = (quote(name, safe="") for name in (table.schema_name, table.table_name))
        path = "/v1/{}/namespaces/{}/tables/{}".format(quote(self._prefix, safe="@"), *names)
        document: dict[str, Any] = self._get(path)["metadata"]
        return document

    def read(self, location: str) -> bytes:
        import boto3

        bucket, _, key = location.partition("://")[2].partition("/")
        client = boto3.client("s3", endpoint_url=self.s3_endpoint)
        body: bytes = client.get_object(Bucket=bucket, Key=key)["Body"].read()
        return body

    def _get(self, path: str) -> dict[str, Any]:
        try:
            with urlopen(Request(self.catalog_uri + path), timeout=SECONDS) as answer:
                document: dict[str, Any] = json.load(answer)
                return document
        except (OSError, ValueError) as error:
            raise Unavailable(f"the Iceberg catalog at {self.catalog_uri}: {error}") from None


def check(
    served: ServedCatalog, table: CatalogTable, files: list[CatalogFile], row_count: int
) -> Iterator[Problem]:
    """Compare data files, rows, sizes, and the lengths and counts of manifests.

    Args:
        row_count: the number of rows in the catalog.
    """
    entries: dict[str, dict[str, Any]] = {}
    deleted = 0
    for manifest in _manifests(served, table):
        body = served.read(manifest["manifest_path"])
        live = [entry for entry in _records(body) if entry["status"] != DELETED]
        yield from _check_manifest(manifest, len(body), len(live))
        for file in (entry["data_file"] for entry in live):
            if file["content"] != DATA:
                deleted += file["record_count"]
                continue
            if file["file_path"] in entries:
                yield "metadata-twice", f"{file['file_path']} is listed twice"
            entries[file["file_path"]] = file
    yield from _compare(files, entries)
    rows = sum(file["record_count"] for file in entries.values()) - deleted
    if rows != row_count:
        yield "metadata-rows", f"the documents have {rows} rows, the catalog has {row_count}"


def _manifests(served: ServedCatalog, table: CatalogTable) -> list[dict[str, Any]]:
    """The entries of the manifest list of the current snapshot."""
    metadata = served.table_metadata(table)
    for snapshot in metadata.get("snapshots", ()):
        if snapshot["snapshot-id"] == metadata.get("current-snapshot-id"):
            return _records(served.read(snapshot["manifest-list"]))
    return []


def _check_manifest(manifest: dict[str, Any], length: int, live: int) -> Iterator[Problem]:
    path = manifest["manifest_path"]
    if length != manifest["manifest_length"]:
        message = f"{path} has {length} bytes; its list says {manifest['manifest_length']}"
        yield "manifest-length", message
    counted = manifest["added_files_count"] + manifest["existing_files_count"]
    if live != counted:
        yield "manifest-count", f"{path} has {live} files; its list says {counted}"


def _records(body: bytes) -> list[dict[str, Any]]:
    return list(fastavro.reader(io.BytesIO(body)))  # type: ignore[arg-type]


def _compare(files: list[CatalogFile], entries: dict[str, dict[str, Any]]) -> Iterator[Problem]:
    data = {file.location: file for file in files if file.kind == "data"}
    for path in sorted(data.keys() - entries.keys()):
        yield "metadata-missing", f"{path} is not in the documents"
    for path in sorted(entries.keys() - data.keys()):
        if not path.rpartition("/")[2].startswith("rows-"):  # a file of inlined rows
            yield "metadata-surplus", f"{path} is in the documents and not in the catalog"
    for path in sorted(data.keys() & entries.keys()):
        for name in ("record_count", "file_size_in_bytes"):
            expected = getattr(data[path], name.replace("_in_", "_"))
            if entries[path][name] != expected:
                message = f"{path}: {name} {entries[path][name]}, not {expected}"
                yield "metadata-differs", message
