"""The snippets of each client, with the values of a place filled in.

A `Place` says where a client finds a table, and at which snapshot it reads. In the texts `$name`
stands for a value as the language of the snippet writes it, quotes included. `connect` parts come
first, and `read` parts continue them. docs/clients/ shows the same texts: a test compares them.

The functions in between quote any text or name in the language of a snippet, and write the
statement that reads a table in the SQL of each client.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from string import Template

from polynya.runtime.namespaces import Namespace, parsed

from ..clients.duckdb import identifier, literal
from ..clients.spark_jars import ARTIFACTS
from ..lakes.lake_files import ALIAS

DUCKDB_EXTENSIONS = """\
INSTALL httpfs; INSTALL avro; INSTALL iceberg; LOAD httpfs; LOAD avro; LOAD iceberg;
"""
DUCKDB_CONNECT = """\
CREATE OR REPLACE SECRET (TYPE s3, KEY_ID $key_id, SECRET $secret, REGION $region,
                          ENDPOINT $s3_host, URL_STYLE 'path', USE_SSL $has_tls);
ATTACH $warehouse AS ice (TYPE iceberg, ENDPOINT $catalog_uri, AUTHORIZATION_TYPE 'none',
                      ACCESS_DELEGATION_MODE 'none', DEFAULT_SCHEMA 'main',
                      REMOVE_FILES_ON_DELETE false);
"""
DUCKDB_WITH_TOKEN = """\
CREATE OR REPLACE SECRET token (TYPE iceberg, TOKEN $token);
ATTACH $warehouse AS ice (TYPE iceberg, ENDPOINT $catalog_uri, SECRET token, DEFAULT_SCHEMA 'main',
                      REMOVE_FILES_ON_DELETE false);
"""
QUERY = "$query;\n"

PYICEBERG_CONNECT = """\
from pyiceberg.catalog import load_catalog

catalog = load_catalog(
    "polynya",
    **{
        "type": "rest",
        "uri": $catalog_uri,
        "warehouse": $warehouse,
        "s3.endpoint": $s3_endpoint,
        "s3.region": $region,
        "s3.access-key-id": $key_id,
        "s3.secret-access-key": $secret,
    },
)
"""
PYICEBERG_WITH_TOKEN = """\
from pyiceberg.catalog import load_catalog

catalog = load_catalog(
    "polynya", **{"type": "rest", "uri": $catalog_uri, "warehouse": $warehouse, "token": $token}
)
"""
PYICEBERG_READ = """\
catalog.load_table(($identifier)).scan($at).to_arrow()
"""

SPARK_BEGIN = """\
from pyspark.sql import SparkSession

settings = {
    $jars_setting: $jars,
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.ice.type": "rest",
    "spark.sql.catalog.ice.uri": $catalog_uri,
    "spark.sql.catalog.ice.warehouse": $warehouse,
"""
SPARK_END = """\
    "spark.sql.catalog.ice.cache-enabled": "false",
}
spark = SparkSession.builder.config(map=settings).getOrCreate()
"""
SPARK_CONNECT = f"""\
{SPARK_BEGIN}\
    "spark.sql.catalog.ice.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
    "spark.sql.catalog.ice.s3.endpoint": $s3_endpoint,
    "spark.sql.catalog.ice.s3.path-style-access": "true",
    "spark.sql.catalog.ice.s3.access-key-id": $key_id,
    "spark.sql.catalog.ice.s3.secret-access-key": $secret,
    "spark.sql.catalog.ice.client.region": $region,
{SPARK_END}"""
SPARK_WITH_TOKEN = f"""\
{SPARK_BEGIN}\
    "spark.sql.catalog.ice.token": $token,
    "spark.sql.catalog.ice.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
{SPARK_END}"""
SPARK_READ = """\
spark.sql($query)
"""

POLARS_READ = """\
import polars

table = catalog.load_table(($identifier))  # with PyIceberg, as above
polars.scan_iceberg(table, ${then}storage_options=table.io.properties).collect()
"""

DAFT_READ = """\
import daft
from daft.io import IOConfig, S3Config

