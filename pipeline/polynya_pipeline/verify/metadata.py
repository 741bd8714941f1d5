"""Levels metadata and client: what Iceberg clients get, compared with DuckLake's catalog.

The level metadata reads the documents; the level client lets Spark read the table. Its session
needs the Iceberg runtime on its class path, as AWS's Spark has it.
"""

import io
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypedDict
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

import fastavro
from polynya.runtime.namespaces import path_segment
from polynya.storage.objects import body_of
from polynya.types.names import UNCOUNTED
from polynya.types.nested import NESTED

from ..common.errors import Unavailable
from ..common.spark import quoted
from ..common.storage import raise_unavailable
from .catalog import CatalogFile, CatalogTable
from .findings import Problem

SECONDS = 60
"""The timeout of a request to the catalog."""
DATA, DELETED = 0, 2
"""Iceberg's values of `content` and `status` in a manifest entry."""
BAD_REQUEST = 400


class ManifestFile(TypedDict):
    """An entry of a manifest list; the fields that are compared."""

    manifest_path: str
    manifest_length: int
    added_files_count: int
    existing_files_count: int


class DataFile(TypedDict):
    """A data file or delete file in a manifest entry; the fields that are compared."""

    content: int
    file_path: str
    record_count: int
    file_size_in_bytes: int


class NotServed(Unavailable):
    """The catalog refuses a request, and says why."""


class ServedCatalog:
    """The Iceberg REST catalog that serves the lake, pinned to one snapshot."""

    def __init__(
        self, catalog_uri: str, s3_endpoint: str | None, warehouse: str, snapshot_id: int
    ) -> None:
        """Read the catalog's configuration.

        Raises:
            Unavailable: the catalog does not answer.
        """
        self.catalog_uri = catalog_uri.rstrip("/")
        # The snapshot that the job's transaction reads, whatever is committed meanwhile.
        self.warehouse = f"{warehouse}@{snapshot_id}"
        self.s3_endpoint = s3_endpoint
        config = self._get(f"/v1/config?warehouse={quote(self.warehouse, safe='')}")
        self._prefix = (config.get("overrides") or {}).get("prefix", "")

    def table_metadata(self, table: CatalogTable) -> dict[str, Any]:
        """The table metadata document.

        Raises:
            NotServed: the catalog refuses the table.
            Unavailable: the catalog does not answer.
        """
        names = path_segment(table.namespace), quote(table.table_name, safe="")
        path = "/v1/{}/namespaces/{}/tables/{}".format(quote(self._prefix, safe="@"), *names)
        document: dict[str, Any] = self._get(path)["metadata"]
        return document

    def read(self, location: str) -> bytes:
        """The content of a metadata file in the catalog's S3.

        Raises:
            Unavailable: S3 does not answer, or does not have the file.
        """
        import boto3

        bucket, _, key = location.partition("://")[2].partition("/")
        with raise_unavailable(location, "read"):
            client = boto3.client("s3", endpoint_url=self.s3_endpoint)
            return body_of(client.get_object(Bucket=bucket, Key=key))

    def _get(self, path: str) -> dict[str, Any]:
        try:
            with urlopen(Request(self.catalog_uri + path), timeout=SECONDS) as answer:
                document: dict[str, Any] = json.load(answer)
                return document
        except HTTPError as error:
            if error.code != BAD_REQUEST:
                raise Unavailable(f"the Iceberg catalog at {self.catalog_uri}: {error}") from None
            raise NotServed(_reason(error)) from None
        except (OSError, ValueError) as error:
            raise Unavailable(f"the Iceberg catalog at {self.catalog_uri}: {error}") from None


