"""A connection string of libpq as a URL, and a URL for libpq.

https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-KEYWORD-VALUE
"""

import getpass
import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from polynya.ducklake.connection.url import LOCAL
from polynya.errors import Misconfigured

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
"""They change nothing of which lake this is, or how safe the connection is."""

SOCKETS = (Path("/var/run/postgresql"), Path("/tmp"))
"""Where libpq looks for a server without a host: Debian's directory, then PostgreSQL's own."""


def url_of(text: str, environ: Mapping[str, str] = os.environ) -> str:
    """The URL of a connection string.

    TLS is that of Polynya's URLs: verify-full unless the host is this machine, or `sslmode` says
    otherwise.

    Raises:
        Misconfigured: the string has another form, or a parameter that Polynya does not know. The
            message never holds a value.
    """
    given = parameters(text)
    given["host"] = given.pop("hostaddr", "") or given.get("host", "")
    if unknown := given.keys() - VARIABLES.keys() - IGNORED:
        raise Misconfigured(
            f"the connection string has the parameter {min(unknown)}, which Polynya does not know; "
            f"it knows {', '.join(VARIABLES)}"
        )
    known = {name: given.get(name) or environ.get(VARIABLES[name], "") for name in VARIABLES}
    port = known["port"] or "5432"
    if not port.isdecimal():
        raise Misconfigured("the port of the connection string is not a number")
    host = known["host"] or _socket_folder(port)
    user = known["user"] or getpass.getuser()
    return _url(known, user, host, port)


def parameters(text: str) -> dict[str, str]:
    """The parameters of a connection string; of a repeated one the last.

    Raises:
        Misconfigured: the string has another form.
    """
    found, at = {}, 0
    text = text.strip()
    while at < len(text):
        pair = PAIR.match(text, at)
        if pair is None:
            raise Misconfigured(
                "the connection string must read 'dbname=lake host=… user=…'; a value with "
                "spaces is in single quotes, and a backslash escapes a quote"
            )
        value = pair["plain"] if pair["quoted"] is None else pair["quoted"]
        found[pair["key"].lower()] = re.sub(r"\\(.)", r"\1", value, flags=re.DOTALL)
        at = pair.end()
    return found


def _url(known: Mapping[str, str], user: str, host: str, port: str) -> str:
    login = quote(user, safe="") + (
        ":" + quote(known["password"], safe="") if known["password"] else ""
    )
    query = {name: known[name] for name in ("sslmode", "sslrootcert") if known[name]}
    if host.startswith("/"):
        query["host"], place = host, f":{port}"
    else:
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    database = quote(known["dbname"] or user, safe="")
    return f"postgresql://{login}@{place}/{database}" + (f"?{urlencode(query)}" if query else "")


def _socket_folder(port: str) -> str:
    """The folder of a local server's socket; without one libpq's compiled-in folder fails too."""
    found = [folder for folder in SOCKETS if (folder / f".s.PGSQL.{port}").exists()]
    return str(found[0]) if found else "localhost"


def for_libpq(url: str) -> str:
    """The URL with Polynya's default for TLS, unless it says something of TLS itself."""
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    host = (query.get("host") or [parts.hostname or ""])[-1]
    if "sslmode" in query or host in LOCAL or host.startswith("/"):
        return url
    tls = "sslmode=verify-full" + ("" if "sslrootcert" in query else "&sslrootcert=system")
    return f"{url}{'&' if parts.query else '?'}{tls}"
