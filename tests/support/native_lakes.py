"""What tests ask of a lake as native DuckLake reads it, besides its rows."""

from polynya_local.clients.native import Native, Table


def snapshots(reader: Native) -> dict[int, str]:
    """The `changes_made` of every snapshot of the lake, by its id."""
    catalog = reader._catalog
    rows = reader.query(f"""
        SELECT snapshot_id, coalesce(changes_made, '')
        FROM {catalog}.ducklake_snapshot
        LEFT JOIN {catalog}.ducklake_snapshot_changes USING (snapshot_id)
        ORDER BY 1""")
    return dict(rows)


def count(reader: Native, table: Table, snapshot_id: int) -> int:
    """The rows of a table at a snapshot."""
    source = reader.source(table.namespace, table.name, snapshot_id)
    # The filter is always true; a plain count(*) comes from the counts in the catalog.
    [(rows,)] = reader.query(f"SELECT count(*) FILTER (WHERE random() >= 0) FROM {source}")
    return int(rows)


def name_at(reader: Native, table: Table, snapshot_id: int) -> tuple[str, str]:
    """The namespace and the name that a table of now had at a snapshot."""
    then = reader._name_at(table.namespace, table.name, snapshot_id)
    return then.namespace, then.name
