"""The jobs' connection to the PostgreSQL of a DuckLake, with credentials of their own."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

from pg8000.exceptions import DatabaseError, InterfaceError
from pg8000.native import Connection, identifier
from polynya.ducklake.connection import connection_arguments
from polynya.errors import PolynyaError

from .errors import BadInput, JobError, Unavailable

RDS_KEYS = ("username", "password", "dbname")
LOST = (InterfaceError, OSError, UnicodeError)


def connect(database: str, metadata_schema: str) -> Connection:
    """Connect to a URL, or to what a secret's ARN stands for: that each executor fetches itself.

    Raises:
        BadInput: this is neither.
        Unavailable: the database does not answer, or refuses.
    """
    url = _secret_url(database) if database.startswith("arn:") else database
    try:
        arguments = connection_arguments(url)
    except PolynyaError as error:
        raise BadInput(str(error)) from None
    parameters = {
        "search_path": identifier(metadata_schema),
        "TimeZone": "UTC",
        "DateStyle": "ISO",
        "idle_in_transaction_session_timeout": "0",  # verify reads for as long as it takes
    }
    with said(metadata_schema):
        return Connection(
            **arguments,
            timeout=None,
            tcp_keepalive=True,
            application_name="polynya pipeline",
            startup_params=parameters,
        )


def _secret_url(arn: str) -> str:
    import boto3
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        text = boto3.client("secretsmanager").get_secret_value(SecretId=arn)["SecretString"]
        secret = json.loads(text)
        if "url" in secret:
            return str(secret["url"])
        user, password, name = (quote(secret[key], safe="") for key in RDS_KEYS)
        return f"postgresql://{user}:{password}@{secret['host']}:{secret.get('port', 5432)}/{name}"
    except (BotoCoreError, ClientError, ValueError, KeyError, TypeError):
        raise BadInput(
            'the secret cannot be read, or has neither the JSON key "url" nor those of RDS: '
            "username, password, host, dbname"
        ) from None


@contextmanager
def said(metadata_schema: str) -> Iterator[None]:
    """Errors of the database become sentences, without its own text: that may hold row values."""
    try:
        yield
    except LOST:
        raise Unavailable("the catalog database does not answer") from None
    except DatabaseError as error:
        raise _sentence(sqlstate(error), metadata_schema) from None


def sqlstate(error: DatabaseError) -> str:
    details = error.args[0] if error.args else None
    return details.get("C", "") if isinstance(details, dict) else ""


def _sentence(state: str, metadata_schema: str) -> JobError:
    if state.startswith("28") or state == "3D000":
        return Unavailable("the catalog database refuses this role, password or database")
    if state == "42501":
        return Unavailable(
            "the database role may not do this: ingest needs SELECT, INSERT, UPDATE on DuckLake's "
            "tables, verify needs SELECT"
        )
    if state in {"42P01", "3F000"}:
        return BadInput(
            f"no DuckLake catalog in the PostgreSQL schema {metadata_schema!r}: it is created by "
            "DuckDB's ATTACH"
        )
    return Unavailable(f"the catalog database answered with SQLSTATE {state}")
