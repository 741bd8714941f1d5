"""Whether a table has many small data files, each of which costs clients a request."""

from polynya.ducklake.history import state_at

from ...clients.duckdb_connection import literal
from ..generator import OpenedTable
from .report import NOTE, SLOW, Report, name_of

MANY_FILES = 100
SMALL_BYTES = 8 * 1024 * 1024


def check_sizes(report: Report, opened: OpenedTable) -> None:
    """Add a note about many small files, with the statement that merges them."""
    history = opened.history
    data = state_at(history.events, history.snapshot_id)["data"]
    if data.files < MANY_FILES or data.bytes / data.files >= SMALL_BYTES:
        return
    schema = history.schema
    # DuckLake's functions take the dots of a name for levels only where there are several.
    path = schema.full_name if schema.parents else schema.schema_name
    names = literal(history.table.table_name), literal(path)
    report.add(
        NOTE,
        name_of(opened),
        f"{data.files:,} data files of {data.bytes / data.files / 1000:,.0f} kB on average: each "
        "costs every client that reads it a request",
        f"CALL ducklake_merge_adjacent_files('lake', {names[0]}, schema => {names[1]});",
        SLOW,
    )
