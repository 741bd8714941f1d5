"""A table at a snapshot: its columns, its order on disk, and its history."""

from dataclasses import dataclass

from pg8000.native import Connection
from polynya.ducklake import queries
from polynya.ducklake.paths import table_location
from polynya.translate.client_properties import COMMENT
from polynya.translate.sort_orders import sort_fields

from ..generator import Generator
from ..row_counts import Counts
from .columns import ColumnLine, columns_at
from .moments import Moment, moments
from .opened import WINDOW, TableAt, TableHead, Wanted, open_at, opened_or_refused


@dataclass(frozen=True, slots=True)
class Key:
    """A part of a partitioning or of a sort order, in DuckLake's words and in Iceberg's."""

    ducklake: str
    iceberg: str
    """Empty: Iceberg clients do not know of it."""


@dataclass(frozen=True, slots=True)
class TableOverview:
    """A table as its page shows it."""

    head: TableHead
    comment: str
    data_location: str
    metadata_location: str
    """Below it are the metadata files that Iceberg clients read."""
    format_version: int
    counts: Counts
    columns: list[ColumnLine]
    partitioning: list[Key]
    sort_order: list[Key]
    tags: dict[str, str]
    properties: dict[str, str]
    """What Iceberg clients get of the tags, and of Polynya's."""
    moments: list[Moment]
    """The newest snapshots that touched the table, oldest first."""
    older: bool
    """There are older ones."""
    newer: bool
    """There are newer ones."""
    begin_snapshot: int
    """The snapshot that made the table."""


def table_overview(
    generator: Generator, con: Connection, wanted: Wanted, until: int | None = None
) -> TableOverview:
    """Read a table.

    Args:
        until: the newest snapshot of the history that is shown; None: the table's.

    Raises:
        NoSuchTable: the lake has none of this name at the snapshot.
        Renamed: it has another name then.
    """
    table = open_at(generator, con, wanted)
    history, context = table.files.history, table.files.table
    shown = _moments(generator, table, until)
    document = table.opened.metadata if table.opened else None
    return TableOverview(
        head=table.head,
        comment=next((t.value or "" for t in history.tags if t.key == COMMENT), ""),
        data_location=table_location(history.lake, history.schema, history.table),
        metadata_location=context.location,
        format_version=context.format_version,
        counts=table.counts(generator),
        columns=columns_at(context, table.at),
        partitioning=_partitioning(table),
        sort_order=_sort_order(table),
        tags={tag.key: tag.value or "" for tag in history.tags if tag.key != COMMENT},
        properties=dict(document.properties) if document else {},
        moments=shown,
        older=bool(shown) and shown[0].snapshot_id > history.table.begin_snapshot,
        newer=until is not None
        or (bool(shown) and shown[-1].snapshot_id == table.at < _end(table)),
        begin_snapshot=history.table.begin_snapshot,
    )


def _moments(generator: Generator, table: TableAt, until: int | None) -> list[Moment]:
    """The newest snapshots, also those after the shown one; or those up to it, if it is older."""
    history = table.files.history
    end = _end(table)
    wanted = end if until is None else min(end, max(until, history.table.begin_snapshot))
    found = _moments_until(generator, table, wanted)
    if until is None and found and found[0].snapshot_id > table.at:
        return _moments_until(generator, table, table.at)
    return found


def _is_cut(shown: list[Moment], table: TableAt) -> bool:
    """Whether there may be newer snapshots than these."""
    return shown[-1].snapshot_id == table.at < _end(table)


def _end(table: TableAt) -> int:
    """The last snapshot that has the table."""
    ended = table.files.history.table.end_snapshot
    return table.lake.snapshot_id if ended is None else ended - 1


def _moments_until(generator: Generator, table: TableAt, until: int) -> list[Moment]:
    if until == table.at:
        return moments(generator, table.con, table.files, table.opened)
    history = table.files.history
    at = (history.lake, history.schema, history.table, until, WINDOW)
    files = generator.table_files(table.con, *at)
    opened = opened_or_refused(generator, table.con, files)[0]
    return moments(generator, table.con, files, opened)


def _partitioning(table: TableAt) -> list[Key]:
    history, partitions = table.files.history, table.files.table.partitions
    current, _ = queries.partitionings(history.table.table_id, table.at).run(table.con)
    columns = history.partitioning.columns.get(current, ()) if current is not None else ()
    names = _names(table)
    spec = partitions.specs[partitions.default_spec_id]
    found = []
    for column in columns:
        name = names.get(column.column_id, str(column.column_id))
        fields = [field for field in spec.fields if field.source_id == column.column_id]
        ducklake = name if column.transform == "identity" else f"{column.transform}({name})"
        iceberg = ", ".join(f"{field.transform}({name})" for field in fields)
        found.append(Key(ducklake, iceberg))
    return found


def _sort_order(table: TableAt) -> list[Key]:
    history, context = table.files.history, table.files.table
    fields = sort_fields(history.sort_keys, context.schemas.at(table.at).fields)
    names = _names(table)
    words = [f"{names[f.source_id]} {f.direction} {f.null_order}" for f in fields]
    words = words or [""] * len(history.sort_keys)
    return [
        Key(f"{key.expression} {key.sort_direction} {key.null_order.replace('_', ' ')}", word)
        for key, word in zip(history.sort_keys, words, strict=True)
    ]


def _names(table: TableAt) -> dict[int, str]:
    columns = table.files.history.columns
    return {one.column_id: one.column_name for one in columns if one.visible_at(table.at)}
