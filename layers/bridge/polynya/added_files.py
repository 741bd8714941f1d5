"""Files that were added to a table: whether readers take the columns that DuckLake takes."""

import json
from functools import partial

from .ducklake.rows import DataFile
from .errors import Refused
from .iceberg.parquet import columns_of
from .store import Kept
from .table_deletes import RealFiles
from .table_view import TableView
from .translate.fingerprints import fingerprint
from .virtual_names import GENERATOR


def check_columns(file: DataFile, view: TableView, kept: Kept, files: RealFiles) -> None:
    """See that readers take the columns from an added file that DuckLake takes.

    Raises:
        Refused: they would not.
    """
    if file.mapping_id is None:
        return
    location = view.location_of(file)
    # Kept by its location: a footer is read once.
    key = f"{view.prefix}/{GENERATOR}/columns-{fingerprint(location)}.json"
    body = kept.get(key)
    if body is None:
        found = columns_of(partial(files.read_range, location), file.file_size_bytes)
        body = kept.put(key, json.dumps(found).encode())
    columns = [(tuple(path), field_id) for path, field_id in json.loads(body)]
    if reason := view.mappings.contradiction(file.mapping_id, columns):
        name = f"{view.history.schema.schema_name}.{view.history.table.table_name}"
        raise Refused(f"the table {name} is not served: {reason}")