table = catalog.load_table(($identifier))  # with PyIceberg, as above
s3 = S3Config(
    endpoint_url=$s3_endpoint,
    region_name=$region,
    key_id=$key_id,
    access_key=$secret,
    use_ssl=$has_tls,
    force_virtual_addressing=False,
)
daft.read_iceberg(table, ${then}io_config=IOConfig(s3=s3)).to_arrow()
"""

DATAFUSION_READ = """\
from datafusion import SessionContext

table = catalog.load_table(($identifier))  # with PyIceberg, as above
# DataFusion accepts only texts, and some values of PyIceberg are other objects.
properties = {k: v for k, v in table.io.properties.items() if isinstance(v, str)}
table.io.properties = {**properties, "s3.path-style-access": "true"}
context = SessionContext()
context.register_table("t", table)
context.sql("SELECT * FROM t").to_arrow_table()
"""

CLICKHOUSE_CONNECT = """\
SET allow_database_iceberg = 1;
CREATE DATABASE ice ENGINE = DataLakeCatalog($rest_uri, $key_id, $secret)
    SETTINGS catalog_type = 'rest', warehouse = $warehouse, vended_credentials = false,
             storage_endpoint = $virtual_location;
"""

TRINO_CONNECT = """\
connector.name=iceberg
iceberg.catalog.type=rest
iceberg.rest-catalog.uri=$catalog_uri
iceberg.rest-catalog.warehouse=$warehouse
iceberg.rest-catalog.case-insensitive-name-matching=true
fs.native-s3.enabled=true
s3.endpoint=$s3_endpoint
s3.region=$region
s3.path-style-access=true
s3.aws-access-key=$key_id
s3.aws-secret-key=$secret
"""

TRINO_WITH_TOKEN = """\
connector.name=iceberg
iceberg.catalog.type=rest
iceberg.rest-catalog.uri=$catalog_uri
iceberg.rest-catalog.warehouse=$warehouse
iceberg.rest-catalog.security=OAUTH2
iceberg.rest-catalog.oauth2.token=$token
iceberg.rest-catalog.vended-credentials-enabled=true
iceberg.rest-catalog.case-insensitive-name-matching=true
fs.native-s3.enabled=true
s3.endpoint=$s3_endpoint
s3.region=$region
s3.path-style-access=true
"""

FLINK_CONNECT = """\
CREATE CATALOG ice WITH ('type'='iceberg', 'catalog-type'='rest', 'uri'=$catalog_uri,
    'warehouse'=$warehouse, 'io-impl'='org.apache.iceberg.aws.s3.S3FileIO',
    's3.endpoint'=$s3_endpoint, 's3.path-style-access'='true', 's3.access-key-id'=$key_id,
    's3.secret-access-key'=$secret, 'client.region'=$region);
"""


@dataclass(frozen=True, slots=True)
class Language:
    """A language that a snippet is written in."""

    name: str
    """The language of the code block: `sql`, `python`, `properties`."""
    text: Callable[[str], str]
    """Writes a text as a literal."""


def python_literal(text: str) -> str:
    """A text as a literal of Python, in double quotes and without invisible characters."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(
        character if character.isprintable() else _escape(character) for character in quoted
    )


