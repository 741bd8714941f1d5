"""The checks of one table: its status, what is hidden or left out, and whether row counts agree.

Rows are counted in three ways. `DuckLakeCounts` lets DuckDB read them; `CatalogCounts` adds up the
counts in DuckLake's catalog; `iceberg_rows` counts what an Iceberg client gets, from the manifests
and delete files that it reads. `DataFileCheck` compares the catalog's row counts of the newest data
files with those in the files' footers. `check_sizes` finds tables with many small files, each of
which costs clients a request.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from typing import TypeVar

from pg8000.native import Connection
from polynya.access.vended_credentials import CredentialVending
from polynya.ducklake import queries
from polynya.ducklake.paths import file_location
from polynya.ducklake.queries.history import state_at
from polynya.ducklake.queries.lifetimes import chunk_starts
from polynya.ducklake.rows.files import DataFile
from polynya.ducklake.rows.objects import WRITABLE_VERSIONS, Schema, Table
from polynya.iceberg.deletion_vector import PUFFIN, deletion_vector_positions
from polynya.iceberg.parquet.generated_files import positions
from polynya.iceberg.sandbox import sandbox
from polynya.iceberg.table_metadata import Reference
from polynya.mapping.claims import WITHOUT_LOSS
from polynya.runtime.errors import PolynyaError, Refused
from polynya.runtime.isolation import isolated
from polynya.storage.s3_locations import is_s3
from polynya.virtual_files.manifests import doubts
from polynya.virtual_files.names import DATA_FILE

from ..queries import repairs
from ..queries.lake_checks import option
from ..queries.lake_snapshots import changes_at
from ..queries.partition_texts import partition_keys
from ..repair import surplus_values
from .advice import merge_statement, new_files_statements, partitioning_statements, table_advice
from .client_faults import (
    FAILS,
    WRONG,
    clients_by_kind,
    gain_of,
    known_faults,
    others,
    own_clients,
)
from .delete_checks import check_deletes, check_shared_files
from .findings import (
    ERROR,
    HIDDEN,
    INFORMATION,
    NOTE,
    SLOW,
    UNREADABLE,
    WARNING,
    WRONG_ROWS,
    Report,
    RowCount,
    TableName,
    TableResult,
    number_of,
)
from .generator import LACKED_IN_PAST, NULL_READERS, Generator, OpenedTable
from .manifests import File, manifest_list
from .metadata_files import ALL_IDS
from .native_duckdb import redacted, secrets_of, table_at
from .native_reader import NativeReader, Unread
from .opened_table import lost_clients
from .table_facts import table_facts

PAST_DEFAULTS_REMEDY = (
    "COLUMN_DEFAULTS=refuse leaves these snapshots out; ducklake_expire_snapshots removes them"
)

VERSION_3_REMEDY = (
    "ask for the warehouse with +v3, such as lake+v3; or set FORMAT_VERSION_3=always-shown"
)

CLIENTS_REMEDY = (
    "the page of polynya serve says why and what to do, in the table's part How to read it; "
    "docs/clients/ lists all faults of clients"
)
VENDING_REMEDY = "docs/security.md says what can be vended"
CLIENTS_SAID = {WRONG: "some rows are wrong in", FAILS: "it cannot be read in full by"}

T = TypeVar("T")


def name_of(table: OpenedTable) -> TableName:
    """The name of an opened table."""
    return TableName(table.history.schema.full_name, table.history.table.table_name)


class DuckLakeCounts:
    """Counts with DuckDB and its extension ducklake."""

    name = f"DuckDB {version('duckdb')} with its extension ducklake"
    uncounted = ERROR
    """The level of a finding about rows that cannot be counted."""

    def __init__(self, reader: NativeReader) -> None:
        """Attach the lake. Raises: Unread."""
        self._reader = reader
        reader.attach()

    def rows(self, table: OpenedTable, snapshot_id: int) -> int:
        """The number of rows that DuckDB reads. Raises: Unread."""
        return self._reader.rows(self._source(table, snapshot_id))

    def _source(self, table: OpenedTable, snapshot_id: int) -> str:
        """The table by the name that it had at the snapshot, by which DuckDB finds it."""
        for schema in queries.schemas_at(snapshot_id).run(table.con):
            for row in queries.tables_at(snapshot_id, schema.schema_id).run(table.con):
                if row.table_id == table.table_id:
                    return table_at(schema.namespace, row.table_name, snapshot_id)
        raise Unread("the table did not exist")


class CatalogCounts:
    """Counts from the catalog, for versions that this machine's DuckDB cannot attach."""

    name = "the counts in DuckLake's catalog"
    uncounted = NOTE

    def rows(self, table: OpenedTable, snapshot_id: int) -> int:
        """Rows of data files, minus the deleted ones, plus inlined rows.

        Raises:
            Unread: the catalog does not have the number, and files cannot be read quickly for it.
        """
        rows = table.counts(snapshot_id).rows
        if rows is None:
            raise Unread("files hold rows of later snapshots, or several deletes on one file")
        return rows


