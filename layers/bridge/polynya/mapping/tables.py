"""One DuckLake table, with its history, as Iceberg table metadata.

Statistics files that clients have written (Puffin) are in tags of the table, which DuckLake
ignores: one of each kind, the newest, because clients read only that. Trino and Spark take the
numbers of distinct values from what the table metadata says of the file.
"""

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import takewhile
from typing import Any

from ..ducklake.queries.history import State, TableHistory, Totals, states, unservable_reason
from ..ducklake.rows.lifetimes import UnservableRange
from ..ducklake.rows.objects import (
    ADDING,
    DELETING,
    REWRITING,
    ClientSnapshot,
    Column,
    Lake,
    Schema,
    Snapshot,
    Table,
    Tag,
    Window,
)
from ..iceberg import table_metadata
from ..iceberg.table_metadata import EarlierState, SortField, TableMetadata
from ..runtime.errors import REMEDY, Refused
from ..types.temporal import EPOCH
from .name_mappings import NAME_MAPPING, Mappings
from .partitions import Partitions, sort_fields, tagged_sort_fields
from .properties import (
    ADAPTED_NOTE,
    COMMENT,
    DEFAULTS_NOTE,
    DEFAULTS_OF_WRITERS,
    HIDDEN_NOTE,
    PARTITION_STATISTICS,
    REASONS_NOTE,
    STATISTICS,
    IsServed,
    is_of_clients,
    is_of_metadata,
    is_table_property,
    log_length,
    property_name,
    stored_json,
    version_note,
)
from .references import SHOWN_MS, add_references, staged_snapshots
from .rows_files import OLDER, RowsFile, RowsFiles
from .schemas import Schemas, default_columns
from .snapshots import NextRowIds, SnapshotIds, listed
from .summaries import add_summaries

Json = dict[str, Any]

KINDS = {"statistics": STATISTICS, "partition-statistics": PARTITION_STATISTICS}
"""The keys of tags, by the names in the table metadata."""

MOST_FILES = 10
"""How many statistics files of a kind are kept: Trino sets one at each INSERT, and all readers of
the table read the tag."""


def stored_files(kind: str, tags: Iterable[Tag]) -> list[tuple[Json, int]]:
    """The files of a kind, and when each was set (milliseconds since 1970), the newest first."""
    for tag in tags:
        if tag.key == KINDS[kind] and tag.value is not None:
            try:
                entries = stored_json(tag.value)
                return [
                    (
                        entry["file"] | {"snapshot-id": int(entry["file"]["snapshot-id"])},
                        entry["at"],
                    )
                    # Earlier versions kept one file.
                    for entry in (entries if isinstance(entries, list) else [entries])
                    if isinstance(entry["at"], int)
                ]
            except (ValueError, TypeError, KeyError):
                return []  # somebody has changed the tag by hand
    return []


def files_text(files: Iterable[tuple[Json, int]]) -> str:
    """The value of the tag that keeps files."""
    return json.dumps([{"at": set_ms, "file": file} for file, set_ms in files])


def shown_files(tags: Iterable[Tag], now_ms: int) -> dict[str, list[Json]]:
    """The lists of the table metadata, by their names, in the order of the files; without those
    that are empty."""
    tags = list(tags)
    shown = {
        kind: [
            file
            for file, set_ms in reversed(stored_files(kind, tags))
            if now_ms - set_ms < SHOWN_MS
        ]
        for kind in KINDS
    }
    return {kind: files for kind, files in shown.items() if files}


def shown_until(tags: Iterable[Tag], now_ms: float) -> float:
    """When the next one of the current files and staged snapshots will no longer be shown."""
    tags = list(tags)
    ends = (set_ms + SHOWN_MS for kind in KINDS for _, set_ms in stored_files(kind, tags))
    ends_of_staged = (staged.until_ms for staged in staged_snapshots(tags).values())
    return min((end for end in (*ends, *ends_of_staged) if end > now_ms), default=math.inf)


LATEST = (1, 1)
VERSIONS = {"0.2", "0.3-dev1", "0.3", "0.4-dev1", "0.4", "1.0", "1.1-dev1", "1.1"}

OPERATIONS = {
    (True, False): "append",
    (False, True): "delete",
    (True, True): "overwrite",
    (False, False): "replace",  # the same rows
}

ONE_MILLISECOND = timedelta(milliseconds=1)


