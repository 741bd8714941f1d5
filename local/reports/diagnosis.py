"""`polynya doctor`: compares DuckLake's catalog with what Iceberg clients get.

The lake is checked first: the rights of the database role, the version, the data path. Then each
table: is it served, what is hidden or left out, do the row counts agree.
"""

from collections import Counter
from collections.abc import Iterator
from typing import TypeVar

import duckdb
from pg8000.native import Connection
from polynya.access.vended_credentials import CredentialVending
from polynya.ducklake import queries
from polynya.ducklake.rows.objects import Lake, Schema, Table
from polynya.mapping import tables
from polynya.mapping.schemas import WAY_OUT
from polynya.runtime.errors import PolynyaError, Refused
from polynya.storage.objects import is_s3

from ..lakes.opened import LocalLake
from .client_faults import FAILS, WRONG, clients_by_kind, known_faults
from .findings import (
    ERROR,
    HIDDEN,
    NOTE,
    SLOW,
    UNREADABLE,
    WARNING,
    WRONG_ROWS,
    CatalogCounts,
    DataFileCheck,
    DuckLakeCounts,
    Report,
    RowCount,
    TableName,
    TableResult,
    Uncountable,
    check_sizes,
    iceberg_rows,
    name_of,
    number_of,
)
from .generator import Generator, OpenedTable, redacted, secrets_of, tables_of
from .rights import Rights, create_index, default_privileges, grant, rights
from .table_facts import table_facts
from .table_report import LACKED_IN_PAST, default_columns, hidden_columns, left_out_snapshots

DEFAULTS_REMEDY = f"{WAY_OUT}; COLUMN_DEFAULTS=refuse refuses the table until then"

CLIENTS_REMEDY = (
    "the page of polynya serve says why and what to do, in the table's part How to read it; "
    "docs/clients/ lists all faults of clients"
)
CLIENTS_SAID = {WRONG: "some rows are wrong in", FAILS: "it cannot be read in full by"}

T = TypeVar("T")


