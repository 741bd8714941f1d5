"""Copies of a catalog that PostgreSQL's own programs make: a standby, a dump, a subscription."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pg8000.native import identifier
from polynya_local.processes import postgres
from polynya_local.processes.postgres import Database, Server

SECONDS = 60


@contextmanager
def standby(server: Server, **settings: str) -> Iterator[Database]:
    """Give the maintenance database of a hot standby; others have the same names.

    Args:
        settings: those of the standby.
    """
    primary = server.maintenance
    with postgres.server_folder() as folder:
        address = ["-h", primary.host, "-p", str(primary.port), "-U", primary.user]
        options = ["-D", "data", "-R", "-X", "stream", "-c", "fast", "--no-sync"]
        postgres.run_program("pg_basebackup", *address, *options, folder=folder)
        with postgres.running(folder, settings) as maintenance:
            yield maintenance


def wait_for_replay(primary: Database, replica: Database) -> None:
    """Wait until a standby has replayed all that the primary has written."""
    [[place]] = primary.run("SELECT pg_current_wal_insert_lsn()::text")
    sql = "SELECT pg_last_wal_replay_lsn() >= CAST(:place AS pg_lsn)"
    wait_until(lambda: replica.run(sql, place=place) == [[True]])


def wait_until(condition) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not within {SECONDS} s"
        time.sleep(0.1)


def dump(database: Database, *options: str) -> str:
    """A database as `pg_dump` writes it."""
    return _run("pg_dump", database, *options)


def restore(text: str, database: Database) -> None:
    """Run what `dump` gave."""
    _run("psql", database, "-q", "-v", "ON_ERROR_STOP=1", text=text)


def _run(program: str, database: Database, *options: str, text: str = "") -> str:
    command = [str(postgres._binaries() / program), "-d", database.url, *options]
    return subprocess.run(
        command, input=text, capture_output=True, text=True, check=True, timeout=SECONDS
    ).stdout


@contextmanager
def subscription(publisher: Database, subscriber: Database) -> Iterator[None]:
    """Replicate the tables that a database has now into another one of the same server."""
    rows = publisher.run("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    tables = [identifier(table) for (table,) in rows]
    for table in tables:
        # Without it DuckLake could not change the tables that have no key.
        publisher.run(f"ALTER TABLE {table} REPLICA IDENTITY FULL")
    restore(dump(publisher, "--schema-only"), subscriber)
    # FOR ALL TABLES would end replication at the first row of a table that the subscriber lacks.
    publisher.run(f"CREATE PUBLICATION copied FOR TABLE {', '.join(tables)}")
    # Within one server CREATE SUBSCRIPTION would wait for itself when it makes the slot.
    publisher.run("SELECT pg_create_logical_replication_slot('copied', 'pgoutput')")
    subscriber.run(
        f"CREATE SUBSCRIPTION copied CONNECTION '{publisher.libpq}' PUBLICATION copied "
        "WITH (create_slot = false, slot_name = 'copied')"
    )
    try:
        yield
    finally:
        subscriber.run("ALTER SUBSCRIPTION copied DISABLE")
        subscriber.run("ALTER SUBSCRIPTION copied SET (slot_name = NONE)")
        subscriber.run("DROP SUBSCRIPTION copied")
        wait_until(lambda: publisher.run(NOT_ACTIVE) == [[True]])
        publisher.run("SELECT pg_drop_replication_slot('copied')")


NOT_ACTIVE = "SELECT NOT active FROM pg_replication_slots WHERE slot_name = 'copied'"


def wait_for_subscriber(publisher: Database, subscriber: Database) -> None:
    """Wait until a subscriber has applied all that the publisher has committed."""
    ready = "SELECT bool_and(srsubstate = 'r') FROM pg_subscription_rel"
    wait_until(lambda: subscriber.run(ready) == [[True]])
    [[place]] = publisher.run("SELECT pg_current_wal_insert_lsn()::text")
    sql = (
        "SELECT confirmed_flush_lsn >= CAST(:place AS pg_lsn) FROM pg_replication_slots "
        "WHERE slot_name = 'copied'"
    )
    wait_until(lambda: publisher.run(sql, place=place) == [[True]])
