"""Step 1: which tables to publish."""

from collections.abc import Iterable

from pg8000.native import Connection
from polynya.ducklake import queries
from polynya.ducklake.rows.lake import Lake
from polynya.ducklake.rows.named_objects import Schema, Table

from ...common.errors import BadInput
from ...common.table_names import TableName

Selected = tuple[Schema, Table]


def select_tables(
    con: Connection, lake: Lake, tables: Iterable[TableName], namespaces: Iterable[str]
) -> list[Selected]:
    """The tables with these names and in these namespaces, each once; without both, all tables.

    Raises:
        BadInput: a table or a namespace does not exist.
    """
    at, tables, namespaces = lake.snapshot_id, list(tables), list(namespaces)
    schemas = {schema.schema_name: schema for schema in queries.schemas_at(at).run(con)}
    if not tables and not namespaces:
        namespaces = list(schemas)
    selected: dict[int, Selected] = {}
    for name in namespaces:
        if name not in schemas:
            raise BadInput(f"no namespace {name}")
        for table in queries.tables_at(at, schemas[name].schema_id).run(con):
            selected[table.table_id] = (schemas[name], table)
    for wanted in tables:
        found = queries.table_at(at, (wanted.schema_name,), wanted.table_name).run(con)
        if found is None:
            raise BadInput(f"no table {wanted}")
        selected[found[1].table_id] = found
    return list(selected.values())