class TableCheck:
    """Checks tables one by one, with one connection to the lake through DuckDB."""

    def __init__(
        self,
        generator: Generator,
        report: Report,
        database: str,
        s3_endpoint: str | None,
        past: int,
    ) -> None:
        """Attach the lake in DuckDB; if that fails, rows are counted in the catalog.

        Args:
            past: how many past snapshots of each table are counted, besides the newest.
        """
        self._generator = generator
        self._report = report
        self._past = past
        self._secrets = secrets_of(database)
        self._catalog = CatalogCounts()
        self._ducklake: DuckLakeCounts | None = None
        self._data_files = DataFileCheck(report, s3_endpoint, self._secrets)
        try:
            schema = generator.config.metadata_schema
            self._ducklake = DuckLakeCounts(database, schema, s3_endpoint)
        except (Uncountable, RuntimeError, duckdb.Error) as error:
            message = f"rows are counted in the catalog only: {redacted(error, self._secrets)}"
            report.add(NOTE, "row counts", message)
        report.counted_by = (self._ducklake or self._catalog).name

    def close(self) -> None:
        self._data_files.close()
        if self._ducklake is not None:
            self._ducklake.close()

    def run(self, schema: Schema, table: Table) -> None:
        """Add the result of one table and its findings, read in one transaction.

        A fault of Polynya is reported like an unreadable table, and the next tables are checked.
        """
        name = TableName(schema.full_name, table.table_name)
        result = TableResult(str(name), table.table_id, name)
        self._report.tables.append(result)

        def check(con: Connection) -> None:
            lake = queries.lake().run(con)
            result.counts.clear()
            opened = self._generator.open_table(con, lake, schema, table)
            result.snapshots = len(opened.metadata.snapshots)
            result.hidden_columns = hidden_columns(opened)
            result.default_columns = default_columns(opened)
            result.client_faults = known_faults(table_facts(opened))
            result.left_out = dict(Counter(left_out_snapshots(opened).values()))
            self._check_vending(opened)
            self._count(opened, result)
            self._data_files.run(opened)
            check_sizes(self._report, opened)

        try:
            self._generator.read(check)
            result.status = "served"
        except Refused as error:
            result.status, result.reason = "refused", str(error)
        except PolynyaError as error:
            result.reason = str(error)
        except Exception as error:
            result.reason = f"{type(error).__name__}: {redacted(error, self._secrets)}"
        self._add_findings(result)

    def _add_findings(self, result: TableResult) -> None:
        if result.reason:
            self._report.add(ERROR, result.table, result.reason)
        clients = clients_by_kind(result.client_faults)
        if kinds := [kind for kind in CLIENTS_SAID if clients[kind]]:
            said = "; ".join(f"{CLIENTS_SAID[kind]} {', '.join(clients[kind])}" for kind in kinds)
            consequence = WRONG_ROWS if WRONG in kinds else UNREADABLE
            self._report.add(WARNING, result.table, said, CLIENTS_REMEDY, consequence)
        for column, reason in result.hidden_columns.items():
            message = f"the column {column} is hidden: {reason}"
            self._report.add(NOTE, result.table, message, consequence=HIDDEN)
        for column, reason in result.default_columns.items():
            level = NOTE if reason.startswith(LACKED_IN_PAST) else WARNING
            message = f"the column {column} has a default: {reason}"
            self._report.add(level, result.table, message, DEFAULTS_REMEDY, WRONG_ROWS)
        for reason, number in result.left_out.items():
            message = f"{number_of(number, 'snapshot')} left out: {reason}"
            self._report.add(NOTE, result.table, message, consequence=HIDDEN)
        for count in result.counts:
            if count.is_known and not count.is_same:
                self._report.add(
                    ERROR,
                    result.table,
                    f"at snapshot {count.snapshot_id} DuckLake has {count.ducklake:,} rows, "
                    f"Iceberg clients get {count.iceberg:,}",
                    consequence=WRONG_ROWS,
                )

    def _count(self, opened: OpenedTable, result: TableResult) -> None:
        # By DuckLake's id; a commit of a client may be several Iceberg snapshots.
        listed = {snapshot.sequence_number: snapshot for snapshot in opened.metadata.snapshots}
        snapshots = [*listed.values()]
        uncounted: dict[str, list[int]] = {}
        for snapshot in [*_evenly_spaced(snapshots[:-1], self._past), *snapshots[-1:]]:
            snapshot_id = snapshot.sequence_number
            iceberg = iceberg_rows(opened, snapshot.manifest_list)
            try:
                ducklake = self._ducklake_rows(opened, snapshot_id)
            except Uncountable as error:
                ducklake = None
                uncounted.setdefault(str(error), []).append(snapshot_id)
            result.counts.append(RowCount(snapshot_id, ducklake, iceberg))
        for reason, snapshot_ids in uncounted.items():
            level = NOTE if self._ducklake is None else ERROR
            where = ", ".join(map(str, snapshot_ids))
            message = f"DuckLake's rows cannot be counted at {where}: {reason}"
            self._report.add(level, result.table, message)

    def _ducklake_rows(self, opened: OpenedTable, snapshot_id: int) -> int:
        con, lake = opened.con, opened.history.lake
        if self._ducklake is None:
            schema, table = opened.history.schema, opened.history.table
            return self._catalog.rows(con, lake, schema, table, snapshot_id)
        # DuckDB finds a table by the name that it had at the snapshot.
        for schema in queries.schemas_at(snapshot_id).run(con):
            for table in queries.tables_at(snapshot_id, schema.schema_id).run(con):
                if table.table_id == opened.history.table.table_id:
                    return self._ducklake.rows(schema, table, snapshot_id)
        raise Uncountable("the table did not exist")

    def _check_vending(self, opened: OpenedTable) -> None:
        """Add a note if the settings of this environment vend no credentials for the table."""
        history, virtual = opened.history, opened.metadata.location
        vending = CredentialVending(self._generator.config)
        scope = vending.scope(opened.con, history.lake, history.schema, history.table, virtual)
        if scope.reason:
            page = "docs/security.md says what can be vended"
            self._report.add(NOTE, name_of(opened), scope.reason, page)


