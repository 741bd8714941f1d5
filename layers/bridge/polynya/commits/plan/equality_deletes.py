"""The rows that a commit deletes by their values, as positions.

DuckLake deletes rows by their positions. So the rows that equality deletes hit are found when a
commit is planned: in the data files that may hold one of the keys, in the files of inlined rows,
and in the files that the commit adds itself before the delete.
https://iceberg.apache.org/spec/#scan-planning

A key that holds all source columns of the delete's partition spec deletes its rows wherever they
are, also in files of other specs: the same key is in the same partition. Otherwise only files of
the same spec and partition lose rows.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from ...ducklake.faults import MAX_ID
from ...ducklake.rows.files import EVERY_FILE, AllOf, AnyOf, ColumnTest, Condition, DataFile
from ...iceberg.avro.client_manifests import WrittenFile
from ...iceberg.manifest import PartitionSpec
from ...iceberg.parquet.footer import NotParquet, read_footer
from ...iceberg.parquet.key_rows import (
    KeyColumn,
    Keys,
    TooManyKeys,
    key_chunks,
    keys_of,
    rows_with_keys,
)
from ...iceberg.parquet.sparse_files import SparseFile
from ...iceberg.sandbox import OutOfMemory, Unreadable
from ...iceberg.types import Field, Primitive
from ...mapping.conditions import FilteredColumns
from ...runtime import budget
from ...runtime.errors import BadRequest, Misconfigured, NoSuchKey, OutOfTime, ServiceUnavailable
from ...runtime.prefetch import map_in_parallel
from ...runtime.settings import EqualityDeleteLimits
from ...storage.objects import ObjectReader
from ...types.names import iceberg_type
from ...virtual_files.scan_files import ListedFiles
from ..client_locations import normalised
from ..request.client_files import ClientDeletes, Positions, merge_positions
from .changed_files import NetChange
from .current_table import TableState
from .found_rows import FoundRows

FILES_AT_A_TIME, BYTES_AT_A_TIME = 200, 64 * 1024 * 1024
"""What is searched by one call: these bytes are in memory."""

GAP = 256 * 1024
"""Chunks with fewer bytes between them are read together."""

LONG_SECONDS = 5.0
"""A request that takes longer keeps what it has found."""

RESERVE_SECONDS = 5.0
"""No batch begins with less time left, nor with less than the longest one took."""

KEY_IN_PATH = (
    "the commit deletes rows by a column whose values are in the paths of added files: CALL "
    "ducklake_rewrite_data_files, or write these rows again"
)

NewFoundRows = Callable[[Sequence[bytes], Sequence[Field]], FoundRows]
"""Returns what earlier requests have found in a table for delete files and a key."""

Partition = tuple[tuple[int, str, object], ...]
"""Source id, transform and value of each field."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What some equality delete files have in common."""

    field_ids: tuple[int, ...]
    """Those of the key, ascending."""
    spec_id: int | None = None
    """Only files of this spec, and of this partition, lose rows; None: all do."""
    partition: Partition = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A Parquet file that may have rows with a key."""

    path: str
    """Its normalised location, by which positions name it."""
    size: int
    footer_size: int | None = None
    names: Mapping[int, str] | None = None
    """As in a SparseFile."""
    body: bytes | None = None
    """All of it, if it has been read."""


@dataclass(frozen=True, slots=True)
class KeyedTable:
    """A table whose rows are deleted by key."""

    full_name: str
    specs: Mapping[int, PartitionSpec]
    """By their ids."""
    schemas: Sequence[Sequence[Field]]
    """The fields of each, those of now first."""
    candidates: Callable[[Keys, Sequence[Field], int], Iterable[Candidate]]
    """Returns the files of the table that may have one of the keys, up to a number."""
    newest: int = -1
    """The newest sequence number of its rows: deletes that are older hit none of them."""
    has_specs_of_files: bool = False
    """Whether the files of a commit have the specs that their manifests name: a key then deletes
    only rows of its own spec and partition."""
    names_in: Callable[[str], Mapping[int, str] | None] = lambda path: None
    """The names of the columns in a file of the commit, by its location; None: it has ids."""


@dataclass(frozen=True, slots=True)
class EqualityDeletes:
    """Finds the rows for a commit to one table."""

    table: KeyedTable
    reader: ObjectReader
    """Reads the files of the commit."""
    own_reader: ObjectReader
    """Reads those of the table."""
    deletes: ClientDeletes
    """Reads the delete files."""
    check_place: Callable[[str], object]
    """Raises BadRequest if a data file of the commit may not be where it is."""
    limits: EqualityDeleteLimits
    found_rows: NewFoundRows | None = None
    """None: nothing that is found is kept."""

    def positions(self, net: NetChange, live: Iterable[WrittenFile]) -> Positions:
        """The positions of the rows that the equality deletes of a commit hit.

        Rows that are deleted already may be among them.

        Args:
            live: the entries of the data files of the table, which are read only if a delete is
                for one partition.

        Raises:
            BadRequest: a delete cannot be resolved, or has too many keys or too much to read.
            ServiceUnavailable: it takes longer than one request may take; what was found is kept.
        """
        by_scope: dict[Scope, list[WrittenFile]] = defaultdict(list)
        for file in net.equality_deletes:
            by_scope[self._scope(file)].append(file)
        entries = _paths_by_partition(live) if any(s.spec_id is not None for s in by_scope) else {}
        search = _Search(
            len(net.equality_deletes),
            self.table.full_name,
            self.limits,
            self.found_rows,
            searches=[],
            began=time.monotonic(),
        )
        parts = []
        for scope, files in by_scope.items():
            bodies = dict(zip(files, self.deletes.bodies(files), strict=True))
            key = [self._field(id_) for id_ in scope.field_ids]
            keys = search.keys([*bodies.values()], key)
            if not keys.number:
                continue
            of_table = self.table.candidates(keys, key, self.limits.files)
            if scope.spec_id is not None:
                same = entries.get((scope.spec_id, scope.partition), frozenset())
                of_table = (c for c in of_table if c.path in same)
            parts.append(
                search.table_positions([*bodies.values()], key, self.own_reader, [*of_table])
            )
            for numbers, added in _earlier(scope, files, net.added):
                candidates = [self._added(file) for file in added]
                earlier = [bodies[files[number]] for number in numbers]
                parts.append(search.positions(earlier, key, self.reader, candidates))
        return {path: rows for path, rows in merge_positions(parts).items() if len(rows)}

    def _scope(self, file: WrittenFile) -> Scope:
        if _sequence_number(file) <= self.table.newest:
            raise BadRequest(
                "an equality delete file of the commit is older than rows of the table, which it "
                "does not delete: only new ones can be added"
            )
        ids = tuple(sorted(set(file.equality_ids)))
        if not ids:
            raise BadRequest("an equality delete file of the commit has no equality_ids")
        spec = self.table.specs.get(file.partition_spec_id)
        if spec is None:
            raise _other_spec()
        fields = [field for field in spec.fields if field.transform != "void"]
        has_all = {field.source_id for field in fields} <= set(ids)
        if not fields or (has_all and not self.table.has_specs_of_files):
            return Scope(ids)
        partition = _comparable_partition(file.partition)
        has_values = {(source, transform) for source, transform, _ in partition}
        if has_values != {(field.source_id, field.transform) for field in fields}:
            raise _other_spec()
        for field in fields:
            if field.result_type not in COMPARABLE:
                name = self._field(field.source_id).name
                raise BadRequest(
                    f"the commit deletes rows by a key without {name}, by which the table is "
                    f"partitioned: add {name} to the key (the identifier fields)"
                )
        return Scope(ids, file.partition_spec_id, partition)

    def _field(self, column_id: int) -> Field:
        """A column of the key, as the table has it now or had it last."""
        for field in chain.from_iterable(self.table.schemas):
            if field.field_id == column_id and isinstance(field.type, Primitive):
                if iceberg_type(field.type.name).is_float:
                    raise BadRequest(
                        f"the commit deletes rows by the column {field.name}, which is a "
                        f"{field.type.name}: Iceberg has no keys of this type"
                    )
                return field
        raise BadRequest(
            f"the commit deletes rows by the field {column_id}, which is no column at the table's "
            "top level, or is nested"
        )

    def _added(self, file: WrittenFile) -> Candidate:
        self.check_place(file.file_path)
        path = normalised(file.file_path)
        return Candidate(path, file.file_size_in_bytes, names=self.table.names_in(path))


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The files of a table that exists."""

    state: TableState

    def keyed_table(self) -> KeyedTable:
        """The table, as deletes by key need it."""
        state, document = self.state, self.state.document
        schemas = sorted(
            document.schemas,
            key=lambda schema: schema.schema_id == document.current_schema_id,
            reverse=True,
        )
        return KeyedTable(
            state.files.history.full_name,
            {spec.spec_id: spec for spec in document.specs},
            [schema.fields for schema in schemas],
            self.candidates,
            state.head.sequence_number if state.head else -1,
        )

    def candidates(self, keys: Keys, key: Sequence[Field], most: int) -> Iterator[Candidate]:
        """The files of the table that may have one of the keys.

        Raises:
            BadRequest: there are more than `most`.
        """
        state, scans = self.state, self.state.files.scan_files()
        if state.head is None:
            return
        snapshot_id = state.lake.lake.snapshot_id
        schema = scans.schemas.schema_at(snapshot_id)
        columns = FilteredColumns(
            scans.schemas, scans.partitions, snapshot_id, [schema], is_case_sensitive=True
        )
        shown = {field.field_id for field in schema.fields}
        tested = [
            _condition(columns, field.field_id, column)
            for field, column in zip(key, keys.columns, strict=True)
            if field.field_id in shown
        ]
        condition = AllOf(tuple(tested))
        planned = scans.find(snapshot_id, (0, MAX_ID), condition, most, 2)
        if len(planned) > most:
            raise BadRequest(
                f"{self.state.files.history.full_name}: the keys that the commit deletes may be in "
                f"more than {most:,} data files: partition or sort the table by them, or raise "
                "EQUALITY_DELETE_FILES"
            )
        ids = {field.field_id for field in key}
        yield from (self._lake_candidate(row.file, ids) for row in planned)
        listed = ListedFiles(state.files).rows(state.head.sequence_number, condition)
        for rows in listed:
            body = state.files.body_at(rows.file_path) or b""
            yield Candidate(normalised(rows.file_path), len(body), body=body)

    def _lake_candidate(self, file: DataFile, key: Collection[int]) -> Candidate:
        names: dict[int, str] | None = None
        if file.mapping_id is not None:
            mapped = [
                row
                for row in self.state.files.history.mapped_names
                if row.mapping_id == file.mapping_id and row.parent_column is None
            ]
            if any(row.is_partition and row.target_field_id in key for row in mapped):
                raise BadRequest(KEY_IN_PATH)
            names = {row.target_field_id: row.source_name for row in mapped}
        path = normalised(self.state.files.table.location_of(file))
        return Candidate(path, file.file_size_bytes, file.footer_size, names)


