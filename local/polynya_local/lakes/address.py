"""The address of a lake: a URL, a file, or the string after `ATTACH`.

`url_of` turns a connection string of libpq into a URL, `add_tls_default` adapts a URL to libpq.
https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-KEYWORD-VALUE
"""

import getpass
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from polynya.ducklake.connection.url import LOCAL
from polynya.runtime.errors import Misconfigured

PAIR = re.compile(
    r"""\s*(?P<key>\w+)\s*=\s*
        (?:'(?P<quoted>(?:[^'\\]|\\.)*)'|(?P<plain>(?:[^\s'\\]|\\.)*))(?=\s|$)""",
    re.VERBOSE | re.DOTALL,
)
"""A value is quoted if it is empty or has spaces; a backslash escapes the next character."""

VARIABLES = {
    "host": "PGHOST",
    "port": "PGPORT",
    "dbname": "PGDATABASE",
    "user": "PGUSER",
    "password": "PGPASSWORD",
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
}
"""The parameters that Polynya knows, and libpq's variables for those that are left out."""

IGNORED = frozenset(
    (
        "application_name",
        "connect_timeout",
        "fallback_application_name",
        "gssencmode",
        "keepalives",
        "keepalives_count",
        "keepalives_idle",
        "keepalives_interval",
        "target_session_attrs",
    )
)
"""Parameters that change neither which lake this is nor how safe the connection is."""

SOCKETS = (Path("/var/run/postgresql"), Path("/tmp"))
"""Where libpq looks for a server without a host: Debian's directory, then PostgreSQL's own."""


def url_of(text: str, environ: Mapping[str, str] = os.environ) -> str:
    """The URL for a connection string.

    TLS is as in Polynya's own URLs: verify-full unless the host is this machine, or `sslmode` says
    otherwise.

    Raises:
        Misconfigured: the string is malformed, or has a parameter that Polynya does not know. The
            message never has a value.
    """
    options = parameters(text)
    # libpq connects to hostaddr if there are both.
    options["host"] = options.pop("hostaddr", "") or options.get("host", "")
    if unknown := options.keys() - VARIABLES.keys() - IGNORED:
        raise Misconfigured(
            f"the connection string has the parameter {min(unknown)}, which Polynya does not know; "
            f"it knows {', '.join(VARIABLES)}"
        )
    values = {name: options.get(name) or environ.get(VARIABLES[name], "") for name in VARIABLES}
    port = values["port"] or "5432"
    if not port.isdecimal():
        raise Misconfigured("the port of the connection string is not a number")
    host = values["host"] or _socket_folder(port)
    user = values["user"] or getpass.getuser()
    return _conninfo_url(values, user, host, port)


def parameters(text: str) -> dict[str, str]:
    """Parse a connection string; the last of several equal parameters counts.

    Raises:
        Misconfigured: the string is malformed.
    """
    options, position = {}, 0
    text = text.strip()
    while position < len(text):
        pair = PAIR.match(text, position)
        if pair is None:
            raise Misconfigured(
                "the connection string must read 'dbname=lake host=… user=…'; a value with "
                "spaces is in single quotes, and a backslash escapes a quote"
            )
        value = pair["plain"] if pair["quoted"] is None else pair["quoted"]
        options[pair["key"].lower()] = re.sub(r"\\(.)", r"\1", value, flags=re.DOTALL)
        position = pair.end()
    return options


def _conninfo_url(values: Mapping[str, str], user: str, host: str, port: str) -> str:
    login = quote(user, safe="") + (
        ":" + quote(values["password"], safe="") if values["password"] else ""
    )
    query = {name: values[name] for name in ("sslmode", "sslrootcert") if values[name]}
    if host.startswith("/"):
        query["host"], place = host, f":{port}"
    else:
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    database = quote(values["dbname"] or user, safe="")  # libpq's default, too
    return f"postgresql://{login}@{place}/{database}" + (f"?{urlencode(query)}" if query else "")


def _socket_folder(port: str) -> str:
    """The folder of a local server's socket; `localhost` if there is none."""
    folders = [folder for folder in SOCKETS if (folder / f".s.PGSQL.{port}").exists()]
    return str(folders[0]) if folders else "localhost"