def _evenly_spaced(items: list[T], number: int) -> list[T]:
    """Up to `number` of the items, evenly spaced, with the first."""
    if len(items) <= number:
        return items
    return [items[place * len(items) // number] for place in range(number)]


SMALL_STATISTICS = 16 * 1024 * 1024  # bytes, which a scan without an index reads quickly


def check_rights(report: Report, role_rights: Rights, schema: str) -> None:
    """Add findings about grants, default privileges and indexes that are missing."""
    role = role_rights.role
    if not role_rights.may_use_schema:
        message = f"the role {role} may not use the schema {schema}"
        report.add(ERROR, "grants", message, grant(schema, role))
    elif role_rights.unreadable:
        names = ", ".join(role_rights.unreadable)
        unreadable = _some(role_rights.unreadable, role_rights.tables)
        message = f"the role {role} may not read {unreadable}: {names}"
        report.add(ERROR, "grants", message, grant(schema, role))
    for writer in role_rights.writers:
        report.add(
            WARNING,
            "grants",
            f"the role {role} may not read tables of inlined rows that {writer} will create",
            default_privileges(schema, role, writer),
            UNREADABLE,
        )
    if role_rights.writable:
        writable = _some(role_rights.writable, role_rights.tables)
        message = f"the role {role} may write to {writable}: SELECT is enough"
        report.add(WARNING, "grants", message)
    for table, size in role_rights.unindexed.items():
        report.add(
            WARNING if size > SMALL_STATISTICS else NOTE,
            "index",
            f"{table} ({size / 1e6:,.1f} MB) has no index for ranges of files: every manifest "
            "costs a scan of it",
            create_index(schema, table),
            SLOW,
        )


def check_lake(report: Report, lake: Lake) -> None:
    """Add what the catalog says of itself, and findings if it is not served."""
    report.lake = {
        "version": lake.version,
        "encrypted": lake.encrypted,
        "snapshot_id": lake.snapshot_id,
        "data_path": lake.data_path,
        "served": True,
    }
    try:
        tables.check_lake(lake.version, lake.encrypted)
    except Refused as error:
        report.lake["served"] = False
        report.add(ERROR, "lake", str(error))
    if not is_s3(lake.data_path):
        report.add(
            ERROR,
            "settings",
            f"the data path {lake.data_path} is not in S3: Iceberg clients reach the files of a "
            "lake in S3 only",
        )


def _some(names: list[str], number: int) -> str:
    return f"{len(names)} of DuckLake's {number} tables"


def diagnose(generator: Generator, opened: LocalLake, past: int) -> Iterator[Report]:
    """Check the rights of the role, the lake, and each table.

    Gives the same report before each table and at the end, so that progress can be shown.

    Args:
        opened: the lake that the generator reads.
        past: how many past snapshots of each table are counted, besides the newest.

    Raises:
        PolynyaError: the rights of the role cannot be read from the database.
    """
    report = check_up(generator, opened)
    if not report.lake.get("served"):
        yield report
        return
    check = TableCheck(generator, report, opened.database, opened.s3_endpoint, past)
    try:
        lake = generator.read(queries.lake().run)
        for pair in generator.read(lambda con: tables_of(con, lake)):
            yield report
            check.run(*pair)
    except PolynyaError as error:
        report.add(ERROR, "catalog", str(error))
    finally:
        check.close()
    yield report


def diagnose_table(
    generator: Generator, opened: LocalLake, schema: Schema, table: Table, past: int
) -> Report:
    """Check one table; the arguments are those of `diagnose`."""
    report = Report()
    check = TableCheck(generator, report, opened.database, opened.s3_endpoint, past)
    try:
        check.run(schema, table)
    finally:
        check.close()
    return report


def check_up(generator: Generator, opened: LocalLake) -> Report:
    """Check the rights of the role and the lake, without its tables.

    Raises:
        PolynyaError: the rights of the role cannot be read from the database.
    """
    report = Report()
    schema = generator.config.metadata_schema
    role_rights = None if opened.is_mirror else generator.read(lambda con: rights(con, schema))
    if role_rights is not None:
        check_rights(report, role_rights, schema)
    try:
        lake = generator.read(queries.lake().run)
    except PolynyaError as error:
        report.add(ERROR, "catalog", str(error))
        return report
    check_lake(report, lake)
    return report
