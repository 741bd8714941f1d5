"""The live rows of a table, for commits that end some of them.

Clients name a row by its file and its position in it. DuckLake names inlined rows by their ids.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pg8000.native import Connection

from ...errors import BadRequest
from ...storage.objects.reader import ObjectReader
from ..names import Name
from ..table_context import TableContext
from .deletes import deleted_positions, deletes_at
from .inlined_rows import TableRows

MOST_DELETED = 20_000_000
"""Rows in the delete files that a commit reads; they are in memory at once."""

MOST_FILES_BETWEEN = 1000
"""A query for the deletes of two data files reads so many files between them at most."""


@dataclass(frozen=True, slots=True)
class LiveRows:
    """The live rows of one table."""

    con: Connection
    table: TableContext
    rows: TableRows
    object_reader: ObjectReader

    def inlined(self, name: Name, at: int) -> list[tuple[str, int]] | None:
        """For each row of a virtual file of inlined rows, in order, its PostgreSQL table and id.

        None: the file is not of the table as it is now.

        Args:
            at: the newest listed snapshot, which names the files. A later change of columns is not
                listed, and would name them otherwise.
        """
        names = self.table.names
        part, number, written_at = name.numbers
        if not any(names.rows(file, number) == name for file in names.rows_files.at(at)):
            return None
        group = self.rows.groups(part, written_at).get(number)
        return None if group is None else group.row_ids

    def deleted(self, data_file_ids: Iterable[int]) -> dict[int, Sequence[int]]:
        """The deleted positions, ascending, by data file; files without deletes are absent.

        Raises:
            BadRequest: they are too many.
            Refused: a stored delete file is missing or damaged.
        """
        wanted = set(data_file_ids)
        history = self.table.history
        found = {
            deletes.data_file.data_file_id: deletes
            for span in _spans(sorted(wanted))
            for deletes in deletes_at(self.con, history, history.snapshot_id, span)
            if deletes.data_file.data_file_id in wanted
        }
        stored = [file for deletes in found.values() for file in deletes.stored]
        if sum(file.delete_count for file in stored) > MOST_DELETED:
            raise BadRequest(
                f"more than {MOST_DELETED:,} rows of the data files are deleted already: CALL "
                f"ducklake_rewrite_data_files('…', '{history.table.table_name}') in DuckDB first"
            )
        return {
            id_: deleted_positions(deletes, history, self.object_reader)
            for id_, deletes in found.items()
        }


def _spans(ids: list[int]) -> Iterator[tuple[int, int]]:
    """Ranges that cover the ids, without large gaps."""
    start = 0
    for end in range(1, len(ids) + 1):
        if end == len(ids) or ids[end] - ids[end - 1] > MOST_FILES_BETWEEN:
            yield ids[start], ids[end - 1]
            start = end