def check_lake(lake: Lake) -> None:
    """Refuse a lake that cannot be served at all.

    Raises:
        Refused: the message says what it is and what to do.
    """
    if lake.encrypted:
        raise Refused(
            "this DuckLake is encrypted: Iceberg clients cannot get its keys; copy the data "
            "into a lake without ENCRYPTED to serve it"
        )
    if lake.newest_rows > 1:
        raise Refused(
            f"{lake.newest_rows} rows of ducklake_snapshot have the newest snapshot_id, "
            f"{lake.snapshot_id}, and DuckLake reads nothing of such a lake{REMEDY}"
        )
    check_version(lake.version)


def check_version(version: str) -> None:
    """Refuse a catalog of a version that is not known.

    Raises:
        Refused: the message names it, and says what to do.
    """
    if version in VERSIONS:
        return
    number = re.match(r"(\d+)[.](\d+)", version)
    is_later = number is not None and tuple(map(int, number.groups())) > LATEST
    remedy = (
        "it is newer than this release of Polynya: update Polynya"
        if is_later
        else "attach the lake once with AUTOMATIC_MIGRATION TRUE in a newer DuckDB, or update "
        "Polynya"
    )
    raise Refused(
        f"DuckLake catalog version {version!r} is not served (these are: "
        f"{', '.join(sorted(VERSIONS))}); {remedy}"
    )


def check_rows(schema: Schema, table: Table) -> None:
    """Refuse a table whose own row, or that of its schema, is broken.

    Raises:
        Refused: the message says what is missing.
    """
    values = {
        "ducklake_table.table_id": table.table_id,
        "ducklake_table.table_uuid": table.table_uuid,
        "ducklake_table.path": table.path,
        "ducklake_table.path_is_relative": table.path_is_relative,
        "ducklake_schema.path": schema.path,
        "ducklake_schema.path_is_relative": schema.path_is_relative,
    }
    missing = [name for name, value in values.items() if value is None]
    if missing:
        name = schema.name_of(table.table_name)
        raise Refused(f"the table {name} is not served: {missing[0]} is NULL{REMEDY}")


def check_table(
    history: TableHistory,
    unservable: Iterable[UnservableRange],
    schemas: Schemas,
    mappings: Mappings,
) -> None:
    """Refuse a table whose newest state cannot be served exactly.

    Args:
        unservable: all ranges of snapshots that cannot be served exactly.

    Raises:
        Refused: the message says why.
    """
    name = history.schema.name_of(history.table.table_name)
    if reason := unservable_reason(unservable, history.snapshot_id) or mappings.fault:
        raise Refused(f"the table {name} is not served: {reason}")
    if not schemas.schema_at(history.snapshot_id).fields:
        reasons = "; ".join(f"{column}: {reason}" for column, reason in schemas.hidden.items())
        raise Refused(f"the table {name} is not served: no column can be shown ({reasons})")


def listed_snapshots(
    history: TableHistory, unservable: Collection[UnservableRange]
) -> list[Snapshot]:
    """The snapshots of the table that can be served exactly, oldest first."""
    unlisted = history.unlisted
    return [
        snapshot
        for snapshot in history.snapshots
        if snapshot.snapshot_id not in unlisted
        and unservable_reason(unservable, snapshot.snapshot_id) is None
    ]


@dataclass(frozen=True, slots=True)
class MappedTable:
    """A table with its history, and its form in Iceberg's terms."""

    history: TableHistory
    unservable: Collection[UnservableRange]
    """All ranges of snapshots that cannot be served exactly: they are not listed."""
    schemas: Schemas
    partitions: Partitions
    mappings: Mappings
    ids: SnapshotIds
    rows: RowsFiles
    """The files of the inlined rows."""
    row_ids: NextRowIds | None = None
    """The row ids of a table of format version 3."""
    has_vectors: bool = False
    """Its deletes are deletion vectors."""


@dataclass(frozen=True, slots=True)
class Publication:
    """The content of a metadata document besides the table itself."""

    location: str
    manifest_list: Callable[[int, State], str]
    """The location of the manifest list of a snapshot with a given state."""
    expired_list: Callable[[int], str]
    """The same for a snapshot of which only the summary is left."""
    snapshot_limit: int
    """The number of snapshots that are listed, newest first."""
    client_snapshot_limit: int
    """As `snapshot_limit`, if Iceberg clients have committed all snapshots beyond that."""
    own_properties: Mapping[str, str] = field(default_factory=dict)
    """For clients that write."""
    is_served: IsServed = is_table_property
    """Which of the users' properties have their own names."""
    adapted: str = ""
    """The changes in data files for clients, in words (`Adaptations.described_at`)."""
    earlier_locations: Callable[[TableMetadata], list[str]] | None = None
    """As in the document."""


