"""`polynya inspect`: shows a table from the catalog's rows to the files that clients get."""

import sys
from collections.abc import Iterable
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pg8000.native import Connection
from polynya.ducklake.rows.objects import Lake, Schema, Table
from polynya.runtime.errors import BadRequest, NoSuchTable, PolynyaError
from polynya.runtime.namespaces import dotted
from polynya.runtime.printable import printable_json, printable_report
from polynya_pipeline.common import options
from polynya_pipeline.common.errors import counted, say
from polynya_pipeline.common.progress import console, waiting
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text
from rich.tree import Tree

from .lakes.catalog_file import check_address

if TYPE_CHECKING:
    from .reports.manifests import Bounds, File, Manifest
    from .reports.metadata_files import Snapshot, TableReport

COLOURS = {"added": "green", "existing": "", "deleted": "red"}
FAINT = "dim"
LONGEST_LINE = 10_000
NUMBERS = ("total-files-size", "added-data-files", "deleted-data-files")
"""Columns of the list of snapshots: numbers of the summaries, which lack what is not known."""


def inspect(
    table: Annotated[
        str,
        typer.Argument(metavar="TABLE", help="namespace.table, or a table name that is unique."),
    ],
    address: options.LakeAddress = None,
    database: options.AnyDatabase = None,
    metadata_schema: options.LakeSchema = "public",
    data_path: options.DataPath = None,
    s3_endpoint: options.S3Endpoint = None,
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
    as_json: options.AsJson = False,
) -> None:
    """Show a table as Iceberg clients get it.

    Shows its metadata, snapshots, manifests, files, bounds and deletes, and the rows of DuckLake's
    catalog that each file comes from. This process generates the files with the code that generates
    them for clients; no server is needed, and nothing is stored.
    """
    address = options.address_of(address, database)
    check_address(address)
    # These import PyIceberg and DuckDB, which take a second.
    from .lakes.opened import readable
    from .reports.generator import Generator, served_lake
    from .reports.metadata_files import table_report

    try:
        with readable(address, metadata_schema, data_path, s3_endpoint) as opened:
            generator = Generator(opened.database, opened.metadata_schema, opened.aws)
            with (
                closing(generator.database),
                generator.database.transaction() as con,
                waiting(f"Reading {table}"),
            ):
                lake = served_lake(con)
                schema_and_table = _table_named(con, lake, table)
                report = table_report(generator.open_table(con, lake, *schema_and_table), snapshot)
    except PolynyaError as error:
        say(str(error))
        raise typer.Exit(1) from None
    if as_json:
        print(printable_json(_json(asdict(report)), indent=2))
    else:
        _render(printable_report(report), console(sys.stdout), limit or sys.maxsize)


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
    """The table with this full name, or with this name in any namespace.

    Raises:
        NoSuchTable: there is none; with up to 20 names that exist.
        BadRequest: several namespaces have one.
    """
    from .reports.generator import tables_of

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


def _render(report: "TableReport", out: Console, limit: int) -> None:
    """Print a table report, with at most `limit` entries of each list."""
    document = report.document
    out.print(Text(report.name, "bold"), soft_wrap=True)
    _pairs(
        out,
        {
            "uuid": document["table-uuid"],
            "location": document["location"],
            "data": report.data_location,
            "in DuckLake": f"table_id {report.table_id}",
            "format version": str(document["format-version"]),
            "next row id": str(document.get("next-row-id", "")),
        },
    )
    _schema(out, report, limit)
    _specs(out, document)
    properties = {
        name: text
        for name, text in document["properties"].items()
        if not name.startswith("polynya.hidden-columns")  # the schema shows them
    }
    if properties:
        _title(out, "Properties")
        _pairs(out, properties)
    _snapshots(out, report, limit)
    if report.shown is not None:
        _title(out, f"Files of snapshot {report.shown.snapshot_id}")
        out.width = LONGEST_LINE  # a tree's lines are cut at the width, also with soft_wrap
        out.print(_tree(report, limit), soft_wrap=True)