def add_tls_default(url: str) -> str:
    """Add Polynya's default for TLS to a URL that says nothing about TLS."""
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    host = (query.get("host") or [parts.hostname or ""])[-1]
    if "sslmode" in query or host in LOCAL or host.startswith("/"):
        return url
    # Without sslrootcert libpq wants the certificates in ~/.postgresql/root.crt.
    tls = "sslmode=verify-full" + ("" if "sslrootcert" in query else "&sslrootcert=system")
    return f"{url}{'&' if parts.query else '?'}{tls}"


FORMS = (
    "metadata.ducklake, sqlite:lake.sqlite, postgresql://user:password@host:port/database, or the "
    "string after ATTACH: 'ducklake:…'"
)
"""What an address may look like."""


@dataclass(frozen=True, slots=True)
class PostgresLake:
    """A catalog in PostgreSQL."""

    url: str = field(repr=False)
    """It may hold a password."""


@dataclass(frozen=True, slots=True)
class DuckDBLake:
    """A catalog in a file of DuckDB."""

    file: Path


@dataclass(frozen=True, slots=True)
class SQLiteLake:
    """A catalog in a file of SQLite."""

    file: Path


Address: TypeAlias = PostgresLake | DuckDBLake | SQLiteLake

REFUSED = {
    "mysql": "Polynya does not read MySQL catalogs, in which DuckLake's own writers fail at the "
    "second INSERT: write the lake to a file or to PostgreSQL",
    "quack": "Polynya does not read remote catalogs (Quack): give the server's own catalog, which "
    "is a file or a PostgreSQL",
    "md": "Polynya does not read catalogs that MotherDuck hosts: give a file or a PostgreSQL",
    **dict.fromkeys(
        ("http", "https", "s3", "s3a", "s3n", "gs", "gcs", "r2", "az", "abfss", "hf"),
        "the catalog must be a file of this machine or in PostgreSQL: copy the file here, and "
        "give the address of its data with --data-path if that is relative",
    ),
}
"""Kinds that DuckDB attaches and Polynya does not serve, and what to do instead."""

KIND = re.compile(r"([A-Za-z][A-Za-z0-9+]+):(.*)", re.DOTALL)
"""Two letters at least: one letter would be a drive of Windows."""


def parse(address: str) -> Address:
    """The lake that an address names; nothing is opened.

    Raises:
        Misconfigured: it is not an address, or is of a kind that is not served. The message never
            has what follows the kind.
    """
    text = address.strip().removeprefix("ducklake:")
    kind, location = _kind(text)
    if kind in REFUSED:
        raise Misconfigured(REFUSED[kind])
    if kind in {"postgres", "postgresql"}:
        return PostgresLake(text if location.startswith("//") else _url(location))
    if not location:
        raise Misconfigured(f"the address names no lake; it is {FORMS}")
    if kind == "sqlite":
        return SQLiteLake(_file(location))
    return DuckDBLake(_file(location))


def lake_name(lake: Address) -> str:
    """The name of one of several lakes: that of its file, or of its database."""
    name = lake.file.stem if not isinstance(lake, PostgresLake) else urlsplit(lake.url).path[1:]
    return re.sub("[^A-Za-z0-9_-]+", "_", name).replace("--at-", "-at-") or "lake"


def postgresql_url(address: str, otherwise: str) -> str:
    """The URL of a catalog in PostgreSQL.

    Args:
        otherwise: the end of the message for a catalog in a file.

    Raises:
        Misconfigured: the catalog is in a file; or as `parse`.
    """
    lake = parse(address)
    if not isinstance(lake, PostgresLake):
        raise Misconfigured(f"this catalog is in a file: {otherwise}")
    return lake.url


def _kind(text: str) -> tuple[str, str]:
    """Split an address into its kind, in lower case, and the rest; "" is a file of DuckDB."""
    match = KIND.fullmatch(text)
    # The name of a file may look like a kind.
    if match is None or os.path.exists(text):
        return "", text
    kind = match[1].lower()
    if kind in {"duckdb", "file"}:
        return "", match[2]
    return (
        (kind, match[2]) if kind in {"sqlite", "postgres", "postgresql", *REFUSED} else ("", text)
    )


def _url(location: str) -> str:
    """The URL of what follows `postgres:`, which is a URL or a connection string of libpq."""
    is_url = location.startswith(("postgres://", "postgresql://"))
    return location if is_url else url_of(location)


def _file(text: str) -> Path:
    # `file:///x` and `file:/x` name the same file.
    return Path(re.sub("^//(?:localhost)?(?=/)", "", text)).expanduser()
