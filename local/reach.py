"""Checks that a command can reach the catalog database, and says precisely why it cannot.

The Lambda functions give fewer details to their clients. No message holds the password.
"""

import socket
import ssl
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

from pg8000.exceptions import DatabaseError, InterfaceError
from pg8000.native import Connection
from polynya.ducklake.connection.url import connection_arguments
from polynya.errors import Misconfigured, PolynyaError, ServiceUnavailable

SECONDS = 10

SCHEMAS = """
SELECT n.nspname FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relname = 'ducklake_metadata' ORDER BY n.nspname"""

REASONS: list[tuple[type[BaseException], str]] = [
    (ConnectionRefusedError, "connection refused"),
    (socket.gaierror, "unknown host"),
    (TimeoutError, f"no answer within {SECONDS} s"),
    (FileNotFoundError, "no such socket"),
    (UnicodeError, "not a host name"),
]


def check(url: str, metadata_schema: str) -> None:
    """Connect once, and look for a DuckLake in the schema.

    Errors of TLS and missing grants are not reported here: the first query reports them.

    Args:
        url: the URL of the catalog database.

    Raises:
        Misconfigured: the server refuses the connection, or the schema has no DuckLake.
        ServiceUnavailable: no connection, or no answer within 10 seconds; with host and port.
    """
    arguments = connection_arguments(url)
    try:
        con = Connection(**arguments, timeout=SECONDS, application_name="polynya")
        with closing(con):
            schemas = [name for [name] in con.run(SCHEMAS)]
    except ssl.SSLError:
        return
    except (DatabaseError, InterfaceError, OSError, UnicodeError) as error:
        if error.args == ("Server refuses SSL",):
            return
        raise _failure(url, arguments, error) from None
    if metadata_schema not in schemas:
        where = f"of the database {arguments['database']!r} at {_place(arguments)}"
        there = ", ".join(map(repr, schemas))
        raise Misconfigured(
            f"no DuckLake catalog in the PostgreSQL schema {metadata_schema!r} {where}; "
            + (f"schemas that have one: {there}" if there else "no other schema has one")
        )


def _failure(url: str, arguments: dict[str, Any], error: Exception) -> PolynyaError:
    """The error to raise for a connection that failed."""
    parts = urlsplit(url)
    if "@" in parts.path + parts.query + parts.fragment:  # the host may be part of the password
        return Misconfigured(
            "the catalog database cannot be reached, and DATABASE_URL has an @ after its host: in "
            "a password / ? # @ are written %2F %3F %23 %40"
        )
    at = f"the catalog database at {_place(arguments)}"
    if isinstance(error, DatabaseError):
        # Before the login succeeds the server's message cannot hold rows.
        words = error.args[0]["M"] if isinstance(error.args[0], dict) else ""
        missing = "" if arguments["password"] else "; DATABASE_URL has no password"
        return Misconfigured(f"{at} refuses the connection: {' '.join(words.split())}{missing}")
    return ServiceUnavailable(f"{at} cannot be reached: {_reason(error)}")


def _reason(error: Exception) -> str:
    cause = error.__cause__ or error
    for type_, words in REASONS:
        if isinstance(cause, type_):
            return words
    if isinstance(cause, OSError):
        return cause.strerror or type(cause).__name__
    return "it closed the connection, or is not PostgreSQL"


def _place(arguments: dict[str, Any]) -> str:
    return arguments.get("unix_sock") or f"{arguments['host']}:{arguments['port']}"
