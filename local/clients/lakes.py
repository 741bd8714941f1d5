"""Writes a DuckLake with DuckDB from an SQL script with placeholders."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from duckdb import DuckDBPyConnection

from ..processes.postgres import Database
from .duckdb_connection import LAKE, connect, identifier, literal

REPEAT = re.compile(r"^-- @repeat (\d+)\n(.*)$", re.MULTILINE)
METADATA_SCHEMA = re.compile(r"\bMETADATA_SCHEMA '((?:[^']|'')*)'")


@dataclass(frozen=True, slots=True)
class Lake:
    """Where a DuckLake is."""

    name: str
    database: Database
    data_path: str
    metadata_schema: str = "public"
    native: Database | None = None
    """What DuckDB's extension reads instead, if it does not know the version of `database`."""


def write_lake(
    name: str, script: str, database: Database, data_path: str, s3_endpoint: str | None
) -> Lake:
    """Run the text of a script on an empty database and an empty data path.

    The script may have the placeholders `{{CATALOG}}` and `{{DATA_PATH}}`, and lines after
    `-- @repeat N`, which are run N times with the numbers 1 to N for `{{i}}`.

    Args:
        name: of the lake.
        data_path: without a slash at its end.
    """
    with connect(LAKE, s3_endpoint) as con:
        for statement in con.extract_statements(
            filled_in(script, f"postgres:{database.libpq}", data_path)
        ):
            con.execute(statement)
    found = METADATA_SCHEMA.search(script)
    schema = found.group(1).replace("''", "'") if found else "public"
    return Lake(name, database, data_path, schema)


def attach(con: DuckDBPyConnection, lake: Lake, *, read_only: bool = True) -> None:
    """Attach an existing lake as `lake`."""
    options = [f"METADATA_SCHEMA {literal(lake.metadata_schema)}"]
    if read_only:
        options.append("READ_ONLY")
    source = literal(f"ducklake:postgres:{(lake.native or lake.database).libpq}")
    con.execute(f"ATTACH {source} AS {identifier('lake')} ({', '.join(options)})")


def filled_in(text: str, catalog: str, data_path: str) -> str:
    """A script with values for its placeholders.

    Args:
        catalog: what follows `ducklake:` in ATTACH.
    """
    text = REPEAT.sub(lambda found: "\n".join(_repeated(*found.groups())), text)
    text = text.replace("{{CATALOG}}", catalog.replace("'", "''"))
    return text.replace("{{DATA_PATH}}", data_path.replace("'", "''"))


def _repeated(times: str, line: str) -> Iterator[str]:
    return (line.replace("{{i}}", str(i)) for i in range(1, int(times) + 1))