NEWEST_FILES = 100  # data files of each table whose footers are read


class DataFileCheck:
    """Compares what the catalog says of data files with their footers."""

    def __init__(self, report: Report, reader: NativeReader) -> None:
        self._report, self._reader = report, reader

    def run(self, table: OpenedTable, *, every_file: bool) -> None:
        """Add findings about live files that are not in S3, cannot be read or have another count.

        Only the footers of the newest `NEWEST_FILES` are read.

        Args:
            every_file: False: if there are very many files, only the newest must be in S3.
        """
        history, name = table.history, name_of(table)
        first, last = ALL_IDS
        ids = (first if every_file else _first_looked_at(table), last)
        query = queries.data_files_at(table.lake, table.table_id, table.snapshot_id, *ids)
        files = {
            file_location(history.lake, history.schema, history.table, file): file
            for file in query.run(table.con)
            if file.end_snapshot is None
        }
        elsewhere = [path for path in files if not is_s3(path)]
        if elsewhere:
            number = number_of(len(elsewhere), "data file")
            message = f"{number} not in S3, such as {elsewhere[0]}"
            self._report.add(ERROR, name, message)
        newest = [path for path in files if is_s3(path)][-NEWEST_FILES:]
        for path, rows in self._footer_counts(newest).items():
            file = files[path]
            about = f"ducklake_data_file {file.data_file_id} ({path})"
            if isinstance(rows, str):
                self._report.add(ERROR, name, f"{about} cannot be read: {rows}")
            elif rows != file.record_count:
                message = f"{about} holds {rows:,} rows; the catalog says {file.record_count:,}"
                self._report.add(ERROR, name, message, consequence=WRONG_ROWS)

    def programs(self, paths: Iterable[str]) -> list[str]:
        """The programs that wrote these files, as their footers say; none if one cannot be read.

        Like `run`, it reads no file outside S3.
        """
        try:
            return self._reader.programs([*filter(is_s3, paths)])
        except Unread:  # `run` has named the file
            return []

    def _footer_counts(self, paths: list[str]) -> dict[str, int | str]:
        """How many rows each file has, or why it cannot be read."""
        try:
            return {**self._reader.footer_rows(paths)}
        except Unread as error:
            if len(paths) == 1:
                return {paths[0]: str(error)}
        # One file that cannot be read fails the statement for all of them.
        return {path: self._footer_counts([path])[path] for path in paths}


MANY_FILES = 100
SMALL_BYTES = 8 * 1024 * 1024


def check_sizes(report: Report, table: OpenedTable) -> None:
    """Add a note about many small files, with the statement that merges them."""
    history = table.history
    data = state_at(history.events, table.snapshot_id)["data"]
    if data.files < MANY_FILES or data.bytes / data.files >= SMALL_BYTES:
        return
    report.add(
        NOTE,
        name_of(table),
        f"{data.files:,} data files of {data.bytes / data.files / 1000:,.0f} kB on average: each "
        "costs every client that reads it a request",
        merge_statement(table),
        SLOW,
    )


MOST_CHUNKS = 100
"""The most chunks of data files of a table that are checked, which takes seconds: for millions of
files it would take minutes."""


