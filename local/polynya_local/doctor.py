"""`polynya doctor` compares DuckLake's catalog with what Iceberg clients get."""

import sys
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from polynya.runtime.errors import PolynyaError
from polynya.runtime.printable import printable_json, printable_report
from polynya_pipeline.common import options
from polynya_pipeline.common.progress import console, waiting

from .lakes.catalog_file import check_address

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    from .reports.findings import Report, RowCount, TableResult

COLOURS = {
    "wrong rows": "bold red",
    "unreadable": "red",
    "hidden": "yellow",
    "slow": "yellow",
    "information": "dim",
}
"""The colour of a finding by its consequence, the worst first."""


def doctor(
    address: options.LakeAddress = None,
    database: options.AnyDatabase = None,
    metadata_schema: options.LakeSchema = "public",
    data_path: options.DataPath = None,
    s3_endpoint: options.S3Endpoint = None,
    past: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Count rows at N past snapshots of each table, too."),
    ] = 3,
    every_file: Annotated[
        bool,
        typer.Option(
            "--every-file",
            help="Look at all data files of every table. Default: of a table with more than about "
            "200,000, some of them are compared with what the catalog claims, and its rows are not "
            "counted, because a million takes minutes.",
        ),
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Check what Polynya serves of a lake, and whether it is exact.

    Shows which tables are served, refused, or lack columns or snapshots, and why. Compares the
    row counts of every table in DuckLake, in its files and in what Iceberg clients get. Names
    missing grants, default privileges and indexes, with the SQL that adds them. Changes nothing.

    The exit code is 1 if anything is wrong or refused; warnings and notes leave it at 0.
    """
    address = options.address_of(address, database)
    if not as_json:
        check_address(address)
    # These import PyIceberg and DuckDB, which take a second.
    from .lakes.opened import readable
    from .reports.diagnosis import diagnose
    from .reports.findings import ERROR, Report
    from .reports.generator import Generator

    report = Report()
    try:
        with readable(address, metadata_schema, data_path, s3_endpoint) as lake:
            generator = Generator(lake.database, lake.metadata_schema, lake.aws)
            with closing(generator.database), waiting("Checking the lake") as stage:
                for report in diagnose(generator, lake, past, every_file=every_file):
                    stage.doing(f"Checking: {len(report.tables)} tables so far")
    except PolynyaError as error:
        report.add(ERROR, "catalog", str(error))
    if as_json:
        print(printable_json(_json(report), indent=2))
    else:
        _show(printable_report(report), console(sys.stdout))
    raise typer.Exit(0 if report.is_well else 1)


def _json(report: "Report") -> dict[str, Any]:
    document = asdict(report)
    document["worst"] = report.worst
    for table, result in zip(document["tables"], report.tables, strict=True):
        for count, row_count in zip(table["counts"], result.counts, strict=True):
            count["same"] = row_count.is_same
    return {"well": report.is_well, "summary": report.summary, **document}


def _show(report: "Report", out: "Console") -> None:
    lake = report.lake
    if lake:
        kind = "encrypted " if lake["encrypted"] else ""
        served = "served" if lake["served"] else "not served"
        out.print(
            f"{kind}DuckLake catalog {lake['version']}, {served}; snapshot {lake['snapshot_id']}; "
            f"data in {lake['data_path']}",
            soft_wrap=True,
        )
    if report.tables:
        out.print(f"rows according to {report.counted_by}\n", soft_wrap=True)
        out.print(_grid(report.tables))
    for consequence, colour in COLOURS.items():
        for finding in report.findings:
            if finding.consequence == consequence:
                words = f"{finding.level.upper()}: {finding.about}: {finding.message}"
                out.print(words, style=colour, soft_wrap=True)
                if finding.remedy:
                    out.print(f"    {finding.remedy}", soft_wrap=True)
    out.print(report.summary, style=f"bold {_colour(report)}", soft_wrap=True)


def _colour(report: "Report") -> str:
    """The colour of the last line, which depends on the worst finding."""
    colours = {"hidden": "yellow", "slow": "green", "information": "green"}
    return colours.get(report.worst, "red")


def _grid(tables: "list[TableResult]") -> "Grid":
    from rich.table import Table as Grid

    grid = Grid(box=None, pad_edge=False, header_style="bold")
    grid.add_column("table", no_wrap=True, overflow="ellipsis")
    for name in ("snapshots", "DuckLake", "Iceberg"):
        grid.add_column(name, no_wrap=True, justify="right")
    for name in ("now", "past", "hidden"):
        grid.add_column(name, no_wrap=True)
    for table in tables:
        grid.add_row(table.name, *_cells(table))
    return grid


def _cells(table: "TableResult") -> "list[str | Text]":
    from rich.text import Text

    if table.status != "served":
        return [str(table.snapshots or ""), "", "", Text(table.status.upper(), "bold red")]
    past, now = table.counts[:-1], table.counts[-1] if table.counts else None
    numbers = [now.ducklake, now.iceberg] if now else [None, None]
    same = sum(count.is_same for count in past)
    differs = any(count.is_known and not count.is_same for count in past)
    return [
        str(table.snapshots),
        *("-" if number is None else f"{number:,}" for number in numbers),
        _verdict(now),
        Text(f"{same} of {len(past)} same", "bold red" if differs else ""),
        str(len(table.hidden_columns) or ""),
    ]


def _verdict(count: "RowCount | None") -> "Text":
    from rich.text import Text

    if count is None or not count.is_known:
        return Text("not known", "yellow")
    return Text("same", "green") if count.is_same else Text("DIFFERS", "bold red")
