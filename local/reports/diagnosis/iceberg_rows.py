"""How many rows an Iceberg client gets, from the manifests and delete files that it reads."""

from tempfile import NamedTemporaryFile

import duckdb
from polynya.iceberg.parquet.files import positions

from ..generator import OpenedTable
from ..manifests import File, manifest_list


def iceberg_rows(table: OpenedTable, manifest_list_location: str) -> int:
    """The live rows of a snapshot, as the Iceberg specification has its manifest list read."""
    files = list(manifest_list(table, manifest_list_location).files())
    deletes = [file for file in files if file.deletes_of is not None and file.status != "deleted"]
    deleted: dict[str, list[File]] = {}
    for file in deletes:
        deleted.setdefault(file.deletes_of or "", []).append(file)
    return sum(
        _live_rows(table, file, deleted.get(file.path, []))
        for file in files
        if file.deletes_of is None and file.status != "deleted"
    )


def _live_rows(table: OpenedTable, file: File, deletes: list[File]) -> int:
    deleted = {
        position
        for delete in deletes
        if delete.sequence_number >= file.sequence_number
        for position in positions(table.body(delete.path))
    }
    rows = file.rows
    if table.virtual_name(file.path):  # inlined rows: counted in the generated file
        rows = _row_count(table.body(file.path))
    return rows - sum(position < rows for position in deleted)


def _row_count(parquet: bytes) -> int:
    """The number of rows of a Parquet file, by its footer."""
    with duckdb.connect() as con, NamedTemporaryFile(suffix=".parquet") as file:
        file.write(parquet)
        file.flush()
        sql = "SELECT num_rows FROM parquet_file_metadata(?)"
        [(rows,)] = con.execute(sql, [file.name]).fetchall()
        return int(rows)
