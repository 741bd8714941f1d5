"""Parquet files of which only some parts are written: DuckDB reads the columns in these parts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .footer import TAIL
from .footer_limits import check_footers

Part = tuple[int, bytes]
"""Where a part of a file begins, and its bytes."""


@dataclass(frozen=True, slots=True)
class SparseFile:
    """Parts of a Parquet file."""

    size: int
    """Bytes of the whole file."""
    parts: Sequence[Part]
    """The first is the end of the file, from the footer on or from before it."""
    names: Mapping[int, str] | None = None
    """The columns at the top level by field id, for a file that has no field ids; a column that is
    absent is not in the file. None: the file has field ids."""

    @property
    def footer(self) -> bytes:
        """The footer, without what follows it."""
        end = self.parts[0][1]
        length = int.from_bytes(end[-TAIL:-4], "little")
        return end[-TAIL - length : -TAIL]


def write_sparse(files: Sequence[SparseFile], folder: Path) -> list[str]:
    """Write files with their parts at their positions and holes between; return their paths.

    Raises:
        NotParquet: a footer exceeds a limit, or is broken.
        OutOfTime: no time is left in the budget.
    """
    check_footers(file.footer for file in files)
    paths = [str(folder / f"file{number}.parquet") for number in range(len(files))]
    for path, file in zip(paths, files, strict=True):
        with open(path, "wb") as written:
            written.truncate(file.size)
            for start, part in file.parts:
                written.seek(start)
                written.write(part)
    return paths
