"""The columns in the footers of files that ducklake_add_data_files added."""

import json
from functools import partial

from pg8000.native import Connection

from ..ducklake import queries
from ..ducklake.paths import file_location
from ..ducklake.queries.history import TableHistory
from ..ducklake.rows.files import DataFile
from ..ducklake.rows.lifetimes import UnservableRange
from ..iceberg.parquet.footer import Column, NotParquet, columns_of
from ..mapping.manifests import fingerprint
from ..mapping.name_mappings import Mappings
from ..runtime.errors import NoSuchKey
from ..storage.file_cache import Cache
from ..storage.objects import ObjectReader
from ..storage.s3_locations import is_s3
from .names import GENERATOR

TIME = "time"
IN_NANOSECONDS = (
    "files were added that have it in nanoseconds, as Polars writes a Time, which DuckLake rounds "
    "and Iceberg clients do not"
)


def footer_columns(
    location: str, file: DataFile, prefix: str, cache: Cache, reader: ObjectReader
) -> list[Column]:
    """The columns that a file's footer names, from the cache or read now.

    Args:
        prefix: of the keys of the table's virtual files.

    Raises:
        NoSuchKey, NotParquet: there is no such file.
        ServiceUnavailable: it cannot be read now.
    """
    key = f"{prefix}/{GENERATOR}/footer-{fingerprint(location)}.json"
    body = cache.get(key)
    if body is None:
        columns = columns_of(partial(reader.read_range, location), file.file_size_bytes)
        body = cache.put(key, json.dumps(columns).encode())
    return [Column(tuple(path), *more) for path, *more in json.loads(body)]


def converted_in_added_files(
    con: Connection,
    history: TableHistory,
    mappings: Mappings,
    prefix: str,
    cache: Cache,
    reader: ObjectReader,
) -> dict[int, list[UnservableRange]]:
    """The snapshots at which columns are hidden because added files have finer values: one file of
    each mapping is read. Raises: as `footer_columns`, for files that cannot be read now."""
    times = {column.column_id for column in history.columns if column.column_type == TIME}
    if not times.intersection(mappings.table_paths.values()):
        return {}
    converted: dict[int, list[UnservableRange]] = {}
    place = history.lake, history.schema, history.table
    files = queries.first_added_files(history.lake, history.table.table_id, history.snapshot_id)
    for file in files.run(con):
        if not is_s3(location := file_location(*place, file)):
            continue
        try:
            columns = footer_columns(location, file, prefix, cache, reader)
        except (NoSuchKey, NotParquet):
            continue  # the table is refused
        own = mappings.paths.get(file.mapping_id or 0, {})
        for path, _, decimals in columns:
            if (column_id := own.get(path)) in times and (decimals or 0) > MICROSECONDS:
                gap = UnservableRange(history.table.begin_snapshot, None, IN_NANOSECONDS)
                converted[column_id] = [gap]
    return converted


MICROSECONDS = 6
"""The decimal places of the seconds of a TIME."""
