"""DuckDB as an Iceberg client, in a process of its own because its iceberg extension can abort.

`connect` opens DuckDB for everything else, too. Extensions come from PyPI packages; nothing is
downloaded at run time.
"""

import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

import duckdb
from duckdb import DuckDBPyConnection
from polynya.runtime.errors import Misconfigured

from ..processes.serving import KEY_ID, REGION, SECRET
from ..processes.spawned import spawned

if TYPE_CHECKING:
    import pyarrow as pa  # `serve` and the page open connections without it

SECONDS_TO_STOP = 2
"""How long an interrupted statement may take to end."""

T = TypeVar("T")

LAKE = ("ducklake", "postgres_scanner", "httpfs")
ICEBERG = ("avro", "httpfs", "iceberg")
# While DuckLake waits for an answer of PostgreSQL, DuckDB polls for tasks of its other threads. In
# lakes of a few rows this is half of its CPU time; the tests let it have one thread.
THREADS = "POLYNYA_TEST_DUCKDB_THREADS"
VERIFIED: set[str] = set()
"""The extension files whose signatures DuckDB has verified in this process. It takes 0.1 s for each
file, so later connections skip it."""


def connect(
    extensions: tuple[str, ...] = (), s3_endpoint: str | None = None
) -> duckdb.DuckDBPyConnection:
    """Open an in-memory DuckDB in UTC with `extensions` loaded, and S3 at `s3_endpoint`."""
    paths = [str(extension_path(name)) for name in extensions]
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_unsigned_extensions": bool(paths) and VERIFIED.issuperset(paths),
    }
    if threads := os.environ.get(THREADS):
        config["threads"] = int(threads)
    con = duckdb.connect(config=config)
    # timestamptz literals and calendar parts depend on the zone; GLOBAL is for cursors, too.
    con.execute("SET GLOBAL TimeZone = 'UTC'")
    for path in paths:
        con.execute(f"LOAD {literal(path)}")
    VERIFIED.update(paths)
    if s3_endpoint:
        con.execute(s3_secret(s3_endpoint))
    return con


def confine(
    con: duckdb.DuckDBPyConnection, files: Iterable[Path], directories: Iterable[str] = ()
) -> None:
    """Restrict a connection to these files, without further extensions; no setting can change it.

    Args:
        directories: it may open all files in them, also in S3; each ends in a slash.

    What is attached already stays attached.
    """
    paths = ", ".join(literal(str(file)) for file in files)
    con.execute(f"SET allowed_paths = [{paths}]")
    con.execute(f"SET allowed_directories = [{', '.join(map(literal, directories))}]")
    con.execute("SET enable_external_access = false")
    con.execute("SET lock_configuration = true")


def interruptible(con: duckdb.DuckDBPyConnection, task: Callable[[], T]) -> T:
    """The result of a task that uses a connection; a signal interrupts it.

    Raises:
        BaseException: whatever the task raises, or the handler of a signal.
    """
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(task())
        except BaseException as error:
            result.set_exception(error)

    # In a thread of its own: Python calls a signal's handler in the main thread, and there only
    # when DuckDB returns.
    thread = Thread(target=run, name="interruptible", daemon=True)
    thread.start()
    try:
        return result.result()
    finally:
        deadline = time.monotonic() + SECONDS_TO_STOP
        while not result.done() and time.monotonic() < deadline:
            con.interrupt()
            thread.join(0.05)


class MissingExtension(Misconfigured, RuntimeError):
    """PyPI has an extension for another release of DuckDB, or its package is not installed."""


def extension_path(name: str) -> Path:
    """The file of an extension in the PyPI package duckdb-extension-<name>.

    Raises:
        MissingExtension: the package is not installed, or is for another version of DuckDB.
    """
    spec = find_spec(f"duckdb_extension_{name}")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtension(f"pip install duckdb-extension-{name.replace('_', '-')}")
    folder = Path(spec.submodule_search_locations[0]) / "extensions"
    path = folder / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
    if not path.exists():
        releases = ", ".join(
            sorted(release.name.removeprefix("v") for release in folder.glob("v*"))
        )
        raise MissingExtension(
            f"duckdb-extension-{name.replace('_', '-')} is for DuckDB {releases}, and this Python "
            f"has {duckdb.__version__}: pip install 'duckdb=={releases}'"
        )
    return path


def s3_secret(endpoint: str) -> str:
    """SQL that makes DuckDB use a local S3."""
    scheme, _, host = endpoint.rstrip("/").rpartition("://")
    use_ssl = "true" if scheme == "https" else "false"
    return (
        f"CREATE OR REPLACE SECRET (TYPE s3, PROVIDER config, KEY_ID '{KEY_ID}', "
        f"SECRET '{SECRET}', REGION '{REGION}', ENDPOINT {literal(host)}, "
        f"URL_STYLE 'path', USE_SSL {use_ssl})"
    )


