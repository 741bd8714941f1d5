"""The data files and delete files that a scan of one table reads, found without any manifest.

The files of inlined rows and of deletes are generated. `GeneratedFiles` is the protocol through
which a scan gets them. `ListedFiles` returns those that manifests list, for the delivery
`materialize`, where the
files of every listed snapshot are in the bucket: it builds the missing ones, because a client needs
their sizes. `PaddedFiles` names them before they are built, for `object-lambda`: their names
contain their sizes, and such a file is built when it is first read, and filled up to the size in
its name.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeVar

from ..ducklake import queries
from ..ducklake.connection.catalog_connection import Statement, run_batched
from ..ducklake.queries.history import state_at
from ..ducklake.queries.planned_files import (
    MOST_APART,
    Contradicted,
    Kept,
    KeyValues,
    read_contradicted,
    read_key_values,
)
from ..ducklake.rows.files import Condition, FilteredColumn, PartitionKey, PlannedFile
from ..ducklake.rows.files import DataFile as CatalogFile
from ..ducklake.rows.objects import no_changes
from ..iceberg import manifest
from ..iceberg.manifest import DataFile, FileContent
from ..iceberg.parquet.generated_files import deletes_size, padded, rows_size
from ..iceberg.types import Field
from ..mapping.manifests import fingerprint
from ..mapping.partitions import Partitions
from ..mapping.rows_files import ALL
from ..mapping.scan_tasks import may_hold
from ..mapping.schemas import Schemas
from ..runtime.errors import OutOfTime, Refused
from .adapted_data_files import AdaptedDataFiles
from .cached_files import CachedFiles, FileKind, Summary, rewritten
from .contexts import TableContext
from .documents import NameMappedFiles
from .inlined_rows import InlinedRows
from .manifests import RowsManifests
from .names import VERSION_3, Name
from .position_deletes import DeleteFiles, Deletes, deletes_at, deletes_of, listed_kind

Result = TypeVar("Result")

UNFINISHED = (
    "the partition values of the table are compared with the statistics of its files, once in each "
    "process, which takes longer than one request may take; repeat the request to continue"
)


class GeneratedFiles(Protocol):
    """Names generated files in Iceberg's words, with the sizes by which clients open them."""

    @property
    def uses_manifest_names(self) -> bool:
        """Whether manifests give the files the same names."""
        ...

    def rows(self, snapshot_id: int, condition: Condition) -> list[DataFile]:
        """The files of inlined rows at a snapshot that may hold a row of the scan.

        Raises:
            Refused: they cannot be built exactly.
        """
        ...

    def put_data_files(self, names: Sequence[Name]) -> None:
        """Make these data files, which are adapted for clients, unless that happens on reading.

        Raises: as `AdaptedDataFiles.copy`.
        """
        ...

    def deletes(self, deletes: Sequence[Deletes]) -> list[DataFile]:
        """The delete file of each data file, in order.

        Raises:
            Refused: one of them cannot be built exactly.
            ServiceUnavailable: to build them takes longer than one request may take; the next
                request continues.
        """
        ...


