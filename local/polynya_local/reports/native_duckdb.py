"""Connections of DuckDB that read S3, and the lake natively, for `polynya doctor` and the page.

`secrets_of` and `redacted` keep passwords of the catalog database out of DuckDB's messages.
"""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

import duckdb
from duckdb import DuckDBPyConnection
from polynya.runtime.namespaces import Namespace
from polynya.storage.aws import AwsSettings, Clients

from ..clients.duckdb import connect, identifier, literal
from ..lakes.address import add_tls_default

LONGEST_MESSAGE = 300  # characters


def connect_to_s3(
    aws: AwsSettings, extensions: tuple[str, ...] = ("httpfs",)
) -> DuckDBPyConnection:
    """A DuckDB that reads S3 with boto3's credentials, which DuckDB does not find by itself, and no
    local files."""
    con = connect(extensions)
    clients = Clients(aws)
    options = {"REGION": clients.region()}
    if keys := clients.credentials():
        options |= {"KEY_ID": keys.access_key, "SECRET": keys.secret_key}
        options |= {"SESSION_TOKEN": keys.token} if keys.token else {}
    if endpoint := aws.endpoints.get("s3"):
        scheme, _, host = endpoint.rstrip("/").rpartition("://")
        options |= {"ENDPOINT": host, "URL_STYLE": "path"}
        options |= {"USE_SSL": "true" if scheme == "https" else "false"}
    words = [f"{name} {literal(text)}" for name, text in options.items()]
    con.execute(f"CREATE SECRET (TYPE s3, PROVIDER config, {', '.join(words)})")
    # A catalog may name any file of this machine as a data file.
    con.execute("SET disabled_filesystems = 'LocalFileSystem'")
    return con


def attach_lake(con: DuckDBPyConnection, database: str, metadata_schema: str) -> None:
    """Attach a lake as `lake`, read-only.

    Args:
        database: its URL.

    Raises:
        duckdb.Error: DuckDB cannot attach it; the message may hold the URL.
    """
    source = literal(f"ducklake:postgres:{add_tls_default(database)}")
    con.execute(f"ATTACH {source} AS lake (METADATA_SCHEMA {literal(metadata_schema)}, READ_ONLY)")


def table_at(namespace: Namespace, table: str, snapshot_id: int) -> str:
    """What follows FROM to read a table of the attached lake, by its name at a snapshot."""
    names = map(identifier, ("lake", *namespace, table))
    return f"{'.'.join(names)} AT (VERSION => {int(snapshot_id)})"


OTHER_VERSION = re.compile(r"catalog version is ([\d.]+)\S*, but .* requires version ([\d.]+\d)")
"""DuckDB's message advises a migration, even if the catalog is the newer one."""


def _number(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part]


def secrets_of(url: str) -> list[str]:
    """The parts of a URL that no message may hold."""
    return [url, *filter(None, [urlsplit(url).password])]


def redacted(error: Exception, secrets: Iterable[str]) -> str:
    """An error's message in one line, replaced if it shows how we connect to the database."""
    words = " ".join(str(error).split())
    if (versions := OTHER_VERSION.search(words)) and _number(versions[1]) > _number(versions[2]):
        return (
            f"the installed DuckDB {duckdb.__version__} reads DuckLake natively up to catalog "
            f"version {versions[2]}, and this catalog has {versions[1]}: the comparison with "
            "native DuckLake is left out"
        )
    if any(secret in words for secret in secrets) or "postgres:" in words:
        return "DuckDB cannot attach the lake"
    return words if len(words) <= LONGEST_MESSAGE else f"{words[:LONGEST_MESSAGE]}…"
