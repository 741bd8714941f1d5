"""What `verify` reads from the catalog besides the invariants: tables, files, statistics."""

from collections.abc import Mapping
from dataclasses import dataclass

from pg8000.native import Connection
from polynya.ducklake import queries
from polynya.ducklake.column_tree import ColumnNode
from polynya.ducklake.paths import location
from polynya.ducklake.queries.changed_tables import changed_rows, inlined_names
from polynya.ducklake.rows.objects import Column, Lake
from polynya.mapping.tables import check_lake
from polynya.runtime.errors import Misconfigured, Refused
from polynya.runtime.namespaces import Namespace, dotted

from ..common.errors import BadInput

LAST = 2**63 - 1
"""A snapshot after all others."""

Fragments = Mapping[str, str]
"""SQL that differs between catalog versions, by the names of `queries.fragment`."""


def lake(con: Connection) -> tuple[Lake, Fragments]:
    """The lake at its newest snapshot.

    Raises:
        BadInput: there is no lake, or Polynya does not serve it (version, encryption).
    """
    try:
        newest = queries.lake().run(con)
        check_lake(newest)
    except (Misconfigured, Refused) as error:
        raise BadInput(str(error)) from None
    names = "data_partial_max", "stats_table", "row_group_count", "min_is_exact", "max_is_exact"
    return newest, {name: queries.fragment(newest, name) for name in names}


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A table at the newest snapshot."""

    table_id: int
    namespace: Namespace
    """All levels of the schema's name."""
    table_name: str
    location: str
    columns: tuple[ColumnNode, ...]
    column_ids: tuple[int, ...]
    """The ids of all columns, dropped ones included."""

    @property
    def name(self) -> str:
        """`schema.table`, for people."""
        return dotted(*self.namespace, self.table_name)


TABLES = """
SELECT t.schema_id, t.table_id, t.table_name, t.path, t.path_is_relative
FROM ducklake_table AS t WHERE t.end_snapshot IS NULL"""


def tables(con: Connection, lake: Lake) -> list[CatalogTable]:
    """The tables at the newest snapshot, by schema and name.

    Raises:
        BadInput: a schema is within itself.
    """
    try:
        schemas = queries.schemas_at(lake.snapshot_id).run(con)
    except Refused as error:
        raise BadInput(str(error)) from None
    schema_of = {schema.schema_id: schema for schema in schemas}
    catalog_tables = [
        CatalogTable(
            table_id,
            schema.namespace,
            table_name,
            location(
                (lake.data_path, False), (schema.path, schema.path_is_relative), (path, relative)
            ),
            queries.columns_now(table_id).run(con),
            tuple({column.column_id for column in column_versions(con, table_id)}),
        )
        for schema_id, table_id, table_name, path, relative in con.run(TABLES)
        if (schema := schema_of.get(schema_id))
    ]
    return sorted(catalog_tables, key=lambda table: (table.namespace, table.table_name))


@dataclass(frozen=True, slots=True)
class CatalogFile:
    """A data file or a delete file at the newest snapshot."""

    file_id: int
    kind: str
    """data; delete; or the format of a delete file that is not Parquet."""
    location: str
    record_count: int
    file_size_bytes: int
    footer_size: int | None
    is_added: bool
    """Added by ducklake_add_data_files: it may have other columns, and no field ids."""


# DuckLake does not always end the delete files of a data file that ends.
FILES = """
SELECT f.data_file_id, 'data', f.path, f.path_is_relative, f.record_count, f.file_size_bytes,
  f.footer_size, f.mapping_id IS NOT NULL
FROM ducklake_data_file AS f WHERE f.table_id = :table_id AND f.end_snapshot IS NULL
UNION ALL
SELECT d.delete_file_id, CASE d.format WHEN 'parquet' THEN 'delete' ELSE d.format END, d.path,
  d.path_is_relative, d.delete_count, d.file_size_bytes, d.footer_size, false
FROM ducklake_delete_file AS d JOIN ducklake_data_file AS f USING (data_file_id)
WHERE d.table_id = :table_id AND d.end_snapshot IS NULL AND f.end_snapshot IS NULL
ORDER BY 1"""


def files(con: Connection, table: CatalogTable) -> list[CatalogFile]:
    """The data files and delete files of a table at the newest snapshot."""
    return [
        CatalogFile(file_id, kind, table.location + path if relative else path, *more)
        for file_id, kind, path, relative, *more in con.run(FILES, table_id=table.table_id)
    ]


@dataclass(frozen=True, slots=True)
class CatalogStats:
    """The statistics of one column of a data file, and what the checks need of the file's row."""

    data_file_id: int
    begin_snapshot: int
    record_count: int
    is_added: bool
    column_id: int
    value_count: int | None
    null_count: int | None
    min_value: str | None
    max_value: str | None
    contains_nan: bool | None
    min_is_exact: bool | None
    """Whether the bound is a value; None: not known."""
    max_is_exact: bool | None


# The range is given for both tables: PostgreSQL does not derive one from the other.
STATS = """
SELECT f.data_file_id, f.begin_snapshot, f.record_count, f.mapping_id IS NOT NULL, s.column_id,
  s.value_count, s.null_count, s.min_value, s.max_value, s.contains_nan, {min_is_exact},
  {max_is_exact}
FROM ducklake_data_file AS f JOIN {stats_table} AS s USING (data_file_id)
WHERE f.table_id = :table_id AND f.end_snapshot IS NULL
  AND f.data_file_id >= :first AND f.data_file_id < :end
  AND s.data_file_id >= :first AND s.data_file_id < :end"""


def stats(
    con: Connection, fragments: Fragments, table_id: int, first: int, end: int
) -> list[CatalogStats]:
    """The statistics of live data files of a table with `first` <= id < `end`."""
    rows = con.run(STATS.format(**fragments), table_id=table_id, first=first, end=end)
    return [CatalogStats(*row) for row in rows]


def column_versions(con: Connection, table_id: int) -> list[Column]:
    """All versions of all columns of a table, of all snapshots."""
    return queries.columns(table_id, LAST).run(con)


IDENTITIES = """
SELECT v.data_file_id, c.column_id, v.partition_value
FROM ducklake_data_file AS f
JOIN ducklake_file_partition_value AS v USING (data_file_id)
JOIN ducklake_partition_column AS c
  ON c.partition_id = f.partition_id AND c.partition_key_index = v.partition_key_index
WHERE f.table_id = :table_id AND f.end_snapshot IS NULL AND c.transform = 'identity'
  AND f.data_file_id >= :first AND f.data_file_id < :end"""


def identities(
    con: Connection, table_id: int, first: int, end: int
) -> dict[tuple[int, int], str | None]:
    """The values of identity partitions, by data file id and column id."""
    rows = con.run(IDENTITIES, table_id=table_id, first=first, end=end)
    return {(file_id, column_id): value for file_id, column_id, value in rows}


def row_count(con: Connection, lake: Lake, table: CatalogTable) -> tuple[int, bool]:
    """The number of rows of a table; and whether all are in data files and none is deleted."""
    rows = sum(file.record_count for file in files(con, table) if file.kind == "data")
    ids = [table.table_id]
    changes = changed_rows(con, ids, inlined_names(ids).run(con), lake.snapshot_id)
    changed = changes.get(table.table_id)
    if changed is None:
        return rows, True
    return rows + changed.inlined - changed.deleted, not (changed.deleted or changed.inlined)
