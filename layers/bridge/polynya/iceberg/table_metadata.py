"""The table metadata document (specification, "Table Metadata" and Appendix C), and row lineage."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from .manifest import PartitionSpec
from .types import Field, Primitive, TableSchema


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot of the table metadata."""

    snapshot_id: int
    sequence_number: int
    parent_snapshot_id: int | None
    timestamp_ms: int
    manifest_list: str
    schema_id: int
    summary: Mapping[str, str]
    """Includes `operation`. Every value is text: DuckDB and Java refuse the document otherwise."""
    first_row_id: int | None = None
    """The `next-row-id` of the table before; None before format version 3."""
    added_rows: int | None = None
    """How much it grew."""


@dataclass(frozen=True, slots=True)
class SortField:
    """A sort field. https://iceberg.apache.org/spec/#sorting"""

    source_id: int
    direction: str
    null_order: str
    transform: str = "identity"

    def json(self) -> dict[str, Any]:
        """The field in the table metadata (Appendix C)."""
        return {
            "source-id": self.source_id,
            "transform": self.transform,
            "direction": self.direction,
            "null-order": self.null_order,
        }


@dataclass(frozen=True, slots=True)
class Reference:
    """A name for a snapshot. https://iceberg.apache.org/spec/#snapshot-references"""

    snapshot_id: int
    max_ref_age_ms: int | None = None
    """How long the client wants to keep the name."""
    type: str = "tag"
    """Or `branch`, which has the other two fields as well."""
    max_snapshot_age_ms: int | None = None
    min_snapshots_to_keep: int | None = None

    def json(self) -> dict[str, Any]:
        """The reference in the table metadata."""
        retention = {
            "max-ref-age-ms": self.max_ref_age_ms,
            "max-snapshot-age-ms": self.max_snapshot_age_ms,
            "min-snapshots-to-keep": self.min_snapshots_to_keep,
        }
        chosen = {key: number for key, number in retention.items() if number is not None}
        return {"snapshot-id": self.snapshot_id, "type": self.type, **chosen}


@dataclass(frozen=True, slots=True)
class EarlierState:
    """A state that the table had before, for the metadata log."""

    sequence_number: int
    """No snapshot with a greater one was there."""
    timestamp_ms: int
    """When it was made."""
    schema_id: int
    """The current schema."""
    schemas: int
    """How many of the schemas there were."""


