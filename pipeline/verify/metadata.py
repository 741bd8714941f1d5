"""Level metadata: the documents that Iceberg clients are given, against the catalog."""

import io
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

import fastavro

from ..common.errors import Unavailable
from .catalog import CatalogFile, CatalogTable

SECONDS = 60
DATA, DELETED = 0, 2


class Bridge:
    """A catalog that serves the lake, pinned to one snapshot: `polynya serve`, or the API."""

    def __init__(
        self, catalog_uri: str, s3_endpoint: str | None, warehouse: str, snapshot_id: int
    ) -> None:
        self.catalog_uri = catalog_uri.rstrip("/")
        self.warehouse = f"{warehouse}@{snapshot_id}"
        self.s3_endpoint = s3_endpoint
        config = self._get(f"/v1/config?warehouse={quote(self.warehouse, safe='')}")
        self._prefix = (config.get("overrides") or {}).get("prefix", "")

    def table_metadata(self, table: CatalogTable) -> dict[str, Any]:
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
            # Not a Request's own schemes: a catalog is asked over HTTP.
            with urlopen(Request(self.catalog_uri + path), timeout=SECONDS) as answer:
                document: dict[str, Any] = json.load(answer)
                return document
        except (OSError, ValueError) as error:
            raise Unavailable(f"the Iceberg catalog at {self.catalog_uri}: {error}") from None


def check(
    bridge: Bridge, table: CatalogTable, files: list[CatalogFile], row_count: int
) -> Iterator[tuple[str, str]]:
    """The set of data files, their rows and sizes, and the manifests' own lengths and sums."""
    metadata = bridge.table_metadata(table)
    current = metadata.get("current-snapshot-id")
    snapshots = {s["snapshot-id"]: s for s in metadata.get("snapshots", ())}
    entries: dict[str, dict[str, Any]] = {}
    deleted = 0
    if current in snapshots:
        manifests = _records(bridge.read(snapshots[current]["manifest-list"]))
        for manifest in manifests:
            body = bridge.read(manifest["manifest_path"])
            if len(body) != manifest["manifest_length"]:
                words = f"{manifest['manifest_path']} has {len(body)} bytes; its list says"
                yield "manifest-length", f"{words} {manifest['manifest_length']}"
            live = [entry for entry in _records(body) if entry["status"] != DELETED]
            counted = manifest["added_files_count"] + manifest["existing_files_count"]
            if len(live) != counted:
                words = f"{manifest['manifest_path']} has {len(live)} files; its list says"
                yield "manifest-count", f"{words} {counted}"
            for entry in live:
                file = entry["data_file"]
                if file["content"] == DATA:
                    if file["file_path"] in entries:
                        yield "metadata-twice", f"{file['file_path']} is listed twice"
                    entries[file["file_path"]] = file
                else:
                    deleted += file["record_count"]
    yield from _sets(files, entries)
    rows = sum(file["record_count"] for file in entries.values()) - deleted
    if rows != row_count:
        yield "metadata-rows", f"the documents tell of {rows} rows, the catalog of {row_count}"


def _records(body: bytes) -> list[dict[str, Any]]:
    return list(fastavro.reader(io.BytesIO(body)))  # type: ignore[arg-type]


def _sets(
    files: list[CatalogFile], entries: dict[str, dict[str, Any]]
) -> Iterator[tuple[str, str]]:
    data = {file.location: file for file in files if file.kind == "data"}
    for path in sorted(data.keys() - entries.keys()):
        yield "metadata-missing", f"{path} is not in the documents"
    for path in sorted(entries.keys() - data.keys()):
        if not path.rpartition("/")[2].startswith("rows-"):  # inlined rows as a file
            yield "metadata-surplus", f"{path} is in the documents and not in the catalog"
    for path in sorted(data.keys() & entries.keys()):
        for name in ("record_count", "file_size_in_bytes"):
            mine = getattr(data[path], name.replace("_in_", "_"))
            if entries[path][name] != mine:
                yield "metadata-differs", f"{path}: {name} {entries[path][name]}, not {mine}"