COMPARABLE = frozenset(("int", "long", "string", "date", "timestamp", "timestamptz"))
"""Types of partition values that manifests are read for."""


def _comparable_partition(partition: Partition) -> Partition:
    return tuple(sorted((s, t, value) for s, t, value in partition if t != "void"))


def _paths_by_partition(
    live: Iterable[WrittenFile],
) -> Mapping[tuple[int, Partition], frozenset[str]]:
    """The locations of data files by spec and partition."""
    paths: dict[tuple[int, Partition], set[str]] = defaultdict(set)
    for file in live:
        key = file.partition_spec_id, _comparable_partition(file.partition)
        paths[key].add(normalised(file.file_path))
    return {key: frozenset(of_key) for key, of_key in paths.items()}


def _earlier(
    scope: Scope, deletes: Sequence[WrittenFile], added: Iterable[WrittenFile]
) -> Iterable[tuple[tuple[int, ...], list[WrittenFile]]]:
    """The data files of a commit that its own delete files concern, by the numbers of these."""
    files: dict[tuple[int, ...], list[WrittenFile]] = defaultdict(list)
    for file in added:
        if scope.spec_id is not None and (
            (file.partition_spec_id, _comparable_partition(file.partition))
            != (scope.spec_id, scope.partition)
        ):
            continue
        numbers = tuple(
            number
            for number, delete in enumerate(deletes)
            if _sequence_number(file) < _sequence_number(delete)
        )
        if numbers:
            files[numbers].append(file)
    return files.items()