@dataclass(frozen=True, slots=True)
class ScanFiles:
    """The files of one table."""

    table: TableContext
    generated: GeneratedFiles

    @property
    def schemas(self) -> Schemas:
        """The schemas of the table."""
        return self.table.schemas

    @property
    def partitions(self) -> Partitions:
        """The partition specs of the table."""
        return self.table.partitions

    @property
    def has_hive_partitions(self) -> bool:
        """Whether the value of a column is in the path of some files, and not in the files."""
        return any(self.table.history.partitioning.constants.values())

    def inlined_rows_renamed(self, snapshot_id: int) -> bool:
        """Whether files of inlined rows at a snapshot have other names than in manifests.

        A client that removes such a file from the manifests would not find it there, and Spark's
        copy-on-write would add the rows that are left without removing the others.
        """
        state = state_at(self.table.history.events, snapshot_id)
        return bool(state["inlined"].rows) and not self.generated.uses_manifest_names

    def fingerprint(self, snapshot_id: int) -> str:
        """A text that identifies the data files of a snapshot: only the same files have the same
        text."""
        data = state_at(self.table.history.events, snapshot_id)["data"]
        mark = [VERSION_3] if self.table.shows_version_3 else []
        mark += map(repr, self.table.names.adaptations_at(snapshot_id))
        return fingerprint(self.table.location, data.files, data.hash, *mark)

    def have_deletes(self, snapshot_id: int) -> bool:
        """Whether rows of some data files are hidden at a snapshot."""
        state = state_at(self.table.history.events, snapshot_id)
        return bool(state["hidden"].files or state["partial"].files)

    def find(
        self,
        snapshot_id: int,
        span: tuple[int, int],
        condition: Condition,
        page_files: int,
        pages: int,
    ) -> list[PlannedFile]:
        """Data files that may hold a row of the scan. Arguments: as `queries.planned_files`."""
        history = self.table.history
        condition, uncertain = self._certain(condition)
        [rows] = run_batched(
            self.table.con,
            queries.planned_files(
                history.lake,
                history.table.table_id,
                snapshot_id,
                span,
                condition,
                page_files,
                pages,
                self._candidates(condition, uncertain),
                uncertain,
            ),
        )
        # Two rows of statistics give a file twice.
        return [*{row.file.data_file_id: row for row in rows}.values()]

    def _certain(self, condition: Condition) -> tuple[Condition, Kept]:
        """The condition with only certain partition values, and the files whose values are
        uncertain."""
        of_keys = {
            of: self._uncertain(of, key) for of, key in queries.tested_keys(condition).items()
        }
        too_many = {of for of, files in of_keys.items() if files is None}
        uncertain = {of: files for of, files in of_keys.items() if files}
        return queries.drop_keys(condition, too_many) if too_many else condition, uncertain

    def _uncertain(
        self, of: FilteredColumn | PartitionKey, key: PartitionKey
    ) -> tuple[int, ...] | None:
        """The files whose value of a partition key is not certain; None: they are too many.

        They are read once in each state of the catalog.
        """
        lake, table_id = self.table.history.lake, self.table.history.table.table_id
        states, con = self.table.context.states, self.table.con
        of_test = ("uncertain", lake.definitions, table_id, of)
        if isinstance(of, PartitionKey):
            elsewhere = queries.files_from_elsewhere(lake, table_id, key)
            return states.get_or_read(lake, of_test, lambda: elsewhere.run(con))
        contradicted: Contradicted | None = states.current(lake, of_test)
        if contradicted is None or contradicted.next_id is not None:
            earlier = states.earlier(lake, of_test)
            contradicted = read_contradicted(con, lake, table_id, of, earlier)
        states.keep(lake, of_test, contradicted)
        if contradicted.next_id is not None:
            raise OutOfTime(UNFINISHED)
        return contradicted.files

    def _candidates(self, condition: Condition, uncertain: Kept) -> list[int] | None:
        """All data files, of all snapshots, that may pass; None: they are not few.

        An index finds them by the values of one partition key. Files without a value, which always
        pass, are added.
        """
        keys = queries.tested_keys(condition)
        begins = [life.begin_snapshot for life in self.table.history.partitioning.groups.values()]
        if not keys or not begins or not self._once(queries.has_values_index):
            return None
        table_id = self.table.history.table.table_id
        for tested, key in keys.items():
            values = self._values(key)
            if values.values is None:
                continue
            of_values = queries.files_of_values(
                table_id, condition, tested, values.values, min(begins)
            )
            files = of_values.run(self.table.con)
            if files is None:
                continue
            without_value = self._files_without_value(key, values)
            if without_value is not None:
                return [*files, *without_value, *uncertain.get(tested, ())]
        return None

    def _values(self, key: PartitionKey) -> KeyValues:
        """The values of a partition key, which are read once in each state of the catalog."""
        states, lake = self.table.context.states, self.table.history.lake
        arguments = self.table.con, self.table.history.table.table_id, key
        of_key = ("values", lake.definitions, *arguments[1:])
        return states.get_or_read(
            lake, of_key, lambda: read_key_values(*arguments, states.earlier(lake, of_key))
        )

    def _files_without_value(self, key: PartitionKey, values: KeyValues) -> list[int] | None:
        """Files, of all snapshots, without a value of a partition key; None: they are many."""
        groups = self.table.history.file_sums.groups
        apart = groups.apart_from(key.partition_id)
        if apart > MOST_APART:
            return None
        # Mostly there is none, which equal sums prove; the join reads all files.
        if not apart and values.hash == groups.hash:
            return []
        return self._once(queries.files_without_value, self.table.history.table.table_id, key)

    def _once(self, statement: Callable[..., Statement[Result]], *arguments: Hashable) -> Result:
        """The result of a statement, which is sent once in each state of the catalog."""
        states, con = self.table.context.states, self.table.con
        lake, key = self.table.history.lake, (statement, *arguments)
        return states.get_or_read(lake, key, lambda: statement(*arguments).run(con))

    def data_files(
        self, snapshot_id: int, files: Iterable[CatalogFile]
    ) -> Iterator[manifest.DataFile]:
        """Data files in Iceberg's words, as of a snapshot.

        Raises:
            Refused: clients would read an added file differently.
        """
        has_row_ids, added_files = self.table.has_row_ids, NameMappedFiles(self.table)
        for file in files:
            added_files.check(file)
            location, size, _ = self.table.shown_file(file, snapshot_id)
            yield manifest.DataFile(
                FileContent.DATA,
                location,
                file.record_count,
                size,
                first_row_id=file.row_id_start if has_row_ids else None,
            )

    def put_data_files(self, snapshot_id: int, files: Iterable[CatalogFile]) -> None:
        """Make what clients get of these data files. Raises: as `AdaptedDataFiles.copy`."""
        names = (self.table.names.data_file(file, snapshot_id) for file in files)
        self.generated.put_data_files([name for name in names if name is not None])

    def rows_files(self, snapshot_id: int, condition: Condition) -> list[manifest.DataFile]:
        """The files of inlined rows at a snapshot. Raises: as `GeneratedFiles.rows`."""
        return self.generated.rows(snapshot_id, condition)

    def delete_files(
        self, snapshot_id: int, files: Sequence[CatalogFile]
    ) -> dict[str, manifest.DataFile]:
        """The delete file of each of these data files that has one, by the data file's location.

        Raises: as `GeneratedFiles.deletes`.
        """
        if not self.have_deletes(snapshot_id):
            return {}
        deletes = deletes_of(self.table.con, self.table.history, snapshot_id, files)
        shown = (self.table.shown_file(d.data_file, snapshot_id) for d in deletes)
        locations = [file.location for file in shown]
        return dict(zip(locations, self.generated.deletes(deletes), strict=True))