def most_files(table: OpenedTable) -> int:
    """The most data files of a table that are checked, unless all are requested."""
    return MOST_CHUNKS * table.files.table.context.settings.chunk_files


def _data_files(table: OpenedTable, snapshot_id: int) -> int:
    return state_at(table.history.events, snapshot_id)["data"].files


def _first_looked_at(table: OpenedTable) -> int:
    """The first data_file_id that is checked: with very many files, that of the last chunk."""
    if _data_files(table, table.snapshot_id) <= most_files(table):
        return 0
    size = table.files.table.context.settings.chunk_files
    return chunk_starts(table.table_id, table.snapshot_id, size, size).run(table.con)[-1]


MOST_NAMED = 5
"""The most files that a finding names."""


def check_variants(report: Report, table: OpenedTable) -> None:
    """Add a note about live files with variants that clients misread, and what rewrites them."""
    history = table.history
    files = [file for file in table.files.table.variants.misread() if not file.file.end_snapshot]
    if not files:
        return
    ids = {column_id for file in files for column_id in file.column_ids}
    columns = {
        c.column_id: c.column_name
        for c in history.columns
        if c.end_snapshot is None and c.column_id in ids and c.parent_column is None
    }
    if not columns:
        return
    paths = [file.file.path for file in files[:MOST_NAMED]]
    more = "" if len(files) == len(paths) else f" and {len(files) - len(paths):,} more"
    report.add(
        NOTE,
        name_of(table),
        f"variants ({', '.join(columns.values())}) in {number_of(len(files), 'data file')} of "
        f"{files[0].program}, which other clients than DuckDB misread, are hidden until DuckDB 2.0 "
        f"or later writes them again: {', '.join(paths)}{more}",
        new_files_statements(table),
        HIDDEN,
    )


def check_claims(
    report: Report, table: OpenedTable, footers: DataFileCheck, *, every_file: bool
) -> None:
    """Add findings about claims of the catalog on data files that manifests do not repeat.

    Args:
        footers: tells which programs wrote the files.
        every_file: False: of tables with very many files, only a sample is checked.
    """
    history = table.history
    most = None
    number, compared = _data_files(table, table.snapshot_id), most_files(table)
    if not every_file and number > compared:
        message = (
            f"the claims of the catalog were checked for about {compared:,} of {number:,} data "
            "files; polynya doctor --every-file checks them for all"
        )
        report.add(NOTE, name_of(table), message)
        most = MOST_CHUNKS
    columns = {c.column_id: c.column_name for c in history.columns if c.end_snapshot is None}
    ids: dict[tuple[int, str], list[int]] = {}
    for column_id, what, data_file_ids in doubts(table.files.table, table.snapshot_id, most):
        ids.setdefault((column_id, what), []).extend(data_file_ids)

    @cache
    def named_files(named: tuple[int, ...]) -> tuple[Sequence[DataFile], str]:
        # Many columns share a claim about the same files.
        files = queries.data_files_of(table.lake, table.table_id, [*named]).run(table.con)
        return files, _written_by(table, files, footers)

    for (column_id, what), of_claim in ids.items():
        named = tuple(of_claim[:MOST_NAMED])
        files, written_by = named_files(named)
        paths = ", ".join(f"{file.data_file_id} ({file.path})" for file in files)
        more = "" if len(of_claim) == len(named) else f" and {len(of_claim) - len(named):,} more"
        column = columns.get(column_id) or f"the column {column_id}"
        is_usual = what in WITHOUT_LOSS
        report.add(
            NOTE if is_usual else WARNING,
            name_of(table),
            f"the catalog claims {what.format(column=column)}; clients get these files without the "
            f"claim{'' if is_usual else ', and DuckDB itself may lose their rows in filters'}: "
            f"ducklake_data_file {paths}{more}{written_by}",
            new_files_statements(table),
            SLOW if is_usual else HIDDEN,
        )


