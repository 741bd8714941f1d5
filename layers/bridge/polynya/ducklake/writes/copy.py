"""Inserts rows by COPY: 10,000 files with statistics take half a second, by INSERT a minute."""

import io
from collections.abc import Sequence

from pg8000.native import Connection, identifier

from ..rows.writers.layout import ALL, Layout

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
    lines = ("\t".join(map(_text, row)) + "\n" for row in rows)
    columns = ", ".join(map(identifier, names))
    stream = io.BytesIO("".join(lines).encode())
    con.run(f"COPY {identifier(table_name)} ({columns}) FROM STDIN", stream=stream)


def _text(value: object) -> str:
    if value is None:
        return r"\N"
    if isinstance(value, bool):
        return "t" if value else "f"
    text = str(value)
    # Most texts need no escapes, and to look for them is quicker than to translate.
    is_plain = text.isprintable() and "\\" not in text
    return text if is_plain else text.translate(ESCAPES)