@dataclass(frozen=True)
class TableMetadata:
    """The content of a table metadata document, format version 2 or 3."""

    format_version: int
    table_uuid: str
    location: str
    last_updated_ms: int
    last_column_id: int
    sort_fields: Sequence[SortField]
    """The sort order of new files."""
    specs: Sequence[PartitionSpec]
    default_spec_id: int
    schemas: list[TableSchema]
    docs: Mapping[int, str]
    """Comments by field id."""
    current_schema_id: int
    properties: Mapping[str, str]
    snapshots: list[Snapshot]
    """Ascending; the last one is current."""
    next_row_id: int
    statistics: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    """The lists `statistics` and `partition-statistics`, as clients have written them."""
    references: Mapping[str, Reference] = field(default_factory=dict)
    """Tags and branches but main, by name; those of snapshots that are not here are not shown."""
    staged: Sequence[Snapshot] = ()
    """Snapshots that are not of `main`: of branches, and without any reference. Their manifest
    lists are those that clients wrote."""
    summaries: Sequence[Snapshot] = ()
    """Ancestors of the current snapshot of which only the summary is left; ascending. Their rows
    cannot be read, and they are in no log."""
    earlier: Sequence[EarlierState] = ()
    """Ascending; only states whose snapshots are all in this document."""
    earlier_locations: "Callable[[TableMetadata], list[str]] | None" = field(
        default=None, compare=False
    )
    """Where clients find the documents of these states; None: there are no such files."""

    @property
    def has_log(self) -> bool:
        """Whether the metadata log has entries."""
        return self.earlier_locations is not None and bool(self.earlier)

    @cached_property
    def log_states(self) -> list[tuple[int, int, int, int]]:
        """The values on which the documents in the log depend, besides this document."""
        return [
            (state.sequence_number, state.timestamp_ms, state.schema_id, state.schemas)
            for state in self.earlier
        ]

    @cached_property
    def content(self) -> bytes:
        """The document as a file without its log."""
        return _bytes(self._json(self.snapshots))

    @cached_property
    def body(self) -> bytes:
        """The document as a file."""
        return _bytes(self.json())

    def as_of(self, sequence_number: int) -> "TableMetadata | None":
        """The document of an earlier state; None if it has no such state.

        Partition specs, sort order and properties are those of now.
        """
        states = (state for state in self.earlier if state.sequence_number == sequence_number)
        if (state := next(states, None)) is None:
            return None
        shown = [s for s in self.snapshots if s.sequence_number <= sequence_number]
        gone = [s for s in self.snapshots if s.sequence_number > sequence_number]
        return replace(
            self,
            last_updated_ms=state.timestamp_ms,
            schemas=self.schemas[: state.schemas],
            current_schema_id=state.schema_id,
            snapshots=shown,
            summaries=[s for s in self.summaries if s.sequence_number <= sequence_number],
            staged=(),
            next_row_id=(gone[0].first_row_id or 0) if gone else self.next_row_id,
            earlier=(),
        )

    def _line(self, snapshots: Sequence[Snapshot]) -> list[Snapshot]:
        """Snapshots with the summaries between them; without summaries if snapshots are missing."""
        if len(snapshots) < len(self.snapshots) or not snapshots:
            return list(snapshots)
        return sorted((*snapshots, *self.summaries), key=lambda s: s.sequence_number)

    def json(self, refs_only: bool = False) -> dict[str, Any]:
        """The document.

        Args:
            refs_only: list the current snapshot and those that have a name, and no log.
        """
        if refs_only:
            ids = {reference.snapshot_id for reference in self.references.values()}
            ids |= {snapshot.snapshot_id for snapshot in self.snapshots[-1:]}
            return self._json([s for s in self.snapshots if s.snapshot_id in ids], ids)
        return self._json(self.snapshots) | {"metadata-log": self._log}

    @cached_property
    def _log(self) -> list[dict[str, Any]]:
        # Computed once for each document, which a process keeps: a thousand names take 10 ms.
        if self.earlier_locations is None:
            return []
        return [
            {"metadata-file": location, "timestamp-ms": state.timestamp_ms}
            for location, state in zip(self.earlier_locations(self), self.earlier, strict=True)
        ]

    @property
    def last_sequence_number(self) -> int:
        """The greatest of all snapshots: Java refuses one with a greater number than this."""
        numbers = (s.sequence_number for s in (*self.snapshots[-1:], *self.staged))
        return max(numbers, default=0)

    @property
    def _next_row_id(self) -> int:
        """Rows of two branches have different ids."""
        ends = ((s.first_row_id or 0) + (s.added_rows or 0) for s in self.staged)
        return max(self.next_row_id, *ends, 0)

    def _json(
        self, snapshots: Sequence[Snapshot], staged_ids: Collection[int] | None = None
    ) -> dict[str, Any]:
        """The document without its log.

        Args:
            staged_ids: the staged snapshots that are listed; None: all.
        """
        newest = self.snapshots[-1:]
        staged = [s for s in self.staged if staged_ids is None or s.snapshot_id in staged_ids]
        # Order 0 is reserved for "unsorted" (specification, "Sorting").
        sort_orders = [{"order-id": 0, "fields": list[Any]()}]
        if self.sort_fields:
            sort_orders.append({"order-id": 1, "fields": [f.json() for f in self.sort_fields]})
        partition_ids = [field.field_id for spec in self.specs for field in spec.fields]
        document: dict[str, Any] = {
            "format-version": self.format_version,
            "table-uuid": self.table_uuid,
            "location": self.location,
            "last-sequence-number": self.last_sequence_number,
            "last-updated-ms": self.last_updated_ms,
            "last-column-id": self.last_column_id,
            "current-schema-id": self.current_schema_id,
            "schemas": [schema.json(self.docs) for schema in self.schemas],
            "default-spec-id": self.default_spec_id,
            "partition-specs": [spec.json() for spec in self.specs],
            # Ids of partition fields begin at 1000 (specification, "Partition Evolution").
            "last-partition-id": max(partition_ids, default=999),
            "default-sort-order-id": len(sort_orders) - 1,
            "sort-orders": sort_orders,
            "properties": dict(self.properties),
            "snapshots": [_snapshot(s) for s in (*self._line(snapshots), *staged)],
            "snapshot-log": [
                {"snapshot-id": s.snapshot_id, "timestamp-ms": s.timestamp_ms} for s in snapshots
            ],
            "metadata-log": [],
            "refs": {},
        }
        shown = {snapshot.snapshot_id for snapshot in (*self.snapshots, *self.staged)}
        for name, files in self.statistics.items():
            if listed := [file for file in files if file["snapshot-id"] in shown]:
                document[name] = listed
        for snapshot in newest:
            document["current-snapshot-id"] = snapshot.snapshot_id
            # Java refuses metadata in which main is not the current snapshot.
            document["refs"] = {"main": {"snapshot-id": snapshot.snapshot_id, "type": "branch"}}
        document["refs"] |= {
            name: reference.json()
            for name, reference in self.references.items()
            if reference.snapshot_id in shown
        }
        if self.format_version >= 3:
            document["next-row-id"] = self._next_row_id
        return document


def _bytes(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _snapshot(snapshot: Snapshot) -> dict[str, Any]:
    json: dict[str, Any] = {
        "snapshot-id": snapshot.snapshot_id,
        "sequence-number": snapshot.sequence_number,
        "timestamp-ms": snapshot.timestamp_ms,
        "manifest-list": snapshot.manifest_list,
        "schema-id": snapshot.schema_id,
        "summary": dict(snapshot.summary),
    }
    # Absent, not null: Java cannot parse a null parent.
    if snapshot.parent_snapshot_id is not None:
        json["parent-snapshot-id"] = snapshot.parent_snapshot_id
    if snapshot.first_row_id is not None:
        json["first-row-id"] = snapshot.first_row_id
        json["added-rows"] = snapshot.added_rows
    return json


ROW_ID = 2147483540
"""The field id of `_row_id`."""

LAST_UPDATED = 2147483539
"""The field id of `_last_updated_sequence_number`."""


def lineage_fields(fields: Iterable[Field]) -> tuple[Field, Field]:
    """The two columns in which a data file carries the ids of its rows.

    https://iceberg.apache.org/spec/#row-lineage

    Args:
        fields: the other columns of the file, whose names they must not have.
    """
    names = {field.name.casefold() for field in fields}
    row_id, last_updated = "_row_id", "_last_updated_sequence_number"
    while {row_id, last_updated} & names:
        row_id, last_updated = f"_{row_id}", f"_{last_updated}"
    long = Primitive("long")
    return Field(ROW_ID, row_id, long), Field(LAST_UPDATED, last_updated, long)