def _escape(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def backticked(name: str) -> str:
    """A name for Spark SQL and Flink SQL."""
    return "`" + name.replace("`", "``") + "`"


def clickhouse_name(name: str) -> str:
    """A name for ClickHouse, which has escapes within backticks."""
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


def clickhouse_literal(text: str) -> str:
    """A text as a literal of ClickHouse, which has escapes within quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def property_value(text: str) -> str:
    """A value in a properties file of Java, which is ASCII."""
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    units = escaped.encode("utf-16-be")
    codes = (units[offset] << 8 | units[offset + 1] for offset in range(0, len(units), 2))
    return "".join(chr(code) if 0x20 <= code < 0x7F else f"\\u{code:04x}" for code in codes)


PYTHON = Language("python", python_literal)
SQL = Language("sql", literal)
CLICKHOUSE_SQL = Language("sql", clickhouse_literal)
PROPERTIES = Language("properties", property_value)


@dataclass(frozen=True, slots=True)
class Place:
    """The values of a snippet; a local S3 takes any credentials."""

    catalog_uri: str
    warehouse: str
    s3_endpoint: str
    namespace: str
    """All levels, as people write them."""
    table: str
    lake_snapshot: int | None = None
    """DuckLake's snapshot that is to be read; None: the newest."""
    snapshot_id: int | None = None
    """The snapshot of the table in Iceberg that shows the same; None: the table has none."""
    virtual_bucket: str = ALIAS
    """The bucket of the metadata files."""
    key_id: str = "any"
    secret: str = field(default="any", repr=False)
    region: str = "us-east-1"
    jars_setting: str = "spark.jars.packages"
    jars: str = ",".join(ARTIFACTS)
    token: str = ""
    """A placeholder for the reader's token, with which the catalog gives keys for S3; empty: S3
    accepts any credentials."""

    @property
    def levels(self) -> Namespace:
        """The levels of the namespace; none for a place without a table."""
        return parsed(self.namespace) if self.namespace else ()

    @property
    def s3_host(self) -> str:
        """The host and the port of the S3."""
        return self.s3_endpoint.rpartition("://")[2]

    @property
    def has_tls(self) -> bool:
        """Whether the S3 is reached by HTTPS."""
        return self.s3_endpoint.startswith("https://")

    def pinned(self) -> "Place":
        """The same rows by the name of the warehouse, which pins every table to a snapshot."""
        if self.lake_snapshot is None:
            return replace(self, snapshot_id=None)
        warehouse = f"{self.warehouse}@{self.lake_snapshot}"
        return replace(self, warehouse=warehouse, lake_snapshot=None, snapshot_id=None)


CATALOG = "ice"
"""The name that all snippets give to the catalog."""


def _joined_lines(quote: Callable[[str], str], place: Place) -> str:
    """The table for clients that read a namespace as one name with dots between its levels."""
    return f"{CATALOG}.{quote('.'.join(place.levels))}.{quote(place.table)}"


def duckdb(place: Place) -> str:
    """DuckDB's SELECT."""
    version = "" if place.snapshot_id is None else f" AT (VERSION => {place.snapshot_id})"
    return f"SELECT * FROM {_joined_lines(identifier, place)}{version}"


def spark(place: Place) -> str:
    """Spark's SELECT."""
    version = "" if place.snapshot_id is None else f" VERSION AS OF {place.snapshot_id}"
    name = ".".join(map(backticked, (*place.levels, place.table)))
    return f"SELECT * FROM {CATALOG}.{name}{version}"


def clickhouse(place: Place) -> str:
    """ClickHouse's SELECT; its tables have the namespace in their names."""
    name = clickhouse_name(".".join((*place.levels, place.table)))
    version = (
        "" if place.snapshot_id is None else f" SETTINGS iceberg_snapshot_id = {place.snapshot_id}"
    )
    return f"SELECT * FROM {CATALOG}.{name}{version}"


def trino(place: Place) -> str:
    """Trino's SELECT."""
    # Trino refuses a plain number.
    version = (
        "" if place.snapshot_id is None else f" FOR VERSION AS OF BIGINT '{place.snapshot_id}'"
    )
    return f"SELECT * FROM {_joined_lines(identifier, place)}{version}"


def flink(place: Place) -> str:
    """Flink's SELECT."""
    hint = f" /*+ OPTIONS('snapshot-id'='{place.snapshot_id}') */"
    version = "" if place.snapshot_id is None else hint
    return f"SELECT * FROM {_joined_lines(backticked, place)}{version}"


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a snippet."""

    language: Language
    template: str
    query: Callable[[Place], str] | None = None
    """What `$query` stands for."""
    file: str = ""
    """The file that it belongs in; "": it is pasted into the client."""

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
            "token": place.token,
        }
        is_python = self.language is PYTHON
        identifier = ", ".join(map(self.language.text, (*place.levels, place.table)))
        argument = "" if place.snapshot_id is None else f"snapshot_id={place.snapshot_id}"
        query = self.query(place) if self.query else ""
        return {
            **{name: self.language.text(text) for name, text in texts.items()},
            "identifier": identifier,
            "at": argument,
            "then": f"{argument}, " if argument else "",
            "has_tls": str(place.has_tls) if is_python else str(place.has_tls).lower(),
            "query": PYTHON.text(query) if is_python else query,
        }


@dataclass(frozen=True, slots=True)
class Client:
    """A program that reads Iceberg tables, and the parts of its snippet."""

    name: str
    connect: tuple[Part, ...]
    read: Part
    is_newest_only: bool = False
    """It reads only the newest snapshot, so the warehouse has to be pinned for others."""
    note: str = ""
    with_token: tuple[Part, ...] = ()
    """Used instead of `connect` for a server with tokens; empty: not tested with them."""

    def connecting(self, place: Place) -> tuple[Part, ...]:
        """The parts that connect it to a place."""
        return self.with_token if place.token else self.connect


@dataclass(frozen=True, slots=True)
class Block:
    """Text to copy at once."""

    language: str
    file: str
    """The file that it belongs in; "": it is pasted into the client."""
    text: str


PYICEBERG_CATALOG = Part(PYTHON, PYICEBERG_CONNECT)
WITH_TOKEN = (Part(PYTHON, PYICEBERG_WITH_TOKEN),)
NOT_IN_CI = "CI does not run this snippet; `make trino` and `make flink` do."

CLIENTS = (
    Client(
        "DuckDB",
        (Part(SQL, DUCKDB_EXTENSIONS), Part(SQL, DUCKDB_CONNECT)),
        Part(SQL, QUERY, duckdb),
        with_token=(Part(SQL, DUCKDB_EXTENSIONS), Part(SQL, DUCKDB_WITH_TOKEN)),
    ),
    Client("PyIceberg", (PYICEBERG_CATALOG,), Part(PYTHON, PYICEBERG_READ), with_token=WITH_TOKEN),
    Client(
        "Spark",
        (Part(PYTHON, SPARK_CONNECT),),
        Part(PYTHON, SPARK_READ, spark),
        with_token=(Part(PYTHON, SPARK_WITH_TOKEN),),
    ),
    Client("Polars", (PYICEBERG_CATALOG,), Part(PYTHON, POLARS_READ)),
    Client("Daft", (PYICEBERG_CATALOG,), Part(PYTHON, DAFT_READ)),
    Client(
        "DataFusion",
        (PYICEBERG_CATALOG,),
        Part(PYTHON, DATAFUSION_READ),
        is_newest_only=True,
        note="pip install pyiceberg pyarrow pyiceberg-core==0.11.0 'datafusion<55'",
    ),
    Client(
        "ClickHouse",
        (Part(CLICKHOUSE_SQL, CLICKHOUSE_CONNECT),),
        Part(CLICKHOUSE_SQL, QUERY, clickhouse),
    ),
    Client(
        "Trino",
        (Part(PROPERTIES, TRINO_CONNECT, file="etc/catalog/ice.properties"),),
        Part(SQL, QUERY, trino),
        note=NOT_IN_CI,
        with_token=(Part(PROPERTIES, TRINO_WITH_TOKEN, file="etc/catalog/ice.properties"),),
    ),
    Client(
        "Flink",
        (Part(SQL, FLINK_CONNECT),),
        Part(SQL, QUERY, flink),
        note=NOT_IN_CI,
    ),
)
"""In the order in which a page shows them."""


FIRST_CLIENTS = ("DuckDB", "PyIceberg", "Spark")
"""The clients for which the first page shows how to connect."""


def client(name: str) -> Client:
    """The client of this name."""
    return next(client for client in CLIENTS if client.name == name)


def blocks(client: Client, place: Place) -> tuple[Block, ...]:
    """What to copy into a client to read the table of a place; parts of one file are joined."""
    if place.lake_snapshot is not None and (client.is_newest_only or place.snapshot_id is None):
        place = place.pinned()
    return _joined((*client.connecting(place), client.read), place)


def connect_blocks(client: Client, place: Place) -> tuple[Block, ...]:
    """What to copy into a client to connect it to a lake; `blocks` begins with it."""
    return _joined(client.connecting(place), place.pinned())


def _joined(parts: Iterable[Part], place: Place) -> tuple[Block, ...]:
    joined: list[Block] = []
    for part in parts:
        text, language = part.text(place), part.language.name
        if joined and joined[-1].file == part.file:
            joint = "\n" if language == PYTHON.name else ""
            joined[-1] = Block(language, part.file, joined[-1].text + joint + text)
        else:
            joined.append(Block(language, part.file, text))
    return tuple(joined)
