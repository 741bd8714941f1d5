"""Data files adapted for clients: the lake's own bytes, then a new footer (`adaptations`).

Only the end is generated and cached. `FileEnd` says which file it belongs to, so that a range can
be read without the catalog. With the delivery `materialize` nobody makes files when they are read:
S3 copies the beginning, if the settings say so (`AdaptedDataFiles.copy`).
"""

import json
import logging
import random
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from ..runtime.errors import NoSuchKey, OutOfTime, Refused
from ..runtime.prefetch import AT_A_TIME, map_in_parallel
from ..storage.bucket_store import LOADED_SECONDS, DeliveryBucket, folder_of
from ..storage.copies import SMALLEST_PART
from .cached_files import FileKind, rewritten, unfinished
from .contexts import NO_VALUE_OF_PATH
from .names import DATA_FILE, Name

logger = logging.getLogger(__name__)

PIECE = 8 * 1024 * 1024
"""The most bytes of a data file that are in memory at once, for each reader."""

MOST_AT_ONCE = 4 * 1024 * 1024 * 1024
"""The most bytes that S3 copies at the same time, unless a file has more: what has begun when the
time of a request is over is begun again by the next one."""

ReadRange = Callable[[str, int, int], bytes]
"""As `ObjectReader.read_range`."""


@dataclass(frozen=True, slots=True)
class FileEnd:
    """The end of a data file for clients, and the lake's own file, which is its beginning."""

    location: str
    """That of the lake's own file."""
    start: int
    """How many of its bytes are at the beginning."""
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
        """The record of `encoded` bytes."""
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


COPIES = "copies of data files"


def is_copied_in_parts(name: Name) -> bool:
    """Whether a file is too large for a copy in one request, which also gives it another ETag."""
    return name.kind == DATA_FILE and name.numbers[0] > SMALLEST_PART


class AdaptedDataFiles(FileKind):
    """The data files that clients get with another footer."""

    kind = DATA_FILE

    def build(self, name: Name) -> bytes:
        """The end of the file of this name, encoded. Raises: as `FileKind.build`."""
        for file in self._own_files([name]).values():
            read = self.table.context.object_reader.read_range
            return self._end(name, file, partial(read, self.table.location_of(file))).encoded()
        raise rewritten()

    def copy_missing(self, names: Sequence[Name]) -> None:
        """As `copy`, for those of these files that are not in the bucket."""
        keys = {self.table.key(name): name for name in names}
        if not keys:
            return
        bucket, folder = self._bucket, folder_of(next(iter(keys)))
        with bucket.one_listing(folder, bucket.recent_listing(folder, LOADED_SECONDS)):
            ages = bucket.ages([*keys])
            if missing := [name for key, name in keys.items() if key not in ages]:
                self.copy(missing)

    def copy(self, names: Sequence[Name], *, is_new: bool = True) -> None:
        """Put these files into the bucket that clients read; S3 copies what stays.

        One whose original is gone is left out: clients cannot read it in any case.

        Args:
            is_new: leave objects that are there; else they are replaced by the same bytes.

        Raises:
            Refused: a file is damaged, or cannot be changed and has to be.
            Misconfigured: this process may not copy a file.
            ServiceUnavailable: it takes longer than one request may, or S3 does not answer.
        """
        # Requests for one table at the same time begin at different places, and so share the work.
        first = random.randrange(len(names))
        files = self._own_files([*names[first:], *names[:first]])
        copied = 0
        for batch in _batches(files):
            left = self._missing(batch) if copied and is_new else batch
            at_a_time = max(1, AT_A_TIME // max(1, len(left)))
            copy = partial(self._copy, at_a_time=at_a_time, is_new=is_new)
            try:
                map_in_parallel(copy, [(name, files[name]) for name in left])
            except OutOfTime:
                raise unfinished(COPIES, copied, len(files)) from None
            copied += len(batch)
            self.files.check_time(COPIES, copied, len(files))

    def _missing(self, names: Sequence[Name]) -> list[Name]:
        """Those of these files that no other request has put."""
        bucket = self._bucket
        bucket.list_again()
        ages = bucket.ages([self.table.key(name) for name in names])
        return [name for name in names if self.table.key(name) not in ages]

    @property
    def _bucket(self) -> DeliveryBucket:
        bucket = self.table.context.bucket
        assert bucket is not None  # otherwise no file is copied
        return bucket

    def _copy(self, file: tuple[Name, DataFile], *, at_a_time: int, is_new: bool) -> None:
        name, own = file
        bucket, key, location = self._bucket, self.table.key(name), self.table.location_of(own)
        reader, size = self.table.context.object_reader, own.file_size_bytes
        try:
            if size <= SMALLEST_PART and is_new:
                whole = reader.read_range(location, 0, size)
                end = self._end(name, own, lambda first, last: whole[first:last])
                bucket.put(key, whole[: end.start] + end.tail)
            else:
                # Before its footer is read, so that both are of one object.
                source = bucket.source(location)
                end = self._end(name, own, partial(reader.read_range, location))
                bucket.put_copy(key, source, end.start, end.tail, at_a_time, is_new=is_new)
        except NoSuchKey as error:
            logger.warning("the data file %d is not copied: %s", own.data_file_id, error)

    def _own_files(self, names: Sequence[Name]) -> dict[Name, DataFile]:
        """The lake's own file behind each of these, unless DuckLake has rewritten it."""
        ids = [*dict.fromkeys(name.numbers[1] for name in names)]
        of_table = self.table.history.lake, self.table.history.table.table_id, ids
        files = {file.data_file_id: file for file in data_files_of(*of_table).run(self.table.con)}
        shown = self.table.names.data_file
        own = {name: files[name.numbers[1]] for name in names if name.numbers[1] in files}
        return {name: own[name] for name in own if name == shown(own[name], name.snapshot_id)}

    def _end(self, name: Name, file: DataFile, read: Callable[[int, int], bytes]) -> FileEnd:
        """The end of a file.

        Args:
            read: gives the bytes of the lake's own file from one place up to another.
        """
        location, file_size = self.table.location_of(file), file.file_size_bytes
        size, _, snapshot_id = name.numbers
        adaptation = self.table.names.adaptation(file, snapshot_id)
        assert adaptation is not None  # as it has a name
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
            doubles=adaptation.doubles,
        )


def _batches(files: Mapping[Name, DataFile]) -> Iterator[list[Name]]:
    """The files that are copied at the same time."""
    batch: list[Name] = []
    left = MOST_AT_ONCE
    for name, file in files.items():
        left -= file.file_size_bytes
        if batch and (left < 0 or len(batch) == AT_A_TIME):
            yield batch
            batch, left = [], MOST_AT_ONCE - file.file_size_bytes
        batch.append(name)
    if batch:
        yield batch


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
        values: the value that each has in all rows, as SQL of DuckDB.
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
