"""Whether all readers of a registered table get the rows that a reader of its source gets."""

from typing import Any

import pyarrow as pa
from polynya_local.clients.duckdb import identifier

from tests.support.native_filters import wrong
from tests.support.writes.altered import reading
from tests.support.writes.everywhere import Everywhere, plain

FUNCTIONS = ("min", "max", "count")


def register(at: Everywhere, name: str, location: str) -> None:
    """Register a table as one snapshot of the lake."""
    before = at.newest()
    with at.commits():
        at.catalog.register_table(f"main.{name}", location)
    assert at.newest() == before + 1


def dry_run(
    at: Everywhere, name: str, location: str, others: dict[str, Any] | None = None
) -> dict[str, Any]:
    """What a registration would do; or the error."""
    url = at.catalog.url("namespaces/main/register")
    body = {"name": name, "metadata-location": location, "dry-run": True, **(others or {})}
    return dict(at.catalog._session.post(url, json=body).json())


def compare(at: Everywhere, name: str, source: pa.Table, s3: str) -> None:
    """Compare the rows, and natively each filter and each aggregate of each column.

    Args:
        source: the rows as a reader of the source gives them.
    """
    shown = [field.name for field in at.catalog.load_table(f"main.{name}").schema().fields]
    source = source.select(shown)
    expected = in_one_form(source.to_pylist())
    assert in_one_form(scanned(at, name).to_pylist()) == expected, "PyIceberg"
    with reading(at.lake, s3) as native:
        table = f"lake.main.{name}"
        # Fields of structs are found by name, in whatever order the source has them.
        native.execute(f"CREATE OR REPLACE TABLE memory.main.expected AS FROM {table} LIMIT 0")
        native.execute("INSERT INTO memory.main.expected BY NAME FROM source")
        rows = native.execute(f"FROM {table}").to_arrow_table().to_pylist()
        assert in_one_form(rows) == expected, "natively"
        faults = wrong(native, table, "memory.main.expected") if source.num_rows else []
        assert not faults, faults
        for column in source.column_names:
            asked = ", ".join(f"{f}({identifier(column)})::VARCHAR" for f in FUNCTIONS)
            answers = [
                native.execute(f"SELECT count(*), {asked} FROM {of}").fetchall()
                for of in (table, "memory.main.expected")
            ]
            assert answers[0] == answers[1], column
    assert len(at.check(name)) == source.num_rows


def scanned(at: Everywhere, name: str, **arguments: Any) -> pa.Table:
    """The rows as PyIceberg gets them."""
    return at.catalog.load_table(f"main.{name}").scan(**arguments).to_arrow()


def in_one_form(rows: list[dict[str, Any]]) -> list[str]:
    """Rows by the names of their fields, at each level."""
    return plain(tuple(_sorted(row).items()) for row in rows)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(item) for key, item in sorted(value.items())}
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return {key: _sorted(item) for key, item in sorted(value)}  # maps
    if isinstance(value, list):
        return [_sorted(item) for item in value]
    return value
