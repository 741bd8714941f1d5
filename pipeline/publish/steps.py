"""Step 1: which tables to publish."""

from collections.abc import Iterable, Sequence

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
    schemas = select_schemas(con, lake, namespaces) if namespaces or not tables else []
    selected: dict[int, Selected] = {}
    for schema in schemas:
        for table in queries.tables_at(at, schema.schema_id).run(con):
            selected[table.table_id] = (schema, table)
    for wanted in tables:
        found = queries.table_at(at, wanted.namespace, wanted.table_name).run(con)
        if found is None:
            raise BadInput(f"no table {wanted}")
        selected[found[1].table_id] = found
    return list(selected.values())


def select_schemas(con: Connection, lake: Lake, namespaces: Sequence[str]) -> list[Schema]:
    """The schemas with these names, as people write them; without names, all schemas.

    Raises:
        BadInput: a namespace does not exist.
    """
    schemas = queries.schemas_at(lake.snapshot_id).run(con)
    if not namespaces:
        return schemas
    by_name = {schema.full_name: schema for schema in schemas}
    if not any(schema.parents for schema in schemas):  # no dot can be one between levels
        by_name |= {schema.schema_name: schema for schema in schemas}
    if missing := next((name for name in namespaces if name not in by_name), None):
        raise BadInput(f"no namespace {missing}")
    return [by_name[name] for name in namespaces]