def identifier(name: str) -> str:
    """A name, quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text, quoted for SQL."""
    return "'" + text.replace("'", "''") + "'"


def listed_schemas(name: str) -> str:
    """A statement that lists the schemas of an attached catalog."""
    return f"SELECT schema_name FROM duckdb_schemas() WHERE database_name = {literal(name)}"


def listing_namespaces(name: str = "ice") -> str:
    """A statement that lists the namespaces of an attached Iceberg catalog.

    Until DuckDB has listed them, it takes a dot in a name for one between two levels.
    """
    return f"SELECT count(*) FROM duckdb_schemas() WHERE database_name = {literal(name)}"


def attaching(catalog_uri: str, warehouse: str, name: str = "ice", secret: str = "") -> str:
    """The ATTACH statement of an Iceberg catalog.

    Args:
        secret: the name of a secret with a token, for a catalog that vends keys for tables; empty:
            the catalog needs no token.
    """
    access = "AUTHORIZATION_TYPE 'none', ACCESS_DELEGATION_MODE 'none'"
    if secret:
        access = f"SECRET {secret}"
    # Without DEFAULT_SCHEMA DuckDB does not see a namespace of this name, DuckLake's default.
    return (
        f"ATTACH {literal(warehouse)} AS {name} (TYPE iceberg, ENDPOINT {literal(catalog_uri)}, "
        f"{access}, DEFAULT_SCHEMA 'main')"
    )


NAME = "DuckDB"
SECONDS = 120  # longer than any query here

Opener = Callable[..., DuckDBPyConnection]


class Process:
    """A DuckDB in a process of its own, which calls `opened(*where)` for its connection."""

    def __init__(self, opened: Opener, *where: str) -> None:
        self._opened, self._where = opened, where
        self._start()

    def query(self, sql: str) -> "pa.Table":
        """The rows of any SQL.

        Raises:
            RuntimeError: DuckDB reports an error, ends, or does not answer in time.
        """
        import pyarrow as pa

        try:
            self._pipe.send(sql)
            if not self._pipe.poll(SECONDS):
                raise TimeoutError(f"DuckDB gave no answer within {SECONDS} s to: {sql}")
            kind, answer = self._pipe.recv()
        except (EOFError, OSError, TimeoutError) as error:
            reason = error if isinstance(error, TimeoutError) else self._cause_of_death()
            self.restart()
            raise RuntimeError(f"{reason}: {sql}") from error
        if kind == "error":
            raise RuntimeError(answer)
        return pa.ipc.open_stream(answer).read_all()

    def restart(self) -> None:
        """Start a new process: DuckDB caches metadata files by path until it ends."""
        self.close()
        self._start()

    def close(self) -> None:
        """End the process."""
        self._pipe.close()  # the child ends when the pipe is closed
        self._process.join(5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process.close()

    def _start(self) -> None:
        self._process, self._pipe = spawned(answer, self._opened, *self._where)

    def _cause_of_death(self) -> str:
        self._process.join(5)
        return f"DuckDB's process ended with {self._process.exitcode} during"


class DuckDB(Process):
    """An Iceberg client; the catalog is attached as `ice`."""

    name = NAME

    def __init__(self, catalog_uri: str, warehouse: str, s3_endpoint: str) -> None:
        super().__init__(attached, catalog_uri, warehouse, s3_endpoint)

    def rows(self, namespace: str, table: str, snapshot_id: int | None = None) -> "pa.Table":
        """All rows of a table, at a snapshot or the newest."""
        return self.query(f"SELECT * FROM {self.source(namespace, table, snapshot_id)}")

    def source(self, namespace: str, table: str, snapshot_id: int | None = None) -> str:
        """What follows FROM for a table, at a snapshot or the newest."""
        name = f"ice.{identifier(namespace)}.{identifier(table)}"
        return name if snapshot_id is None else f"{name} AT (VERSION => {int(snapshot_id)})"


def answer(pipe: Connection, opened: Opener, *where: str) -> None:
    """Run in the child: receive SQL, send an Arrow stream or an error."""
    con = None
    while True:
        try:
            sql = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            con = con or opened(*where)
            reply: tuple[str, str | bytes] = "rows", stream(con.execute(sql).to_arrow_table())
        except Exception as error:
            reply = ("error", f"{type(error).__name__}: {error}")
        try:
            pipe.send(reply)
        except OSError:
            return  # the parent has ended


def attached(catalog_uri: str, warehouse: str, s3_endpoint: str) -> DuckDBPyConnection:
    """A connection with an Iceberg catalog attached as `ice`."""
    con = connect(ICEBERG, s3_endpoint)
    con.execute("SET arrow_lossless_conversion = true")
    con.execute(attaching(catalog_uri, warehouse))
    return con


def stream(table: "pa.Table") -> bytes:
    """A table as an Arrow IPC stream."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    body: bytes = sink.getvalue().to_pybytes()
    return body


open = DuckDB