def _title(out: Console, text: str) -> None:
    out.print(f"\n{text}", style="bold")


def _pairs(out: Console, pairs: dict[str, str]) -> None:
    width = max(map(len, pairs))
    for name, text in pairs.items():
        if text:
            out.print(f"  {name:<{width}}  {text}", soft_wrap=True)


def _schema(out: Console, report: "TableReport", limit: int) -> None:
    document = report.document
    schemas = {schema["schema-id"]: schema for schema in document["schemas"]}
    current = schemas[document["current-schema-id"]]
    _title(out, f"Schema {current['schema-id']}, of {len(schemas)}")
    fields = list(_fields(current["fields"]))
    width = max(len(name) for _, name, _, _ in fields[:limit])
    for field_id, name, type_, note in fields[:limit]:
        line = f"  {field_id:>4}  {name:<{width}}  {type_}{note}"
        out.print(line.rstrip(), soft_wrap=True)
    _remainder(out, len(fields) - limit, "fields")
    for name, reason in report.hidden.items():
        out.print(Text(f"  hidden: {name}: {reason}", "yellow"), soft_wrap=True)
    for name, reason in report.defaults.items():
        out.print(Text(f"  default: {name}: {reason}", "yellow"), soft_wrap=True)


def _fields(fields: list[dict[str, Any]], prefix: str = "") -> Iterable[tuple[int, str, str, str]]:
    """Id, dotted name, type and notes of fields at every level."""
    for field in fields:
        note = f"  default {field['initial-default']}" if "initial-default" in field else ""
        note += f"  {field['doc']!r}" if "doc" in field else ""
        yield from _field(field["id"], prefix + field["name"], field["type"], note)


def _field(
    field_id: int, name: str, type_: Any, note: str = ""
) -> Iterable[tuple[int, str, str, str]]:
    if isinstance(type_, str):
        yield field_id, name, type_, note
        return
    yield field_id, name, type_["type"], note
    if type_["type"] == "struct":
        yield from _fields(type_["fields"], f"{name}.")
    for part in ("element", "key", "value"):
        if part in type_:
            yield from _field(type_[f"{part}-id"], f"{name}.{part}", type_[part])


def _specs(out: Console, document: dict[str, Any]) -> None:
    _title(out, "Partition specs")
    for spec in document["partition-specs"]:
        fields = ", ".join(
            f"{field['name']} = {field['transform']} of {field['source-id']}"
            for field in spec["fields"]
        )
        is_default = spec["spec-id"] == document["default-spec-id"]
        default = "  (default)" if is_default else ""
        out.print(f"  {spec['spec-id']:>4}  {fields or 'unpartitioned'}{default}", soft_wrap=True)


def _snapshots(out: Console, report: "TableReport", limit: int) -> None:
    _title(out, f"Snapshots, {len(report.snapshots)} listed")
    _remainder(out, len(report.snapshots) - limit, "older ones")
    grid = Grid(box=None, pad_edge=False, header_style=FAINT, padding=(0, 1))
    for name in (
        "  id",
        "time",
        "operation",
        "schema",
        "files",
        "rows",
        "bytes",
        "added",
        "removed",
    ):
        grid.add_column(name, no_wrap=True, justify="left" if name in ("time",) else "right")
    grid.add_column("changes to all tables", no_wrap=True, overflow="ellipsis")
    for snapshot in report.snapshots[-limit:]:
        is_shown = report.shown is not None and snapshot.snapshot_id == report.shown.snapshot_id
        grid.add_row(*_snapshot(snapshot), style="bold" if is_shown else "")
    out.print(grid)
    for snapshot_id, reason in list(report.left_out.items())[-limit:]:
        out.print(Text(f"  left out: {snapshot_id}: {reason}", "yellow"), soft_wrap=True)
    _remainder(out, len(report.left_out) - limit, "older ones left out")


def _snapshot(snapshot: "Snapshot") -> list[str]:
    counts = snapshot.counts
    return [
        f"  {snapshot.snapshot_id}",
        snapshot.time,
        snapshot.operation,
        str(snapshot.schema_id),
        _number(counts.get("total-data-files")),
        _number(snapshot.rows),
        *(_number(counts.get(name)) for name in NUMBERS),
        snapshot.changes,
    ]


