"""Rights of the database role and indexes of the catalog, from PostgreSQL's system tables.

Every role can read these, so a missing grant is found before it makes a query fail.
"""

from dataclasses import dataclass
from typing import NamedTuple

from pg8000.native import Connection, identifier
from polynya.ducklake.queries.planned_files import INDEXED_VALUES


class Index(NamedTuple):
    """An index that a large catalog needs."""

    table: str
    columns: str
    lack: str
    """What its absence costs, for a message."""
    instead: tuple[tuple[str, ...], ...] = ()
    """The first columns of other indexes that serve as well."""


RANGES = (
    "(table_id, data_file_id)",
    "has no index for ranges of files: every manifest costs a scan of it",
    (("data_file_id",), ("table_id", "data_file_id")),
)
OF_ONE_TABLE = (
    "(table_id, data_file_id)",
    "has no index for the files of one table: every table that is opened and every commit costs "
    "scans of the files of all tables",
    (("table_id",),),
)
NEEDED = (
    Index("ducklake_data_file", *OF_ONE_TABLE),
    Index("ducklake_delete_file", *OF_ONE_TABLE),
    Index(
        "ducklake_data_file",
        "USING hash (path)",
        "has no index for paths: every commit costs a scan of it",
        (("path",),),
    ),
    Index("ducklake_file_column_stats", *RANGES),
    Index("ducklake_file_column_statistics", *RANGES),
    Index("ducklake_file_partition_value", *RANGES),
    Index(
        "ducklake_file_partition_value",
        INDEXED_VALUES,
        "has no index for partition values: every scan that the server plans costs a scan of it",
    ),
)

ROLE = """
SELECT current_user::text, has_schema_privilege(n.oid, 'USAGE')
FROM pg_namespace AS n WHERE n.nspname = :schema"""

TABLES = r"""
SELECT c.relname::text, has_table_privilege(c.oid, 'SELECT'),
  has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE'), pg_relation_size(c.oid),
  EXISTS (SELECT FROM pg_subscription_rel AS s WHERE s.srrelid = c.oid)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = :schema AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
  AND c.relname LIKE 'ducklake\_%' ORDER BY 1"""

# The owners of existing tables will also create the next ones. A grant to PUBLIC has the grantee 0,
# which is not a role.
WRITERS = r"""
SELECT DISTINCT pg_get_userbyid(c.relowner)::text
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = :schema AND c.relkind IN ('r', 'p') AND c.relname LIKE 'ducklake\_%'
  AND NOT pg_has_role(c.relowner, 'USAGE')
  AND NOT EXISTS (SELECT 1 FROM pg_roles AS r
    WHERE r.rolname = 'pg_read_all_data' AND pg_has_role(r.oid, 'USAGE'))
  AND NOT EXISTS (SELECT 1 FROM pg_default_acl AS d, aclexplode(d.defaclacl) AS a
    WHERE d.defaclrole = c.relowner AND d.defaclobjtype = 'r' AND d.defaclnamespace IN (0, n.oid)
      AND a.privilege_type = 'SELECT'
      AND CASE WHEN a.grantee = 0 THEN true ELSE pg_has_role(a.grantee, 'USAGE') END)
ORDER BY 1"""

INDEXES = """
SELECT c.relname::text, array_agg(a.attname::text ORDER BY k.place),
  pg_get_indexdef(i.indexrelid)
FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid
JOIN pg_namespace AS n ON n.oid = c.relnamespace
CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(number, place)
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.number
WHERE n.nspname = :schema AND i.indisvalid AND i.indpred IS NULL
GROUP BY 1, i.indexrelid"""


@dataclass(frozen=True, slots=True)
class Rights:
    """What the role may do, and which indexes are missing."""

    role: str
    may_use_schema: bool
    tables: int
    """How many tables DuckLake has in the schema."""
    unreadable: list[str]
    """Tables that the role may not read."""
    writable: list[str]
    """Tables that the role may write to."""
    writers: list[str]
    """Owners of tables whose future tables the role may not read."""
    unindexed: dict[Index, int]
    """Indexes that are missing, and the sizes of their tables in bytes."""
    is_subscriber: bool
    """Logical replication writes the catalog."""
    unreplicated: list[str]
    """The tables that it does not write, although it writes others."""


def rights(con: Connection, schema: str) -> Rights | None:
    """The rights of the connection's role; None: there is no DuckLake in the schema."""
    role = con.run(ROLE, schema=schema)
    tables = con.run(TABLES, schema=schema)
    if not role or not tables:
        return None
    indexes = con.run(INDEXES, schema=schema)
    sizes = {name: size for name, _, _, size, _ in tables}
    unreplicated = [name for name, *_, is_subscribed in tables if not is_subscribed]
    is_subscriber = len(unreplicated) < len(tables)
    return Rights(
        role=role[0][0],
        may_use_schema=role[0][1],
        tables=len(tables),
        unreadable=[name for name, may_read, *_ in tables if not may_read],
        writable=[name for name, _, may_write, *_ in tables if may_write],
        writers=[name for (name,) in con.run(WRITERS, schema=schema)],
        unindexed={
            index: sizes[index.table]
            for index in NEEDED
            if index.table in sizes and not any(_serves(index, *row) for row in indexes)
        },
        is_subscriber=is_subscriber,
        unreplicated=unreplicated if is_subscriber else [],
    )


def _serves(index: Index, table: str, columns: list[str], definition: str) -> bool:
    """Whether an existing index serves as well as one of `NEEDED`."""
    if table != index.table:
        return False
    # The definition, because the collation of an index on values matters.
    return definition.endswith(index.columns) or any(
        tuple(columns[: len(first)]) == first for first in index.instead
    )


def grant(schema: str, role: str) -> str:
    """SQL that lets a role read all tables of a schema."""
    return (
        f"GRANT USAGE ON SCHEMA {identifier(schema)} TO {identifier(role)}; "
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {identifier(schema)} TO {identifier(role)};"
    )


def default_privileges(schema: str, role: str, writer: str) -> str:
    """SQL that lets a role read the tables that `writer` will create in a schema."""
    return (
        f"ALTER DEFAULT PRIVILEGES FOR ROLE {identifier(writer)} IN SCHEMA {identifier(schema)} "
        f"GRANT SELECT ON TABLES TO {identifier(role)};"
    )


def index_statement(schema: str, index: Index) -> str:
    """SQL that creates an index without blocking writers."""
    table = f"{identifier(schema)}.{identifier(index.table)}"
    return f"CREATE INDEX CONCURRENTLY ON {table} {index.columns};"


INLINING = """
SELECT coalesce(bool_or(scope IS NULL AND value = '0') AND bool_and(value = '0'), false)
FROM ducklake_metadata WHERE key = 'data_inlining_row_limit'"""


def never_inlines(con: Connection) -> bool:
    """Whether the options of the lake, its schemas and its tables keep all rows in files."""
    [[is_never]] = con.run(INLINING)
    return bool(is_never)
