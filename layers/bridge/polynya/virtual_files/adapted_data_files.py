"""Data files adapted for clients: the lake's own bytes, then a new footer (`adaptations`).

Only the end is generated and cached. `FileEnd` says which file it belongs to, so that a range can
be read without the catalog.
"""

import json
import logging
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import islice, takewhile

from ..ducklake.queries import data_files_of
from ..ducklake.rows.files import DataFile
from ..iceberg.parquet.footer import TAIL, NotParquet, read_footer
from ..iceberg.parquet.generated_files import Rows, rows_bytes
from ..iceberg.parquet.new_footer import (
    Constant,
    FooterChanges,
    constants,
    new_tail,
    old_tail,
    structs_with_null,
)
from ..iceberg.parquet.struct_nulls import MOST_BYTES, present_structs
from ..iceberg.parquet.visible_part import Range, visible_part
from ..iceberg.types import AddedField, Field
from ..mapping.adaptations import Adaptation
from ..mapping.rows_files import added_row
from ..runtime.errors import NoSuchKey, Refused
from .cached_files import FileKind, rewritten
from .contexts import NO_VALUE_OF_PATH
from .names import DATA_FILE, Name

logger = logging.getLogger(__name__)

PIECE = 8 * 1024 * 1024
"""The most bytes of a data file that are in memory at once, for each reader."""

ReadRange = Callable[[str, int, int], bytes]
"""As `ObjectReader.read_range`."""


@dataclass(frozen=True, slots=True)
class FileEnd:
    """The end of a data file for clients, and the lake's own file, which is its beginning."""

    location: str
    """That of the lake's own file."""
    start: int
    """How many of its bytes come first."""
    tail: bytes
    visible: tuple[Range, ...] | None = None
    """Those of them that the caller may see; all others are zeros. None: all."""

    @property
    def size(self) -> int:
        """The size of the whole file."""
        return self.start + len(self.tail)

    def encoded(self) -> bytes:
        """All of it, for `decoded`."""
        location = self.location.encode()
        if self.visible is None:
            return b"%d %d\n%b%b" % (self.start, len(location), location, self.tail)
        visible = json.dumps(self.visible).encode()
        numbers = (self.start, len(location), len(visible))
        return b"%d %d %d\n%b%b%b" % (*numbers, location, visible, self.tail)

    @classmethod
    def decoded(cls, body: bytes) -> "FileEnd":
        """What `encoded` has made bytes of."""
        numbers, _, texts = body.partition(b"\n")
        start, length, *visible_length = map(int, numbers.split())
        location, tail = texts[:length].decode(), texts[length:]
        if not visible_length:
            return cls(location, start, tail)
        [end] = visible_length
        visible = tuple((first, last) for first, last in json.loads(tail[:end]))
        return cls(location, start, tail[end:], visible)

    def shows(self, first: int, last: int) -> bool:
        """Whether the caller may see a byte from the first to the last one, both included."""
        return self.visible is None or last >= self.start or bool(self._visible(first, last + 1))

    def _visible(self, first: int, end: int) -> list[Range]:
        """The visible parts of a range of the lake's own bytes, in order."""
        visible = self.visible or ()
        begin = max(0, bisect_right(visible, (first, end)) - 1)
        parts = takewhile(lambda part: part[0] < end, islice(visible, begin, None))
        both = ((max(first, part[0]), min(end, part[1])) for part in parts)
        return [part for part in both if part[0] < part[1]]

    def _own_bytes(self, begin: int, end: int, read_range: ReadRange) -> bytes:
        if self.visible is None:
            return read_range(self.location, begin, end)
        parts = self._visible(begin, end)
        if not parts:
            return bytes(end - begin)
        first, after = parts[0][0], parts[-1][1]
        read, shown = read_range(self.location, first, after), bytearray(end - begin)
        if len(read) != after - first:
            raise NoSuchKey("a file is shorter than the catalog says")
        for part, part_end in parts:
            shown[part - begin : part_end - begin] = read[part - first : part_end - first]
        return bytes(shown)

    def pieces(self, first: int, last: int, read_range: ReadRange) -> Iterator[bytes]:
        """The bytes of the file from the first to the last one, both included.

        Raises: as `ObjectReader.read_range`.
        """
        for begin in range(first, min(last + 1, self.start), PIECE):
            end = min(begin + PIECE, last + 1, self.start)
            yield self._own_bytes(begin, end, read_range)
        if last >= self.start:
            yield self.tail[max(0, first - self.start) : last + 1 - self.start]


