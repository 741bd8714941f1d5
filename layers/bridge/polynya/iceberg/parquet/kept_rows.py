"""Which rows of data files are also in the files with which copy-on-write replaces them.

Rows are the same if all columns of the table's schema are. They are compared as values of the
schema's types, because DuckLake's file may have a narrower type than the client's, other names, or
lack a column.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

from ...runtime.isolation import isolated
from ..deletion_vector import numbers, positions_of_array
from ..sandbox import Sandbox, sandbox
from ..types import Field
from .column_values import elements, value_of, value_type
from .footer_limits import checked

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class Uncertain(ValueError):
    """It is not certain which rows stay. The message says why."""


class OldFile(NamedTuple):
    """A data file that is replaced."""

    body: bytes
    deleted: Sequence[int]
    """The positions of rows that are deleted already, ascending."""


FILE_SHIFT = 40
"""A place has the number of an old file in the bits above these, and the position of a row in
them."""

# The place is NULL for a row of a new file.
GROUPS = """
CREATE TABLE row_groups AS
SELECT count(place) AS old, count(*) - count(place) AS new,
  list(place) FILTER (place IS NOT NULL) AS places
FROM file_rows GROUP BY {columns}"""

UNMATCHED = """
SELECT count(*) FILTER (new > old), count(*) FILTER (new > 0 AND new < old) FROM row_groups"""

KEPT = """
CREATE TABLE kept AS SELECT unnest(places) AS place FROM row_groups WHERE new > 0"""

COUNTS = f"SELECT place >> {FILE_SHIFT} AS file, count(*) FROM kept GROUP BY file"

POSITIONS = f"SELECT place & {(1 << FILE_SHIFT) - 1} AS pos FROM kept ORDER BY place"


@isolated
def kept_rows(
    old: Sequence[OldFile], new: Sequence[bytes], fields: Sequence[Field]
) -> list[Sequence[int]]:
    """The positions of the rows that stay, ascending, for each old file.

    Equal rows stay together or are deleted together: if only some stayed, it would be unknown
    which.

    Args:
        new: the files with the rows that stay.
        fields: the table's schema.

    Raises:
        Uncertain: new files have rows that old files do not have, or some of equal rows.
        Unreadable: a file is damaged.
        OutOfTime: no time is left in the budget.
    """
    columns = [f"k{number}" for number in range(len(fields))]
    typed = ", ".join(f"k{number} {value_type(f.type)}" for number, f in enumerate(fields))
    with sandbox(reads_file=True) as box:
        box.con.execute(f"CREATE TABLE file_rows (place BIGINT, {typed})")
        for number, file in enumerate(old):
            with _written(box, f"old{number}", file.body) as path:
                _insert(box.con, path, fields, number << FILE_SHIFT, file.deleted)
        for number, body in enumerate(new):
            with _written(box, f"new{number}", body) as path:
                _insert(box.con, path, fields)
        box.con.execute(GROUPS.format(columns=", ".join(columns)))
        [[foreign, some]] = box.con.execute(UNMATCHED).fetchall()
        if foreign:
            raise Uncertain("it puts rows into them that the replaced files do not have")
        if some:
            raise Uncertain("it keeps some of several rows that differ in these columns alone")
        return _kept(box.con, len(old))


def _kept(con: "DuckDBPyConnection", files: int) -> list[Sequence[int]]:
    con.execute(KEPT)
    counts = dict(con.execute(COUNTS).fetchall())
    ends = accumulate((counts.get(file, 0) for file in range(files)), initial=0)
    positions = con.execute(POSITIONS).fetchnumpy()["pos"]
    return [positions_of_array(positions[start:end]) for start, end in pairwise(ends)]


@contextmanager
def _written(box: Sandbox, name: str, body: bytes) -> Iterator[str]:
    """A file with these bytes, under a new name: DuckDB caches content by the name."""
    path = box.path.with_name(f"{name}.parquet")
    path.write_bytes(checked(body))
    yield str(path)
    path.unlink()


def _insert(
    con: "DuckDBPyConnection",
    path: str,
    fields: Sequence[Field],
    first_place: int | None = None,
    deleted: Sequence[int] = (),
) -> None:
    """Insert the rows of a file.

    Args:
        first_place: of its first row; None: the file is a new one.
    """
    columns = elements(con, path)
    by_id = {element.field_id: (f"c{n}", element) for n, element in enumerate(columns)}
    if None in by_id:
        raise Uncertain("a replaced file has no field ids (ducklake_add_data_files)")
    keys = [value_of(field, *by_id.get(field.field_id, ("", None))) for field in fields]
    names = ", ".join(f"c{number}" for number in range(len(columns)))
    # Not DuckDB's file_row_number: a user's column may have that name.
    numbered = (
        "SELECT row_number() OVER () - 1 AS pos, * "
        f"FROM read_parquet(?, hive_partitioning = false) AS file({names})"
    )
    place = "NULL" if first_place is None else f"pos + {first_place}"
    # Rows that were deleted before are in no new file, and must not return.
    con.register("deleted", {"deleted_pos": numbers(deleted)})
    con.execute(
        f"INSERT INTO file_rows SELECT {', '.join([place, *keys])} FROM ({numbered}) "
        "WHERE pos NOT IN (SELECT deleted_pos FROM deleted)",
        [path],
    )
