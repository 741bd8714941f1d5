"""`polynya register`: tables of another Iceberg catalog become tables of a lake, without a copy.

A catalog that Polynya serves does the work, so the command is the same for all kinds of lakes, and
wherever Polynya runs.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple
from uuid import uuid4

import typer
from polynya.runtime.namespaces import Namespace, dotted
from polynya.runtime.printable import printable
from polynya_pipeline.common.errors import say

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.catalog.rest import RestCatalog

METADATA = (".metadata.json", ".metadata.json.gz")
"""The endings of the names of metadata files."""


class Source(NamedTuple):
    """A table to register."""

    namespace: Namespace
    name: str
    metadata_location: str
    """Empty: it cannot be loaded."""
    reason: str = ""
    """Why it cannot be loaded."""


class NotRegistered(Exception):
    """The catalog refuses a table; the message is its own."""


def _pair(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not (key and separator):
        raise typer.BadParameter(f"{text!r} is not KEY=VALUE")
    return key, value


Properties = list[Any]


def register(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE",
            show_default=False,
            help="Tables and namespaces of the catalog that --from or --property names; none: all "
            "of its tables. Or locations of metadata files: s3://bucket/…/v3.metadata.json.",
        ),
    ] = None,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="URI",
            help="The catalog_uri that `polynya serve --writes` prints, or that of a deployment.",
        ),
    ] = "http://127.0.0.1:8181",
    warehouse: Annotated[
        str, typer.Option(metavar="NAME", help="The warehouse, which is the name of the lake.")
    ] = "lake",
    of_catalog: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="NAME",
            show_default=False,
            help="The catalog with this name in PyIceberg's configuration (.pyiceberg.yaml), or "
            "in the database of one of type=sql.",
        ),
    ] = None,
    properties: Annotated[
        Properties | None,
        typer.Option(
            "--property",
            metavar="KEY=VALUE",
            parser=_pair,
            show_default=False,
            help="A property of that catalog, such as type=glue or uri=https://…; may be repeated.",
        ),
    ] = None,
    target_properties: Annotated[
        Properties | None,
        typer.Option(
            "--to-property",
            metavar="KEY=VALUE",
            parser=_pair,
            show_default=False,
            help="A property of PyIceberg for the catalog of --to, such as token=…; may be "
            "repeated.",
        ),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            show_default="the table's own; main for a metadata file",
            help="Register the tables in this namespace, which is created if it is missing.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            show_default="the name of the directory of the table",
            help="The name of the table of a metadata file.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be registered, and write nothing.")
    ] = False,
) -> None:
    """Register tables of another Iceberg catalog in a DuckLake, without a copy of their files.

    Each table becomes one snapshot with the rows that it has now. From then on its files belong to
    the lake, which deletes them when nothing shows them any more: stop writing to the source, and
    remove nothing there. docs/writes.md says what is taken over. A table that is refused does not
    stop the others; the exit code is 1 then.
    """
    from pyiceberg.catalog.rest import RestCatalog

    if name is not None and not (sources and len(sources) == 1 and sources[0].endswith(METADATA)):
        raise typer.BadParameter("--name is for one metadata file")
    registered = refused = 0
    try:
        of_target = {"uri": to, "warehouse": warehouse, **dict(target_properties or ())}
        with closing(RestCatalog("target", **of_target)) as target:
            for source in _sources(sources or [], of_catalog, dict(properties or ()), name):
                into = tuple(namespace.split(".")) if namespace else source.namespace
                label = dotted(*into, source.name)
                try:
                    line = _register(target, source, into, dry_run=dry_run)
                    registered += 1
                except NotRegistered as error:
                    refused += 1
                    line = f"refused: {error}"
                print(printable(f"{label}: {line}"), flush=True)
    except OSError as error:
        say(f"a catalog does not answer: {type(error).__name__}")
        raise typer.Exit(1) from None
    if refused or not registered:
        say(f"{refused} refused" if refused else "the catalog has no such tables")
        raise typer.Exit(1)


def _sources(
    sources: Sequence[str], of_catalog: str | None, properties: dict[str, str], name: str | None
) -> Iterator[Source]:
    files = [source for source in sources if source.endswith(METADATA)]
    for location in files:
        # …/orders/metadata/v3.metadata.json
        directories = location.split("/")[:-1]
        directory = directories[-2] if directories[-1:] == ["metadata"] else directories[-1]
        yield Source(("main",), name or directory, location)
    if files and not (of_catalog or properties):
        return
    if not (of_catalog or properties):
        raise typer.BadParameter("give --from or --property, or the location of a metadata file")
    from pyiceberg.catalog import load_catalog

    with closing(load_catalog(of_catalog or "source", **properties)) as catalog:
        named = [source for source in sources if source not in files]
        yield from _catalog_sources(catalog, named)


def _catalog_sources(catalog: "Catalog", named: Sequence[str]) -> Iterator[Source]:
    """The tables of a catalog with these names, or in these namespaces; none: all of them."""
    identifiers: list[tuple[str, ...]] = []
    for text in named:
        levels = tuple(text.split("."))
        if len(levels) > 1 and catalog.table_exists(levels):
            identifiers.append(levels)
        else:
            identifiers += _tables(catalog, levels)
    for levels in identifiers if named else _tables(catalog, ()):
        try:
            location, reason = catalog.load_table(levels).metadata_location, ""
        except Exception as error:  # any error of the catalog's client: the other tables follow
            location, reason = "", f"the source catalog does not load it: {error}"
        yield Source(levels[:-1], levels[-1], location, reason)


def _tables(catalog: "Catalog", namespace: Namespace) -> Iterator[tuple[str, ...]]:
    """All tables in a namespace, and in those below it."""
    if namespace:
        yield from catalog.list_tables(namespace)
    for below in catalog.list_namespaces(namespace):
        if len(below) > len(namespace):  # some catalogs answer with all, or with the same one
            yield from _tables(catalog, below)


def _register(target: "RestCatalog", source: Source, namespace: Namespace, *, dry_run: bool) -> str:
    """Register a table; returns what was done.

    Raises:
        NotRegistered: the catalog refuses it.
    """
    if source.reason:
        raise NotRegistered(source.reason)
    name, is_missing = source.name, not target.namespace_exists(namespace)
    if is_missing and dry_run:
        # Any namespace will do, with a name that no table has.
        namespace, name = target.list_namespaces()[0], str(uuid4())
    elif is_missing:
        try:
            target.create_namespace_if_not_exists(namespace)
        except Exception as error:  # PyIceberg's errors have no base of their own
            raise NotRegistered(str(error)) from None
    answer = _post(target, namespace, name, source.metadata_location, dry_run=dry_run)
    if dry_run:
        planned = answer
    else:
        summary = (answer["metadata"].get("snapshots") or [{"summary": {}}])[-1]["summary"]
        planned = {
            "data-files": int(summary.get("total-data-files", 0)),
            "rows": int(summary.get("total-records", 0))
            - int(summary.get("total-position-deletes", 0)),
            "left-behind": summary.get("polynya.left-behind", ""),
        }
    words = f"{planned['rows']:,} rows in {planned['data-files']:,} files"
    words += " would be registered" if dry_run else " registered"
    return words + (f"; left behind: {planned['left-behind']}" if planned["left-behind"] else "")


def _post(
    target: "RestCatalog", namespace: Namespace, name: str, location: str, *, dry_run: bool
) -> dict[str, Any]:
    """The answer to registerTable; PyIceberg's own method knows no dry run."""
    from pyiceberg.catalog.rest import Endpoints

    path = target.url(Endpoints.register_table, namespace=target._encode_namespace_path(namespace))
    body: Any = {"name": name, "metadata-location": location, "dry-run": dry_run}
    answer = target._session.post(path, json=body)
    try:
        document: dict[str, Any] = answer.json()
    except ValueError:
        document = {}
    if not answer.ok:
        message = document.get("error", {}).get("message") or f"HTTP {answer.status_code}"
        raise NotRegistered(message)
    return document
