"""What `ingest` reads from the catalog: the lake, one table, its live files and inlined rows."""

from dataclasses import dataclass

from pg8000.native import Connection, identifier
from polynya.ducklake import queries
from polynya.ducklake.column_tree import ColumnNode
from polynya.ducklake.paths import schema_location
from polynya.ducklake.rows.lifetimes import Inlined
from polynya.ducklake.rows.objects import (
    VERSIONS,
    WRITABLE_VERSIONS,
    Lake,
    PartitionColumn,
    Schema,
)
from polynya.runtime.errors import Misconfigured, Refused
from polynya.runtime.namespaces import Namespace, dotted

from ..common.errors import BadInput


def lake(con: Connection) -> Lake:
    """The lake at its newest snapshot.

    Raises:
        BadInput: there is no lake, it is encrypted, or this job cannot write to its version.
    """
    try:
        lake = queries.lake().run(con)
    except Misconfigured as error:
        raise BadInput(str(error)) from None
    if lake.version not in WRITABLE_VERSIONS:
        raise BadInput(
            f"the catalog has DuckLake version {lake.version}; this job writes to {VERSIONS} only"
        )
    if lake.encrypted:
        raise BadInput("this DuckLake is encrypted: only DuckDB reads and writes it")
    return lake


def schema(con: Connection, lake: Lake, namespace: Namespace) -> Schema:
    """A schema by its name, in any letter case.

    Args:
        namespace: all levels of the name.

    Raises:
        BadInput: there is no such schema, or a schema of the lake is within itself.
    """
    try:
        schemas = queries.schemas_at(lake.snapshot_id).run(con)
    except Refused as error:
        raise BadInput(str(error)) from None
    for name_of in (tuple, _lowered):  # first the name as it is written
        for row in schemas:
            if name_of(row.namespace) == name_of(namespace):
                return row
    raise BadInput(
        f"no schema {dotted(*namespace)} in this lake: create it in DuckDB with CREATE SCHEMA"
    )


def _lowered(namespace: Namespace) -> Namespace:
    return tuple(name.lower() for name in namespace)


@dataclass(frozen=True, slots=True)
class Table:
    """Everything about a table that a job relies on: it must be the same at the commit."""

    table_id: int
    table_uuid: str
    location: str
    columns: tuple[ColumnNode, ...]
    last_column_id: int
    """The greatest id of all columns, dropped ones included: ids are not reused."""
    partition_id: int | None
    partition_keys: tuple[PartitionColumn, ...]


TABLE = """
SELECT table_id, table_uuid::text, path, path_is_relative FROM ducklake_table
WHERE schema_id = :schema_id AND lower(table_name) = lower(:name) AND end_snapshot IS NULL"""

VIEW = """
SELECT 1 FROM ducklake_view
WHERE schema_id = :schema_id AND lower(view_name) = lower(:name) AND end_snapshot IS NULL"""

LAST_COLUMN_ID = "SELECT max(column_id) FROM ducklake_column WHERE table_id = :table_id"


def table(con: Connection, lake: Lake, schema: Schema, name: str) -> Table | None:
    """A table by its name, in any letter case; None: it does not exist.

    Raises:
        BadInput: the name is that of a view.
    """
    for table_id, uuid, path, is_relative in con.run(TABLE, schema_id=schema.schema_id, name=name):
        [[last_column_id]] = con.run(LAST_COLUMN_ID, table_id=table_id)
        partition_id, _ = queries.partitionings(table_id, lake.snapshot_id).run(con)
        return Table(
            table_id,
            uuid,
            schema_location(lake, schema) + path if is_relative else path,
            queries.columns_now(table_id).run(con),
            last_column_id,
            partition_id,
            tuple(queries.partition_columns(table_id).run(con).get(partition_id, ())),
        )
    if con.run(VIEW, schema_id=schema.schema_id, name=name):
        raise BadInput(f"{schema.name_of(name)} is a view")
    return None


