"""How many visible files hold a column; there may be ten thousand batches of files."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from itertools import accumulate

from polynya.ducklake.rows.columns import Column, MappedName
from polynya.ducklake.rows.listing import FileBatch


class FileCounts:
    """Counts of visible files by what they hold."""

    def __init__(
        self,
        batches: Iterable[FileBatch],
        mapped_names: Iterable[MappedName],
        early: Mapping[int, int],
        borns: Mapping[int, int],
    ) -> None:
        """Count the files by the snapshot that they begin with.

        Args:
            mapped_names: what is in files that somebody has added.
            early: by column_id, how many files began before a column and have it.
            borns: the snapshot that added each column, by column_id.
        """
        self._early, self._borns = early, borns
        batches = sorted(batches, key=lambda batch: batch.begin_snapshot)
        own = [batch for batch in batches if batch.mapping_id is None]
        self._begins = [batch.begin_snapshot for batch in own]
        self._sums = [0, *accumulate(batch.files for batch in own)]
        self._added = [batch for batch in batches if batch.mapping_id is not None]
        self._stored: dict[int | None, set[int]] = {}
        self._known: dict[int | None, set[int]] = {}
        for name in mapped_names:
            self._known.setdefault(name.mapping_id, set()).add(name.target_field_id)
            if not name.is_partition:  # otherwise its values are in the path of the file
                self._stored.setdefault(name.mapping_id, set()).add(name.target_field_id)

    def holding(self, column: Column) -> int:
        """The files that were written with this version of a column."""
        first = bisect_left(self._begins, column.begin_snapshot)
        last = len(self._begins)
        if column.end_snapshot is not None:
            last = bisect_left(self._begins, column.end_snapshot)
        is_first = column.begin_snapshot == self._borns.get(column.column_id)
        return (
            self._sums[max(first, last)]
            - self._sums[first]
            + (self._early.get(column.column_id, 0) if is_first else 0)
            + sum(
                batch.files
                for batch in self._added
                if column.visible_at(batch.begin_snapshot)
                and column.column_id in self._stored.get(batch.mapping_id, ())
            )
        )

    def lacking(self, column_id: int) -> int:
        """The files that give no value of a column, which a snapshot has added."""
        older = self._sums[bisect_left(self._begins, self._borns[column_id])]
        return (
            older
            - self._early.get(column_id, 0)
            + sum(
                batch.files
                for batch in self._added
                if column_id not in self._known.get(batch.mapping_id, ())
            )
        )
