"""Compares the catalog's row count of each data file with the count in the file's own footer."""

import duckdb
from polynya.ducklake import queries
from polynya.ducklake.paths import file_location
from polynya.storage.s3 import is_s3

from ...clients.duckdb_connection import literal
from ..duckdb_access import connect_to_s3, redacted
from ..generator import OpenedTable
from ..table_report import ALL_IDS
from .report import ERROR, WRONG_ROWS, Report, name_of, number_of

NEWEST_FILES = 100  # data files of each table whose footers are read


class DataFileCheck:
    """Reads footers with a DuckDB of its own."""

    def __init__(self, report: Report, s3_endpoint: str | None, secrets: list[str]) -> None:
        """`secrets`: texts that no finding may hold."""
        self._report = report
        self._secrets = secrets
        self._con = connect_to_s3(s3_endpoint)

    def close(self) -> None:
        self._con.close()

    def run(self, opened: OpenedTable) -> None:
        """Add a finding for each file that is not in S3, cannot be read or has another count."""
        history = opened.history
        at = (history.lake, history.table.table_id, history.snapshot_id, *ALL_IDS)
        files = {
            file_location(history.lake, history.schema, history.table, file): file
            for file in queries.data_files_at(*at).run(opened.con)
            if file.end_snapshot is None
        }
        elsewhere = [path for path in files if not is_s3(path)]
        if elsewhere:
            number = number_of(len(elsewhere), "data file")
            message = f"{number} not in S3, such as {elsewhere[0]}"
            self._report.add(ERROR, name_of(opened), message)
        newest = [path for path in files if is_s3(path)][-NEWEST_FILES:]
        for path, rows in self._footer_counts(newest).items():
            file = files[path]
            name = f"ducklake_data_file {file.data_file_id} ({path})"
            if isinstance(rows, str):
                self._report.add(ERROR, name_of(opened), f"{name} cannot be read: {rows}")
            elif rows != file.record_count:
                message = f"{name} holds {rows:,} rows; the catalog says {file.record_count:,}"
                self._report.add(ERROR, name_of(opened), message, consequence=WRONG_ROWS)

    def _footer_counts(self, paths: list[str]) -> dict[str, int | str]:
        """How many rows each file has, or why it cannot be read."""
        try:
            return self._read(paths)
        except duckdb.Error:
            counts: dict[str, int | str] = {}
            for path in paths:
                try:
                    counts |= self._read([path])
                except duckdb.Error as error:
                    counts[path] = redacted(error, self._secrets)
            return counts

    def _read(self, paths: list[str]) -> dict[str, int | str]:
        if not paths:
            return {}
        names = ", ".join(map(literal, paths))
        sql = f"SELECT file_name, num_rows FROM parquet_file_metadata([{names}])"
        return dict(self._con.execute(sql).fetchall())