OPTIONS = """
SELECT key, value FROM ducklake_metadata
WHERE scope IS NULL OR scope = 'schema' AND scope_id = :schema_id
  OR scope = 'table' AND scope_id = :table_id
ORDER BY CASE scope WHEN 'schema' THEN 1 WHEN 'table' THEN 2 ELSE 0 END"""


def options(con: Connection, schema: Schema, table_id: int) -> dict[str, str]:
    """The options of the lake, the schema and the table; a later one overrides an earlier one."""
    return dict(con.run(OPTIONS, schema_id=schema.schema_id, table_id=table_id))


COMMITTED = """
SELECT snapshot_id FROM ducklake_snapshot_changes WHERE commit_extra_info = :token
ORDER BY snapshot_id LIMIT 1"""


def committed(con: Connection, token: str) -> int | None:
    """The id of the snapshot that a job with this token has committed; None: there is none."""
    for (snapshot_id,) in con.run(COMMITTED, token=token):
        return int(snapshot_id)
    return None


@dataclass(frozen=True, slots=True)
class InlinedRows:
    """The live inlined rows of a table."""

    count: int
    newest: int
    """The newest snapshot that inlined some of them; 0: there are none."""


LIVE_INLINED_ROWS = "SELECT count(*), coalesce(max({begin}), 0) FROM {table} WHERE {end} IS NULL"


def live_inlined_rows(con: Connection, inlined: Inlined) -> InlinedRows:
    """The live inlined rows of a table."""
    count, newest = 0, 0
    for table in inlined.tables:
        _, begin, end = map(identifier, table.system_columns)
        sql = LIVE_INLINED_ROWS.format(begin=begin, table=identifier(table.table_name), end=end)
        [[rows, newest_of_table]] = con.run(sql)
        count, newest = count + rows, max(newest, newest_of_table)
    return InlinedRows(count, newest)


NEWEST_INLINED_DELETE = "SELECT max({begin}) FROM {table} WHERE {file_id} = ANY(:ids)"


def newest_inlined_delete(
    con: Connection, inlined: Inlined, table_id: int, data_file_ids: list[int]
) -> int:
    """The newest snapshot with inlined deletes of rows of these files; 0: there is none."""
    if not inlined.delete_columns:
        return 0
    sql = NEWEST_INLINED_DELETE.format(**queries.inlined_delete_names(inlined, table_id))
    return con.run(sql, ids=data_file_ids)[0][0] or 0


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A data file at the newest snapshot."""

    data_file_id: int
    partition_keys: tuple[PartitionColumn, ...]
    """The keys of its partitioning; several partitionings may have equal keys."""
    newest: int
    """The newest snapshot that changed the file's live rows."""
    partition_values: tuple[str | None, ...]


# Joined with aggregates, not queried file by file: DuckLake has no index on these tables.
# A file that a client wrote with an earlier Polynya has one value more than there are keys.
LIVE_FILES = """
SELECT f.data_file_id, f.partition_id, greatest(f.begin_snapshot, f.partial_max, d.newest), v.texts
FROM ducklake_data_file AS f
LEFT JOIN (SELECT data_file_id, max(greatest(begin_snapshot, partial_max)) AS newest
  FROM ducklake_delete_file WHERE table_id = :table_id GROUP BY 1) AS d USING (data_file_id)
LEFT JOIN (SELECT p.data_file_id, json_agg(p.partition_value ORDER BY partition_key_index) AS texts
  FROM ducklake_file_partition_value AS p JOIN ducklake_data_file AS o USING (data_file_id)
  JOIN ducklake_partition_column AS c USING (partition_id, partition_key_index)
  WHERE p.table_id = :table_id GROUP BY 1) AS v
  USING (data_file_id)
WHERE f.table_id = :table_id AND f.end_snapshot IS NULL"""


def live_files(con: Connection, table_id: int) -> list[LiveFile]:
    """The data files of a table at the newest snapshot."""
    keys = queries.partition_columns(table_id).run(con)
    return [
        LiveFile(data_file_id, tuple(keys.get(partition_id, ())), newest, tuple(values or ()))
        for data_file_id, partition_id, newest, values in con.run(LIVE_FILES, table_id=table_id)
    ]
