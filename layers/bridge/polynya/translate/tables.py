"""One DuckLake table, with its history, as Iceberg table metadata."""

import json
from collections.abc import Callable
from datetime import timedelta

from ..ducklake.changes import changes_of
from ..ducklake.history import State, TableHistory, Totals, states, unservable
from ..ducklake.rows import Column, Snapshot, Tag
from ..errors import Refused
from ..iceberg import table_metadata
from ..iceberg.table_metadata import TableMetadata
from .mappings import Mappings
from .partitions import Partitions
from .schemas import Schemas
from .sort_orders import sort_fields
from .values import EPOCH

VERSIONS = {"0.2", "0.3-dev1", "0.3", "0.4-dev1", "0.4", "1.0", "1.1-dev1"}

ADDING = {"inserted_into_table", "inlined_insert"}
DELETING = {"deleted_from_table", "inlined_delete"}
OPERATIONS = {
    (True, False): "append",
    (False, True): "delete",
    (True, True): "overwrite",
    (False, False): "replace",  # a schema change, a flush, a merge: the same rows
}

COMMENT = "comment"
"""The key of the tag that COMMENT ON writes."""

ONE_MILLISECOND = timedelta(milliseconds=1)


def check_lake(version: str, encrypted: bool) -> None:
    """Refuse a lake that cannot be served at all.

    Raises:
        Refused: with what it is and what to do.
    """
    if encrypted:
        raise Refused(
            "this DuckLake is encrypted: Iceberg clients have no way to its keys; copy the data "
            "into a lake without ENCRYPTED to serve it"
        )
    if version not in VERSIONS:
        raise Refused(
            f"DuckLake catalog version {version!r} is not served (these are: "
            f"{', '.join(sorted(VERSIONS))}); attach the lake once with AUTOMATIC_MIGRATION TRUE "
            "in a newer DuckDB, or update Polynya"
        )


def check_table(history: TableHistory, schemas: Schemas, mappings: Mappings) -> None:
    """Refuse a table whose newest state cannot be served exactly.

    Raises:
        Refused: with the reason.
    """
    name = f"{history.schema.schema_name}.{history.table.table_name}"
    if reason := unservable(history.gaps, history.snapshot_id) or mappings.conflict():
        raise Refused(f"the table {name} is not served: {reason}")
    if not schemas.at(history.snapshot_id).fields:
        reasons = "; ".join(f"{column}: {reason}" for column, reason in schemas.hidden.items())
        raise Refused(f"the table {name} is not served: no column can be shown ({reasons})")


def listed_snapshots(history: TableHistory) -> list[Snapshot]:
    """The snapshots of the table that can be served exactly, oldest first."""
    return [
        snapshot
        for snapshot in history.snapshots
        if unservable(history.gaps, snapshot.snapshot_id) is None
    ]


def metadata(
    history: TableHistory,
    schemas: Schemas,
    partitions: Partitions,
    mappings: Mappings,
    location: str,
    manifest_list: Callable[[int, State], str],
    snapshot_limit: int,
    now_ms: int,
) -> TableMetadata:
    """The table metadata document of `history`.

    Args:
        manifest_list: the location of the manifest list of a snapshot with a given state.
        snapshot_limit: how many snapshots are listed, newest first.
        now_ms: no snapshot is younger: DuckDB resolves "latest" as "as of now" and would miss it.
    """
    servable = listed_snapshots(history)
    times = _times(servable, now_ms)
    ids = [snapshot.snapshot_id for snapshot in servable]
    parents = dict(zip(ids[1:], ids, strict=False))
    state_of = dict(states(history.events, ids[-snapshot_limit:]))
    snapshots = []
    for snapshot, timestamp_ms in list(zip(servable, times, strict=True))[-snapshot_limit:]:
        snapshot_id = snapshot.snapshot_id
        state = state_of[snapshot_id]
        snapshots.append(
            table_metadata.Snapshot(
                snapshot_id=snapshot_id,
                parent_snapshot_id=parents.get(snapshot_id),
                timestamp_ms=timestamp_ms,
                manifest_list=manifest_list(snapshot_id, state),
                schema_id=schemas.at(snapshot_id).schema_id,
                summary=_summary(
                    snapshot,
                    history.table.table_id,
                    state,
                    schemas.begin_at(snapshot_id)[0],
                    is_first=snapshot_id not in parents,
                ),
            )
        )
    return TableMetadata(
        format_version=3 if schemas.has_defaults else 2,
        table_uuid=history.table.table_uuid,
        location=location,
        last_updated_ms=times[-1] if times else 0,
        last_column_id=schemas.last_column_id,
        sort_fields=sort_fields(history.sort_keys, schemas.at(history.snapshot_id).fields),
        specs=partitions.specs,
        default_spec_id=partitions.default_spec_id,
        schemas=schemas.distinct(),
        docs={
            tag.object_id: tag.value
            for tag in history.column_tags
            if tag.key == COMMENT and tag.value is not None
        },
        current_schema_id=schemas.at(history.snapshot_id).schema_id,
        properties=properties(history.tags) | _properties(history.columns, schemas, mappings),
        snapshots=snapshots,
        next_row_id=sum(event.rows for event in history.events if event.sign > 0),
    )


