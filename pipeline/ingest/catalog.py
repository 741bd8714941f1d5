"""What `ingest` reads from the catalog: the lake, one table, its live files and inlined rows."""

from dataclasses import dataclass

from pg8000.native import Connection, identifier
from polynya.ducklake import queries
from polynya.ducklake.column_tree import ColumnNode
from polynya.ducklake.queries import CATALOG_SCHEMA
from polynya.ducklake.rows.objects import VERSIONS, WRITABLE_VERSIONS, PartitionColumn
from polynya.runtime.errors import Refused
from polynya.runtime.namespaces import Namespace, dotted

from ..common.errors import BadInput


@dataclass(frozen=True, slots=True)
class Lake:
    """The lake at its newest snapshot, as far as a job needs it."""

    data_path: str
    snapshot_id: int
    options: dict[str, str]
    """The options of the whole lake; a schema's and a table's own options override them."""
    is_1_1: bool = False
    """Whether DuckLake treats the catalog as one of version 1.1."""


OPTIONS = "SELECT key, value FROM ducklake_metadata WHERE scope IS NULL"
NEWEST = "SELECT max(snapshot_id) FROM ducklake_snapshot"


def lake(con: Connection) -> Lake:
    """The lake at its newest snapshot.

    Raises:
        BadInput: this job cannot write to the lake: its version, or it is encrypted.
    """
    options = dict(con.run(OPTIONS))
    [[snapshot_id]] = con.run(NEWEST)
    version = options.get("version")
    if snapshot_id is None or version is None:
        raise BadInput("the PostgreSQL schema has DuckLake's tables, but no snapshot")
    if version not in WRITABLE_VERSIONS:
        raise BadInput(
            f"the catalog has DuckLake version {version}; this job writes to {VERSIONS} only"
        )
    if options.get("encrypted") == "true":
        raise BadInput("this DuckLake is encrypted: only DuckDB reads and writes it")
    is_1_1 = queries.lake().run(con).is_1_1
    return Lake(options.get("data_path", ""), snapshot_id, options, is_1_1)


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema of the lake, and the location of its directory."""

    schema_id: int
    namespace: Namespace
    location: str


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
                location = lake.data_path + row.path if row.path_is_relative else row.path
                return Schema(row.schema_id, row.namespace, location)
    raise BadInput(
        f"no schema {dotted(*namespace)} in this lake: create it in DuckDB with CREATE SCHEMA"
    )


def _lowered(namespace: Namespace) -> Namespace:
    return tuple(name.lower() for name in namespace)


@dataclass(frozen=True, slots=True)
class Table:
    """Everything about a table that a job relies on: it must be the same at the commit."""

    table_id: int
    location: str
    columns: tuple[ColumnNode, ...]
    last_column_id: int
    """The greatest id of all columns, dropped ones included: ids are not reused."""
    partition_id: int | None
    partition_keys: tuple[PartitionColumn, ...]


TABLE = """
SELECT table_id, path, path_is_relative FROM ducklake_table
WHERE schema_id = :schema_id AND lower(table_name) = lower(:name) AND end_snapshot IS NULL"""

VIEW = """
SELECT 1 FROM ducklake_view
WHERE schema_id = :schema_id AND lower(view_name) = lower(:name) AND end_snapshot IS NULL"""

LAST_COLUMN_ID = "SELECT max(column_id) FROM ducklake_column WHERE table_id = :table_id"

PARTITION_KEYS = """
SELECT i.partition_id, c.partition_key_index, c.column_id, c.transform
FROM ducklake_partition_info AS i LEFT JOIN ducklake_partition_column AS c USING (partition_id)
WHERE i.table_id = :table_id AND i.end_snapshot IS NULL ORDER BY c.partition_key_index"""


def table(con: Connection, schema: Schema, name: str) -> Table | None:
    """A table by its name, in any letter case; None: it does not exist.

    Raises:
        BadInput: the name is that of a view.
    """
    for table_id, path, is_relative in con.run(TABLE, schema_id=schema.schema_id, name=name):
        [[last_column_id]] = con.run(LAST_COLUMN_ID, table_id=table_id)
        keys = con.run(PARTITION_KEYS, table_id=table_id)
        partition_keys = tuple(PartitionColumn(*key) for _, *key in keys if key[0] is not None)
        return Table(
            table_id,
            schema.location + path if is_relative else path,
            queries.columns_now(table_id).run(con),
            last_column_id,
            keys[0][0] if partition_keys else None,
            partition_keys,
        )
    if con.run(VIEW, schema_id=schema.schema_id, name=name):
        raise BadInput(f"{dotted(*schema.namespace, name)} is a view")
    return None


TABLE_OPTIONS = """
SELECT key, value FROM ducklake_metadata WHERE scope = 'schema' AND scope_id = :schema_id
UNION ALL SELECT key, value FROM ducklake_metadata WHERE scope = 'table' AND scope_id = :table_id"""


def options(con: Connection, lake: Lake, schema: Schema, table_id: int) -> dict[str, str]:
    """The options of the lake, the schema and the table; a later one overrides an earlier one."""
    rows = con.run(TABLE_OPTIONS, schema_id=schema.schema_id, table_id=table_id)
    return lake.options | dict(rows)


COMMITTED = """
SELECT snapshot_id FROM ducklake_snapshot_changes WHERE commit_extra_info = :token
ORDER BY snapshot_id LIMIT 1"""


def committed(con: Connection, token: str) -> int | None:
    """The id of the snapshot that a job with this token has committed; None: there is none."""
    for (snapshot_id,) in con.run(COMMITTED, token=token):
        return int(snapshot_id)
    return None


TABLE_EXISTS = f"""
SELECT FROM pg_class AS c WHERE c.relname = {{}} AND c.relnamespace = {CATALOG_SCHEMA}"""

INLINED_TABLES = f"""
SELECT i.table_name FROM ducklake_inlined_data_tables AS i
WHERE i.table_id = :table_id AND EXISTS ({TABLE_EXISTS.format("i.table_name")})
ORDER BY i.schema_version"""


def inlined_tables(con: Connection, table_id: int) -> list[str]:
    """The PostgreSQL tables that hold a table's inlined rows, one for each schema version."""
    return [name for (name,) in con.run(INLINED_TABLES, table_id=table_id)]