AT_ONCE = 50
"""Delete files that are built before the time is checked."""


@dataclass(frozen=True, slots=True)
class ListedFiles:
    """Names the files of one table; implements `GeneratedFiles`."""

    files: CachedFiles

    @property
    def uses_manifest_names(self) -> bool:
        """True."""
        return True

    def rows(self, snapshot_id: int, condition: Condition) -> list[DataFile]:
        """The files of inlined rows that may be selected: for each part and partition value."""
        table, manifests = self.files.table, self.files.files_of(RowsManifests)
        return [
            file
            for manifest in table.names.rows_manifests(table.history.window(snapshot_id))
            for file in manifests.rows_files(manifest)
            if may_hold(condition, manifest.spec, file.partition)
        ]

    def put_data_files(self, names: Sequence[Name]) -> None:
        """Copy those that are not in the bucket: a client may ask for a plan without loadTable."""
        self.files.files_of(AdaptedDataFiles).copy_missing(names)

    def deletes(self, deletes: Sequence[Deletes]) -> list[DataFile]:
        """The delete file of each data file."""
        files: list[DataFile] = []
        for start in range(0, len(deletes), AT_ONCE):
            batch = deletes[start : start + AT_ONCE]
            names = [*map(self.files.files_of(listed_kind(self.files.table)).name, batch)]
            summaries = self.files.summaries(names)
            files += map(self._delete_file, batch, names, summaries)
            self.files.check_time("delete files", len(files), len(deletes))
        return files

    def _delete_file(self, deletes: Deletes, name: Name, summary: Summary) -> DataFile:
        positions, size = summary["record_count"], summary["file_size_in_bytes"]
        vector_size = summary.get("content_size_in_bytes")
        return _delete_file(self.files.table, deletes, name, positions, size, vector_size)


def _delete_file(
    table: TableContext,
    deletes: Deletes,
    name: Name,
    positions: int,
    size: int,
    vector_size: int | None = None,
) -> DataFile:
    """The delete file of a data file in Iceberg's words."""
    return DataFile(
        content=FileContent.POSITION_DELETES,
        file_path=table.virtual_location(name),
        record_count=positions,
        file_size_in_bytes=size,
        referenced_data_file=table.shown_file(deletes.data_file, deletes.snapshot_id).location,
        vector_size=vector_size,
    )


class Sized(NamedTuple):
    """The content of a file of inlined rows."""

    partition: tuple[Any, ...] | None
    record_count: int
    text_bytes: int


