"""What keeps a command from the catalog database: said in full here, where the functions are
discreet. The password is never said."""

import socket
import ssl
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

from pg8000.exceptions import DatabaseError, InterfaceError
from pg8000.native import Connection
from polynya.ducklake.connection.database import connection_arguments
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
    (FileNotFoundError, "there is no such socket"),
    (UnicodeError, "this is no host name"),
]


def check(url: str, metadata_schema: str) -> None:
    """Connect once, and look for the lake.

    What is wrong with TLS or with grants is not looked into: the first question tells.

    Raises:
        Misconfigured, ServiceUnavailable: with host, port and what happened.
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
    """What to say of a connection that could not be had."""
    parts = urlsplit(url)
    if "@" in parts.path + parts.query + parts.fragment:  # the host may be of the password
        return Misconfigured(
            "the catalog database cannot be reached, and DATABASE_URL has an @ after its host: in "
            "a password / ? # @ are written %2F %3F %23 %40"
        )
    at = f"the catalog database at {_place(arguments)}"
    if isinstance(error, DatabaseError):
        # The server's own words while it signs us in: it has seen no row yet.
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
    return "it closed the connection, or is no PostgreSQL"


def _place(arguments: dict[str, Any]) -> str:
    return arguments.get("unix_sock") or f"{arguments['host']}:{arguments['port']}"
