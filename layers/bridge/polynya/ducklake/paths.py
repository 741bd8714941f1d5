"""From DuckLake's `path` and `path_is_relative` to the location of a file."""

import re

from ..runtime.namespaces import Namespace
from .rows.files import DataFile, DeleteFile
from .rows.objects import Lake, Schema, Table


def location(*levels: tuple[str, bool]) -> str:
    """Join the paths of lake, schema, table and file, outermost first.

    A level that is not relative replaces everything before it. `/./` becomes `/`, as in DuckDB's
    requests for the file; other clients would ask for another key. Nothing else is normalised,
    decoded or encoded: `//` and `%2F` are part of the key in S3.
    """
    joined = ""
    for path, path_is_relative in levels:
        joined = joined + path if path_is_relative else path
    return DOTS.sub("/", joined) if "/./" in joined else joined


DOTS = re.compile(r"(?:/[.])+/")


def schema_location(lake: Lake, schema: Schema) -> str:
    """The directory of a schema, with a slash at its end.

    Also a schema in another one has a path relative to the lake's data path, not to its parent's:
    so DuckLake reads it (`BuildCatalogForSnapshot` in ducklake_metadata_manager.cpp).
    """
    return location((lake.data_path, False), (schema.path, schema.path_is_relative))


def table_location(lake: Lake, schema: Schema, table: Table) -> str:
    """The directory of a table; never its identity, because two tables may share it."""
    return location(
        (lake.data_path, False),
        (schema.path, schema.path_is_relative),
        (table.path, table.path_is_relative),
    )


def file_location(lake: Lake, schema: Schema, table: Table, file: DataFile | DeleteFile) -> str:
    """The location of a data file or a delete file, spelled as DuckLake's writers spell it."""
    directory = table_location(lake, schema, table)
    return location((directory, False), (file.path, file.path_is_relative))


SIMPLE_NAME = re.compile("[A-Za-z0-9_-]+")


def directory(name: str, uuid: str) -> str:
    """The directory that DuckLake gives a new schema or table: its name, or its uuid."""
    return f"{name if SIMPLE_NAME.fullmatch(name) else uuid}/"


def schema_directory(namespace: Namespace, uuid: str) -> str:
    """The directory that DuckLake gives a new schema, below the lake's data path.

    In another schema it has its uuid (`DuckLakeCatalog::CreateSchema`): levels share names.
    """
    return directory(namespace[0], uuid) if len(namespace) == 1 else f"{uuid}/"


def path_in_schema(directory: str, lake: Lake, schema: Schema) -> tuple[str, bool]:
    """A directory as the path of a table of the schema, and whether that path is relative."""
    of_schema = schema_location(lake, schema)
    if directory.startswith(of_schema) and directory != of_schema:
        return directory.removeprefix(of_schema), True
    return directory, False


def path_in_lake(location: str, lake: Lake) -> tuple[str, bool]:
    """A location as a path of the lake, and whether that path is relative to its data path."""
    if location.startswith(lake.data_path):
        return location.removeprefix(lake.data_path), True
    return location, False