def _times(snapshots: list[Snapshot], now_ms: int) -> list[int]:
    """Milliseconds since 1970, never decreasing (commits may overtake each other), never ahead."""
    times: list[int] = []
    for snapshot in snapshots:
        time = min((snapshot.snapshot_time - EPOCH) // ONE_MILLISECOND, now_ms)
        times.append(max([time, *times[-1:]]))
    return times


def _summary(
    snapshot: Snapshot, table_id: int, state: State, schema_begin: int, *, is_first: bool
) -> dict[str, str]:
    """What the snapshot did, as DuckLake recorded it, and what the table holds after it.

    Rows are Iceberg's: those of the files, deleted ones included.
    """
    changes = changes_of(snapshot.changes_made, table_id)
    data, inlined = state["data"], state["inlined"]
    new_rows = _change(inlined, snapshot.snapshot_id, "added", "rows")
    # What inlined rows are in since their last change: a file of those that were new then, and
    # one of the others.
    changed_at = max(inlined.changed_at, schema_begin)
    new_then = _change(inlined, changed_at, "added", "rows")
    numbers = {
        "total-data-files": data.files + (new_then > 0) + (inlined.rows > new_then),
        "total-records": data.rows + inlined.rows,
        "total-files-size": data.bytes,
        "added-data-files": _change(data, snapshot.snapshot_id, "added", "files") + (new_rows > 0),
        "added-records": _change(data, snapshot.snapshot_id, "added", "rows") + new_rows,
        "deleted-data-files": _change(data, snapshot.snapshot_id, "removed", "files"),
        "deleted-records": _change(data, snapshot.snapshot_id, "removed", "rows")
        + _change(inlined, snapshot.snapshot_id, "removed", "rows"),
    }
    operation = OPERATIONS[bool(changes & ADDING) or is_first, bool(changes & DELETING)]
    return {"operation": operation, **{key: str(number) for key, number in numbers.items()}}


def _change(totals: Totals, snapshot_id: int, change: str, number: str) -> int:
    """A number of what began (`added`) or ended (`removed`) at the snapshot itself."""
    event = getattr(totals, change)
    return getattr(event, number) if event and totals.changed_at == snapshot_id else 0


def properties(tags: list[Tag]) -> dict[str, str]:
    """DuckLake's tags of a table or a view; its comment is the one called `comment`."""
    return {tag.key: tag.value for tag in tags if tag.value is not None}


def _properties(columns: list[Column], schemas: Schemas, mappings: Mappings) -> dict[str, str]:
    properties = {}
    if mappings.paths:
        properties["schema.name-mapping.default"] = mappings.json()
    if schemas.hidden:
        properties["polynya.hidden-columns"] = _json(list(schemas.hidden))
        properties["polynya.hidden-columns-reason"] = _json(schemas.hidden)
    is_millis = any(column.column_type == "timestamp_ms" for column in columns)
    # An added file may hold ints narrower than its column.
    if is_millis or schemas.need_row_reader or mappings.paths:
        properties["read.parquet.vectorization.enabled"] = "false"
    return properties


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
