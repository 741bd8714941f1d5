"""The jobs' connection to the PostgreSQL of a DuckLake, with credentials of their own.

What travels to the executors names a secret, or says `iam`; each of them asks for the password
itself.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from pg8000.exceptions import DatabaseError
from pg8000.native import Connection
from polynya.database import credentials_provider
from polynya.ducklake.connection.catalog_connection import CatalogConnection, ConnectionLost
from polynya.ducklake.connection.database import TEXT_FORMS
from polynya.ducklake.connection.url import connection_arguments
from polynya.errors import PolynyaError, ServiceUnavailable

from .errors import BadInput, JobError, Unavailable

RDS_KEYS = ("username", "password", "dbname")
CREDENTIALS = re.compile("iam|secret:.+")
"""The forms of DATABASE_CREDENTIALS, and of the parameter `credentials` of a URL."""


def with_credentials(database: str, credentials: str) -> str:
    """The URL, and where role and password come from: `iam`, `secret:ARN`, or "" for itself."""
    if not credentials or database.startswith("arn:") or "credentials=" in database:
        return database
    joint = "&" if "?" in database else "?"
    return f"{database}{joint}{urlencode({'credentials': credentials}, safe=':/')}"


def connect(database: str, metadata_schema: str) -> Connection:
    """Connect to a URL, or to what a secret's ARN stands for.

    Args:
        database: the ARN of a secret, or `postgresql://…`; with `?credentials=secret:ARN`, or
            `credentials=iam`, role and password come from there.

    Raises:
        BadInput: this is neither.
        Unavailable: the database or the secret cannot be had, or the database refuses.
    """
    arguments = _arguments(_secret_url(database) if database.startswith("arn:") else database)
    parameters = {
        **TEXT_FORMS,
        "idle_in_transaction_session_timeout": "0",  # one view for as long as a job takes
    }
    with translate_errors(metadata_schema):
        return CatalogConnection(
            metadata_schema,
            **arguments
            | {
                "timeout": None,
                "tcp_keepalive": True,
                "application_name": "polynya pipeline",
                "startup_params": parameters,
            },
        )


def _arguments(url: str) -> dict[str, Any]:
    try:
        arguments = connection_arguments(url)
        credentials = parse_qs(urlsplit(url).query).get("credentials", [""])[-1]
        if credentials and not CREDENTIALS.fullmatch(credentials):
            # Not the text: it may be the secret itself.
            raise BadInput("credentials must be iam, or secret: and a name or ARN")
        if who := credentials_provider(credentials):
            at = arguments.get("host", ""), arguments.get("port", 0), arguments["user"]
            arguments["user"], arguments["password"] = who(*at)
    except ServiceUnavailable as error:
        raise Unavailable(str(error)) from None
    except PolynyaError as error:
        raise BadInput(str(error)) from None
    return arguments


def _secret_url(arn: str) -> str:
    import boto3
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        text = boto3.client("secretsmanager").get_secret_value(SecretId=arn)["SecretString"]
        secret = json.loads(text)
        if "url" in secret:
            return str(secret["url"])
        user, password, name = (quote(secret[key], safe="") for key in RDS_KEYS)
        place = f"{secret['host']}:{secret.get('port', 5432)}/{name}"
        return f"postgresql://{user}:{password}@{place}?sslrootcert=rds"
    except (BotoCoreError, ClientError, ValueError, KeyError, TypeError):
        raise BadInput(
            'the secret cannot be read, or has neither the JSON key "url" nor those of RDS: '
            "username, password, host, dbname"
        ) from None


@contextmanager
def translate_errors(metadata_schema: str) -> Iterator[None]:
    """Errors of the database become sentences, without its own text: that may hold row values."""
    try:
        yield
    except ConnectionLost:
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
            "tables, verify and publish need SELECT"
        )
    if state in {"42P01", "3F000"}:
        return BadInput(
            f"no DuckLake catalog in the PostgreSQL schema {metadata_schema!r}: it is created by "
            "DuckDB's ATTACH"
        )
    return Unavailable(f"the catalog database answered with SQLSTATE {state}")