def hit_added_rows(net: NetChange) -> bool:
    """Whether equality deletes of a commit apply to files that the commit adds.

    Raises:
        BadRequest: a manifest does not say it.
    """
    return any(
        _sequence_number(file) < _sequence_number(delete)
        for delete in net.equality_deletes
        for file in net.added
    )


def _sequence_number(file: WrittenFile) -> int:
    if file.sequence_number is None:
        raise BadRequest(
            "the commit has equality deletes, and one of its manifests has no sequence number"
        )
    return file.sequence_number


def _condition(columns: FilteredColumns, column_id: int, keys: KeyColumn) -> Condition:
    """Which files may have one of the values in a column."""
    column = columns.find(column_id)
    if column is None or column.form not in ORDERED_TEXTS:
        return EVERY_FILE
    tests: list[Condition] = [ColumnTest(column, "is-null")] if keys.has_null else []
    if keys.values:
        tests.append(ColumnTest(column, "in", keys.values))
    for least, greatest in keys.ranges:
        ends = ColumnTest(column, "gt-eq", (least,)), ColumnTest(column, "lt-eq", (greatest,))
        tests.append(AllOf(ends))
    return AnyOf(tuple(tests))


ORDERED_TEXTS = frozenset(("integer", "string", "date", "timestamp", "decimal"))
"""The forms of types whose values DuckDB and DuckLake's statistics write as the same text."""


