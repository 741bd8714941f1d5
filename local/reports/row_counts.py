"""How many rows a table has: according to DuckLake, to the files themselves, and to Iceberg."""

import io
from collections.abc import Iterable
from importlib.metadata import version
from urllib.parse import parse_qs, urlsplit

import boto3
import duckdb
import pyarrow.parquet as pq
from pg8000.native import Connection, identifier
from polynya.ducklake import queries
from polynya.ducklake.connection.url import LOCAL
from polynya.ducklake.rows import Lake, Schema, Table
from polynya.iceberg.parquet.files import positions

from ..clients import duckdb_connection
from .generator import OpenedTable
from .manifests import File, manifest_list


class Unknown(Exception):
    """A count that cannot be had; the message says why."""


class DuckLake:
    """DuckDB with its extension ducklake: it reads the lake itself."""

    name = f"DuckDB {version('duckdb')} with its extension ducklake"

    def __init__(self, database: str, metadata_schema: str, s3_endpoint: str | None) -> None:
        """Attach the lake.

        Raises:
            Unknown: it cannot be. The message never holds the URL.
        """
        self._secrets = secrets_of(database)
        self._con = reader_of_files(s3_endpoint, duckdb_connection.LAKE)
        source = duckdb_connection.literal(f"ducklake:postgres:{for_libpq(database)}")
        schema = duckdb_connection.literal(metadata_schema)
        try:
            self._con.execute(f"ATTACH {source} AS lake (METADATA_SCHEMA {schema}, READ_ONLY)")
        except duckdb.Error as error:
            self._con.close()
            raise Unknown(said(error, self._secrets)) from None

    def rows(self, schema: Schema, table: Table, snapshot_id: int) -> int:
        """Rows that are really read.

        Raises:
            Unknown: with DuckDB's reason.
        """
        names = map(duckdb_connection.identifier, ("lake", schema.schema_name, table.table_name))
        # A plain count(*) is answered from the counts in the catalog, which are what is in doubt;
        # a column called rowid would hide the one that is always there.
        count = "count(*) FILTER (WHERE random() >= 0)"
        sql = f"SELECT {count} FROM {'.'.join(names)} AT (VERSION => {snapshot_id})"
        try:
            [(number,)] = self._con.execute(sql).fetchall()
        except duckdb.Error as error:
            raise Unknown(said(error, self._secrets)) from None
        return int(number)

    def close(self) -> None:
        self._con.close()


def reader_of_files(s3_endpoint: str | None, extensions: tuple[str, ...] = ("httpfs",)):
    """A DuckDB that reads S3 with this process's credentials, which DuckDB does not look for."""
    con = duckdb_connection.connect(extensions)
    session = boto3.Session()
    options = {"REGION": session.region_name or "us-east-1"}
    if found := session.get_credentials():
        keys = found.get_frozen_credentials()
        options |= {"KEY_ID": keys.access_key, "SECRET": keys.secret_key}
        options |= {"SESSION_TOKEN": keys.token} if keys.token else {}
    if s3_endpoint:
        scheme, _, host = s3_endpoint.rstrip("/").rpartition("://")
        options |= {"ENDPOINT": host, "URL_STYLE": "path"}
        options |= {"USE_SSL": "true" if scheme == "https" else "false"}
    words = [f"{name} {duckdb_connection.literal(text)}" for name, text in options.items()]
    con.execute(f"CREATE SECRET (TYPE s3, PROVIDER config, {', '.join(words)})")
    return con


def for_libpq(url: str) -> str:
    """The URL with the TLS that Polynya asks for where it says nothing of it."""
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    host = (query.get("host") or [parts.hostname or ""])[-1]
    if "sslmode" in query or host in LOCAL or host.startswith("/"):
        return url
    tls = "sslmode=verify-full" + ("" if "sslrootcert" in query else "&sslrootcert=system")
    return f"{url}{'&' if parts.query else '?'}{tls}"


def secrets_of(url: str) -> list[str]:
    """What of a URL no message may hold."""
    return [url, *filter(None, [urlsplit(url).password])]


