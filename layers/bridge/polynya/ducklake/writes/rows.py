"""Rows of DuckLake's tables: inserted, copied, and ended at a snapshot."""

import io
from collections.abc import Sequence

from pg8000.native import Connection, identifier

from ..rows.objects import ALL, Layout

ESCAPES = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})


def copy(
    con: Connection,
    table_name: str,
    names: Sequence[str],
    rows: Sequence[Sequence[object]],
    layout: Layout = ALL,
) -> None:
    """Insert rows, in the order of the columns `names`.

    Args:
        layout: what the catalog has; columns that it lacks are left out.

    Raises:
        DatabaseError: the database refuses them.
    """
    if not rows:
        return
    names, rows = layout.rows(table_name, names, rows)
    # Most values are numbers, which need no call.
    lines = (
        "\t".join([str(value) if type(value) is int else _text(value) for value in row]) + "\n"
        for row in rows
    )
    columns = ", ".join(map(identifier, names))
    stream = io.BytesIO("".join(lines).encode())
    # 10,000 files with their statistics take half a second so, and a minute with INSERT.
    con.run(f"COPY {identifier(table_name)} ({columns}) FROM STDIN", stream=stream)


def _text(value: object) -> str:
    if value is None:
        return r"\N"
    if isinstance(value, bool):
        return "t" if value else "f"
    text = value if isinstance(value, str) else str(value)
    # Most texts need no escapes, and looking for them is quicker than translating.
    is_plain = text.isprintable() and "\\" not in text
    return text if is_plain else text.translate(ESCAPES)


def insert(con: Connection, table_name: str, /, **values: object) -> None:
    """Insert one row, whose columns have these values."""
    # With a prefix, because `run` has parameters of its own: ducklake_view has a column `sql`.
    parameters = {f"new_{name}": value for name, value in values.items()}
    columns = f"({', '.join(values)}) VALUES (:{', :'.join(parameters)})"
    con.run(f"INSERT INTO {table_name} {columns}", **parameters)


def end_live(con: Connection, snapshot_id: int, table_name: str, /, **keys: object) -> int:
    """End the rows of a table that are visible now at a snapshot; return their number.

    Args:
        keys: the columns by which they are selected, each with a value or a list of values.
    """
    conditions = [
        f"{name} = ANY(:{name})" if isinstance(value, list) else f"{name} = :{name}"
        for name, value in keys.items()
    ]
    # A row that has ended keeps its end: older snapshots are read by it.
    where = " AND ".join([*conditions, "end_snapshot IS NULL"])
    con.run(
        f"UPDATE {table_name} SET end_snapshot = :snapshot_id WHERE {where}",
        snapshot_id=snapshot_id,
        **keys,
    )
    count: int = con.row_count
    return count
