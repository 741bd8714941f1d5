"""The connection to the PostgreSQL database of a DuckLake: one per process, opened when needed."""

import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

from pg8000.exceptions import DatabaseError
from pg8000.native import Connection

from ... import budget
from ...errors import BadRequest, Misconfigured, PolynyaError, ServiceUnavailable
from .catalog_connection import CONNECTION_ERRORS, CatalogConnection, ConnectionLost
from .sockets import connected, limit_tls

Answer = TypeVar("Answer")

GONE_TABLE = "42P01"
"""undefined_table. DuckLake drops an empty inlined table at a flush, between two of our queries."""

TRANSIENT = {"57P01", "57P02", "57P03", "53300", "40001", GONE_TABLE}
"""Worth a second try: shutdown, crash, starting up, too many connections, a standby's conflict."""

UNAVAILABLE = (TRANSIENT - {GONE_TABLE}) | {"57014"}
"""The database cannot answer now; the last one is a statement that took too long."""

REFUSED = {"28P01", "28000"}
"""A password that is none (any more), and a role that may not sign in (a bad IAM token)."""

NO_GRANT = "42501"

NO_SUCH_CHARACTER = "22021"
"""Bytes that are no character: a NUL in what we ask, or text in the catalog that is not UTF-8."""

BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
"""One view of the catalog, whatever is committed meanwhile."""

TEXT_FORMS = {
    "client_encoding": "UTF8",
    "TimeZone": "UTC",
    "DateStyle": "ISO",
    "IntervalStyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
}
"""They make PostgreSQL's text forms the ones that DuckLake writes and pg8000 reads. Fingerprints
are of text forms: whoever makes virtual files needs the same."""

TLS_MODES = ("disable", "require", "verify-ca", "verify-full")

LOCAL = {"", "localhost", "127.0.0.1", "::1"}

RDS_CERTIFICATES = Path(__file__).with_name("rds-certificates.pem")
"""What `sslrootcert=rds` stands for, besides the system's, which RDS Proxy's come from."""


class CredentialsProvider(Protocol):
    """Who we are to the database, where its URL does not say it."""

    def __call__(self, host: str, port: int, user: str) -> tuple[str, str]:
        """The role and its password."""

    def forget(self) -> None:
        """The database refused what was given last."""


class Database:
    """Answers questions to one DuckLake catalog, each in a read transaction of its own.

    Not safe for several threads: a Lambda instance serves one request at a time.
    """

    def __init__(
        self,
        url: str,
        metadata_schema: str,
        timeout_seconds: float = 12,
        credentials_provider: CredentialsProvider | None = None,
    ) -> None:
        """Remember where the database is.

        Args:
            timeout_seconds: how long one statement, or one wait for it, may take. All of them
                together have the budget of the request.
            sign_in: asked for the role and the password each time a connection is opened.

        Raises:
            Misconfigured: `url` is no PostgreSQL URL. The message never holds the URL.
        """
        self._longest_wait = timeout_seconds
        self._arguments = connection_arguments(url) | {
            "application_name": "polynya",
            # Startup parameters instead of SET: SET pins the connection behind RDS Proxy.
            "startup_params": {
                "default_transaction_read_only": "on",
                "statement_timeout": str(round(timeout_seconds * 1000)),
                **TEXT_FORMS,
            },
        }
        if isinstance(context := self._arguments.get("ssl_context"), ssl.SSLContext):
            limit_tls(context, timeout_seconds)
        self._metadata_schema = metadata_schema
        self._sign_in = credentials_provider
        self._connection: Connection | None = None

    def read(self, question: Callable[[Connection], Answer]) -> Answer:
        """Ask `question` within one REPEATABLE READ READ ONLY transaction.

        It is asked a second time when the connection was lost or a table vanished in between.

        Raises:
            ServiceUnavailable: the database does not answer.
            Misconfigured: a table may not be read, or is not there.
        """
        failure: PolynyaError
        for _ in ("first try", "second try"):
            try:
                return self._ask(question)
            except ConnectionLost as error:
                self.close()
                if error.args == ("Server refuses SSL",):
                    raise Misconfigured(
                        "the catalog database offers no TLS; DATABASE_URL may say sslmode=disable"
                    ) from None
                failure = ServiceUnavailable("the catalog database does not answer; try again")
                if budget.seconds_left() <= 0:
                    break
            except DatabaseError as error:
                self._rollback()
                failure = self._said(error)
                if _sqlstate(error) in REFUSED and self._sign_in is not None:
                    self._sign_in.forget()
                elif _sqlstate(error) not in TRANSIENT:
                    break
            except PolynyaError:
                self._rollback()
                raise
            except BaseException:
                # Perhaps amid an answer, which the next question would take for its own.
                self.close()
                raise
        raise failure

    def close(self) -> None:
        """Give the connection up; the next question opens a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(DatabaseError, ConnectionLost):  # it is gone already
                connection.close()

    def _ask(self, question: Callable[[Connection], Answer]) -> Answer:
        if self._connection is None:
            self._connection = self._connect()
        self._connection.run(BEGIN)
        answer = question(self._connection)
        self._connection.run("COMMIT")
        return answer

    def _connect(self) -> Connection:
        """Raises:
        ConnectionLost: nothing answers, or the host has no such name.
        Misconfigured: TLS fails.
        """
        arguments = self._arguments | self._signed_in()
        sock: socket.socket | None = None
        try:
            sock = connected(arguments, self._longest_wait)
            arguments.pop("unix_sock", None)
            return CatalogConnection(self._metadata_schema, **arguments, sock=sock)
        except BaseException as error:
            if sock is not None:
                sock.close()
            if isinstance(error, ssl.SSLError):
                raise Misconfigured(_tls_failure(error)) from None
            if isinstance(
                error, (*CONNECTION_ERRORS, UnicodeError)
            ):  # UnicodeError: of the host's name
                raise ConnectionLost(*error.args) from error
            raise

    def _signed_in(self) -> dict[str, Any]:
        if self._sign_in is None:
            return {}
        at = self._arguments
        user, password = self._sign_in(at.get("host", ""), at.get("port", 0), at["user"])
        return {"user": user, "password": password}

    def _rollback(self) -> None:
        try:
            if self._connection is not None:
                self._connection.run("ROLLBACK")
        except (DatabaseError, ConnectionLost):
            self.close()

    def _said(self, error: DatabaseError) -> PolynyaError:
        """The error for the client: never the database's own text, which may hold row values."""
        state = _sqlstate(error)
        if state in UNAVAILABLE:
            return ServiceUnavailable("the catalog database is busy or restarting; try again")
        if state == NO_SUCH_CHARACTER:
            if _message(error).endswith("0x00"):
                return BadRequest("a name holds a character that no name in PostgreSQL can hold")
            return Misconfigured(
                "the catalog database holds text that is not UTF-8; DuckLake writes nothing else"
            )
        if state == GONE_TABLE:
            return Misconfigured(
                f"no DuckLake catalog in the PostgreSQL schema {self._metadata_schema!r}: set "
                "METADATA_SCHEMA to the schema that holds ducklake_metadata"
            )
        if state == NO_GRANT:
            return Misconfigured(
                "the database role may not read all of DuckLake's tables: GRANT USAGE ON SCHEMA …, "
                "GRANT SELECT ON ALL TABLES IN SCHEMA …, and for inlined tables to come ALTER "
                "DEFAULT PRIVILEGES FOR ROLE <writer> IN SCHEMA … GRANT SELECT ON TABLES TO "
                "<this role>"
            )
        if state in REFUSED and self._sign_in is not None:
            return ServiceUnavailable(
                "the catalog database refuses the role or its password, also the newest that is "
                "kept for it; when it is being rotated, try again"
            )
        if state.startswith("28") or state == "3D000":
            return Misconfigured("the catalog database refuses this role, password or database")
        return Misconfigured(f"the catalog database answered with SQLSTATE {state}")