def _reason(error: HTTPError) -> str:
    """The message of the catalog's answer, in the form of the REST specification."""
    try:
        return str(json.load(error)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return str(error)


def check(
    served: ServedCatalog, document: dict[str, Any], files: list[CatalogFile], row_count: int
) -> Iterator[Problem]:
    """Compare data files, rows, sizes, and the lengths and counts of manifests.

    Args:
        document: the table metadata.
        row_count: the number of rows in the catalog.
    """
    data_files: dict[str, DataFile] = {}
    deleted = 0
    for manifest in _manifests(served, document):
        body = served.read(manifest["manifest_path"])
        live: list[DataFile] = [
            entry["data_file"] for entry in _records(body) if entry["status"] != DELETED
        ]
        yield from _check_manifest(manifest, len(body), len(live))
        for file in live:
            if file["content"] != DATA:
                deleted += file["record_count"]
                continue
            if file["file_path"] in data_files:
                yield "metadata-twice", f"{file['file_path']} is listed twice"
            data_files[file["file_path"]] = file
    yield from _compare(files, data_files)
    rows = sum(file["record_count"] for file in data_files.values()) - deleted
    if rows != row_count:
        yield "metadata-rows", f"the documents have {rows} rows, the catalog has {row_count}"


def _manifests(served: ServedCatalog, document: dict[str, Any]) -> list[ManifestFile]:
    """The entries of the manifest list of the current snapshot."""
    for snapshot in document.get("snapshots", ()):
        if snapshot["snapshot-id"] == document.get("current-snapshot-id"):
            return _records(served.read(snapshot["manifest-list"]))
    return []


def _check_manifest(manifest: ManifestFile, length: int, live: int) -> Iterator[Problem]:
    path = manifest["manifest_path"]
    if length != manifest["manifest_length"]:
        message = f"{path} has {length} bytes; its list says {manifest['manifest_length']}"
        yield "manifest-length", message
    counted = manifest["added_files_count"] + manifest["existing_files_count"]
    if live != counted:
        yield "manifest-count", f"{path} has {live} files; its list says {counted}"


def _records(body: bytes) -> list[Any]:
    """The records of an Avro file."""
    return list(fastavro.reader(io.BytesIO(body)))


# Not with `names.parse`, whose mistakes this job has to find.
LONGER_FILE = re.compile(r"data-file-\d+-(?P<id>\d+)-\d+-(v3-)?[0-9a-f]+[.]parquet")


def _own_location(path: str, locations: Mapping[int, str]) -> str:
    """The location of the lake's own file behind one that has more columns for clients.

    Args:
        locations: of the data files, by data_file_id.
    """
    match = LONGER_FILE.fullmatch(path.rpartition("/")[2])
    return locations.get(int(match["id"]), path) if match else path


def _compare(files: list[CatalogFile], served: dict[str, DataFile]) -> Iterator[Problem]:
    """Compare the data files of the catalog with those of the manifests."""
    data = {file.location: file for file in files if file.kind == "data"}
    locations = {file.file_id: file.location for file in data.values()}
    # With the setting CLIENTS a data file may have more columns for clients.
    own = {path: _own_location(path, locations) for path in served}
    longer = {location for path, location in own.items() if location != path}
    served = {own[path]: file for path, file in served.items()}
    for path in sorted(data.keys() - served.keys()):
        yield "metadata-missing", f"{path} is not in the documents"
    for path in sorted(served.keys() - data.keys()):
        if not path.rpartition("/")[2].startswith("rows-"):  # a file of inlined rows
            yield "metadata-surplus", f"{path} is in the documents and not in the catalog"
    for path in sorted(data.keys() & served.keys()):
        ours, theirs = data[path], served[path]
        for name, expected, actual in (
            ("record_count", ours.record_count, theirs["record_count"]),
            ("file_size_in_bytes", ours.file_size_bytes, theirs["file_size_in_bytes"]),
        ):
            is_longer = path in longer and name == "file_size_in_bytes" and actual > expected
            if actual != expected and not is_longer:
                yield "metadata-differs", f"{path}: {name} {actual}, not {expected}"


CATALOG = "polynya_verify"
NOT_COUNTED = UNCOUNTED.union(NESTED)
"""The column types whose values are not counted."""
LACKED_TYPE = re.compile(r"(?:unsupported type to Spark:|Spark does not support) (\w+)")
"""Spark's message for a type that it does not have."""


def connect(spark: Any, served: ServedCatalog) -> None:
    """Configure the served catalog in a Spark session."""
    settings = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "rest",
        ".uri": served.catalog_uri,
        ".warehouse": served.warehouse,
        ".io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        ".cache-enabled": "false",  # the default caches tables for 30 seconds
    }
    if served.s3_endpoint:
        settings[".s3.endpoint"] = served.s3_endpoint
        settings[".s3.path-style-access"] = "true"
    for name, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.{_catalog(served)}{name}", value)


def _catalog(served: ServedCatalog) -> str:
    """The name of the catalog in Spark."""
    # One for each snapshot: Spark does not change a catalog's settings after its first use.
    return f"{CATALOG}_{abs(hash((served.catalog_uri, served.warehouse))):x}"


def check_client(
    spark: Any,
    served: ServedCatalog,
    table: CatalogTable,
    row_count: int,
    value_counts: dict[int, int] | None,
) -> Iterator[Problem]:
    """Count the rows, and the values of each column.

    Args:
        row_count: the number of rows in the catalog.
        value_counts: the number of values by column id, from the statistics of all files; None:
            some rows are deleted or inlined, so the statistics do not give it.
    """
    from pyspark.errors import PySparkException

    source = ".".join(map(quoted, (_catalog(served), *table.namespace, table.table_name)))
    counted = [
        column
        for column in table.columns
        if value_counts
        and column.column_id in value_counts
        and column.column_type not in NOT_COUNTED
    ]
    try:
        visible = set(spark.table(source).columns)  # without hidden columns
        counted = [column for column in counted if column.column_name in visible]
        sums = ["count(*)", *(f"count({quoted(column.column_name)})" for column in counted)]
        # The filter is always true; without one Spark answers from the metadata.
        where = "rand() >= 0"
        [row] = spark.sql(f"SELECT {', '.join(sums)} FROM {source} WHERE {where}").collect()
    except PySparkException as error:
        if lacked := LACKED_TYPE.search(str(error)):
            message = f"Spark has no type {lacked[1]}, so it has read no row"
            yield (
                "client-type",
                f"{message}; serve the lake without such columns to compare the others",
            )
        else:
            yield "client-fails", f"Spark cannot read the table: {str(error).splitlines()[0]}"
        return
    if row[0] != row_count:
        yield "client-rows", f"Spark reads {row[0]} rows, the catalog has {row_count}"
    for column, number in zip(counted, row[1:], strict=True):
        expected = (value_counts or {})[column.column_id]
        if number != expected:
            message = f"Spark reads {number} values of {column.column_name}, the files have"
            yield "client-values", f"{message} {expected}"
