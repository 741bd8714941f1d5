"""Statements for DuckLake that make a lake faster or smaller or undo changes, and their savings.

`table_advice` and `lake_advice` say what a merge, a flush, a rewrite, an expiry or a clean-up
saves, and whether this is counted or estimated. `undo` returns the statements that undo the
changes of snapshots to the rows of a table. All statements expect the lake to be attached as
`lake`.
"""

import re
import time
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pg8000.native import Connection
from polynya.ducklake import queries
from polynya.ducklake.queries.history import state_at
from polynya.ducklake.queries.writers import known_locations
from polynya.ducklake.rows.objects import Column, Lake
from polynya.runtime.namespaces import Namespace
from polynya.storage.aws import AwsSettings, Clients
from polynya.storage.s3_locations import bucket_and_key
from polynya_pipeline.common.errors import counted

from ..clients.duckdb import identifier, literal
from ..queries.lake_checks import has_late_tables, option
from ..queries.listed_files import (
    FileWithDeletes,
    deleted_shares,
    expirable,
    has_ended_rows,
    mergeable_files,
    scheduled_files,
)
from ..queries.partition_texts import partition_keys
from .changed_rows import ChangesQuestion, schema_for_functions
from .generator import OpenedTable
from .manifests import decode_entries, manifest_list

COUNTED = "counted"
ESTIMATED = "estimated"
TARGET_BYTES = 512_000_000
"""DuckLake merges files up to this size, unless the option `target_file_size` is set."""
DELETE_THRESHOLD = 0.1
"""Files are rewritten if at least this share of their rows is deleted."""
KEPT_DAYS = 7
"""The advice is to expire snapshots that are older than this, or than the lake keeps them."""
AGE = re.compile("([0-9]{1,6}) (second|minute|hour|day|week|month|year)s?")
DAYS_OF = {"day": 1, "week": 7, "month": 31, "year": 366}
YOUNG = timedelta(days=1)
"""A younger file that is in no snapshot may belong to a write in progress."""
MOST_OBJECTS = 20_000
"""With more objects below the data path, no orphaned files are reported."""
MOST_PLANNED = 200_000
"""With more files in a table, the time that planning takes is not measured."""
MOST_DECODED = 5_000
"""The measurement decodes no further manifest after this many entries."""


@dataclass(frozen=True, slots=True)
class Advice:
    """Statements to run, and what they save."""

    what: str
    """`merge`, `flush`, `rewrite`, `expire`, `clean up`, `orphans`."""
    message: str
    statements: str
    files: int
    """By how much the number of files falls; negative: it rises."""
    bytes: int
    """The bytes that a reader of all rows, or the storage, saves."""
    basis: str
    """`counted` (the savings are exact) or `estimated`."""
    seconds: float | None = None
    """The planning time that is saved, estimated from the time to read the table's manifests."""
    snapshots: int = 0
    """How many past snapshots expire."""


def table_path(namespace: Namespace, name: str) -> str:
    """The quoted name of a table of the lake, for SQL."""
    return ".".join(map(identifier, ("lake", *namespace, name)))


def names_for_functions(table: OpenedTable) -> tuple[str, str]:
    """The names of a table and its schema, as literals for DuckLake's functions."""
    schema = schema_for_functions(table.history.schema.namespace)
    return literal(table.history.table.table_name), literal(schema)


def merge_statement(table: OpenedTable) -> str:
    """The statement that merges small files."""
    name, schema = names_for_functions(table)
    return f"CALL ducklake_merge_adjacent_files('lake', {name}, schema => {schema});"


def flush_statement(table: OpenedTable) -> str:
    """The statement that writes inlined rows and deletes into files."""
    name, schema = names_for_functions(table)
    where = f"schema_name => {schema}, table_name => {name}"
    return f"CALL ducklake_flush_inlined_data('lake', {where});"