@dataclass(slots=True)
class _Search:
    """Reads files, and counts what it reads."""

    delete_files: int
    table: str
    limits: EqualityDeleteLimits
    found_rows: NewFoundRows | None
    searches: list[FoundRows]
    """What is kept if the search takes long."""
    began: float
    """On the monotonic clock."""
    bytes_read: int = 0
    files: int = 0
    """Those that have been considered."""
    searched: int = 0

    def keys(self, bodies: Sequence[bytes], key: Sequence[Field]) -> Keys:
        """The keys of delete files.

        Raises:
            BadRequest: one is damaged, or there are too many keys.
        """
        most = self.limits.keys
        try:
            keys = keys_of(bodies, key, most)
        except (Unreadable, NotParquet) as error:
            raise BadRequest(f"a delete file of the commit cannot be read: {error}") from None
        except (TooManyKeys, OutOfMemory):
            raise self._too_much(f"more than {most:,} keys", key, "EQUALITY_DELETE_KEYS") from None
        return keys

    def table_positions(
        self,
        bodies: Sequence[bytes],
        key: Sequence[Field],
        reader: ObjectReader,
        candidates: Sequence[Candidate],
    ) -> Positions:
        """As `positions`, in files of the table. A search that takes long keeps what it finds.

        Raises:
            BadRequest: as `positions`.
            ServiceUnavailable: it takes longer than one request may take; the next one goes on.
        """
        found_rows = None
        if self.found_rows and (_are_many(candidates) or self._is_long):
            found_rows = self.found_rows(bodies, key)
            self.searches.append(found_rows)
            self.bytes_read += found_rows.bytes_read
        positions_before = found_rows.positions if found_rows else {}
        paths = [file.path for file in candidates if file.path in positions_before]
        positions = {path: positions_before[path] for path in paths}
        left = [file for file in candidates if file.path not in positions_before]
        self.files += len(positions)
        self.searched += len(positions)
        positions |= self.positions(bodies, key, reader, left, found_rows)
        if self._is_long:
            self._keep()  # if another writer is faster, the commit is planned again
        return positions

    def positions(
        self,
        bodies: Sequence[bytes],
        key: Sequence[Field],
        reader: ObjectReader,
        candidates: Sequence[Candidate],
        found_rows: FoundRows | None = None,
    ) -> Positions:
        """The positions of the rows with one of the keys, of each file.

        Args:
            bodies: the delete files.
            reader: reads the candidates.
            found_rows: where the positions are added.

        Raises:
            BadRequest: a file cannot be read, or there is too much to read.
        """
        positions: Positions = {}
        self.files += len(candidates)
        try:
            for batch, size in self._read(key, reader, candidates, keeps=found_rows is not None):
                of_files = rows_with_keys(bodies, key, [file for _, file in batch])
                paths = [candidate.path for candidate, _ in batch]
                positions |= zip(paths, of_files, strict=True)
                self.searched += len(batch)
                if found_rows is not None:
                    of_lake = {c.path: positions[c.path] for c, _ in batch if c.body is None}
                    found_rows.add(of_lake, size)
        except (Unreadable, NotParquet) as error:
            raise BadRequest(
                f"a data file that may have rows to delete cannot be read: {error}"
            ) from None
        except (NoSuchKey, Misconfigured):
            raise BadRequest("a data file of the table does not exist, or cannot be read") from None
        except OutOfMemory:
            raise self._too_much("more memory than there is", key) from None
        except OutOfTime:
            if self._keep():
                raise ServiceUnavailable(
                    f"the commit deletes rows by key, and to find them in {self.table} takes "
                    f"longer than one request may take: {self.searched:,} of {self.files:,} data "
                    "files have been searched; send it again to continue"
                ) from None
            if not self._is_long or not _are_many(candidates):
                raise  # something else took the time, which the next request may have
            raise self._too_much("more time than one request has", key) from None
        return positions

    @property
    def _is_long(self) -> bool:
        return time.monotonic() - self.began > LONG_SECONDS

    def _keep(self) -> bool:
        """Keep what this request has found; False if that is nothing, or the store fails."""
        kept_any = [rows.keep() for rows in self.searches]
        return any(kept_any)

    def _read(
        self,
        key: Sequence[Field],
        reader: ObjectReader,
        candidates: Sequence[Candidate],
        *,
        keeps: bool,
    ) -> Iterator[tuple[list[tuple[Candidate, SparseFile]], int]]:
        """The files with the chunks of the key's columns, as many at a time as fit into memory, and
        their size in bytes.

        Args:
            keeps: what was found is kept if no time is left for another batch.
        """
        ids = [field.field_id for field in key]
        filled = partial(_filled, reader)
        longest, began = 0.0, time.monotonic()
        for group in _grouped(candidates, FILES_AT_A_TIME):
            footers = map_in_parallel(partial(_footer, reader), group)
            chunks = key_chunks(footers, ids)
            batches: list[_Batch] = [[]]
            for candidate, footer, of_file in zip(group, footers, chunks, strict=True):
                spans = [] if candidate.body else _joined(of_file)
                file = candidate, footer, spans
                if _length([*batches[-1], file]) > BYTES_AT_A_TIME and batches[-1]:
                    batches.append([])
                batches[-1].append(file)
            for batch in batches:
                size = _length(batch)
                self.bytes_read += size
                if self.bytes_read > self.limits.gigabytes << 30:
                    what = f"more than {self.limits.gigabytes} GB"
                    raise self._too_much(what, key, "EQUALITY_DELETE_GB")
                if keeps and budget.seconds_left() < max(RESERVE_SECONDS, longest):
                    raise OutOfTime("no time for another batch")
                yield map_in_parallel(filled, batch), size
                longest = max(longest, time.monotonic() - began)
                began = time.monotonic()

    def _too_much(self, what: str, key: Sequence[Field], setting: str = "") -> BadRequest:
        names = ", ".join(field.name for field in key)
        remedy = f", or raise {setting}" if setting else ""
        return BadRequest(
            f"the commit deletes rows by key (equality deletes: {self.delete_files} files, keys on "
            f"{names}), and finding their positions in {self.table} needs {what}: commit more "
            f"often, or partition or sort the table by {names}{remedy}"
        )


