"""The inlined rows of a table as Parquet files, and the rows that a commit names in them.

Clients name a row by its file and its position in it. DuckLake names inlined rows by their ids.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..ducklake import queries
from ..ducklake.faults import MAX_ID
from ..ducklake.rows.lifetimes import InlinedTable
from ..iceberg.parquet.generated_files import add_row_lineage, rows_bytes
from ..iceberg.parquet.new_footer import FooterChanges, change_footer
from ..iceberg.sandbox import Unreadable
from ..mapping.rows_files import ALL, NEW, OLDER, inlined_columns, inlined_partitions, inlined_rows
from ..runtime.errors import REMEDY, BadRequest, Refused
from .cached_files import CachedFiles, FileKind, Summary, rewritten
from .contexts import TableContext
from .names import Name
from .position_deletes import deleted_positions, deletes_at

MAX_PARTITIONS = 32
"""Files with a partition, in each part. Rows of more partitions are in one unpartitioned file."""

BEGIN_SNAPSHOTS: dict[int, Callable[[int], tuple[int, int]]] = {
    OLDER: lambda snapshot_id: (-MAX_ID, snapshot_id),
    NEW: lambda snapshot_id: (snapshot_id, MAX_ID),
    ALL: lambda _: (-MAX_ID, MAX_ID),
}
"""By part: the first snapshot at which its rows began, and the one after the last."""


class TablePart(NamedTuple):
    """Rows of one inlined table."""

    table: InlinedTable
    row_ids: list[int]
    begin_snapshots: list[int]
    rows: list[list[Any]]
    """The values as texts."""


@dataclass(frozen=True, slots=True)
class RowsGroup:
    """The inlined rows of one virtual file."""

    partition: tuple[Any, ...] | None
    """None: the file is unpartitioned."""
    parts: list[TablePart]
    """In the order of the file's rows."""

    @property
    def record_count(self) -> int:
        """The number of rows."""
        return sum(len(part.rows) for part in self.parts)

    @property
    def text_bytes(self) -> int:
        """The length of the values as texts."""
        rows = (row for part in self.parts for row in part.rows)
        return sum(_length(value) for row in rows for value in row)

    @property
    def row_ids(self) -> list[tuple[str, int]]:
        """For each row of the file, in order, the PostgreSQL table that it is from, and its id."""
        return [(part.table.table_name, row_id) for part in self.parts for row_id in part.row_ids]


def _summary(body: bytes) -> Summary:
    return {"file_size_in_bytes": len(body)}


class InlinedRows(FileKind):
    """The files of the inlined rows of one table; each part of the rows is read once."""

    kind = "rows"
    summary = staticmethod(_summary)

    def __init__(self, files: CachedFiles) -> None:
        super().__init__(files)
        self._read: dict[tuple[int, int], dict[int, RowsGroup]] = {}

    def build(self, name: Name) -> bytes:
        """The file of this name. Raises: as `body`, and `FileKind.build`."""
        names, (part, number, snapshot_id) = self.table.names, name.numbers
        if all(name != names.rows(file, number) for file in names.rows_files.files_at(snapshot_id)):
            raise rewritten()
        return self.body(part, number, snapshot_id)

    def groups(self, part: int, snapshot_id: int) -> dict[int, RowsGroup]:
        """The rows of a part, by the number in the name of their file: 0 is the unpartitioned one.

        Args:
            part: `OLDER`, `NEW` or `ALL`.
            snapshot_id: that of the manifest.

        Raises:
            Refused: an inlined table lacks a column.
        """
        key = (part, snapshot_id)
        if key not in self._read:
            # A requested name may have any number for the part.
            self._read[key] = self._groups(part, snapshot_id) if part in BEGIN_SNAPSHOTS else {}
        return self._read[key]

    def body(self, part: int, number: int, snapshot_id: int) -> bytes:
        """A Parquet file of inlined rows.

        Raises:
            NoSuchKey: there are no such rows.
            Refused: the rows do not have the types of their columns.
        """
        group = self.groups(part, snapshot_id).get(number)
        if group is None:
            raise rewritten()
        fields = self.table.schemas.schema_at(snapshot_id).fields
        columns = self.table.history.columns
        parts = [inlined_rows(part.table, columns, fields, part.rows) for part in group.parts]
        if self.table.has_row_ids:
            lineage = [(part.row_ids, part.begin_snapshots) for part in group.parts]
            parts = [*map(add_row_lineage, parts, lineage)]
        try:
            body = rows_bytes(parts, self.table.written(fields))
        except Unreadable as error:
            raise Refused(
                f"the table {self.table.history.full_name} is not served at snapshot "
                f"{snapshot_id}: its inlined rows cannot be read as its columns say "
                f"({error}){REMEDY}"
            ) from None
        changes = self.table.names.changes_at(snapshot_id)
        if not changes.rows_changes:
            return body
        has_logical_types = changes.logical_types > 0
        return change_footer(
            body,
            FooterChanges(
                without_statistics=changes.without_bounds, has_logical_types=has_logical_types
            ),
        )

    def _groups(self, part: int, snapshot_id: int) -> dict[int, RowsGroup]:
        by_partition: dict[tuple[Any, ...] | None, list[TablePart]] = defaultdict(list)
        table_parts = self._rows(part, snapshot_id)
        for table_part in table_parts:
            for partition, rows in self._partitioned(table_part, snapshot_id).items():
                by_partition[partition].append(rows)
        # A file for each partition value: clients skip files by it, and Daft drops a condition on a
        # partition column for files of another spec (Daft issue 7428), which would return rows of
        # other values.
        partitions = sorted((p for p in by_partition if p is not None), key=_nulls_first)
        if len(partitions) > MAX_PARTITIONS:
            return {0: RowsGroup(None, table_parts)}
        groups = {n: RowsGroup(p, by_partition[p]) for n, p in enumerate(partitions, 1)}
        return groups | ({0: RowsGroup(None, by_partition[None])} if None in by_partition else {})

    def _rows(self, part: int, snapshot_id: int) -> list[TablePart]:
        history = self.table.history
        fields = self.table.schemas.schema_at(snapshot_id).fields
        begin_range = BEGIN_SNAPSHOTS[part](snapshot_id)
        table_rows = queries.inlined_rows_at(history.inlined.tables, snapshot_id, *begin_range)
        parts = []
        for inlined in table_rows.run(self.table.con):
            names = inlined_columns(inlined.table, history.columns, fields)
            self._check_columns(inlined.table, names)
            rows = [[record[name] for name in names] for record in inlined.records]
            parts.append(TablePart(inlined.table, inlined.row_ids, inlined.begin_snapshots, rows))
        return parts

    def _check_columns(self, table: InlinedTable, names: Sequence[str]) -> None:
        missing = set(names) - set(table.user_columns)
        if missing:
            raise Refused(
                f"the table {self.table.history.full_name} is not served: its inlined rows in "
                f"{table.table_name} lack the columns {', '.join(sorted(missing))}{REMEDY}"
            )

    def _partitioned(
        self, part: TablePart, snapshot_id: int
    ) -> dict[tuple[Any, ...] | None, TablePart]:
        fields = self.table.schemas.schema_at(snapshot_id).fields
        spec = self.table.partitions.rows_spec(fields)
        if not spec.fields:
            return {None: part}
        columns = self.table.history.columns
        partitions = inlined_partitions(spec, part.table, columns, fields, part.rows)
        parts: dict[tuple[Any, ...] | None, TablePart] = {}
        rows = zip(partitions, part.row_ids, part.begin_snapshots, part.rows, strict=True)
        for partition, row_id, begun, row in rows:
            of_partition = parts.setdefault(partition, TablePart(part.table, [], [], []))
            of_partition.row_ids.append(row_id)
            of_partition.begin_snapshots.append(begun)
            of_partition.rows.append(row)
        return parts