def rewrite_statement(table: OpenedTable, threshold: float) -> str:
    """The statement that rewrites files without their deleted rows.

    Args:
        threshold: a file is rewritten if at least this share of its rows is deleted.
    """
    name, schema = names_for_functions(table)
    where = f"{name}, schema => {schema}, delete_threshold => {threshold:g}"
    return f"CALL ducklake_rewrite_data_files('lake', {where});"


WRITE_ANEW = "write the rows into a new table, whose files DuckLake writes"


def new_files_statements(table: OpenedTable) -> str:
    """The statements that write all rows into new files; `WRITE_ANEW` if they would change rows."""
    if _is_changed_by_flush(table, all_updated=True):
        return WRITE_ANEW
    column = identifier(
        next(
            column.column_name
            for column in table.history.columns
            if column.end_snapshot is None and column.parent_column is None
        )
    )
    path = table_path(table.history.schema.namespace, table.history.table.table_name)
    # The UPDATE deletes all rows of the old files, which stay live until the rewrite.
    return (
        f"UPDATE {path} SET {column} = {column}; "
        f"{flush_statement(table)} {rewrite_statement(table, 0)}"
    )


def partitioning_statements(table: OpenedTable) -> str:
    """The statements that reset all partitionings of a table and set the newest one again."""
    history = table.history
    path = table_path(history.schema.namespace, history.table.table_name)
    names = {c.column_id: identifier(c.column_name) for c in history.columns if not c.end_snapshot}
    keys = [
        _key(key.transform, names[key.column_id])
        for key in history.partitioning.columns.get(history.partitioning.current, ())
        if key.column_id in names
    ]
    return f"ALTER TABLE {path} RESET PARTITIONED BY;" + (
        f" ALTER TABLE {path} SET PARTITIONED BY ({', '.join(keys)});" if keys else ""
    )


def _key(transform: str | None, column: str) -> str:
    if transform in {None, "identity"}:
        return column
    name, bracket, number = str(transform).partition("(")
    return f"{name}({number.removesuffix(')')}, {column})" if bracket else f"{name}({column})"


def _is_changed_by_flush(table: OpenedTable, *, all_updated: bool = False) -> bool:
    """Whether a flush would change rows, because of a fault of DuckLake.

    Args:
        all_updated: an UPDATE of all rows comes before the flush; it ends the inlined ones.
    """
    history = table.history
    rows = state_at(history.events, table.snapshot_id)["inlined"].rows
    return (
        # The flush does not write deletes of inlined rows in such a partition: the rows return.
        _is_partitioned_by_text(table)
        and (bool(all_updated and rows) or has_ended_rows(history.inlined).run(table.con))
    ) or (
        # DuckLake reads the inlined rows with the first columns of the table.
        _layouts(table) != [min(c.begin_snapshot for c in history.columns)]
        and has_late_tables(table.lake, table.table_id).run(table.con)
    )


WRITTEN_AS_TEXT = frozenset(("varchar", "json", "blob"))
"""Types whose partition values in DuckLake's SQL may differ from those that PostgreSQL stores."""


def _is_partitioned_by_text(table: OpenedTable) -> bool:
    partitioning = table.history.partitioning
    return any(
        partitioning.column_types[column.column_id] & WRITTEN_AS_TEXT
        for column in partitioning.columns.get(partitioning.current, ())
    )


def table_advice(table: OpenedTable) -> list[Advice]:
    """The advice for a table at the newest snapshot."""
    per_file = _seconds_per_file(table)
    keys = partition_keys(table.table_id).run(table.con)
    shares = deleted_shares(table.history.inlined, table.table_id, keys).run(table.con)
    return [
        *_flush(table, shares),
        *_rewrite(table, shares, per_file),
        *_merge(table, keys, per_file),
    ]


def merge_advice(table: OpenedTable) -> Advice | None:
    """The merge that `table_advice` suggests, without the seconds; None: it suggests none."""
    keys = partition_keys(table.table_id).run(table.con)
    return next(_merge(table, keys, None), None)