def _written_by(table: OpenedTable, files: Sequence[DataFile], footers: DataFileCheck) -> str:
    """Words about the programs that wrote some files and who committed them, as far as known."""
    history = table.history
    programs = footers.programs(
        file_location(history.lake, history.schema, history.table, file) for file in files
    )
    changes = changes_at(table.lake, sorted({file.begin_snapshot for file in files}))
    authors = sorted({change.author for change in changes.run(table.con) if change.author})
    written = f"; written by {', '.join(programs)}" if programs else ""
    return written + (f"; committed by {', '.join(authors)}" if authors else "")


def check_partitionings(report: Report, table: OpenedTable) -> None:
    """Add warnings about several partitionings at once, and about files of a missing one."""
    live, strays = repairs.partitionings(table.table_id).run(table.con)
    if live > 1:
        report.add(
            WARNING,
            name_of(table),
            f"{live} partitionings at once: clients get the newest, and DuckLake may write files "
            "by another one",
            partitioning_statements(table),
        )
    if strays:
        report.add(
            WARNING,
            name_of(table),
            f"{number_of(strays, 'data file')} of a partitioning that ducklake_partition_info does "
            "not have: clients get them as unpartitioned",
            new_files_statements(table),
            SLOW,
        )


def drop_statements(references: Mapping[str, Reference]) -> str:
    """The statement that drops tags and branches whose snapshots are not listed."""
    dropped = "".join(f".remove_{of.type}({name!r})" for name, of in references.items())
    return (
        f"table.manage_snapshots(){dropped}.commit() in PyIceberg drops them; SNAPSHOT_LIMIT lists "
        "more snapshots"
    )


NO_EXPIRY_REMEDY = "CALL ducklake_set_option('lake', 'expire_older_than', '');"


def check_defaults(report: Report, table: OpenedTable) -> None:
    """Add findings about what clients read where files lack a column with a default."""
    own = own_clients(table.generator.config.files.clients)
    is_own = any(name in NULL_READERS for name in own)
    level, consequence = (WARNING, WRONG_ROWS) if is_own else (NOTE, INFORMATION)
    for column, reason in table.default_columns.items():
        message = f"the column {column} has a default: {reason}"
        if reason.startswith(LACKED_IN_PAST):
            report.add(NOTE, name_of(table), message, PAST_DEFAULTS_REMEDY, consequence)
        else:
            message += "; with COLUMN_DEFAULTS=refuse the table is refused instead"
            report.add(level, name_of(table), message, new_files_statements(table), consequence)


def check_references(report: Report, table: OpenedTable) -> None:
    """Add warnings about tags and branches whose snapshots have expired, or are going to."""
    metadata = table.metadata
    listed = {snapshot.snapshot_id for snapshot in (*metadata.snapshots, *metadata.staged)}
    references = sorted(metadata.references.items())
    gone = {name: of for name, of in references if of.snapshot_id not in listed}
    if gone:
        report.add(
            WARNING,
            name_of(table),
            f"the {_kinds(gone)} {', '.join(gone)} are not shown: their snapshots have expired, or "
            "are older than those that are listed; a branch ends with the snapshot where it began",
            drop_statements(gone),
            HIDDEN,
        )
    age = option("expire_older_than").run(table.con)
    remaining = {name: of for name, of in references if of.snapshot_id in listed}
    if age and remaining:
        report.add(
            WARNING,
            name_of(table),
            f"the {_kinds(remaining)} {', '.join(remaining)} end when ducklake_expire_snapshots or "
            f"CHECKPOINT removes their snapshots, which it does after {age}",
            NO_EXPIRY_REMEDY,
        )


def _kinds(references: Mapping[str, Reference]) -> str:
    is_tag = [of.type == "tag" for of in references.values()]
    return "tags" if all(is_tag) else "tags or branches"


REPAIR = "polynya writes --repair ADDRESS, with the address of this lake"
REPAIR_FIRST = f"before a flush and a change of the columns: {REPAIR}"
SCATTERED_REMEDY = (
    "merge with DuckDB 2.0, or let an Iceberg client rewrite the files (Spark: CALL "
    "system.rewrite_data_files with rewrite-all), with write.object-storage.enabled=false"
)