def _number(value: int | None) -> str:
    """A number; a dash if it is not known."""
    return "–" if value is None else f"{value:,}"


def _remainder(out: Console, number: int, noun: str) -> None:
    if number > 0:
        out.print(Text(f"  … and {number:,} {noun}", FAINT))


def _tree(report: "TableReport", limit: int) -> Tree:
    files = report.files
    assert files is not None
    tree = Tree(_line(f"manifest list {_virtual(report, files.path)}", _size(files.bytes)))
    deleted = files.deleted_rows()
    for manifest in files.manifests:
        branch = tree.add(_manifest_line(report, manifest))
        for file in manifest.entries[:limit]:
            leaf = branch.add(_file_line(report, file, deleted.get(file.path, 0)))
            _add_columns(leaf, file, limit)
        if len(manifest.entries) > limit:
            branch.add(Text(f"… and {len(manifest.entries) - limit:,} files", FAINT))
    if not files.manifests:
        tree.add("no files: the table is empty")
    return tree


def _manifest_line(report: "TableReport", manifest: "Manifest") -> Text:
    counts = [
        f"{number} {status} ({counted(manifest.rows[status], 'row')})"
        for status, number in manifest.files.items()
        if number
    ]
    summary = f"spec {manifest.spec_id}; {', '.join(counts)}"
    name = _virtual(report, manifest.path)
    line = _line(f"{manifest.kind}: manifest {name}", f"{_size(manifest.bytes)}, {summary}")
    for partition in manifest.partitions:
        line.append(f"; {partition}", FAINT)
    return line


def _file_line(report: "TableReport", file: "File", deleted: int) -> Text:
    line = Text(f"{file.status:<8} ", COLOURS[file.status])
    line.append(_path(report, file.path))
    rows = counted(file.rows, "row")
    if file.deletes_of is not None:
        rows += f" of {_path(report, file.deletes_of)}"
    elif deleted and file.status != "deleted":
        rows += f", {deleted:,} of them deleted"
    values = "/".join(f"{name}={text}" for name, text in file.partition.items())
    line.append(f"  {', '.join(filter(None, [rows, _size(file.bytes), values]))}", "bold")
    origin = [f"sequence number {file.sequence_number}", str(report.sources[file.path])]
    line.append(f"  {'; '.join(filter(None, origin))}", FAINT)
    return line


def _add_columns(leaf: Tree, file: "File", limit: int) -> None:
    columns = list(file.columns.items())
    width = max((len(name) for name, _ in columns[:limit]), default=0)
    for name, bounds in columns[:limit]:
        leaf.add(f"{name:<{width}}  {_bounds(bounds)}")
    if len(columns) > limit:
        leaf.add(Text(f"… and {len(columns) - limit:,} columns", FAINT))


def _bounds(bounds: "Bounds") -> str:
    if bounds.lower is bounds.upper is None:
        words = "no bounds"
    else:
        ends = ("?" if end is None else end for end in (bounds.lower, bounds.upper))
        words = " … ".join(dict.fromkeys(ends))
    if bounds.nulls is None:
        return f"{words}, NULLs not known"
    return f"{words}, {bounds.nulls:,} NULL" if bounds.nulls else words


def _line(text: str, faint: str) -> Text:
    return Text(text).append(f"  {faint}", FAINT)


def _virtual(report: "TableReport", path: str) -> str:
    return path.removeprefix(f"{report.document['location']}/")


def _path(report: "TableReport", path: str) -> str:
    """A path relative to the table's data location, or to that of its virtual files."""
    return _virtual(report, path.removeprefix(report.data_location))


def _size(number: int) -> str:
    if number < 1000:
        return f"{number} bytes"
    size = float(number)
    for unit in ("kB", "MB", "GB"):
        size /= 1000
        if size < 1000:
            return f"{size:.1f} {unit}"
    return f"{size / 1000:.1f} TB"
