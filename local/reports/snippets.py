"""The snippets of each client, with the values of a place filled in."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from string import Template

from . import queries, templates
from .languages import CLICKHOUSE_SQL, PROPERTIES, PYTHON, SQL, Language
from .place import Place


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a snippet."""

    language: Language
    template: str
    query: Callable[[Place], str] | None = None
    """What `$query` stands for."""
    file: str = ""
    """The file that it belongs into; "": it is pasted into the client."""

    def text(self, place: Place) -> str:
        """The piece with the values of a place."""
        return Template(self.template).substitute(self._values(place))

    def _values(self, place: Place) -> dict[str, str]:
        texts = {
            "catalog_uri": place.catalog_uri,
            "rest_uri": f"{place.catalog_uri}/v1",
            "warehouse": place.warehouse,
            "s3_endpoint": place.s3_endpoint,
            "s3_host": place.s3_host,
            "virtual_location": f"{place.s3_endpoint}/{place.virtual_bucket}",
            "key_id": place.key_id,
            "secret": place.secret,
            "region": place.region,
            "jars_setting": place.jars_setting,
            "jars": place.jars,
        }
        is_python = self.language is PYTHON
        identifier = ", ".join(map(self.language.text, (*place.levels, place.table)))
        at = "" if place.snapshot_id is None else f"snapshot_id={place.snapshot_id}"
        query = self.query(place) if self.query else ""
        return {
            **{name: self.language.text(text) for name, text in texts.items()},
            "identifier": identifier,
            "at": at,
            "then": f"{at}, " if at else "",
            "has_tls": str(place.has_tls) if is_python else str(place.has_tls).lower(),
            "query": PYTHON.text(query) if is_python else query,
        }


@dataclass(frozen=True, slots=True)
class Client:
    """A program that reads Iceberg tables, and the parts of its snippet."""

    name: str
    version: str
    """The one whose faults are known."""
    connect: tuple[Part, ...]
    read: Part
    is_newest_only: bool = False
    """It reads the newest snapshot only, so that the warehouse has to be pinned."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """Text to copy at once."""

    language: str
    file: str
    """The file that it belongs into; "": it is pasted into the client."""
    text: str


PYICEBERG_CATALOG = Part(PYTHON, templates.PYICEBERG_CONNECT)
NOT_IN_CI = "CI does not run this snippet; `make trino` and `make flink` do."

CLIENTS = (
    Client(
        "DuckDB",
        "1.5.5",
        (Part(SQL, templates.DUCKDB_EXTENSIONS), Part(SQL, templates.DUCKDB_CONNECT)),
        Part(SQL, templates.QUERY, queries.duckdb),
    ),
    Client("PyIceberg", "0.12", (PYICEBERG_CATALOG,), Part(PYTHON, templates.PYICEBERG_READ)),
    Client(
        "Spark",
        "4.1, Iceberg 1.11",
        (Part(PYTHON, templates.SPARK_CONNECT),),
        Part(PYTHON, templates.SPARK_READ, queries.spark),
    ),
    Client("Polars", "2.1", (PYICEBERG_CATALOG,), Part(PYTHON, templates.POLARS_READ)),
    Client("Daft", "0.7.26", (PYICEBERG_CATALOG,), Part(PYTHON, templates.DAFT_READ)),
    Client(
        "DataFusion",
        "54",
        (PYICEBERG_CATALOG,),
        Part(PYTHON, templates.DATAFUSION_READ),
        is_newest_only=True,
        note="pip install pyiceberg pyarrow pyiceberg-core==0.11.0 'datafusion<55'",
    ),
    Client(
        "ClickHouse",
        "chdb 4.4",
        (Part(CLICKHOUSE_SQL, templates.CLICKHOUSE_CONNECT),),
        Part(CLICKHOUSE_SQL, templates.QUERY, queries.clickhouse),
    ),
    Client(
        "Trino",
        "476",
        (Part(PROPERTIES, templates.TRINO_CONNECT, file="etc/catalog/ice.properties"),),
        Part(SQL, templates.QUERY, queries.trino),
        note=NOT_IN_CI,
    ),
    Client(
        "Flink",
        "2.1",
        (Part(SQL, templates.FLINK_CONNECT),),
        Part(SQL, templates.QUERY, queries.flink),
        note=NOT_IN_CI,
    ),
)
"""In the order in which a page shows them."""


FIRST_CLIENTS = ("DuckDB", "PyIceberg", "Spark")
"""Those that the first page connects."""


def client(name: str) -> Client:
    """The client of this name."""
    return next(one for one in CLIENTS if one.name == name)


def blocks(client: Client, place: Place) -> tuple[Block, ...]:
    """What to copy into a client to read the table of a place; parts of one file are joined."""
    if place.lake_snapshot is not None and (client.is_newest_only or place.snapshot_id is None):
        place = place.pinned()
    return _joined((*client.connect, client.read), place)


def connect_blocks(client: Client, place: Place) -> tuple[Block, ...]:
    """What to copy into a client to connect it to a lake; `blocks` begins with it."""
    return _joined(client.connect, place.pinned())


def _joined(parts: Iterable[Part], place: Place) -> tuple[Block, ...]:
    found: list[Block] = []
    for part in parts:
        text, language = part.text(place), part.language.name
        if found and found[-1].file == part.file:
            joint = "\n" if language == PYTHON.name else ""
            found[-1] = Block(language, part.file, found[-1].text + joint + text)
        else:
            found.append(Block(language, part.file, text))
    return tuple(found)
