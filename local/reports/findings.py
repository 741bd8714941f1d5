"""What `polynya doctor` reports: findings about the lake, and a result for each table.

Rows are counted in three ways. `DuckLakeCounts` lets DuckDB read them; `CatalogCounts` adds up the
counts in DuckLake's catalog; `iceberg_rows` counts what an Iceberg client gets, from the manifests
and delete files that it reads. `DataFileCheck` compares the catalog's row count of each data file
with the count in the file's footer, and `check_sizes` finds tables with many small files, each of
which costs clients a request.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.metadata import version
from tempfile import NamedTemporaryFile
from typing import Any

import duckdb
from pg8000.native import Connection
from pg8000.native import identifier as postgres_identifier
from polynya.ducklake import queries
from polynya.ducklake.history import state_at
from polynya.ducklake.paths import file_location
from polynya.ducklake.rows.objects import Lake, Schema, Table
from polynya.iceberg.parquet.files import positions
from polynya.runtime.namespaces import dotted
from polynya.storage.objects import is_s3

from ..clients.duckdb import LAKE, literal
from ..clients.duckdb import identifier as duckdb_identifier
from ..lakes.address import for_libpq
from .client_faults import Fault
from .generator import OpenedTable, connect_to_s3, redacted, secrets_of
from .manifests import File, manifest_list
from .table_report import ALL_IDS

ERROR, WARNING, NOTE = "error", "warning", "note"

WRONG_ROWS, UNREADABLE, HIDDEN = "wrong rows", "unreadable", "hidden"
SLOW, INFORMATION = "slow", "information"
CONSEQUENCES = {
    WRONG_ROWS: "Some clients read wrong rows",
    UNREADABLE: "Not everything can be read",
    HIDDEN: "All rows are right, but not everything is shown",
    SLOW: "All is well",
    INFORMATION: "All is well",
}
"""What a finding means for readers, the worst first, and the verdict on a lake with such findings.

They decide the colour and the place of a finding. Its level decides the exit code of `doctor`: a
client's own fault is no error of the lake.
"""


@dataclass(frozen=True, slots=True)
class TableName:
    """The name of a table that a finding is about."""

    namespace: str
    """All levels, as people write them."""
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}.{dotted(self.name)}"


@dataclass(frozen=True, slots=True)
class Finding:
    """A fact that the user should know."""

    level: str
    """`error`: wrong, or not served. `warning`: may become so. `note`: for information."""
    about: str
    """The name of a table, or `catalog`, `lake`, `grants`, `index`, `settings`, `row counts`."""
    message: str
    remedy: str = ""
    """What to do about it: SQL, a setting or a page of the documentation."""
    consequence: str = INFORMATION
    """One of `CONSEQUENCES`."""
    table: TableName | None = None
    """The table that it is about; None: the lake."""


@dataclass(frozen=True, slots=True)
class RowCount:
    """The rows of a table at one snapshot, according to DuckLake and to Iceberg clients."""

    snapshot_id: int
    ducklake: int | None
    """None: they cannot be counted."""
    iceberg: int

    @property
    def is_same(self) -> bool:
        return self.ducklake == self.iceberg

    @property
    def is_known(self) -> bool:
        return self.ducklake is not None


@dataclass(slots=True)
class TableResult:
    """What the checks of one table found."""

    name: str
    """`namespace.table`."""
    table_id: int
    table: TableName
    status: str = "fails"
    """`served`, `refused`, or `fails`: it cannot be read, or Polynya has a fault."""
    reason: str = ""
    """Why it is not served."""
    hidden_columns: dict[str, str] = field(default_factory=dict)
    """The reason by dotted name."""
    default_columns: dict[str, str] = field(default_factory=dict)
    """Columns with a default that files lack, and what clients read there."""
    client_faults: list[Fault] = field(default_factory=list)
    """What clients are known to read wrongly, or not at all."""
    snapshots: int = 0
    """How many are listed."""
    left_out: dict[str, int] = field(default_factory=dict)
    """How many snapshots are not listed, by the reason."""
    counts: list[RowCount] = field(default_factory=list)
    """Past snapshots, then the newest."""


@dataclass(slots=True)
class Report:
    """The result of `polynya doctor`."""

    lake: dict[str, Any] = field(default_factory=dict)
    counted_by: str = ""
    """The program that counts DuckLake's rows."""
    tables: list[TableResult] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def add(
        self,
        level: str,
        about: str | TableName,
        message: str,
        remedy: str = "",
        consequence: str = "",
    ) -> None:
        """Add a finding, unless it was added before.

        Args:
            consequence: one of `CONSEQUENCES`; empty: an error means that something cannot be
                read, all else is information.
        """
        finding = Finding(
            level,
            str(about),
            message,
            remedy,
            consequence or (UNREADABLE if level == ERROR else INFORMATION),
            about if isinstance(about, TableName) else None,
        )
        if finding not in self.findings:  # a table is read again after a lost connection
            self.findings.append(finding)

    @property
    def is_well(self) -> bool:
        """Whether there is no error."""
        return all(finding.level != ERROR for finding in self.findings)

    @property
    def worst(self) -> str:
        """The worst consequence of the findings."""
        return worst(finding.consequence for finding in self.findings)

    @property
    def summary(self) -> str:
        """One line with the verdict and the numbers of tables, row counts and findings."""
        levels = Counter(finding.level for finding in self.findings)
        served = sum(table.status == "served" for table in self.tables)
        counts = [count for table in self.tables for count in table.counts]
        same = sum(count.is_same for count in counts)
        parts = []
        if self.tables:
            parts.append(f"{served} of {number_of(len(self.tables), 'table')} served")
            parts.append(f"{same} of {number_of(len(counts), 'row count')} the same")
            if unknown := sum(not count.is_known for count in counts):
                parts.append(f"{unknown} not known")
        parts += [number_of(levels[name], name) for name in (ERROR, WARNING, NOTE) if levels[name]]
        verdict = CONSEQUENCES[self.worst] if self.is_well else "Not all is well"
        return f"{verdict}: {', '.join(parts) or 'no findings'}."


