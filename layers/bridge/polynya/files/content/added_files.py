"""Files that ducklake_add_data_files added: DuckLake finds their columns by name.

An Iceberg reader finds them by field id if the file has field ids, and does not round times. The
file's footer says whether both read the same; its columns are cached.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from pg8000.native import Connection

from ...ducklake import queries
from ...ducklake.rows.data_files import DataFile
from ...ducklake.rows.lifetimes import UnservableRange
from ...errors import REMEDY, NoSuchKey, Refused
from ...iceberg.parquet.footer import Column, NotParquet, columns_of
from ...storage.objects.reader import ObjectReader
from ...storage.s3 import is_s3
from ...storage.stores import Cache
from ...translate.fingerprints import fingerprint
from ..names import GENERATOR
from ..table_context import TableContext

OUTSIDE = (
    "the added file {location} is neither in S3 nor below the lake's data path, and clients can "
    "read nothing else: copy it below the data path and add it from there, or insert its rows"
)
"""Not served though it may be there: a catalog could name any file of this machine."""


@dataclass(frozen=True, slots=True)
class AddedFiles:
    """The added files of one table."""

    table: TableContext
    cache: Cache
    object_reader: ObjectReader

    def check(self, file: DataFile) -> None:
        """Check that Iceberg's readers find the same columns in a file as DuckLake.

        Raises:
            Refused: they do not.
        """
        if reason := self._contradiction(file):
            history = self.table.history
            name = history.schema.name_of(history.table.table_name)
            raise Refused(f"the table {name} is not served: {reason}")

    def unservable(self, con: Connection) -> Iterator[UnservableRange]:
        """When files are visible that Iceberg's readers would read differently.

        One file of each name mapping is read, because loadTable cannot wait for the footers of all
        files. A file that differs from the others is found when its manifest is built.
        """
        history = self.table.history
        known = {row.mapping_id for row in history.mapped_names}
        for group, lifetime in history.partitioning.groups.items():
            if group.mapping_id is not None and group.mapping_id not in known:
                problem = f"the name mapping {group.mapping_id} of added files names no column"
                yield UnservableRange(*lifetime, problem + REMEDY)
        if not self.table.mappings.paths:
            return
        at = (history.table.table_id, history.snapshot_id)
        for file in queries.first_added_files(history.lake, *at).run(con):
            if reason := self._contradiction(file):
                yield UnservableRange(file.begin_snapshot, file.end_snapshot, reason)

    def _contradiction(self, file: DataFile) -> str | None:
        """Why Iceberg's readers would read a file differently; None if they do not."""
        if file.mapping_id is None:
            return None
        if not is_s3(location := self.table.location_of(file)):
            return OUTSIDE.format(location=location)
        try:
            columns = self._columns(file)
        except (NoSuchKey, NotParquet) as error:
            return f"an added file is missing or damaged ({error}): restore it from a backup"
        history = self.table.history
        column_types = {column.column_id: column.column_type for column in history.columns}
        return self.table.mappings.contradiction(file.mapping_id, columns, column_types)

    def _columns(self, file: DataFile) -> list[Column]:
        """The columns that the file's footer names, from the cache or read now."""
        location = self.table.location_of(file)
        key = f"{self.table.prefix}/{GENERATOR}/footer-{fingerprint(location)}.json"
        body = self.cache.get(key)
        if body is None:
            read = partial(self.object_reader.read_range, location)
            found = columns_of(read, file.file_size_bytes)
            body = self.cache.put(key, json.dumps(found).encode())
        return [Column(tuple(path), *more) for path, *more in json.loads(body)]