def check_repairs(report: Report, table: OpenedTable) -> None:
    """Add warnings about what native DuckLake misreads or cannot merge, with the repair."""
    if table.lake.version not in WRITABLE_VERSIONS:
        return  # no client has written to it, and it may lack the tables
    if files := sum(surplus_values(table.con, table.table_id).values()):
        report.add(
            WARNING,
            name_of(table),
            f"{number_of(files, 'data file')} with one partition value more than the partitioning "
            "has keys: DuckLake 1.1 cannot merge or rewrite them (written by an earlier Polynya)",
            REPAIR,
        )
    if scattered := 0 if table.lake.layout.is_1_1 else _scattered_groups(table):
        report.add(
            WARNING,
            name_of(table),
            f"files of {number_of(scattered, 'partition')} are in several directories: DuckLake "
            "1.0 ends a merge of this table with an internal error (Files have different hive "
            "partition path)",
            SCATTERED_REMEDY,
        )
    if names := repairs.unversioned_inlined_tables(table.table_id).run(table.con):
        report.add(
            WARNING,
            name_of(table),
            f"DuckLake does not know which columns its inlined rows in {', '.join(names)} have: "
            "after a change of the columns it reads NULL in place of their values, and a flush "
            "makes that permanent",
            REPAIR_FIRST,
            WRONG_ROWS,
        )


def _scattered_groups(table: OpenedTable) -> int:
    keys = partition_keys(table.table_id).run(table.con)
    return repairs.scattered_groups(table.table_id, keys).run(table.con)


def iceberg_rows(table: OpenedTable, manifest_list_location: str) -> int:
    """The number of live rows of a snapshot, read as the Iceberg specification says."""
    files = list(manifest_list(table, manifest_list_location, with_values=False).files())
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
        # Specification: a delete file does not apply to data files that are newer.
        if delete.sequence_number >= file.sequence_number
        for position in _positions(table.body(delete.path))
    }
    rows = file.rows
    name = table.virtual_name(file.path)
    if name is not None and name.kind != DATA_FILE:  # inlined rows: counted in the generated file
        rows = _row_count(table.body(file.path))
    return rows - sum(position < rows for position in deleted)


def _positions(delete_file: bytes) -> Sequence[int]:
    is_puffin = delete_file.startswith(PUFFIN)
    return deletion_vector_positions(delete_file) if is_puffin else positions(delete_file)


@isolated
def _row_count(parquet: bytes) -> int:
    """The number of rows of a Parquet file, by its footer."""
    with sandbox(reads_file=True) as (con, path):
        path.write_bytes(parquet)
        sql = "SELECT num_rows FROM parquet_file_metadata(?)"
        [(rows,)] = con.execute(sql, [str(path)]).fetchall()
        return int(rows)


MOST_SNAPSHOTS = 20_000
"""How many snapshots of a table are read, newest first."""


