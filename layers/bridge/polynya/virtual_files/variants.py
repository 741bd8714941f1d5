"""Whether every client can read the variants of a table, which depends on the writers of its files.

DuckDB 1.5 writes variants that only DuckDB reads correctly. A column is hidden at each snapshot
that shows a file of such a program, or its inlined rows.
"""

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from pg8000.native import Connection

from ..ducklake import queries
from ..ducklake.paths import file_location
from ..ducklake.queries.history import TableHistory
from ..ducklake.rows.files import DataFile
from ..ducklake.rows.lifetimes import UnservableRange
from ..iceberg.parquet.footer import NotParquet, created_by, writes_variants
from ..mapping.manifests import fingerprint
from ..runtime.errors import NoSuchKey
from ..runtime.prefetch import map_in_parallel
from ..storage.direct_s3 import AT_A_TIME
from ..storage.file_cache import Cache
from ..storage.objects import ObjectReader
from ..storage.s3_locations import is_s3
from .names import GENERATOR

VARIANT = "variant"

MOST_FILES = 1000
"""The most data files whose writers are looked up: the first request takes seconds for that, later
ones a read of the cache."""

TOO_MANY = (
    f"more than {MOST_FILES:,} data files have it, too many to look up what wrote each of them: "
    "merge them"
)
MISREAD = (
    "{} wrote data files that have it, whose variants only DuckDB reads: DuckDB 2.0 or later "
    "writes them again if all rows are updated, and doctor has the statements"
)
INLINED = "rows with it are inlined: CALL ducklake_flush_inlined_data(…) in DuckDB 2.0 or later"


class VariantFile(NamedTuple):
    """A data file that may have variants."""

    file: DataFile
    column_ids: Sequence[int]
    """The variants that it may have."""
    writer: str
    """The program that wrote it; empty: not known."""

    @property
    def program(self) -> str:
        """The program and its version, for messages."""
        program = re.match(r"[\w .-]{1,60}", self.writer)
        return program[0].strip() if program else "an unknown program"


@dataclass(frozen=True, slots=True)
class Variants:
    """The columns of variants of one table, and whether every client can read them.

    That depends on the program that wrote each data file. The file's footer names it, and is read
    once: the program is cached by file, and for all files together.
    """

    con: Connection
    history: TableHistory
    cache: Cache
    object_reader: ObjectReader
    prefix: str
    """The key prefix of the table's virtual files."""

    @property
    def _added_at(self) -> dict[int, int]:
        """The snapshot that added each column, by column id."""
        # The first version of a column comes last, and counts.
        columns = sorted(self.history.columns, key=lambda column: -column.begin_snapshot)
        return {c.column_id: c.begin_snapshot for c in columns if c.column_type == VARIANT}

    def withheld(self) -> dict[int, list[UnservableRange]]:
        """The snapshots at which each column is hidden, because a client would misread it.

        Raises:
            ServiceUnavailable: a file cannot be read now.
        """
        added_at = self._added_at
        withheld: dict[int, list[UnservableRange]] = {column_id: [] for column_id in added_at}
        for table in self.history.inlined.tables if added_at else ():
            origin = queries.inlined_origin(table).run(self.con)
            if origin.first_row is not None:
                for gaps in withheld.values():
                    gaps.append(UnservableRange(origin.first_row, origin.last_row, INLINED))
        for file in self.misread():
            begin, end = file.file.begin_snapshot, file.file.end_snapshot
            for column_id in file.column_ids:
                reason = MISREAD.format(file.program)
                withheld[column_id].append(UnservableRange(begin, end, reason))
        if len(files := self._files(added_at)) > MOST_FILES:
            begin = files[MOST_FILES][0].begin_snapshot
            for gaps in withheld.values():
                # These come first, because the first reason of a snapshot is shown.
                gaps.insert(0, UnservableRange(begin, None, TOO_MANY))
        return withheld

    def misread(self) -> list[VariantFile]:
        """The first files that not every client can read. Raises: as `withheld`."""
        files = self._files(self._added_at)[:MOST_FILES]
        writers = self._writers([file for file, _ in files])
        return [
            VariantFile(file, column_ids, writer)
            for (file, column_ids), writer in zip(files, writers, strict=True)
            if not writes_variants(writer)
        ]

    def _files(self, added_at: dict[int, int]) -> list[tuple[DataFile, list[int]]]:
        if not added_at:
            return []
        history, table_id = self.history, self.history.table.table_id
        parameters = table_id, history.snapshot_id, added_at, MOST_FILES + 1
        mapped: dict[int | None, set[int]] = defaultdict(set)
        for name in history.mapped_names:
            mapped[name.mapping_id].add(name.target_field_id)
        with_ids = [
            (file, [i for i in ids if file.mapping_id is None or i in mapped[file.mapping_id]])
            for file, ids in queries.files_with(history.lake, *parameters).run(self.con)
        ]
        return [(file, column_ids) for file, column_ids in with_ids if column_ids]

    def _writers(self, files: Sequence[DataFile]) -> list[str]:
        """The program that wrote each file, from the cache or read now."""
        if not files:
            return []
        cache, history = self.cache, self.history
        prefix = f"{self.prefix}/{GENERATOR}"
        table = history.lake, history.schema, history.table
        locations = [file_location(*table, file) for file in files]
        of_all = f"{prefix}/writers-{fingerprint(*locations)}.json"
        if (body := cache.get(of_all)) is not None:
            return list(json.loads(body))
        keys = [f"{prefix}/writer-{fingerprint(location)}.json" for location in locations]
        bodies = cache.get_many(keys)
        missing = [number for number, body in enumerate(bodies) if body is None]

        def read(number: int) -> bytes | None:
            if not is_s3(locations[number]):
                return None
            read_range = partial(self.object_reader.read_range, locations[number])
            try:
                writer = created_by(read_range, files[number].file_size_bytes)
            except (NoSuchKey, NotParquet):
                return None
            return cache.put(keys[number], json.dumps(writer).encode())

        for number, body in zip(missing, map_in_parallel(read, missing, AT_A_TIME), strict=True):
            bodies[number] = body
        writers = ["" if body is None else json.loads(body) for body in bodies]
        # A file that cannot be read now may be restored.
        if None not in bodies:
            cache.put(of_all, json.dumps(writers).encode())
        return writers