def said(error: Exception, secrets: Iterable[str]) -> str:
    """DuckDB's message in one line, unless it shows how we connect to the database."""
    words = " ".join(str(error).split())
    if any(secret in words for secret in secrets) or "postgres:" in words:
        return "DuckDB cannot attach the lake"
    return words if len(words) <= 300 else f"{words[:300]}…"


DATA_ROWS = """
SELECT coalesce(sum(f.record_count), 0)::bigint, coalesce(sum(d.rows), 0)::bigint,
  coalesce(bool_or(({partial_max})::bigint > :snapshot_id OR d.partial OR d.files > 1), false)
FROM ducklake_data_file AS f LEFT JOIN (
  SELECT data_file_id, count(*) AS files, sum(rows) AS rows, bool_or(partial) AS partial
  FROM ({deletes}) AS one GROUP BY data_file_id) AS d USING (data_file_id)
WHERE f.table_id = :table_id AND :snapshot_id >= f.begin_snapshot
  AND (:snapshot_id < f.end_snapshot OR f.end_snapshot IS NULL)"""

STORED_DELETES = """
SELECT d.data_file_id, d.delete_count AS rows,
  coalesce(({partial_max})::bigint > :snapshot_id, false) AS partial
FROM ducklake_delete_file AS d JOIN ducklake_data_file AS f USING (data_file_id)
WHERE d.table_id = :table_id
  AND :snapshot_id >= d.begin_snapshot
  AND (:snapshot_id < d.end_snapshot OR d.end_snapshot IS NULL)"""

INLINED_DELETES = """
UNION ALL SELECT d.{file_id}, count(DISTINCT d.{position}), false FROM {table} AS d
WHERE d.{begin} <= :snapshot_id GROUP BY d.{file_id}"""

INLINED_ROWS = """
SELECT count(*) FROM {table} AS r
WHERE r.{begin} <= :snapshot_id AND (r.{end} > :snapshot_id OR r.{end} IS NULL)"""


class CatalogAlone:
    """The catalog's own counts, for versions that this machine's DuckDB cannot attach."""

    name = "the counts in DuckLake's catalog"

    def rows(
        self, con: Connection, lake: Lake, schema: Schema, table: Table, snapshot_id: int
    ) -> int:
        """Rows of data files, without the deleted ones, and inlined rows.

        Raises:
            Unknown: the catalog does not say it.
        """
        inlined = queries.inlined(lake, table.table_id, table.begin_snapshot).run(con)
        deletes = STORED_DELETES.format(partial_max=queries.fragment(lake, "delete_partial_max"))
        if inlined.delete_columns:
            file_id, position, begin = map(identifier, inlined.delete_columns)
            deletes += INLINED_DELETES.format(
                file_id=file_id,
                position=position,
                begin=begin,
                table=identifier(f"ducklake_inlined_delete_{table.table_id}"),
            )
        at = {"snapshot_id": snapshot_id, "table_id": table.table_id}
        partial_max = queries.fragment(lake, "data_partial_max")
        sql = DATA_ROWS.format(deletes=deletes, partial_max=partial_max)
        [[rows, deleted, is_mixed]] = con.run(sql, **at)
        if is_mixed:
            raise Unknown("files hold rows of later snapshots, or several deletes on one file")
        for rows_table in inlined.tables:
            _, begin, end = map(identifier, rows_table.system_columns)
            name = identifier(rows_table.table_name)
            sql = INLINED_ROWS.format(table=name, begin=begin, end=end)
            rows += con.run(sql, snapshot_id=snapshot_id)[0][0]
        return int(rows - deleted)


def iceberg_rows(table: OpenedTable, manifest_list_location: str) -> int:
    """Rows that an Iceberg client finds by this manifest list, as the specification has it read."""
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
    gone = {
        position
        for delete in deletes
        if delete.sequence_number >= file.sequence_number
        for position in positions(table.body(delete.path))
    }
    rows = file.rows
    if table.virtual_name(file.path):  # inlined rows: they are counted as they were written
        rows = pq.read_metadata(io.BytesIO(table.body(file.path))).num_rows
    return rows - sum(position < rows for position in gone)