def metadata(table: MappedTable, publication: Publication, now_ms: int) -> TableMetadata:
    """The table metadata document of a table.

    Args:
        now_ms: the latest time that a snapshot gets.
    """
    history, schemas, row_ids = table.history, table.schemas, table.row_ids
    servable = listed_snapshots(history, table.unservable)
    times = _times(servable, now_ms)
    # Also if the parent is not listed: a client that reads changes since an older snapshot gets an
    # error, and does not miss what the parent added.
    unlisted = history.unlisted
    touched = [s.snapshot_id for s in history.snapshots if s.snapshot_id not in unlisted]
    parents = dict(zip(touched[1:], touched, strict=False))
    limit = _limit(servable, history.commits, publication)
    newest = [snapshot.snapshot_id for snapshot in servable[-limit:]]
    state_of = dict(states(history.events, newest))
    commits = defaultdict(list)
    for commit in history.commits:
        commits[commit.snapshot_id].append(commit)
    snapshots: list[table_metadata.Snapshot] = []
    next_row_id = row_ids.first_after(newest[0] - 1) if row_ids and newest else 0
    for snapshot, timestamp_ms in list(zip(servable, times, strict=True))[-limit:]:
        snapshot_id = snapshot.snapshot_id
        state = state_of[snapshot_id]
        parent = parents.get(snapshot_id)
        first_row_id = next_row_id
        next_row_id = row_ids.first_after(snapshot_id) if row_ids else 0
        iceberg_snapshot = table_metadata.Snapshot(
            snapshot_id=snapshot_id,
            # The id may be a client's, which is random: DuckLake's own ascends.
            sequence_number=snapshot_id,
            parent_snapshot_id=None if parent is None else table.ids.iceberg_id(parent),
            timestamp_ms=timestamp_ms,
            manifest_list=publication.manifest_list(snapshot_id, state),
            schema_id=schemas.schema_at(snapshot_id).schema_id,
            summary=_summary(
                table, snapshot, state, is_first=snapshot_id == servable[0].snapshot_id
            ),
            first_row_id=first_row_id if row_ids else None,
            added_rows=next_row_id - first_row_id if row_ids else None,
        )
        has_gap = history.window(snapshot_id).has_gap
        snapshots.append(listed(iceberg_snapshot, commits[snapshot_id], shows_expired=has_gap))
    snapshots, summaries = add_summaries(snapshots, history.sink_commits, publication.expired_list)
    document = TableMetadata(
        format_version=schemas.format_version,
        table_uuid=history.table.table_uuid,
        location=publication.location,
        last_updated_ms=max(_times(history.document_snapshots, now_ms), default=0),
        last_column_id=schemas.last_column_id,
        sort_fields=_sort_fields(history, schemas),
        specs=table.partitions.specs,
        default_spec_id=table.partitions.default_spec_id,
        schemas=schemas.distinct(),
        docs={
            tag.object_id: tag.value
            for tag in history.column_tags
            if tag.key == COMMENT and tag.value is not None
        },
        current_schema_id=schemas.schema_at(history.snapshot_id).schema_id,
        properties={
            **(DEFAULTS_OF_WRITERS if publication.own_properties else {}),
            **properties(history.tags, publication.is_served),
            **_properties(history.columns, schemas, table.mappings),
            **version_note(history.tags),
            **({ADAPTED_NOTE: publication.adapted} if publication.adapted else {}),
            **publication.own_properties,
        },
        snapshots=snapshots,
        summaries=summaries,
        next_row_id=row_ids.first_after(history.snapshot_id) if row_ids else 0,
        statistics=shown_files(history.tags, now_ms),
        earlier=list(_earlier(history, schemas, newest, now_ms))[-log_length(history.tags) :],
        earlier_locations=publication.earlier_locations,
    )
    return add_references(document, history.tags, now_ms)