_Batch = list[tuple[Candidate, SparseFile, list[tuple[int, int]]]]
"""Files with their footers, and the spans of bytes to read of each."""


def _length(batch: _Batch) -> int:
    return sum(end - start for _, _, spans in batch for start, end in spans)


def _are_many(candidates: Sequence[Candidate]) -> bool:
    """Whether files do not fit in one batch."""
    size = sum(file.size for file in candidates if file.body is None)
    return len(candidates) > FILES_AT_A_TIME or size > BYTES_AT_A_TIME


def _footer(reader: ObjectReader, file: Candidate) -> SparseFile:
    if file.body is not None:
        return SparseFile(len(file.body), [(0, file.body)], file.names)
    footer = read_footer(partial(reader.read_range, file.path), file.size, file.footer_size)
    return SparseFile(file.size, [footer], file.names)


def _filled(
    reader: ObjectReader, file: tuple[Candidate, SparseFile, list[tuple[int, int]]]
) -> tuple[Candidate, SparseFile]:
    candidate, footer, spans = file
    chunks = [(start, reader.read_range(candidate.path, start, end)) for start, end in spans]
    return candidate, SparseFile(footer.size, [*footer.parts, *chunks], footer.names)


def _grouped(candidates: Sequence[Candidate], count: int) -> Iterator[Sequence[Candidate]]:
    return (candidates[first : first + count] for first in range(0, len(candidates), count))


def _joined(chunks: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans of bytes (first, end) that hold chunks (first, length), ascending."""
    spans: list[tuple[int, int]] = []
    for start, length in sorted(chunks):
        if spans and start - spans[-1][1] <= GAP:
            spans[-1] = spans[-1][0], max(spans[-1][1], start + length)
        else:
            spans.append((start, start + length))
    return spans


def _other_spec() -> BadRequest:
    return BadRequest(
        "an equality delete file of the commit has a partition spec that the table does not have"
    )