def inlined_begins(con: Connection, table_id: int) -> list[int]:
    """The newest begin_snapshot of the live inlined rows in each PostgreSQL table."""
    begins: list[int] = []
    for name in inlined_tables(con, table_id):
        _, begin, end = map(identifier, queries.system_columns(name).run(con))
        newest = f"SELECT max({begin}) FROM {identifier(name)} WHERE {end} IS NULL"
        begins += [begin for (begin,) in con.run(newest) if begin is not None]
    return begins


INLINED_DELETES = f"SELECT EXISTS ({TABLE_EXISTS.format('CAST(:name AS text)')})"


def newest_inlined_delete(con: Connection, table_id: int, data_file_ids: list[int]) -> int:
    """The newest snapshot with inlined deletes of rows of these files; 0: there is none."""
    name = f"ducklake_inlined_delete_{table_id}"
    if not con.run(INLINED_DELETES, name=name)[0][0]:
        return 0
    newest = f"SELECT max(begin_snapshot) FROM {identifier(name)} WHERE file_id = ANY(:ids)"
    return con.run(newest, ids=data_file_ids)[0][0] or 0


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A data file at the newest snapshot."""

    data_file_id: int
    partition_id: int | None
    newest: int
    """The newest snapshot that changed the file's live rows."""
    partition_values: tuple[str | None, ...]


# Joined with aggregates, not queried file by file: DuckLake has no index on these tables.
# A file of an Iceberg client has one value more than there are keys.
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
    return [
        LiveFile(data_file_id, partition_id, newest, tuple(values or ()))
        for data_file_id, partition_id, newest, values in con.run(LIVE_FILES, table_id=table_id)
    ]


REGISTERED = "SELECT 1 FROM ducklake_data_file WHERE path = :path"


def is_registered(con: Connection, path: str) -> bool:
    """Whether any snapshot, also an older one, names a file with this relative path."""
    return bool(con.run(REGISTERED, path=path))
