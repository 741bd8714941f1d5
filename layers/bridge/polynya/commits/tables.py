"""Operations on whole tables: drop, rename, register."""

from ..access.writable import check_may_write_table
from ..catalog import OpenTable
from ..ducklake import queries
from ..ducklake.changes import quoted
from ..ducklake.connection.statements import run_batched
from ..ducklake.paths import table_location, within
from ..ducklake.rows.named_objects import Schema
from ..ducklake.writes import inlined
from ..ducklake.writes.new_snapshot import NewSnapshot
from ..ducklake.writes.objects import table_names
from ..iceberg.commits.requests import RenameTableRequest
from ..namespaces import Namespace, dotted
from .catalog import CommitCatalog
from .names import check_name_is_free, destination_schema


def drop(catalog: CommitCatalog, namespace: Namespace, name: str) -> None:
    """Drop a table, as DROP TABLE does. No file is deleted: older snapshots need them.

    Raises:
        NoSuchTable: it does not exist.
    """

    def write(snapshot: NewSnapshot) -> None:
        if catalog.done_before(snapshot):
            return
        opened = catalog.catalog.find_table(snapshot.con, namespace, name)
        names = opened.schema.namespace, opened.table.table_name
        check_may_write_table(catalog.catalog.rights, *names)
        table_id = opened.table.table_id
        table_names.end(snapshot.con, snapshot.snapshot_id, table_id)
        snapshot.change_names()
        snapshot.change(f"dropped_table:{table_id}")
        catalog.record(snapshot, opened.table.table_uuid)
        snapshot.finish(catalog.principal)

    catalog.commit(write)


def rename(catalog: CommitCatalog, request: RenameTableRequest) -> None:
    """Rename a table, also into another namespace; its files stay where they are.

    Raises:
        NoSuchTable: it does not exist.
        NoSuchNamespace: the destination does not exist.
        AlreadyExists: a table or a view has the new name.
    """
    source, new_name = request.source, request.destination.name
    namespace = tuple(source.namespace)

    def write(snapshot: NewSnapshot) -> None:
        if catalog.done_before(snapshot):
            return
        opened = catalog.catalog.find_table(snapshot.con, namespace, source.name)
        lake, rights = opened.readable, catalog.catalog.rights
        names = opened.schema.namespace, opened.table.table_name
        check_may_write_table(rights, *names)
        schema = destination_schema(lake, request.destination.namespace)
        check_may_write_table(rights, schema.namespace, new_name)
        check_name_is_free(lake, schema, new_name, renamed=dotted(*names[0], names[1]))
        _rename(snapshot, opened, schema, new_name)
        catalog.record(snapshot, opened.table.table_uuid)
        snapshot.finish(catalog.principal)

    catalog.commit(write)


def _rename(snapshot: NewSnapshot, opened: OpenTable, schema: Schema, name: str) -> None:
    con, lake, table = snapshot.con, opened.readable.lake, opened.table
    path = table.path, table.path_is_relative
    if schema.schema_id != opened.schema.schema_id:
        path = within(table_location(lake, opened.schema, table), lake, schema)
    ids = (snapshot.snapshot_id, table.table_id, schema.schema_id)
    table_names.rename(con, *ids, name, path)
    snapshot.change_schema_of(table.table_id)
    # DuckLake's word for it.
    snapshot.change(f"created_table:{quoted(*schema.namespace, name)}")
    columns, known = run_batched(
        con,
        queries.columns_now(table.table_id),
        queries.inlined(lake, table.table_id, table.begin_snapshot),
    )
    if known.tables:
        newest = known.tables[-1].table_name
        inlined.add_table(con, snapshot.row, table.table_id, newest, columns, snapshot.layout)