def _length(value: str | bytes | None) -> int:
    if value is None:
        return 0
    return len(value if isinstance(value, bytes) else value.encode())


def _nulls_first(partition: tuple[Any, ...]) -> list[tuple[bool, Any]]:
    # None cannot be compared with values.
    return [(value is not None, value) for value in partition]


MOST_DELETED = 20_000_000
"""The most rows in the delete files that a commit reads; they are in memory at once."""

MOST_FILES_BETWEEN = 1000
"""The most other files that a query for the deletes of two data files reads between them."""


@dataclass(frozen=True, slots=True)
class LiveRows:
    """Finds the live rows of one table that a commit ends."""

    table: TableContext
    rows: InlinedRows

    def inlined(self, name: Name, snapshot_id: int) -> list[tuple[str, int]] | None:
        """For each row of a virtual file of inlined rows, in order, its PostgreSQL table and id.

        None: the table, as it is now, does not have the file.

        Args:
            snapshot_id: the newest listed snapshot, which names the files. A later change of
                columns is not listed, and would name them otherwise.
        """
        names = self.table.names
        part, number, written_at = name.numbers
        files = names.rows_files.files_at(snapshot_id)
        if not any(names.rows(file, number) == name for file in files):
            return None
        group = self.rows.groups(part, written_at).get(number)
        return None if group is None else group.row_ids

    def deleted(self, data_file_ids: Iterable[int]) -> dict[int, Sequence[int]]:
        """The deleted positions, ascending, by data file; files without deletes are absent.

        Raises:
            BadRequest: they are too many.
            Refused: a stored delete file is missing or damaged.
        """
        ids = set(data_file_ids)
        history = self.table.history
        by_file = {
            deletes.data_file.data_file_id: deletes
            for span in _spans(sorted(ids))
            for deletes in deletes_at(self.table.con, history, history.snapshot_id, span)
            if deletes.data_file.data_file_id in ids
        }
        stored = [file for deletes in by_file.values() for file in deletes.stored]
        if sum(file.delete_count for file in stored) > MOST_DELETED:
            raise BadRequest(
                f"more than {MOST_DELETED:,} rows of the data files are deleted already: CALL "
                f"ducklake_rewrite_data_files('…', '{history.table.table_name}') in DuckDB first"
            )
        return {
            id_: deleted_positions(deletes, history, self.table.context.object_reader)
            for id_, deletes in by_file.items()
        }


def _spans(ids: list[int]) -> Iterator[tuple[int, int]]:
    """Ranges that cover the ids, without large gaps."""
    start = 0
    for end in range(1, len(ids) + 1):
        if end == len(ids) or ids[end] - ids[end - 1] > MOST_FILES_BETWEEN:
            yield ids[start], ids[end - 1]
            start = end
