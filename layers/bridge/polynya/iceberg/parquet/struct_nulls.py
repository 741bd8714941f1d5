"""Where the structs of a Parquet file are NULL: a field that is added to one has no value there."""

from collections.abc import Sequence

from ...runtime.isolation import isolated
from ..sandbox import sandbox
from .new_footer import StructColumn, step
from .sparse_files import Part, SparseFile, write_sparse

MOST_BYTES = 256 * 1024 * 1024
"""Longer columns are not read for this purpose."""


@isolated
def present_structs(column: StructColumn, start: int, chunks: Sequence[bytes]) -> bytes:
    """For each row, how many of the structs that may be NULL are not, from the outermost down.

    Args:
        start: where the end of the file begins.
        chunks: the bytes of `column.chunks`.

    Raises:
        Unreadable, NotParquet: the column cannot be read.
        OutOfTime: no time is left in the budget.
    """
    places = (first for first, _ in column.chunks)
    parts: list[Part] = [(start, column.end), *zip(places, chunks, strict=True)]
    file = SparseFile(start + len(column.end), parts)
    structs = [".".join(map(step, range(n + 1))) for n in range(len(column.are_optional))]
    is_optional = zip(structs, column.are_optional, strict=True)
    cases = (
        f"WHEN {struct} IS NULL THEN {place}"
        for place, struct in enumerate(name for name, may_be_null in is_optional if may_be_null)
    )
    case = f"CASE {' '.join(cases)} ELSE {sum(column.are_optional)} END"
    sql = f"SELECT CAST({case} AS UTINYINT) AS p FROM read_parquet(?, hive_partitioning = false)"
    with sandbox(reads_file=True) as (con, path):
        [name] = write_sparse([file], path.parent)
        return bytes(con.execute(sql, [name]).fetchnumpy()["p"])
