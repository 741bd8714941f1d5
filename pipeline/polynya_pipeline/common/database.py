"""The connection of a job to the PostgreSQL database of a DuckLake.

Spark sends the URL to executors as it was given: if it names a secret or says `iam`, each executor
fetches the password itself.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from pg8000.exceptions import DatabaseError
from polynya.catalog.database_credentials import credentials_provider
from polynya.ducklake.connection.catalog_connection import (
    CatalogConnection,
    ConnectionLost,
    connect_through_poolers,
    sqlstate,
)
from polynya.ducklake.connection.database import GONE_TABLE, TEXT_FORMS, gone_table, text_of
from polynya.ducklake.connection.url import connection_arguments
from polynya.runtime.errors import PolynyaError, ServiceUnavailable
from polynya.storage import aws

from .errors import BadInput, JobError, Unavailable
from .storage import clients

RDS_KEYS = ("username", "password", "dbname")
CREDENTIALS = re.compile("iam|secret:.+")
"""The values of DATABASE_CREDENTIALS, and of the parameter `credentials` of a URL."""


def add_credentials(database: str, credentials: str) -> str:
    """Add the source of role and password to a URL, unless it names one already.

    Args:
        credentials: `iam`, `secret:ARN`, or "": role and password are in the URL.
    """
    if not credentials or database.startswith("arn:") or "credentials=" in database:
        return database
    separator = "&" if "?" in database else "?"
    return f"{database}{separator}{urlencode({'credentials': credentials}, safe=':/')}"


def connect(
    database: str, metadata_schema: str, *, needs_session: bool = False
) -> CatalogConnection:
    """Open a connection to a database that is given by a URL or by a secret.

    Args:
        database: `postgresql://…`, or the ARN of a secret that holds one or RDS's keys. With
            `?credentials=secret:ARN` or `?credentials=iam`, role and password come from there.
        needs_session: the caller needs more than transactions: locks or settings of the session.

    Raises:
        BadInput: the URL or the secret is malformed, or the secret that `database` names cannot be
            read; with `needs_session`, a pooler may give each transaction another session.
        Unavailable: the database or the credentials cannot be reached, or access is denied.
    """
    arguments = _arguments(_secret_url(database) if database.startswith("arn:") else database)
    parameters = {
        **TEXT_FORMS,
        "idle_in_transaction_session_timeout": "0",  # a transaction may last as long as the job
    }
    arguments |= {
        # A statement over millions of files takes minutes; a server that is gone is noticed by
        # keepalive.
        "timeout": None,
        "tcp_keepalive": True,
        "application_name": "polynya pipeline",
        "startup_params": parameters,
    }
    with translate_errors(metadata_schema):
        con = connect_through_poolers(
            lambda is_pooled: CatalogConnection(metadata_schema, is_pooled=is_pooled, **arguments)
        )
    if needs_session and con.is_pooled:
        con.close()
        raise BadInput(
            "a pooler such as PgBouncer is in front of the catalog database, and may give each "
            "transaction another session: this needs the database's own address"
        )
    return con


def _arguments(url: str) -> dict[str, Any]:
    try:
        arguments = connection_arguments(url)
        credentials = parse_qs(urlsplit(url).query).get("credentials", [""])[-1]
        if credentials and not CREDENTIALS.fullmatch(credentials):
            # The message leaves out the text: it may be the secret itself.
            raise BadInput("credentials must be iam, or secret: and a name or ARN")
        if provider := credentials_provider(credentials, clients()):
            address = arguments.get("host", ""), arguments.get("port", 0), arguments["user"]
            arguments["user"], arguments["password"] = provider(*address)
    except ServiceUnavailable as error:
        raise Unavailable(str(error)) from None
    except PolynyaError as error:
        raise BadInput(str(error)) from None
    return arguments


def _secret_url(arn: str) -> str:
    import boto3

    try:
        answer = aws.call(
            "the secret",
            lambda: boto3.client("secretsmanager").get_secret_value(SecretId=arn),
        )
    except ServiceUnavailable as error:
        raise Unavailable(str(error)) from None
    except PolynyaError as error:
        raise BadInput(str(error)) from None
    try:
        secret = json.loads(answer["SecretString"])
        if "url" in secret:
            return str(secret["url"])
        user, password, name = (quote(secret[key], safe="") for key in RDS_KEYS)
        address = f"{secret['host']}:{secret.get('port', 5432)}/{name}"
        return f"postgresql://{user}:{password}@{address}?sslrootcert=rds"
    except (ValueError, KeyError, TypeError):
        raise BadInput(
            'the secret has neither the JSON key "url" nor those of RDS: username, password, host, '
            "dbname"
        ) from None


@contextmanager
def translate_errors(metadata_schema: str) -> Iterator[None]:
    """Turn errors of the database into errors of the job.

    Raises:
        BadInput: the PostgreSQL schema has no DuckLake catalog.
        Unavailable: the connection was lost, or the database refuses a statement.
    """
    try:
        yield
    except ConnectionLost:
        raise Unavailable("the catalog database does not answer") from None
    except DatabaseError as error:
        # PostgreSQL's own text is left out: it may contain values of rows.
        raise _job_error(error, metadata_schema) from None


def _job_error(error: DatabaseError, metadata_schema: str) -> JobError:
    state = sqlstate(error)
    if state.startswith("28") or state == "3D000":  # class 28: authorization; no such database
        return Unavailable("the catalog database refuses this role, password or database")
    if state == "42501":  # insufficient_privilege
        return Unavailable(
            "the database role may not do this: ingest needs SELECT, INSERT, UPDATE on DuckLake's "
            "tables, verify and publish need SELECT"
        )
    if state == GONE_TABLE and (table := gone_table(text_of(error))) != "ducklake_metadata":
        return BadInput(f"the PostgreSQL schema {metadata_schema!r} lacks the table {table}")
    if state in {GONE_TABLE, "3F000"}:  # invalid_schema_name
        return BadInput(
            f"no DuckLake catalog in the PostgreSQL schema {metadata_schema!r}: DuckDB's ATTACH "
            "creates one"
        )
    return Unavailable(f"the catalog database answered with SQLSTATE {state}")
