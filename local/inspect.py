"""`polynya inspect`: shows a table from the catalog's rows to the files that clients get."""

import json
import sys
from contextlib import closing
from dataclasses import asdict
from typing import Annotated, Any

import typer
from pg8000.native import Connection
from polynya.ducklake import queries
from polynya.ducklake.rows.objects import Lake, Schema, Table
from polynya.mapping.tables import check_lake
from polynya.runtime.errors import BadRequest, NoSuchTable, PolynyaError
from polynya.runtime.namespaces import dotted
from polynya_pipeline.common.options import (
    AnyDatabase,
    AsJson,
    DataPath,
    LakeAddress,
    LakeSchema,
    S3Endpoint,
    address_of,
)
from polynya_pipeline.common.progress import console, waiting

from .lakes.opened import readable
from .reports.generator import Generator, tables_of


def inspect(
    table: Annotated[
        str,
        typer.Argument(metavar="TABLE", help="namespace.table, or a table name that is unique."),
    ],
    address: LakeAddress = None,
    database: AnyDatabase = None,
    metadata_schema: LakeSchema = "public",
    data_path: DataPath = None,
    s3_endpoint: S3Endpoint = None,
    snapshot: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Show the files as of this DuckLake snapshot. Default: the newest.",
        ),
    ] = None,
    limit: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="Show at most N snapshots, files of a manifest and columns of a file; 0: all.",
        ),
    ] = 10,
    as_json: AsJson = False,
) -> None:
    """Show a table as Iceberg clients get it.

    Shows its metadata, snapshots, manifests, files, bounds and deletes, and the rows of DuckLake's
    catalog that each file comes from. This process generates the files with the code that generates
    them for clients; no server is needed, and nothing is stored.
    """
    # Imported here: PyIceberg takes a second, which other commands do not need.
    from .reports.render import render
    from .reports.table_report import table_report

    address = address_of(address, database)
    try:
        with readable(address, metadata_schema, data_path, s3_endpoint) as opened:
            generator = Generator(opened.database, opened.metadata_schema, opened.s3_endpoint)
            with (
                closing(generator.database),
                generator.database.transaction() as con,
                waiting(f"Reading {table}"),
            ):
                lake = queries.lake().run(con)
                check_lake(lake.version, lake.encrypted)
                schema_and_table = _table_named(con, lake, table)
                report = table_report(generator.open_table(con, lake, *schema_and_table), snapshot)
    except PolynyaError as error:
        print(f"polynya: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    if as_json:
        print(json.dumps(_json(asdict(report)), ensure_ascii=False, indent=2))
    else:
        render(report, console(sys.stdout), limit or sys.maxsize)


def _json(report: dict[str, Any]) -> dict[str, Any]:
    """The report with each file's source beside it, and the files below their snapshot."""
    sources = report.pop("sources")
    shown, files = report.pop("shown"), report.pop("files")
    for manifest in files["manifests"] if files else ():
        for file in manifest["entries"]:
            file["source"] = sources[file["path"]]
    report["snapshot"] = {**shown, "manifest_list": files} if shown else None
    return report


def _table_named(con: Connection, lake: Lake, name: str) -> tuple[Schema, Table]:
    """The table with this full name, or with this name alone.

    Raises:
        NoSuchTable: there is none; with up to 20 names that exist.
        BadRequest: several namespaces have one.
    """
    tables = tables_of(con, lake)
    matches = [pair for pair in tables if _full_name(pair) == name]
    # In a lake whose schemas have one level each, a dot in a name needs no quotes.
    matches = matches or [pair for pair in tables if ".".join(_names(pair)) == name]
    matches = matches or [pair for pair in tables if pair[1].table_name == name]
    if len(matches) == 1:
        return matches[0]
    if matches:
        several = ", ".join(_full_name(pair) for pair in matches)
        raise BadRequest(f"several tables are called {name}: {several}")
    there_are = ", ".join(_full_name(pair) for pair in tables[:20]) or "none"
    more = f" and {len(tables) - 20} more" if len(tables) > 20 else ""
    raise NoSuchTable(f"there is no table {name}; there are: {there_are}{more}")


def _full_name(pair: tuple[Schema, Table]) -> str:
    return dotted(*_names(pair))


def _names(pair: tuple[Schema, Table]) -> tuple[str, ...]:
    schema, table = pair
    return (*schema.namespace, table.table_name)
