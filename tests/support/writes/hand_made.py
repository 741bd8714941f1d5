"""Commits whose files and manifests no client would write: any Parquet bytes under any manifest."""

import io
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import count, groupby
from typing import Any

import boto3
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import urllib3
from polynya.storage.s3_locations import bucket_and_key
from pyroaring import BitMap64

DATA, DELETES, EQUALITY_DELETES = 0, 1, 2

NUMBERS = count(1)


@dataclass(frozen=True)
class Entry:
    """An entry of a manifest, beside the file that it is about."""

    body: bytes
    record_count: int
    name: str = ""
    """Of the file; empty: a new one."""
    content: int = DATA
    file_format: str = "PARQUET"
    partition: tuple[tuple[int, str, Any], ...] = ()
    """Source id, transform and value of each field."""
    sequence_number: int | None = None
    """Given explicitly; None: that of the snapshot."""
    others: dict[str, Any] = field(default_factory=dict)
    """Other fields of the entry, such as referenced_data_file."""
    location: str = ""
    """Where the file is already; empty: it is uploaded."""


class HandMade:
    """Commits to the tables of one namespace."""

    def __init__(self, served: Any, s3_endpoint: str, namespace: str = "main") -> None:
        self._uri = f"{served.catalog_uri}/v1/lake/namespaces/{namespace}/tables".replace(
            "//v1", "/v1"
        )
        self._last: tuple[str, bytes] = "", b""
        self.last_snapshot_id = 0
        self._s3 = boto3.client("s3", endpoint_url=s3_endpoint)
        self._virtual = boto3.client("s3", endpoint_url=served.s3_endpoint)

    def load(self, table: str) -> dict[str, Any]:
        """The table metadata."""
        found = json.loads(urllib3.request("GET", f"{self._uri}/{table}", timeout=300).data)
        return dict(found["metadata"])

    def commit(
        self,
        table: str,
        *entries: Entry,
        removes: tuple[str, ...] = (),
        operation: str = "append",
        updates: Sequence[Any] = (),
        snapshot_id: int | None = None,
    ) -> tuple[int, str]:
        """Add files to a table; status and message of the answer.

        Args:
            removes: parts of the locations of data files that the commit removes.
            updates: what else the commit changes.
            snapshot_id: None: a new one.
        """
        return self.commit_snapshots(
            table,
            entries,
            removes=removes,
            operation=operation,
            updates=updates,
            snapshot_id=snapshot_id,
        )

    def commit_snapshots(
        self,
        table: str,
        *snapshots: Sequence[Entry],
        removes: tuple[str, ...] = (),
        operation: str = "append",
        updates: Sequence[Any] = (),
        snapshot_id: int | None = None,
    ) -> tuple[int, str]:
        """As `commit`, with several snapshots in one commit: the entries of each."""
        document = self.load(table)
        head = document.get("current-snapshot-id")
        manifests = self._base(document, removes)
        changes = [*updates]
        for number, entries in enumerate(snapshots, 1):
            id_ = snapshot_id or 2**41 + next(NUMBERS)
            sequence_number = document["last-sequence-number"] + number
            for _, group in groupby(entries, lambda one: (one.content > DATA, one.partition)):
                added = self._manifest(document, id_, list(group))
                manifests.append({**added, "sequence_number": sequence_number})
            path = self.put(document, "write.metadata.path", ".avro", avro_file(LIST, manifests))
            snapshot = {
                "snapshot-id": id_,
                "sequence-number": sequence_number,
                "timestamp-ms": document["last-updated-ms"] + number,
                "manifest-list": path,
                "summary": {"operation": operation},
                "schema-id": document["current-schema-id"],
            }
            snapshot |= {"parent-snapshot-id": head} if head else {}
            changes.append({"action": "add-snapshot", "snapshot": snapshot})
            head = self.last_snapshot_id = id_
        reference = {"ref-name": "main", "type": "branch", "snapshot-id": head}
        uuid = {"type": "assert-table-uuid", "uuid": document["table-uuid"]}
        return self.post(table, [uuid], [*changes, {"action": "set-snapshot-ref", **reference}])

    def post(self, table: str, requirements: list[Any], updates: list[Any]) -> tuple[int, str]:
        """Send a commit."""
        body = json.dumps({"requirements": requirements, "updates": updates}).encode()
        self._last = f"{self._uri}/{table}", body
        return self.post_again()

    def post_again(self) -> tuple[int, str]:
        """Send the last commit again."""
        url, body = self._last
        answer = urllib3.request("POST", url, body=body, timeout=300, retries=False)
        assert (answer.status == 503) == ("Retry-After" in answer.headers)
        return answer.status, json.loads(answer.data).get("error", {}).get("message", "")

    def put(self, document: Any, property_: str, name: str, body: bytes) -> str:
        """Upload a file to where clients write; its location."""
        location = f"{document['properties'][property_]}/{next(NUMBERS)}{name}"
        bucket, key = _place(location)
        self._s3.put_object(Bucket=bucket, Key=key, Body=body)
        return location

    def upload(self, table: str, *entries: Entry) -> list[Entry]:
        """Upload the files of entries, for several commits."""
        document = self.load(table)
        return [replace(one, location=self._upload(document, one)) for one in entries]

    def _upload(self, document: Any, entry: Entry) -> str:
        return self.put(document, "write.data.path", entry.name or ".parquet", entry.body)

    def _base(self, document: Any, removes: tuple[str, ...]) -> list[dict[str, Any]]:
        found = [
            one
            for one in document["snapshots"]
            if one["snapshot-id"] == document.get("current-snapshot-id")
        ]
        if not found:
            return []
        manifests = self._records(found[0]["manifest-list"])
        kept = []
        for one in manifests:
            paths = [
                entry["data_file"]["file_path"] for entry in self._records(one["manifest_path"])
            ]
            if not any(part in path for part in removes for path in paths):
                kept.append({key: one[key] for key in LIST_FIELDS})
        return kept

    def _records(self, location: str) -> list[dict[str, Any]]:
        bucket, key = _place(location)
        body = self._virtual.get_object(Bucket=bucket, Key=key)["Body"].read()
        records: list[Any] = list(fastavro.reader(io.BytesIO(body)))
        return records

    def _manifest(self, document: Any, snapshot_id: int, entries: list[Entry]) -> dict[str, Any]:
        records = []
        for one in entries:
            location = one.location or self._upload(document, one)
            values = {f"p{n}": value for n, (_, _, value) in enumerate(one.partition)}
            file = {
                "content": one.content,
                "file_path": location,
                "file_format": one.file_format,
                "partition": values,
                "record_count": one.record_count,
                "file_size_in_bytes": len(one.body),
                **one.others,
            }
            status = 1 if one.sequence_number is None else 0
            entry = {"status": status, "snapshot_id": snapshot_id, "data_file": file}
            records.append({**entry, "sequence_number": one.sequence_number})
        fields = [
            {"source-id": source, "field-id": 1000 + n, "name": f"p{n}", "transform": transform}
            for n, (source, transform, _) in enumerate(entries[0].partition)
        ]
        schema = manifest_schema(entries[0].partition)
        body = avro_file(schema, records, {"partition-spec": json.dumps(fields)})
        path = self.put(document, "write.metadata.path", ".avro", body)
        return {
            "manifest_path": path,
            "manifest_length": len(body),
            "partition_spec_id": document["default-spec-id"] if entries[0].partition else 0,
            "content": int(entries[0].content > DATA),
        }


