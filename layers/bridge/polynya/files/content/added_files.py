"""Files that ducklake_add_data_files added: DuckLake takes their columns by name.

An Iceberg reader takes them by field id where the file has some, and does not round times. Whether
that comes to the same stands in the file's footer; what it says is kept.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from pg8000.native import Connection

from ...ducklake import queries
from ...ducklake.rows import DataFile, UnservableRange
from ...errors import REMEDY, NoSuchKey, Refused
from ...iceberg.parquet.footer import Column, NotParquet, columns_of
from ...storage.file_cache import FileCache
from ...storage.object_reader import ObjectReader
from ...translate.fingerprints import fingerprint
from ..names import GENERATOR
from ..table_context import TableContext


@dataclass(frozen=True, slots=True)
class AddedFiles:
    """The added files of one table."""

    view: TableContext
    kept: FileCache
    object_reader: ObjectReader

    def check(self, file: DataFile) -> None:
        """See that readers take the columns from a file that DuckLake takes.

        Raises:
            Refused: they would not.
        """
        if reason := self._contradiction(file):
            history = self.view.history
            name = f"{history.schema.schema_name}.{history.table.table_name}"
            raise Refused(f"the table {name} is not served: {reason}")

    def unservable(self, con: Connection) -> Iterator[UnservableRange]:
        """When files that contradict are visible, as far as one file of each mapping tells.

        Files that were added alike are alike. One that is not is found when its manifest is made:
        to read every footer of a table would be too long for who loads it.
        """
        history = self.view.history
        known = {row.mapping_id for row in history.mapped_names}
        for group, lifetime in history.partitioning.groups.items():
            if group.mapping_id is not None and group.mapping_id not in known:
                nameless = f"the name mapping {group.mapping_id} of added files names no column"
                yield UnservableRange(*lifetime, f"{nameless}{REMEDY}")
        if not self.view.mappings.paths:
            return
        at = (history.table.table_id, history.snapshot_id)
        for file in queries.first_added_files(history.lake, *at).run(con):
            if reason := self._contradiction(file):
                yield UnservableRange(file.begin_snapshot, file.end_snapshot, reason)

    def _contradiction(self, file: DataFile) -> str | None:
        if file.mapping_id is None:
            return None
        view = self.view
        location = view.location_of(file)
        key = f"{view.prefix}/{GENERATOR}/footer-{fingerprint(location)}.json"
        body = self.kept.get(key)
        if body is None:
            read = partial(self.object_reader.read_range, location)
            try:
                found = columns_of(read, file.file_size_bytes)
            except (NoSuchKey, NotParquet) as error:
                return f"an added file is missing or damaged ({error}): restore it from a backup"
            body = self.kept.put(key, json.dumps(found).encode())
        columns = [Column(tuple(path), *more) for path, *more in json.loads(body)]
        column_types = {column.column_id: column.column_type for column in view.history.columns}
        return view.mappings.contradiction(file.mapping_id, columns, column_types)
