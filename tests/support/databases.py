"""Copies of databases."""

from pg8000.native import identifier, literal
from polynya_local.processes.postgres import Database, Server


def copy_database(server: Server, original: Database, name: str) -> Database:
    """Create a copy of a database; connections to the original are terminated."""
    # PostgreSQL does not copy a database to which somebody is connected.
    server.maintenance.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        f"WHERE datname = {literal(original.dbname)}"
    )
    return server.create_database(name, f"TEMPLATE {identifier(original.dbname)}")