class TableCheck:
    """Checks tables one by one, with one connection to the lake through DuckDB."""

    def __init__(
        self,
        generator: Generator,
        report: Report,
        database: str,
        past: int,
        *,
        every_file: bool = False,
    ) -> None:
        """Attach the lake in DuckDB; if that fails, rows are counted in the catalog.

        Args:
            past: how many past snapshots of each table are counted, besides the newest.
            every_file: False: of tables with very many files, only a sample is checked.
        """
        self._generator = generator
        self._report = report
        self._past = past
        self._every_file = every_file
        self._secrets = secrets_of(database)
        schema = generator.config.metadata_schema
        self._reader = NativeReader(database, schema, generator.aws)
        self._data_files = DataFileCheck(report, self._reader)
        self._ducklake: DuckLakeCounts | CatalogCounts = CatalogCounts()
        try:
            self._ducklake = DuckLakeCounts(self._reader)
        except Unread as error:
            report.add(NOTE, "row counts", f"rows are counted in the catalog only: {error}")
        report.counted_by = self._ducklake.name

    def close(self) -> None:
        self._reader.close()

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
            opened = self._generator.open_table(con, lake, schema, table, limit=MOST_SNAPSHOTS)
            result.snapshots = len(opened.metadata.snapshots)
            result.hidden_columns = opened.hidden_columns
            result.default_columns = opened.default_columns
            result.client_faults = known_faults(table_facts(opened))
            result.gained_columns = opened.gained_columns
            result.lost_clients = lost_clients(opened)
            result.advice = table_advice(opened)
            result.left_out = dict(Counter(opened.left_out_snapshots().values()))
            self._check_vending(opened)
            self._count(opened, result)
            self._data_files.run(opened, every_file=self._every_file)
            if any(advice.what == "merge" for advice in result.advice):
                check_sizes(self._report, opened)
            check_variants(self._report, opened)
            check_claims(self._report, opened, self._data_files, every_file=self._every_file)
            check_partitionings(self._report, opened)
            check_defaults(self._report, opened)
            check_references(self._report, opened)
            check_repairs(self._report, opened)
            check_deletes(self._report, name, opened)
            check_shared_files(self._report, name, opened)

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
        own = own_clients(self._generator.config.files.clients)
        by_kind = {kind: [name for name in clients[kind] if name in own] for kind in CLIENTS_SAID}
        if kinds := [kind for kind in CLIENTS_SAID if by_kind[kind]]:
            message = "; ".join(
                f"{CLIENTS_SAID[kind]} {', '.join(by_kind[kind])}" for kind in kinds
            )
            consequence = WRONG_ROWS if WRONG in kinds else UNREADABLE
            self._report.add(WARNING, result.table, message, CLIENTS_REMEDY, consequence)
        for sentence, names in others(clients, own).items():
            message = f"{sentence}: {', '.join(names)}"
            self._report.add(NOTE, result.table, message, CLIENTS_REMEDY)
        for column, reason in result.hidden_columns.items():
            message = f"the column {column} is hidden: {reason}"
            self._report.add(NOTE, result.table, message, consequence=HIDDEN)
        if result.gained_columns:
            message = gain_of(result.gained_columns, result.lost_clients)
            self._report.add(NOTE, result.table, message, VERSION_3_REMEDY, HIDDEN)
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
        # By DuckLake's id: Iceberg's may be a client's, which is random.
        listed = {snapshot.sequence_number: snapshot for snapshot in opened.metadata.snapshots}
        snapshots = [*listed.values()]
        uncounted: dict[str, list[int]] = {}
        too_large: list[int] = []
        for snapshot in [*_evenly_spaced(snapshots[:-1], self._past), *snapshots[-1:]]:
            snapshot_id = snapshot.sequence_number
            if not self._every_file and _data_files(opened, snapshot_id) > most_files(opened):
                too_large.append(snapshot_id)
                continue
            iceberg = iceberg_rows(opened, snapshot.manifest_list)
            try:
                ducklake = self._ducklake.rows(opened, snapshot_id)
            except Unread as error:
                ducklake = None
                uncounted.setdefault(str(error), []).append(snapshot_id)
            result.counts.append(RowCount(snapshot_id, ducklake, iceberg))
        if too_large:
            where, most = ", ".join(map(str, too_large)), most_files(opened)
            message = (
                f"rows are not counted at snapshots with more than {most:,} data files ({where}); "
                "polynya doctor --every-file counts them"
            )
            self._report.add(NOTE, result.table, message)
        for reason, snapshot_ids in uncounted.items():
            where = ", ".join(map(str, snapshot_ids))
            message = f"DuckLake's rows cannot be counted at {where}: {reason}"
            self._report.add(self._ducklake.uncounted, result.table, message)

    def _check_vending(self, opened: OpenedTable) -> None:
        """Add a note if the settings of this environment vend no credentials for the table."""
        history, virtual = opened.history, opened.metadata.location
        vending = CredentialVending(self._generator.config)
        scope = vending.scope(opened.con, history.lake, history.schema, history.table, virtual)
        if scope.reason:
            self._report.add(NOTE, name_of(opened), scope.reason, VENDING_REMEDY)


def _evenly_spaced(items: list[T], number: int) -> list[T]:
    """Up to `number` of the items, evenly spaced, beginning with the first."""
    if len(items) <= number:
        return items
    return [items[place * len(items) // number] for place in range(number)]