def _seconds_per_file(table: OpenedTable) -> float | None:
    """The CPU seconds per file to decode the newest snapshot's manifests; None: not measured."""
    if not table.is_served or not table.metadata.snapshots:
        return None
    files = state_at(table.history.events, table.snapshot_id)["data"].files
    if not 0 < files <= MOST_PLANNED:
        return None
    location = table.metadata.snapshots[-1].manifest_list
    manifest_list(table, location, with_entries=False)  # generates the files
    started = time.thread_time()
    entries = decode_entries(table, location, MOST_DECODED)
    return (time.thread_time() - started) / entries if entries else None


def _saved(per_file: float | None, files: int) -> float | None:
    return None if per_file is None else round(per_file * files, 4)


def _flush(table: OpenedTable, shares: list[FileWithDeletes]) -> Iterator[Advice]:
    state = state_at(table.history.events, table.snapshot_id)
    inlined_deletes = sum(share.inlined for share in shares)
    rows = state["inlined"].rows
    if (not rows and not inlined_deletes) or _is_changed_by_flush(table):
        return
    numbers = (("row", rows), ("delete", inlined_deletes))
    parts = [counted(number, noun) for noun, number in numbers if number]
    yield Advice(
        "flush",
        f"inlined: {' and '.join(parts)}, which readers get from the catalog's database, and "
        "Iceberg clients in generated files. A flush writes them into files",
        flush_statement(table),
        files=-1 if rows else 0,
        bytes=0,
        basis=ESTIMATED,
    )


def _rewrite(
    table: OpenedTable, shares: list[FileWithDeletes], per_file: float | None
) -> Iterator[Advice]:
    files = [share for share in shares if share.deleted >= DELETE_THRESHOLD * share.rows]
    if not files:
        return
    statement = rewrite_statement(table, DELETE_THRESHOLD)
    if any(file.inlined for file in files):
        if _is_changed_by_flush(table):
            return
        statement = f"{flush_statement(table)}\n{statement}"
    deleted, rows = (sum(getattr(file, key) for file in files) for key in ("deleted", "rows"))
    layouts = _layouts(table)
    written = {
        (bisect_right(layouts, f.begin_snapshot), f.partition_id, f.partition) for f in files
    }
    fewer = sum(1 + file.delete_files for file in files) - len(written)
    yield Advice(
        "rewrite",
        f"{deleted:,} of {counted(rows, 'row')} in {counted(len(files), 'file')} are deleted: "
        "readers read and drop them. A rewrite leaves them out",
        statement,
        files=fewer,
        bytes=sum(round(file.bytes * file.deleted / file.rows) for file in files),
        basis=ESTIMATED,
        seconds=_saved(per_file, fewer),
    )


