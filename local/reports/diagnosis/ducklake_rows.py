"""How many rows a table has according to DuckLake: DuckDB reads them."""

from importlib.metadata import version

import duckdb
from polynya.ducklake.rows.named_objects import Schema, Table

from ...clients.duckdb_connection import LAKE, identifier, literal
from ...lakes.conninfo import for_libpq
from ..duckdb_access import connect_to_s3, redacted, secrets_of


class Uncountable(Exception):
    """The rows cannot be counted; the message says why."""


class DuckLakeCounts:
    """Counts with DuckDB and its extension ducklake, read-only."""

    name = f"DuckDB {version('duckdb')} with its extension ducklake"

    def __init__(self, database: str, metadata_schema: str, s3_endpoint: str | None) -> None:
        """Attach the lake.

        Raises:
            Uncountable: DuckDB cannot attach it. The message never holds the URL.
        """
        self._secrets = secrets_of(database)
        self._con = connect_to_s3(s3_endpoint, LAKE)
        source = literal(f"ducklake:postgres:{for_libpq(database)}")
        options = f"METADATA_SCHEMA {literal(metadata_schema)}, READ_ONLY"
        try:
            self._con.execute(f"ATTACH {source} AS lake ({options})")
        except duckdb.Error as error:
            self._con.close()
            raise Uncountable(redacted(error, self._secrets)) from None

    def rows(self, schema: Schema, table: Table, snapshot_id: int) -> int:
        """The number of rows that DuckDB reads.

        Raises:
            Uncountable: DuckDB cannot read the table; with its reason.
        """
        names = map(identifier, ("lake", *schema.namespace, table.table_name))
        # DuckDB answers a plain count(*) from the counts in the catalog, which are to be checked;
        # `rowid` would be hidden by a column of that name.
        count = "count(*) FILTER (WHERE random() >= 0)"
        sql = f"SELECT {count} FROM {'.'.join(names)} AT (VERSION => {snapshot_id})"
        try:
            [(number,)] = self._con.execute(sql).fetchall()
        except duckdb.Error as error:
            raise Uncountable(redacted(error, self._secrets)) from None
        return int(number)

    def close(self) -> None:
        self._con.close()