class PaddedRows(FileKind):
    """Files of inlined rows that a plan names before they are built."""

    kind = "padded-rows"

    def build(self, name: Name) -> bytes:
        """The file of this name, filled up to its size. Raises: as `FileKind.build`."""
        _, part, number, snapshot_id = name.numbers
        if all(name != rows_name for rows_name, _ in self.names(snapshot_id)):
            raise rewritten()
        return _padded(name, self.files.files_of(InlinedRows).body(part, number, snapshot_id))

    def names(self, snapshot_id: int) -> Iterator[tuple[Name, Sized]]:
        """The names of the files at a snapshot, and the content of each."""
        state = state_at(self.table.history.events, snapshot_id)
        if not state["inlined"].rows:
            return
        written_at = self.table.names.rows_files.changed_at(snapshot_id)
        manifest, *_ = self.table.names.rows_manifests(no_changes(written_at))
        fields = self.table.schemas.schema_at(written_at).fields
        written = self.table.written(fields)
        for number, group in self._groups(written_at, fields, state["inlined"].rows):
            size = rows_size(written, group.record_count, group.text_bytes)
            name = self.table.names.all_rows(manifest.name, number)
            yield _add_size(self, name, size), group

    def _groups(
        self, written_at: int, fields: tuple[Field, ...], rows: int
    ) -> Iterable[tuple[int, Sized]]:
        """The content of each file; without partitions the rows are not read."""
        # The texts are those of hidden columns too, and their length is in the size.
        if self.table.partitions.rows_spec(fields).fields or self.table.hidden_ids:
            return [
                (number, Sized(group.partition, group.record_count, group.text_bytes))
                for number, group in self.files.files_of(InlinedRows)
                .groups(ALL, written_at)
                .items()
            ]
        text_bytes = queries.inlined_text_bytes(self.table.history.inlined.tables, written_at)
        return [(0, Sized(None, rows, text_bytes.run(self.table.con)))]


class PaddedDeletes(FileKind):
    """Delete files that a plan names before they are built."""

    kind = "padded-deletes"

    def build(self, name: Name) -> bytes:
        """The file of this name, filled up to its size. Raises: as `FileKind.build`."""
        _, data_file_id, snapshot_id = name.numbers
        span = (data_file_id, data_file_id)
        for deletes in deletes_at(self.table.con, self.table.history, snapshot_id, span):
            if name == self.name(deletes):
                return _padded(name, self.files.files_of(DeleteFiles).body(deletes))
        raise rewritten()

    def name(self, deletes: Deletes) -> Name:
        """The name of the delete file of a data file."""
        data_file = self.table.shown_file(deletes.data_file, deletes.snapshot_id)
        built = deletes_size(data_file.location, deletes.most_positions)
        # A stored delete file may be served as a copy, which has its size.
        copied = max((file.file_size_bytes for file in deletes.stored), default=0)
        return _add_size(self, self.files.files_of(DeleteFiles).name(deletes), max(built, copied))


def _add_size(kind: FileKind, name: Name, size: int) -> Name:
    return replace(name, kind=kind.kind, numbers=(size, *name.numbers))


def _padded(name: Name, body: bytes) -> bytes:
    """The bytes of a padded file from those without padding.

    Raises:
        Refused: they do not fit.
    """
    try:
        return padded(body, name.numbers[0])
    except ValueError as error:
        raise Refused(
            f"a generated file does not fit into the size that was planned: {error}"
        ) from None


@dataclass(frozen=True, slots=True)
class PaddedFiles:
    """Names the files of one table; implements `GeneratedFiles`."""

    files: CachedFiles

    @property
    def uses_manifest_names(self) -> bool:
        """False."""
        return False

    def rows(self, snapshot_id: int, condition: Condition) -> list[DataFile]:
        """The files of inlined rows that may be selected: one for each partition value."""
        table = self.files.table
        written_at = table.names.rows_files.changed_at(snapshot_id)
        spec = table.partitions.rows_spec(table.schemas.schema_at(written_at).fields)
        return [
            DataFile(
                FileContent.DATA,
                table.virtual_location(name),
                group.record_count,
                name.numbers[0],
            )
            for name, group in self.files.files_of(PaddedRows).names(snapshot_id)
            if may_hold(condition, spec, group.partition)
        ]

    def put_data_files(self, names: Sequence[Name]) -> None:
        """Nothing: they are made when they are read."""

    def deletes(self, deletes: Sequence[Deletes]) -> list[DataFile]:
        """The delete file of each data file."""
        table, name_of = self.files.table, self.files.files_of(PaddedDeletes).name
        names = map(name_of, deletes)
        return [
            _delete_file(table, d, name, d.most_positions, name.numbers[0])
            for d, name in zip(deletes, names, strict=True)
        ]
