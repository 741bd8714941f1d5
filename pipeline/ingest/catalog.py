"""What a job has to know of the lake and of one table: SELECTs, and the records they fill."""

from dataclasses import dataclass

from pg8000.native import Connection, identifier
from polynya.ducklake.queries import CATALOG_SCHEMA

from ..common.columns import Column, tree
from ..common.errors import BadInput
from .partitions import PartitionKey

VERSIONS = {"1.0"}
"""Of the catalog, that this writer knows."""


@dataclass(frozen=True, slots=True)
class TableName:
    schema_name: str
    table_name: str

    def __str__(self) -> str:
        return f"{self.schema_name}.{self.table_name}"


def table_name(text: str) -> TableName:
    """`t`, `s.t`, or with quotes where a name holds a dot: `"my.schema"."t"`."""
    parts, rest = [], text
    while rest:
        if rest.startswith('"'):
            end = 1
            while (end := rest.find('"', end)) >= 0 and rest[end + 1 : end + 2] == '"':
                end += 2
            if end < 0:
                raise BadInput(f"the table name {text} has a quote without its end")
            part, rest = rest[1:end].replace('""', '"'), rest[end + 1 :]
        else:
            part, dot, after = rest.partition(".")
            rest = dot + after
        parts.append(part)
        if rest and not rest.startswith("."):
            raise BadInput(f"{text} is no table name")
        if rest == ".":
            parts.append("")
        rest = rest[1:]
    if not 1 <= len(parts) <= 2 or not all(parts) or "\0" in text:
        raise BadInput(
            f'{text or "nothing"} is no table name: write schema.table, and "a.b"."c" where a '
            "name holds a dot"
        )
    return TableName(*(["main", *parts][-2:]))


@dataclass(frozen=True, slots=True)
class Lake:
    data_path: str
    snapshot_id: int
    options: dict[str, str]
    """Of the lake; a table's own come before."""


OPTIONS = "SELECT key, value FROM ducklake_metadata WHERE scope IS NULL"
NEWEST = "SELECT max(snapshot_id) FROM ducklake_snapshot"


def lake(con: Connection) -> Lake:
    """Raises:
    BadInput: a lake that this job does not know.
    """
    options = dict(con.run(OPTIONS))
    [[snapshot_id]] = con.run(NEWEST)
    version = options.get("version")
    if snapshot_id is None or version is None:
        raise BadInput("the PostgreSQL schema holds DuckLake's tables, but no snapshot")
    if version not in VERSIONS:
        raise BadInput(
            f"the catalog is of DuckLake version {version}; this job knows "
            f"{', '.join(sorted(VERSIONS))}"
        )
    if options.get("encrypted") == "true":
        raise BadInput("this DuckLake is encrypted: only DuckDB reads and writes it")
    return Lake(options.get("data_path", ""), snapshot_id, options)


@dataclass(frozen=True, slots=True)
class Schema:
    schema_id: int
    schema_name: str
    location: str


SCHEMA = """
SELECT schema_id, schema_name, path, path_is_relative FROM ducklake_schema
WHERE lower(schema_name) = lower(:name) AND end_snapshot IS NULL"""


def schema(con: Connection, lake: Lake, name: str) -> Schema:
    """Raises:
    BadInput: there is none of this name.
    """
    for schema_id, schema_name, path, is_relative in con.run(SCHEMA, name=name):
        return Schema(schema_id, schema_name, lake.data_path + path if is_relative else path)
    raise BadInput(f"no schema {name} in this lake: CREATE SCHEMA makes one, in DuckDB")


@dataclass(frozen=True, slots=True)
class Table:
    """All of a table that a job relies on. When it is the same at the commit, nothing that
    matters has changed meanwhile."""

    table_id: int
    location: str
    columns: tuple[Column, ...]
    last_column_id: int
    """Of all columns that ever were: ids are not given twice."""
    partition_id: int | None
    partition_keys: tuple[PartitionKey, ...]


TABLE = """
SELECT table_id, path, path_is_relative FROM ducklake_table
WHERE schema_id = :schema_id AND lower(table_name) = lower(:name) AND end_snapshot IS NULL"""

VIEW = """
SELECT 1 FROM ducklake_view
WHERE schema_id = :schema_id AND lower(view_name) = lower(:name) AND end_snapshot IS NULL"""

COLUMNS = """
SELECT column_id, column_name, column_type, nulls_allowed, nullif(default_value, 'NULL'),
  parent_column
FROM ducklake_column WHERE table_id = :table_id AND end_snapshot IS NULL ORDER BY column_order"""

LAST_COLUMN_ID = "SELECT max(column_id) FROM ducklake_column WHERE table_id = :table_id"

