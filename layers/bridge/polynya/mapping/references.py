"""Iceberg's tags and branches of a table, and its staged snapshots: those that are not of main.

DuckLake has one line of snapshots. So a staged snapshot is kept as its client has sent it, in a tag
of the table, and is read by the manifest list that the client wrote, which also names manifests of
the snapshot of main at which its line began. It is shown as long as these are the same
(docs/developers/decisions/0045-staged-snapshots.md).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..ducklake.rows.objects import STAGED, Tag
from ..iceberg.manifest import PartitionSpec
from ..iceberg.table_metadata import Reference, Snapshot, TableMetadata
from ..iceberg.types import TableSchema
from .manifests import fingerprint
from .properties import REFERENCE, stored_json

MAIN = "main"

SHOWN_MS = 28 * 24 * 3600 * 1000
"""How long clients are shown what is among the files that a commit reads once: statistics files and
the manifests of staged snapshots. The template deletes such files after 30 days."""


def references(tags: Iterable[Tag]) -> dict[str, Reference]:
    """The tags and branches of a table but main, by name."""
    by_name = {}
    for tag in tags:
        if tag.key.startswith(REFERENCE) and tag.value is not None:
            try:
                by_name[tag.key.removeprefix(REFERENCE)] = _reference(*stored_json(tag.value))
            except (ValueError, TypeError):
                continue  # somebody has changed the tag by hand
    return by_name


def _reference(
    snapshot_id: int,
    max_ref_age_ms: int | None,
    type_: str = "tag",
    *of_branch: int | None,
) -> Reference:
    if type_ not in {"tag", "branch"}:
        raise ValueError("no reference has this type")
    ages = (None if number is None else int(number) for number in of_branch)
    age = None if max_ref_age_ms is None else int(max_ref_age_ms)
    return Reference(int(snapshot_id), age, type_, *ages)


def reference_text(reference: Reference) -> str:
    """The value of the tag of DuckLake that keeps a reference."""
    of_branch = [reference.type, reference.max_snapshot_age_ms, reference.min_snapshots_to_keep]
    # Earlier releases read tags of two values.
    more = of_branch if reference.type == "branch" else []
    return json.dumps([reference.snapshot_id, reference.max_ref_age_ms, *more])


@dataclass(frozen=True, slots=True)
class StagedSnapshot:
    """A snapshot that is not of main, and what has to be the same as when it was committed."""

    json: Mapping[str, Any]
    """As the client sent it."""
    base: str | None
    """The manifest list of the snapshot of main at which its line began; None: there was none."""
    since_ms: int
    """When the first snapshot of its line was committed, in milliseconds since 1970."""
    schema: str
    """The fingerprint of its schema."""
    specs: Mapping[int, str]
    """The fingerprints of the partition specs of its client's manifests, by their ids."""

    @property
    def snapshot_id(self) -> int:
        """The id, which the client has chosen."""
        return int(self.json["snapshot-id"])

    @property
    def parent_snapshot_id(self) -> int | None:
        """The snapshot before it."""
        parent = self.json.get("parent-snapshot-id")
        return None if parent is None else int(parent)

    @property
    def until_ms(self) -> int:
        """Until when it is shown."""
        return self.since_ms + SHOWN_MS

    @property
    def text(self) -> str:
        """The value of the tag that keeps it."""
        specs = list(self.specs.items())
        return json.dumps([self.json, self.base, self.since_ms, self.schema, specs])

    def snapshot(self, schema_id: int) -> Snapshot:
        """The snapshot as the table metadata lists it."""
        return Snapshot(
            snapshot_id=self.snapshot_id,
            sequence_number=int(self.json["sequence-number"]),
            parent_snapshot_id=self.parent_snapshot_id,
            timestamp_ms=int(self.json["timestamp-ms"]),
            manifest_list=str(self.json["manifest-list"]),
            schema_id=schema_id,
            summary=self.json["summary"],
            first_row_id=self.json.get("first-row-id"),
            added_rows=self.json.get("added-rows"),
        )


def staged_snapshots(tags: Iterable[Tag]) -> dict[int, StagedSnapshot]:
    """The staged snapshots that are kept, by id, also those that are not shown."""
    by_id = {}
    for tag in tags:
        if tag.key.startswith(STAGED) and tag.value is not None:
            try:
                document, base, since_ms, schema, specs = stored_json(tag.value)
                staged = StagedSnapshot(document, base, int(since_ms), schema, dict(specs))
                by_id[staged.snapshot(0).snapshot_id] = staged
            except (ValueError, TypeError, KeyError, AttributeError):
                continue  # somebody has changed the tag by hand
    return by_id


def schema_print(schema: TableSchema) -> str:
    """The fingerprint of a schema, whatever its id is."""
    return fingerprint(replace(schema, schema_id=0).json())


def spec_print(spec: PartitionSpec) -> str:
    """The fingerprint of a partition spec, whatever its id is."""
    return fingerprint(spec.json()["fields"])


def add_references(document: TableMetadata, tags: Sequence[Tag], now_ms: int) -> TableMetadata:
    """A document with the references of the table and its staged snapshots.

    Args:
        document: of the branch main alone.
    """
    named, stored = references(tags), staged_snapshots(tags)
    if not stored:
        return replace(document, references=named)
    main = {snapshot.snapshot_id for snapshot in document.snapshots}
    lists = {None, *(snapshot.manifest_list for snapshot in document.snapshots)}
    schema_ids = {schema_print(schema): schema.schema_id for schema in document.schemas}
    specs = {spec.spec_id: spec_print(spec) for spec in document.specs}
    staged = [
        snapshot.snapshot(schema_ids[snapshot.schema])
        for id_, snapshot in stored.items()
        if id_ not in main
        and snapshot.base in lists
        and snapshot.schema in schema_ids
        and snapshot.specs.items() <= specs.items()
        and now_ms < snapshot.until_ms
    ]
    staged.sort(key=lambda snapshot: snapshot.sequence_number)
    return replace(document, references=named, staged=staged)