class AdaptedDataFiles(FileKind):
    """The data files that clients get with another footer."""

    kind = DATA_FILE

    def build(self, name: Name) -> bytes:
        """The end of the file of this name, encoded. Raises: as `FileKind.build`."""
        size, data_file_id, snapshot_id = name.numbers
        lake, table_id = self.table.history.lake, self.table.history.table.table_id
        for file in data_files_of(lake, table_id, [data_file_id]).run(self.table.con):
            if name == self.table.names.data_file(file, snapshot_id):
                adaptation = self.table.names.adaptation(file, snapshot_id)
                assert adaptation is not None  # as it has a name
                return self._end(file, adaptation, size).encoded()
        raise rewritten()

    def _end(self, file: DataFile, adaptation: Adaptation, size: int) -> FileEnd:
        location, file_size = self.table.location_of(file), file.file_size_bytes
        read = partial(self.table.context.object_reader.read_range, location)
        try:
            start, end = read_footer(read, file_size, file.footer_size)
        except NotParquet as error:
            raise Refused(f"a data file is damaged ({error}): restore it from a backup") from None
        footer = end[:-TAIL]
        if adaptation.shown_ids is not None:
            return self._visible_end(location, start, footer, adaptation, size)
        try:
            changes = self._footer_changes(adaptation)
            present = _present(footer, start, changes, read)
            tail = new_tail(footer, start, replace(changes, present=present), size - start)
        except (NotParquet, ValueError) as error:
            if self.table.needs_path(file):
                raise Refused(f"{NO_VALUE_OF_PATH} ({error})") from None
            is_refused = self.table.context.settings.column_defaults == "refuse"
            has_default = any(of.field.initial_default is not None for of in adaptation.added)
            if has_default and is_refused:
                raise Refused(
                    f"a data file lacks a column that has a default, and cannot get it: {error}"
                ) from None
            logger.warning("the data file %d stays as it is: %s", file.data_file_id, error)
            tail = old_tail(footer, size - start)
        return FileEnd(location, start, tail)

    def _visible_end(
        self, location: str, start: int, footer: bytes, adaptation: Adaptation, size: int
    ) -> FileEnd:
        """The end of a file that shows some columns to callers who may not see the others."""
        read = partial(self.table.context.object_reader.read_range, location)
        try:
            shown_ids = adaptation.shown_ids or frozenset()
            footer, visible = visible_part(footer, start, shown_ids, adaptation.names)
            changes = self._footer_changes(adaptation)
            present = _present(footer, start, changes, read)
            tail = new_tail(footer, start, replace(changes, present=present), size - start)
        except (NotParquet, ValueError) as error:
            # Never as it is.
            raise Refused(f"a data file cannot be shown without hidden columns: {error}") from None
        return FileEnd(location, start, tail, visible)

    def _footer_changes(self, adaptation: Adaptation) -> FooterChanges:
        added, changes = adaptation.added, adaptation.changes
        row = added_row(self.table.history.columns, [of.field for of in added], adaptation.in_path)
        return FooterChanges(
            _constants_of(tuple(row.select), added) if added else (),
            names=adaptation.names,
            left_out=changes.left_out,
            has_signed=changes.has_signed,
            has_strings=changes.has_strings,
            has_logical_types=changes.logical_types > 0,
            without_statistics=changes.without_statistics,
            has_plain_milliseconds=adaptation.has_plain_milliseconds,
        )


def _present(
    footer: bytes, start: int, changes: FooterChanges, read: Callable[[int, int], bytes]
) -> dict[int, bytes]:
    """As `FooterChanges.present`. Raises: as `structs_with_null`, and ValueError."""
    present = {}
    for column in structs_with_null(footer, start, changes):
        if sum(length for _, length in column.chunks) > MOST_BYTES:
            raise ValueError(f"a column of more than {MOST_BYTES >> 20} MB would have to be read")
        chunks = [read(first, first + length) for first, length in column.chunks]
        present[column.field_id] = present_structs(column, start, chunks)
    return present


@lru_cache(maxsize=64)
def _constants_of(values: tuple[str, ...], added: tuple[AddedField, ...]) -> tuple[Constant, ...]:
    """The columns of all files that lack the same ones.

    Args:
        values: those that they have in all rows, as SQL of DuckDB.
    """
    columns = {}
    # A field with a default is in its struct, too, if the file may lack the whole struct; and no
    # file of DuckDB has an id twice.
    for is_nested in (False, True):
        part = {n: of for n, of in enumerate(added) if bool(of.field.type.members) == is_nested}
        if not part:
            continue
        # Two may have the same name: one was dropped or renamed before the other was added.
        written = [Field(of.field.field_id, f"c{n}", of.field.type) for n, of in part.items()]
        rows = Rows([], [values[n] for n in part], 1)
        file = rows_bytes([rows], written, compression="uncompressed")
        for (n, of), column in zip(part.items(), constants(file), strict=True):
            columns[n] = replace(column, name=of.field.name, parent=of.parent)
    return tuple(columns[n] for n in range(len(added)))
