"""Files that ducklake_add_data_files added: DuckLake takes their columns by name.

An Iceberg reader takes them by field id where the file has some, and nanoseconds for what the table
says they are. Whether that comes to the same stands in the file's footer; what it says is kept.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from pg8000.native import Connection

from .ducklake import queries
from .ducklake.history import TableHistory
from .ducklake.paths import file_location
from .ducklake.rows import DataFile, Gap
from .errors import NoSuchKey, Refused
from .iceberg.parquet import Column, columns_of
from .table_deletes import RealFiles
from .translate.fingerprints import fingerprint
from .translate.mappings import Mappings
from .virtual_names import GENERATOR


@dataclass(frozen=True, slots=True)
class AddedFiles:
    """The added files of one table."""

    history: TableHistory
    mappings: Mappings
    prefix: str
    """Of the keys under which footers are kept."""
    make: Callable[[str, Callable[[], bytes]], bytes]
    real_files: RealFiles

    def check(self, file: DataFile) -> None:
        """See that readers take the columns from a file that DuckLake takes.

        Raises:
            Refused: they would not.
        """
        if reason := self._contradiction(file):
            name = f"{self.history.schema.schema_name}.{self.history.table.table_name}"
            raise Refused(f"the table {name} is not served: {reason}")

    def gaps(self, con: Connection) -> Iterator[Gap]:
        """When files that contradict are visible, as far as one file of each mapping tells.

        Files that were added alike are alike. One that is not is found when its manifest is made:
        to read every footer of a table would be too long for who loads it.
        """
        if not self.mappings.paths:
            return
        at = (self.history.table.table_id, self.history.snapshot_id)
        for file in queries.first_added_files(con, self.history.lake, *at):
            try:
                reason = self._contradiction(file)
            except NoSuchKey as error:
                reason = str(error)
            if reason:
                yield Gap(file.begin_snapshot, file.end_snapshot, reason)

    def _contradiction(self, file: DataFile) -> str | None:
        if file.mapping_id is None:
            return None
        history = self.history
        location = file_location(history.lake, history.schema, history.table, file)
        read = partial(self.real_files.read_range, location)
        key = f"{self.prefix}/{GENERATOR}/footer-{fingerprint(location)}.json"
        kept = self.make(key, lambda: json.dumps(columns_of(read, file.file_size_bytes)).encode())
        columns = [Column(tuple(path), *more) for path, *more in json.loads(kept)]
        nanoseconds = {c.column_id for c in history.columns if c.column_type == "timestamp_ns"}
        return self.mappings.contradiction(file.mapping_id, columns, nanoseconds)
