"""The checks of data files whose deletes DuckLake itself applies wrongly.

Both cases are faults of DuckLake (docs/developers/ducklake.md): two writers may delete the same row
at the same time, and a file may be added twice.
"""

from polynya.ducklake.paths import table_location
from polynya.ducklake.queries.history import state_at
from polynya.virtual_files.position_deletes import deletes_at, repeated_positions

from ..queries.lake_checks import shared_files_at
from .advice import flush_statement
from .findings import ERROR, WARNING, WRONG_ROWS, Report, TableName, number_of
from .generator import OpenedTable
from .metadata_files import ALL_IDS

COPY_REMEDY = "copy the rows that you want into a new table (CREATE TABLE … AS …) and drop this one"


def flush_first_statement(table: OpenedTable) -> str:
    """The statement that merges two deletes of a row, with a warning against a rewrite."""
    return (
        f"{flush_statement(table)} -- first of all: ducklake_rewrite_data_files brings the "
        "deleted rows back, for all readers"
    )


def check_deletes(report: Report, name: TableName, table: OpenedTable) -> None:
    """Add an error about rows that are deleted twice, with the statement that repairs this."""
    history = table.history
    if not state_at(history.events, table.snapshot_id)["hidden"].files:
        return
    reader = table.files.table.context.object_reader
    repeated = [
        repeated_positions(deletes, history, reader)
        for deletes in deletes_at(table.con, history, table.snapshot_id, ALL_IDS)
        if len(deletes.stored) + bool(deletes.inlined) > 1
    ]
    if rows := sum(repeated):
        files = number_of(sum(number > 0 for number in repeated), "data file")
        report.add(
            ERROR,
            name,
            f"{number_of(rows, 'row')} of {files} with two deletes, by two writers at the same "
            "time: DuckLake counts too few rows and returns deleted ones (duckdb/ducklake#1215). "
            "The rows that Iceberg clients get are right",
            flush_first_statement(table),
            WRONG_ROWS,
        )


def check_shared_files(report: Report, name: TableName, table: OpenedTable) -> None:
    """Add a warning about files that were added twice."""
    history = table.history
    directory = table_location(history.lake, history.schema, history.table)
    groups = history.file_sums.groups
    number, first = shared_files_at(table.table_id, table.snapshot_id, directory, groups).run(
        table.con
    )
    if number:
        report.add(
            WARNING,
            name,
            f"{number_of(number, 'data file')} registered twice, such as {first}: the table has "
            "the rows twice, DuckLake deletes and updates them only once, and after "
            "ducklake_rewrite_data_files a cleanup removes the file while it is still needed",
            COPY_REMEDY,
        )
