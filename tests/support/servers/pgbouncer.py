"""PgBouncer, a pooler before PostgreSQL; `python -m tests.support.servers.pgbouncer` gets it."""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from polynya_local.processes import postgres

from tests.support.debian import install

NAMES = ("pgbouncer", "/usr/sbin/pgbouncer")


def executable() -> str | None:
    """The path of PgBouncer; None: there is none, and the tests with it are skipped."""
    return next(filter(None, map(shutil.which, NAMES)), None)


KEEPS_PREPARED = (1, 21)
"""The first version that does, if `max_prepared_statements` is not 0."""


def version() -> tuple[int, ...]:
    """The version of PgBouncer, which is there."""
    program = executable()
    assert program is not None
    text = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(map(int, text.split()[1].split(".")[:2]))


@contextmanager
def pgbouncer(server: postgres.Database, mode: str, **settings: str) -> Iterator[postgres.Database]:
    """Give the maintenance database of a server behind PgBouncer; others have the same address.

    Args:
        mode: `pool_mode`.
        settings: others of its file.
    """
    program = executable()
    if program is None:
        pytest.skip("there is no PgBouncer on this machine")
    owner, port = postgres._owner(), postgres.free_port()
    folder = Path(
        tempfile.mkdtemp(prefix="polynya-bouncer-", dir=postgres._traversable_folder(owner))
    )
    users = folder / "users"
    users.write_text(f'"{server.user}" "{server.password or ""}"\n')
    of_file = {
        "listen_addr": postgres.HOST,
        "listen_port": str(port),
        "unix_socket_dir": "",
        "auth_type": "any" if server.password is None else "plain",
        "auth_file": str(users),
        "pool_mode": mode,
        "logfile": str(folder / "log"),
        **settings,
    }
    address = f"* = host={server.host} port={server.port}"
    if server.password is None:
        address += f" user={server.user}"
    lines = ["[databases]", address, "[pgbouncer]", *(f"{k} = {v}" for k, v in of_file.items())]
    (folder / "ini").write_text("\n".join(lines) + "\n")
    for file in (folder, *folder.iterdir()):
        if owner:
            shutil.chown(file, owner)
    process = subprocess.Popen(
        [program, "-q", folder / "ini"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        **postgres._identity(owner),
    )
    try:
        pooled = replace(server, port=port)
        _wait_until_ready(process, pooled, folder / "log")
        yield pooled
    finally:
        process.terminate()
        process.wait(10)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_until_ready(
    process: subprocess.Popen[bytes], pooled: postgres.Database, log: Path
) -> None:
    deadline = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(Exception):  # not listening yet
            pooled.connect().close()
            return
        time.sleep(0.05)
    said = log.read_text(errors="replace")[-2000:] if log.exists() else ""
    raise RuntimeError(f"PgBouncer did not start: {said}")


if __name__ == "__main__":
    install("pgbouncer", executable)
    if executable() is None:
        print("no PgBouncer: the tests with it will be skipped", file=sys.stderr)