def name_of(opened: OpenedTable) -> TableName:
    """The name of an opened table."""
    return TableName(opened.history.schema.full_name, opened.history.table.table_name)


def worst(consequences: Iterable[str]) -> str:
    """The worst of these consequences; INFORMATION if there are none."""
    return min(consequences, key=list(CONSEQUENCES).index, default=INFORMATION)


def number_of(number: int, noun: str) -> str:
    """A number with its noun: `1 table`, `2 tables`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


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
        names = map(duckdb_identifier, ("lake", *schema.namespace, table.table_name))
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


class CatalogCounts:
    """Counts from the catalog, for versions that this machine's DuckDB cannot attach."""

    name = "the counts in DuckLake's catalog"

    def rows(
        self, con: Connection, lake: Lake, schema: Schema, table: Table, snapshot_id: int
    ) -> int:
        """Rows of data files, minus the deleted ones, plus inlined rows.

        Raises:
            Uncountable: the catalog does not hold the number.
        """
        inlined = queries.inlined(lake, table.table_id, table.begin_snapshot).run(con)
        deletes = STORED_DELETES.format(partial_max=queries.fragment(lake, "delete_partial_max"))
        if inlined.delete_columns:
            file_id, position, begin = map(postgres_identifier, inlined.delete_columns)
            deletes += INLINED_DELETES.format(
                file_id=file_id,
                position=position,
                begin=begin,
                table=postgres_identifier(f"ducklake_inlined_delete_{table.table_id}"),
            )
        parameters = {"snapshot_id": snapshot_id, "table_id": table.table_id}
        partial_max = queries.fragment(lake, "data_partial_max")
        sql = DATA_ROWS.format(deletes=deletes, partial_max=partial_max)
        [[rows, deleted, is_mixed]] = con.run(sql, **parameters)
        if is_mixed:
            raise Uncountable("files hold rows of later snapshots, or several deletes on one file")
        for rows_table in inlined.tables:
            _, begin, end = map(postgres_identifier, rows_table.system_columns)
            name = postgres_identifier(rows_table.table_name)
            sql = INLINED_ROWS.format(table=name, begin=begin, end=end)
            rows += con.run(sql, snapshot_id=snapshot_id)[0][0]
        return int(rows - deleted)


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
        query = queries.data_files_at(
            history.lake, history.table.table_id, history.snapshot_id, *ALL_IDS
        )
        files = {
            file_location(history.lake, history.schema, history.table, file): file
            for file in query.run(opened.con)
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