def _merge(table: OpenedTable, keys: int, per_file: float | None) -> Iterator[Advice]:
    target, inlined = target_bytes(table.con), table.history.inlined
    groups = mergeable_files(inlined, table.table_id, keys, target, _layouts(table)).run(table.con)
    before = sum(group.files for group in groups)
    several = [group for group in groups if group.files > 1]
    after = sum(-(-group.bytes // target) for group in several)
    merged = sum(group.files for group in several)
    if merged <= after:
        return
    yield Advice(
        "merge",
        f"{merged:,} of {before:,} files without deletes are smaller than "
        f"{target / 1e6:,.0f} MB and can be merged into {after:,}: each file costs every client "
        "that reads it a request",
        merge_statement(table),
        files=merged - after,
        bytes=0,
        basis=ESTIMATED,
        seconds=_saved(per_file, merged - after),
    )


def _layouts(table: OpenedTable) -> list[int]:
    """The snapshots that changed the columns; DuckLake does not merge files across them."""
    edges = ((c.begin_snapshot, c.end_snapshot) for c in table.history.columns)
    return sorted({edge for pair in edges for edge in pair if edge})


def target_bytes(con: Connection) -> int:
    """The size in bytes up to which DuckLake merges files."""
    text = option("target_file_size").run(con) or ""
    return (int(text) if re.fullmatch("[0-9]{1,18}", text) else 0) or TARGET_BYTES


def lake_advice(con: Connection, lake: Lake, aws: AwsSettings) -> list[Advice]:
    """The advice for the lake as a whole."""
    return [*_expire(con, lake), *_clean_up(con), *_orphans(con, lake, aws)]


def _expire(con: Connection, lake: Lake) -> Iterator[Advice]:
    days = KEPT_DAYS
    if age := option("expire_older_than").run(con):
        match = AGE.fullmatch(age.strip().lower())
        if match is None:
            return  # how long the lake keeps snapshots is not known
        days = max(days, min(int(match[1]) * DAYS_OF.get(match[2], 0), 100_000))
    before = (datetime.now(UTC) - timedelta(days=days)).replace(microsecond=0)
    sums = expirable(before).run(con)
    if not sums.snapshots:
        return
    yield Advice(
        "expire",
        f"an expiry ends {counted(sums.snapshots, 'snapshot')} older than {days} days, and a "
        f"clean-up then deletes {counted(sums.files, 'file')} that no newer one has. Nobody can "
        "go back to these snapshots after that, and Iceberg's tags on them are gone",
        "CALL ducklake_expire_snapshots('lake', older_than => "
        f"TIMESTAMPTZ '{before:%Y-%m-%d %H:%M:%S}+00');\n"
        "CALL ducklake_cleanup_old_files('lake', cleanup_all => true);",
        files=sums.files,
        bytes=sums.bytes,
        basis=COUNTED,
        snapshots=sums.snapshots,
    )


def _clean_up(con: Connection) -> Iterator[Advice]:
    files = scheduled_files(datetime.now(UTC) - YOUNG).run(con)
    if files:
        yield Advice(
            "clean up",
            f"a clean-up deletes {counted(files, 'file')}, scheduled for deletion more than a day "
            "ago, that no snapshot has",
            "CALL ducklake_cleanup_old_files('lake', older_than => now() - INTERVAL 1 DAY);",
            files=files,
            bytes=0,
            basis=COUNTED,
        )


def _orphans(con: Connection, lake: Lake, aws: AwsSettings) -> Iterator[Advice]:
    place = bucket_and_key(lake.data_path)
    if place is None:
        return
    objects = _objects(*place, aws)
    locations = known_locations(lake).run(con) if objects else set()
    sizes = [size for location, size in objects if location not in locations]
    if sizes:
        yield Advice(
            "orphans",
            f"{counted(len(sizes), 'Parquet file')} below the data path, older than a day, in no "
            "snapshot: left by failed writes",
            "CALL ducklake_delete_orphaned_files('lake', older_than => now() - INTERVAL 1 DAY);",
            files=len(sizes),
            bytes=sum(sizes),
            basis=COUNTED,
        )


def _objects(bucket: str, prefix: str, aws: AwsSettings) -> list[tuple[str, int]]:
    """The locations and sizes of the Parquet files below a prefix that are older than a day.

    Empty if there are more than `MOST_OBJECTS` objects, or they cannot be listed.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    pages = (
        Clients(aws)("s3")
        .get_paginator("list_objects_v2")
        .paginate(Bucket=bucket, Prefix=prefix, PaginationConfig={"MaxItems": MOST_OBJECTS + 1})
    )
    until = datetime.now(UTC) - YOUNG
    try:
        objects = [entry for page in pages for entry in page.get("Contents", ())]
    except (BotoCoreError, ClientError):  # the role may not list
        return []
    if len(objects) > MOST_OBJECTS:
        return []
    return [
        (f"s3://{bucket}/{entry['Key']}", entry["Size"])
        for entry in objects
        if entry["Key"].endswith(".parquet") and entry["LastModified"] < until
    ]


def undo(table: OpenedTable, before: int, question: ChangesQuestion) -> str:
    """The statements that undo the changes to a table's rows between two snapshots.

    Empty: no row changed. A comment in SQL says why, if no statement undoes the changes.

    Args:
        table: as of the later snapshot.
        before: the earlier snapshot.
        question: the question for the rows that changed in between.
    """
    history, newest = table.history, table.lake.snapshot_id
    current = queries.table_of_uuid(history.table.table_uuid).run(table.con)
    if current is None or current[1].end_snapshot is not None:
        return _made_again(table, newest)
    schema, row = current
    path = table_path(schema.namespace, row.table_name)
    if before < history.table.begin_snapshot:
        return f"DROP TABLE {path};"
    if question.expired:
        return (
            "-- No statement undoes this: snapshots in between have expired, and the change feed "
            "lacks their\n-- changes."
        )
    if not question.spans:
        return ""
    now = table if newest == table.snapshot_id else table.open_at(newest, limit=1)
    columns_now, columns_before = (
        {column.column_id: column for column in of.history.columns if column.visible_at(snapshot)}
        for of, snapshot in ((now, newest), (table, before))
    )
    pairs = [
        (columns_now[column_id], column)
        for column_id, column in columns_before.items()
        if column_id in columns_now
    ]
    if any(_is_renamed_field(*pair) for pair in pairs):
        return "-- No statement undoes this: a field of a struct has another name now."
    if any(column.column_name.lower() == "rowid" for column in now.history.columns):
        return (
            "-- No statement undoes this: a column is or was called rowid, and the change feed has "
            "its values\n-- in place of row ids."
        )
    top = [(new, old) for new, old in pairs if new.parent_column is None]
    into, of = (", ".join(identifier(pair[side].column_name) for pair in top) for side in (0, 1))
    # Only the row ids are used: the feed may show a delete at the snapshot that inserted the row,
    # as if the row had existed before.
    feeds = "\n  UNION ".join(f"SELECT rowid AS id FROM {span.feed}" for span in question.spans)
    assert question.before is not None  # the table existed
    path_before = table_path(question.before.namespace, question.before.table)
    return (
        "BEGIN;\n"
        f"CREATE TEMP TABLE changed AS\n  {feeds};\n"
        f"CREATE TEMP TABLE undone AS SELECT {of}\n  FROM {path_before} "
        f"AT (VERSION => {before}) WHERE rowid IN (SELECT id FROM changed);\n"
        f"DELETE FROM {path} WHERE rowid IN (SELECT id FROM changed);\n"
        f"INSERT INTO {path} ({into}) FROM undone;\n"
        "DROP TABLE changed;\n"
        "DROP TABLE undone;\n"
        "COMMIT;"
    )


def _made_again(table: OpenedTable, newest: int) -> str:
    """The statements that create a dropped table again, under a name that is free now."""
    namespace, name = table.history.schema.namespace, table.history.table.table_name
    schemas = {schema.namespace: schema for schema in queries.schemas_at(newest).run(table.con)}
    path = table_path(namespace, name)
    source = f"{path} AT (VERSION => {table.snapshot_id})"
    schema = schemas.get(namespace)
    if schema is None:
        of_schema = ".".join(map(identifier, ("lake", *namespace)))
        return f"CREATE SCHEMA {of_schema};\nCREATE TABLE {path} AS FROM {source};"
    tables = queries.tables_at(newest, schema.schema_id).run(table.con)
    views = queries.views_at(newest, schema.schema_id).run(table.con)
    names = [*(row.table_name for row in tables), *(row.view_name for row in views)]
    if name.lower() in map(str.lower, names):
        path = table_path(namespace, f"{name}_{table.snapshot_id}")
    return f"CREATE TABLE {path} AS FROM {source};"


def _is_renamed_field(new: Column, old: Column) -> bool:
    """Whether a struct's field has a new name: DuckDB casts structs by name and loses its value."""
    return new.parent_column is not None and new.column_name != old.column_name