def _earlier(
    history: TableHistory, schemas: Schemas, listed: Sequence[int], now_ms: int
) -> Iterator[EarlierState]:
    """The earlier states of the table of which all snapshots are listed, or that had none.

    Args:
        listed: the snapshots that the document lists, ascending.
    """
    snapshots, unlisted = history.document_snapshots, history.unlisted
    ids = [snapshot.snapshot_id for snapshot in snapshots]
    # Unless rows of snapshots that have expired, or are not read, may be there.
    is_whole = ids[:1] == [history.table.begin_snapshot]
    empty = set(takewhile(unlisted.__contains__, ids)) if is_whole else set()
    of_rows = {*listed, *unlisted} if listed else set()
    dated = list(zip(ids, _times(snapshots, now_ms), strict=True))
    for snapshot_id, timestamp_ms in dated[:-1]:
        if snapshot_id in empty or (snapshot_id in of_rows and snapshot_id >= listed[0]):
            current = schemas.schema_at(snapshot_id).schema_id
            begun = [schema.schema_id for b, schema in schemas.by_snapshot if b <= snapshot_id]
            yield EarlierState(snapshot_id, timestamp_ms, current, max(begun, default=current) + 1)


def _sort_fields(history: TableHistory, schemas: Schemas) -> list[SortField]:
    fields = schemas.schema_at(history.snapshot_id).fields
    if history.sort_keys:
        return sort_fields(history.sort_keys, fields)
    return tagged_sort_fields(history.tags, fields)


def _limit(
    servable: list[Snapshot], commits: Iterable[ClientSnapshot], publication: Publication
) -> int:
    """The number of snapshots that are listed."""
    limit = publication.snapshot_limit
    committed = {c.snapshot_id for c in commits if c.client_snapshot_id is not None}
    before = reversed(servable[-publication.client_snapshot_limit : -limit])
    return limit + sum(1 for _ in takewhile(lambda s: s.snapshot_id in committed, before))