def _tls_failure(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            "the certificate of the catalog database is not accepted: "
            f"{error.verify_message.rstrip('.')}; sslrootcert in DATABASE_URL names the file with "
            "the certificates to trust"
        )
    return f"no TLS connection to the catalog database: {error.reason}"


def _sqlstate(error: DatabaseError) -> str:
    details = error.args[0] if error.args else None
    return details.get("C", "") if isinstance(details, dict) else ""


def _message(error: DatabaseError) -> str:
    """The database's own text: to look at, never to show."""
    details = error.args[0] if error.args else None
    return details.get("M", "") if isinstance(details, dict) else ""


def connection_arguments(url: str) -> dict[str, Any]:
    """Arguments of pg8000 for a URL in libpq's form (PostgreSQL manual, 34.1.1.2)."""
    try:
        parts = urlsplit(url)
        port = parts.port or 5432
    except ValueError:
        raise Misconfigured("DATABASE_URL is not a URL") from None
    if parts.scheme not in {"postgresql", "postgres"} or not parts.path.strip("/"):
        raise Misconfigured("DATABASE_URL must read postgresql://user:password@host:port/database")
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    host = query.get("host") or parts.hostname or ""
    arguments: dict[str, Any] = {
        "user": unquote(parts.username or "postgres"),
        # Not None: pg8000 fails on that where SCRAM asks for a password.
        "password": unquote(parts.password or ""),
        "database": unquote(parts.path.strip("/")),
    }
    if host.startswith("/"):
        return arguments | {"unix_sock": f"{host}/.s.PGSQL.{port}"}
    return arguments | {"host": host or "localhost", "port": port, "ssl_context": _tls(host, query)}


def _tls(host: str, query: dict[str, str]) -> ssl.SSLContext | bool:
    mode = query.get("sslmode") or ("disable" if host in LOCAL else "verify-full")
    if mode == "disable":
        return False  # None would be: if the server has it, with whatever certificate
    root = query.get("sslrootcert")
    try:
        context = ssl.create_default_context(cafile=None if root == "rds" else root)
        if root == "rds":
            context.load_verify_locations(RDS_CERTIFICATES)
    except OSError:
        raise Misconfigured(
            "sslrootcert in DATABASE_URL does not name a file with certificates"
        ) from None
    if mode == "require":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif mode == "verify-ca":
        context.check_hostname = False
    elif mode not in TLS_MODES:
        raise Misconfigured(f"sslmode {mode!r} is not one of {', '.join(TLS_MODES)}")
    return context
