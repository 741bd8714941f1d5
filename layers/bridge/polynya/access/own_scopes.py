"""Objects and directories in S3 that belong to one table alone, from the catalog's rows."""

from collections.abc import Mapping

from pg8000.native import Connection

from ..ducklake.paths import table_location
from ..ducklake.queries import named_objects
from ..ducklake.rows.objects import Lake, Schema, Table
from ..mapping.properties import data_path
from ..runtime.errors import Refused
from .table_scope import KEY, OtherTables, S3Scope, parent_directory

MAX_KEYS = 64
"""More do not fit into a policy, however short they are."""


def other_tables(
    con: Connection, lake: Lake, table: Table, virtual_location: str, staging: str | None
) -> OtherTables:
    """Where all other tables of the lake are, all virtual files, and all files of commits.

    Args:
        virtual_location: where the table's virtual files are.
        staging: the directory in which clients write metadata files; None: none write.
    """
    tables = named_objects.others(lake, table.table_id).run(con)
    files = named_objects.added_directories(tables.table_ids).run(con)
    if staging is not None:
        files.append(staging)
    return OtherTables(tables.directories, files, parent_directory(virtual_location))


def read_scopes(
    con: Connection, lake: Lake, schema: Schema, table: Table, other_locations: OtherTables
) -> set[S3Scope]:
    """Objects and directories that hold all data files of a table and none of other tables.

    Raises:
        Refused: there are none, or too many.
    """
    own = table_location(lake, schema, table)
    added = named_objects.own_directories(table.table_id, is_relative=False).run(con)
    if other_locations.absent_from(own):
        scopes = {S3Scope(own, True)}
    else:
        scopes = _in_shared_directory(con, own, table, other_locations)
    scopes |= _scopes(con, table.table_id, added, "", other_locations, is_relative=False)
    if not all(KEY.fullmatch(scope.location) for scope in scopes):
        raise Refused("no credentials for this table: it has files outside of S3")
    if any(other_locations.is_virtual(scope.location) for scope in scopes):
        raise Refused("no credentials for this table: it has files among the virtual ones")
    return scopes


def write_scopes(
    lake: Lake, schema: Schema, table: Table, staging: str, other_locations: OtherTables
) -> set[S3Scope]:
    """The two directories in which clients write the files of a table.

    Args:
        table: it may be one that does not exist yet (stage-create).
        staging: the directory in which clients write the metadata files of all tables.

    Raises:
        Refused: they are not the table's alone.
    """
    data = f"{data_path(table_location(lake, schema, table), table.table_uuid)}/"
    metadata = f"{staging}{table.table_uuid}/"
    # Tables may share a directory, in which each has its own `data`, without files of others.
    if not (other_locations.absent_below(data) and other_locations.absent_from(metadata)):
        raise Refused(
            "no credentials to write this table: the directories of its new files are not in S3, "
            "or are among the virtual files, or those of other tables"
        )
    return {S3Scope(data, True), S3Scope(metadata, True)}


def delete_scopes(
    lake: Lake, schema: Schema, table: Table, virtual_files: S3Scope, other_locations: OtherTables
) -> set[S3Scope]:
    """The directories below which DuckDB puts delete files, beside the data files of a table.

    A directory of several tables is left out: the uploads of other tables' clients could be
    replaced there. What clients have written is in the table's own part of it (`write_scopes`),
    and so are the delete files for that.

    Args:
        virtual_files: where uploads beside the table's virtual files arrive, of which one has the
            inlined rows.
    """
    own = table_location(lake, schema, table)
    return {virtual_files, *([S3Scope(own, True)] if other_locations.absent_from(own) else [])}


def _in_shared_directory(
    con: Connection, own: str, table: Table, other_locations: OtherTables
) -> set[S3Scope]:
    """The scopes of files below the table's directory, if that is not the table's alone."""
    within = named_objects.own_directories(table.table_id, is_relative=True).run(con)
    written = S3Scope(f"{data_path(own, table.table_uuid)}/", True)
    scopes = set()
    if other_locations.absent_below(written.location):
        # The files that clients of Iceberg have written.
        ours = {path for path in within if f"{own}{path}".startswith(written.location)}
        scopes = {written} if ours else set()
        within = {path: number for path, number in within.items() if path not in ours}
    return scopes | _scopes(con, table.table_id, within, own, other_locations, is_relative=True)


def _scopes(
    con: Connection,
    table_id: int,
    directories: Mapping[str, int],
    base: str,
    other_locations: OtherTables,
    *,
    is_relative: bool,
) -> set[S3Scope]:
    """The scopes of the files in these directories, whose values are numbers of files.

    Each file is a key as far as a policy has room for keys, and always where other tables have
    files too. The other directories are scopes themselves.
    """
    by_key = {path for path in directories if not other_locations.absent_from(base + path)}
    number = sum(directories[path] for path in by_key)
    if number > MAX_KEYS:
        raise Refused(
            f"no credentials for this table: {number:,} of its files are in directories that hold "
            "files of other tables too, and a session policy cannot name them all"
        )
    for path in sorted(directories.keys() - by_key, key=lambda path: (directories[path], path)):
        number += directories[path]
        if number > MAX_KEYS:
            break
        by_key.add(path)
    keys = named_objects.own_files(table_id, by_key, is_relative=is_relative).run(con)
    return {
        *(S3Scope(base + key, False) for key in keys),
        *(S3Scope(base + path, True) for path in directories if path not in by_key),
    }