def _place(location: str) -> tuple[str, str]:
    place = bucket_and_key(location)
    assert place is not None, location
    return place


LIST_FIELDS = {
    "manifest_path": "string",
    "manifest_length": "long",
    "partition_spec_id": "int",
    "content": "int",
    "sequence_number": "long",
}
LIST = {
    "type": "record",
    "name": "manifest_file",
    "fields": [{"name": name, "type": kind} for name, kind in LIST_FIELDS.items()],
}
AVRO_OF_VALUES = {str: "string", int: "long", bool: "boolean"}
OPTIONAL: dict[str, Any] = {
    "equality_ids": {"type": "array", "items": "int"},
    "referenced_data_file": "string",
    "content_offset": "long",
    "content_size_in_bytes": "long",
}


def manifest_schema(partition: tuple[tuple[int, str, Any], ...]) -> dict[str, Any]:
    """The Avro schema of a manifest, as far as the catalog reads it."""
    values = [
        {"name": f"p{n}", "type": ["null", AVRO_OF_VALUES.get(type(value), "string")]}
        for n, (_, _, value) in enumerate(partition)
    ]
    required: dict[str, Any] = {
        "content": "int",
        "file_path": "string",
        "file_format": "string",
        "partition": {"type": "record", "name": "r102", "fields": values},
        "record_count": "long",
        "file_size_in_bytes": "long",
    }
    file: list[dict[str, Any]] = [{"name": name, "type": kind} for name, kind in required.items()]
    file += [{"name": n, "type": ["null", kind], "default": None} for n, kind in OPTIONAL.items()]
    return {
        "type": "record",
        "name": "manifest_entry",
        "fields": [
            {"name": "status", "type": "int"},
            {"name": "snapshot_id", "type": "long"},
            {"name": "sequence_number", "type": ["null", "long"]},
            {"name": "data_file", "type": {"type": "record", "name": "r2", "fields": file}},
        ],
    }


def avro_file(schema: Any, records: list[Any], metadata: dict[str, str] | None = None) -> bytes:
    stream = io.BytesIO()
    fastavro.writer(stream, fastavro.parse_schema(schema), records, metadata=metadata or {})
    return stream.getvalue()


def dv(positions: list[int], location: str, **others: Any) -> Entry:
    """A deletion vector of a data file, in a Puffin file without a footer."""
    data = bytes.fromhex("D1D33964") + BitMap64(positions).serialize()
    blob = len(data).to_bytes(4, "big") + data + zlib.crc32(data).to_bytes(4, "big")
    place = {"content_offset": 4, "content_size_in_bytes": len(blob)}
    return Entry(
        b"PFA1" + blob,
        others.pop("record_count", len(positions)),
        content=DELETES,
        file_format="PUFFIN",
        others={"referenced_data_file": location, **place, **others},
    )


def equality_deletes(
    columns: dict[tuple[str, int], Any], ids: Sequence[int], **options: Any
) -> Entry:
    """An equality delete file of these Arrow arrays."""
    others = {"equality_ids": list(ids)}
    return parquet(columns, content=EQUALITY_DELETES, others=others, **options)


OF_ENTRY = {field.name for field in fields(Entry)}


def parquet(columns: dict[tuple[str, int], Any], **options: Any) -> Entry:
    """A data file of these Arrow arrays, by name and field id.

    Args:
        options: of the Entry, or of PyArrow's write_table.
    """
    of_entry = {name: options.pop(name) for name in OF_ENTRY & options.keys()}
    columns_ = [
        pa.field(name, values.type, metadata={"PARQUET:field_id": str(id_)})
        for (name, id_), values in columns.items()
    ]
    table = pa.Table.from_arrays(list(columns.values()), schema=pa.schema(columns_))
    stream = io.BytesIO()
    pq.write_table(table, stream, **options)
    return Entry(stream.getvalue(), len(table), **of_entry)