def _times(snapshots: list[Snapshot], now_ms: int) -> list[int]:
    """Milliseconds since 1970: never decreasing (commits may overtake each other), never later than
    now."""
    times: list[int] = []
    for snapshot in snapshots:
        # DuckDB reads the newest snapshot as of its transaction's start, and would miss a later
        # one.
        time = min((snapshot.snapshot_time - EPOCH) // ONE_MILLISECOND, now_ms)
        times.append(max([time, *times[-1:]]))
    return times


def _summary(
    table: MappedTable, snapshot: Snapshot, state: State, *, is_first: bool
) -> dict[str, str]:
    """The summary of a snapshot: its changes, as DuckLake recorded them, and the totals after it.

    Record counts are Iceberg's: rows of the files, deleted ones included. A number is left out if
    it is not certain.
    """
    history, schemas, rows = table.history, table.schemas, table.rows
    snapshot_id, data = snapshot.snapshot_id, state["data"]
    window = history.window(snapshot_id)
    files, before = rows.files_at(snapshot_id), rows.files_at(window.base_id)
    new = [file for file in files if file not in before and file.begin_snapshot > window.base_id]
    gone = [file for file in before if file not in files]
    changes = history.changes(snapshot)
    is_mixed = _shows_other_rows(state["partial"], window)
    numbers = {
        "total-data-files": data.files + len(files),
        "total-records": data.rows + _records(files),
    }
    if not (window.has_gap or changes & REWRITING or (is_mixed and window.adds_rows)):
        # Otherwise some files are listed as DELETED and ADDED again: the catalog does not count
        # them.
        numbers |= {
            "added-data-files": _change(data, snapshot_id, "added", "files") + len(new),
            "added-records": _change(data, snapshot_id, "added", "rows") + _records(new),
            "deleted-data-files": _change(data, snapshot_id, "removed", "files") + len(gone),
            "deleted-records": _change(data, snapshot_id, "removed", "rows") + _records(gone),
        }
        if not (is_mixed or _shows_other_rows(state["partial_delete"], window)):
            # Rows of later snapshots are deleted too.
            numbers |= {
                "added-delete-files": _change(state["hidden"], snapshot_id, "added", "files"),
                "added-position-deletes": _change(state["hidden"], snapshot_id, "added", "rows"),
                "removed-delete-files": _change(state["hidden"], snapshot_id, "removed", "files"),
                "removed-position-deletes": _change(
                    state["hidden"], snapshot_id, "removed", "rows"
                ),
            }
            if table.has_vectors:
                numbers["added-dvs"] = numbers["added-delete-files"]
                numbers["removed-dvs"] = numbers["removed-delete-files"]
    if (files or gone) and table.partitions.rows_spec(schemas.schema_at(snapshot_id).fields).fields:
        # The number of partitions of the rows is not known yet.
        for number in ("total-data-files", "added-data-files", "deleted-data-files"):
            numbers.pop(number, None)
    is_partial = state["partial"].files or state["partial_delete"].files
    if not (files or is_partial or state["hidden"].files):
        # The size of a file that does not exist yet is not known.
        numbers["total-files-size"] = data.bytes
    if not is_partial:
        # Only the file itself has the number of its rows of later snapshots.
        numbers["total-delete-files"] = state["hidden"].files
        numbers["total-position-deletes"] = state["delete"].rows
        numbers["total-equality-deletes"] = 0
    has_moved = any(file.part == OLDER for file in new)
    operation = _operation(
        changes,
        is_adding=is_first or window.has_gap,
        is_deleting=window.has_gap or _deletes_rows(changes, state, window),
        is_moving=is_mixed or has_moved,
    )
    return {"operation": operation, **{key: str(number) for key, number in numbers.items()}}


def _operation(
    changes: frozenset[str], *, is_adding: bool, is_deleting: bool, is_moving: bool
) -> str:
    """Iceberg's operation for the changes; it never claims fewer changes than there were.

    Args:
        is_moving: rows from before are ADDED again, which no `append` may say.
    """
    unknown = bool(changes - ADDING - DELETING - REWRITING - {"altered_table"})
    is_adding |= bool(changes & ADDING) or unknown
    is_deleting |= unknown
    is_rewriting = bool(changes & REWRITING)
    if is_rewriting and is_deleting:
        is_adding = True
    # A client that repeats a commit reads ADDED files only of `append` and `overwrite`, and DELETED
    # ones only of the others.
    return OPERATIONS[is_adding, is_deleting or (is_adding and (is_moving or is_rewriting))]


def _deletes_rows(changes: frozenset[str], state: State, window: Window) -> bool:
    """Whether a snapshot deletes rows.

    A flush of deletes says `deleted_from_table` too, and then nothing ends or begins at it.
    """
    if "inlined_delete" in changes or not changes & DELETING or not changes & REWRITING:
        return bool(changes & DELETING)
    ended = (state["data"].removed, state["inlined"].removed, state["delete"].added)
    return any(event is not None and event.snapshot_id > window.base_id for event in ended) or (
        _shows_other_rows(state["partial_delete"], window)
    )


def _shows_other_rows(partial: Totals, window: Window) -> bool:
    """Whether files hold rows, or deletes, of several snapshots up to one of the window."""
    removed = partial.removed
    return partial.files > 0 or (removed is not None and removed.snapshot_id > window.base_id)


def _records(files: Iterable[RowsFile]) -> int:
    return sum(file.record_count for file in files)


def _change(totals: Totals, snapshot_id: int, change: str, number: str) -> int:
    """A total over the rows that began (`added`) or ended (`removed`) at the snapshot itself."""
    event = getattr(totals, change)
    return getattr(event, number) if event and totals.changed_at == snapshot_id else 0


def properties(tags: Iterable[Tag], is_served: IsServed = is_table_property) -> dict[str, str]:
    """DuckLake's tags of an object; its comment is the one called `comment`.

    Args:
        is_served: whether a name is served as it is.
    """
    # Clients' properties come last: they may change them.
    in_order = sorted(tags, key=lambda tag: is_of_clients(tag.key))
    return {
        property_name(tag.key, is_served): tag.value
        for tag in in_order
        if tag.value is not None and not is_of_metadata(tag.key)
    }


def client_properties(tags: Iterable[Tag], is_served: IsServed = is_table_property) -> set[str]:
    """The names of the properties of a table that clients have set, or may set."""
    return {property_name(tag.key, is_served) for tag in tags if is_of_clients(tag.key)}


def _properties(columns: list[Column], schemas: Schemas, mappings: Mappings) -> dict[str, str]:
    properties = {}
    if mappings.paths:
        properties[NAME_MAPPING] = mappings.json()
    if defaults := default_columns(schemas, columns):
        properties[DEFAULTS_NOTE] = _json([column.name for column in defaults])
    if schemas.hidden:
        properties[HIDDEN_NOTE] = _json(list(schemas.hidden))
        properties[REASONS_NOTE] = _json(schemas.hidden)
    # Spark's vectorized reader fails on timestamps in milliseconds.
    is_millis = any(column.column_type == "timestamp_ms" for column in columns)
    # An added file may have narrower integers than its column.
    if is_millis or schemas.need_row_reader or mappings.paths:
        properties["read.parquet.vectorization.enabled"] = "false"
    return properties


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
