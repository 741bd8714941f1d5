"""DuckDB with its iceberg extension, in a process of its own: the extension can abort."""

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection

import pyarrow as pa
from duckdb import DuckDBPyConnection

from .duckdb_connection import ICEBERG, attaching, connect, identifier, s3_secret

NAME = "DuckDB"
SECONDS = 120  # longer than any query here

Opener = Callable[..., DuckDBPyConnection]


class Process:
    """A DuckDB in a process of its own, which calls `opened(*where)` for its connection."""

    def __init__(self, opened: Opener, *where: str) -> None:
        self._opened, self._where = opened, where
        self._start()

    def query(self, sql: str) -> pa.Table:
        """The rows of any SQL.

        Raises:
            RuntimeError: DuckDB reports an error, ends, or does not answer in time.
        """
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
        # `spawn`: the child shares no DuckDB and no threads with this process.
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=answer, args=(theirs, self._opened, *self._where), daemon=True
        )
        self._process.start()
        theirs.close()  # otherwise reading would not end with the child

    def _cause_of_death(self) -> str:
        self._process.join(5)
        return f"DuckDB's process ended with {self._process.exitcode} during"


class DuckDB(Process):
    """An Iceberg client; the catalog is attached as `ice`."""

    name = NAME

    def __init__(self, catalog_uri: str, warehouse: str, s3_endpoint: str) -> None:
        super().__init__(attached, catalog_uri, warehouse, s3_endpoint)

    def rows(self, namespace: str, table: str, snapshot_id: int | None = None) -> pa.Table:
        """All rows of a table, at a snapshot or the newest."""
        source = f"ice.{identifier(namespace)}.{identifier(table)}"
        if snapshot_id is not None:
            source += f" AT (VERSION => {int(snapshot_id)})"
        return self.query(f"SELECT * FROM {source}")

    def move(self, catalog_uri: str, warehouse: str, s3_endpoint: str) -> None:
        """Attach another catalog instead, in the same process."""
        self._where = (catalog_uri, warehouse, s3_endpoint)
        try:
            for sql in ("DETACH ice", s3_secret(s3_endpoint), attaching(catalog_uri, warehouse)):
                self.query(sql)
        except RuntimeError:
            self.restart()  # it was started with the other catalog, and could not attach that


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


def stream(table: pa.Table) -> bytes:
    """A table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    body: bytes = sink.getvalue().to_pybytes()
    return body


def open(catalog_uri: str, warehouse: str, s3_endpoint: str) -> DuckDB:
    """A client of a catalog."""
    return DuckDB(catalog_uri, warehouse, s3_endpoint)