PARTITION_KEYS = """
SELECT i.partition_id, c.partition_key_index, c.column_id, c.transform
FROM ducklake_partition_info AS i LEFT JOIN ducklake_partition_column AS c USING (partition_id)
WHERE i.table_id = :table_id AND i.end_snapshot IS NULL ORDER BY c.partition_key_index"""


def table(con: Connection, schema: Schema, name: str) -> Table | None:
    for table_id, path, is_relative in con.run(TABLE, schema_id=schema.schema_id, name=name):
        columns = [
            (Column(column_id, column_name, column_type, nulls_allowed, default), parent)
            for column_id, column_name, column_type, nulls_allowed, default, parent in con.run(
                COLUMNS, table_id=table_id
            )
        ]
        [[last_column_id]] = con.run(LAST_COLUMN_ID, table_id=table_id)
        keys = con.run(PARTITION_KEYS, table_id=table_id)
        partition_keys = tuple(PartitionKey(*key) for _, *key in keys if key[0] is not None)
        return Table(
            table_id,
            schema.location + path if is_relative else path,
            tree(columns),
            last_column_id,
            keys[0][0] if partition_keys else None,
            partition_keys,
        )
    if con.run(VIEW, schema_id=schema.schema_id, name=name):
        raise BadInput(f"{schema.schema_name}.{name} is a view")
    return None


TABLE_OPTIONS = """
SELECT key, value FROM ducklake_metadata WHERE scope = 'schema' AND scope_id = :schema_id
UNION ALL SELECT key, value FROM ducklake_metadata WHERE scope = 'table' AND scope_id = :table_id"""


def options(con: Connection, lake: Lake, schema: Schema, table_id: int) -> dict[str, str]:
    """The lake's, the schema's and the table's own: the last one counts."""
    rows = con.run(TABLE_OPTIONS, schema_id=schema.schema_id, table_id=table_id)
    return lake.options | dict(rows)


COMMITTED = """
SELECT snapshot_id FROM ducklake_snapshot_changes WHERE commit_extra_info = :token
ORDER BY snapshot_id LIMIT 1"""


def committed(con: Connection, token: str) -> int | None:
    """The snapshot that a job with this token has made."""
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
    """The tables of PostgreSQL that hold its inlined rows, one for each schema version."""
    return [name for (name,) in con.run(INLINED_TABLES, table_id=table_id)]


def inlined_begins(con: Connection, table_id: int) -> list[int]:
    """The begin_snapshot of the inlined rows that are live, the newest of each PostgreSQL table."""
    found = []
    for name in inlined_tables(con, table_id):
        newest = f"SELECT max(begin_snapshot) FROM {identifier(name)} WHERE end_snapshot IS NULL"
        found += [begin for (begin,) in con.run(newest) if begin is not None]
    return found


INLINED_DELETES = f"SELECT EXISTS ({TABLE_EXISTS.format('CAST(:name AS text)')})"


def newest_inlined_delete(con: Connection, table_id: int, data_file_ids: list[int]) -> int:
    """The newest snapshot that deleted rows of these files without writing a delete file."""
    name = f"ducklake_inlined_delete_{table_id}"
    if not con.run(INLINED_DELETES, name=name)[0][0]:
        return 0
    newest = f"SELECT max(begin_snapshot) FROM {identifier(name)} WHERE file_id = ANY(:ids)"
    return con.run(newest, ids=data_file_ids)[0][0] or 0


@dataclass(frozen=True, slots=True)
class LiveFile:
    data_file_id: int
    partition_id: int | None
    newest: int
    """The snapshot that last changed what is live of it."""
    partition_values: tuple[str | None, ...]


# Joined with sums, not asked file by file: DuckLake has no index on these tables.
LIVE_FILES = """
SELECT f.data_file_id, f.partition_id, greatest(f.begin_snapshot, f.partial_max, d.newest), v.texts
FROM ducklake_data_file AS f
LEFT JOIN (SELECT data_file_id, max(greatest(begin_snapshot, partial_max)) AS newest
  FROM ducklake_delete_file WHERE table_id = :table_id GROUP BY 1) AS d USING (data_file_id)
LEFT JOIN (SELECT data_file_id, json_agg(partition_value ORDER BY partition_key_index) AS texts
  FROM ducklake_file_partition_value WHERE table_id = :table_id GROUP BY 1) AS v
  USING (data_file_id)
WHERE f.table_id = :table_id AND f.end_snapshot IS NULL"""


def live_files(con: Connection, table_id: int) -> list[LiveFile]:
    return [
        LiveFile(data_file_id, partition_id, newest, tuple(values or ()))
        for data_file_id, partition_id, newest, values in con.run(LIVE_FILES, table_id=table_id)
    ]
