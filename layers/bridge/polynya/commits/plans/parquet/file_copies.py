"""Copies of data files in which columns have other field ids.

The catalog cannot hide a column from DuckLake that has one of its reserved ids: the file must not
have it. A copy differs in five bytes of its footer for each column; S3 copies the rest.
"""

from dataclasses import dataclass

from ....errors import BadRequest, Misconfigured, NoSuchKey
from ....iceberg.parquet.field_ids import with_field_ids
from ....iceberg.parquet.footer import TAIL
from ....iceberg.parquet.metadata import ParquetMetadata
from ....iceberg.row_lineage import LAST_UPDATED, ROW_ID
from ....storage.objects.copies import copy_with_end
from ....storage.objects.reader import ObjectReader

UNKNOWN_IDS = {ROW_ID: 2147483446, LAST_UPDATED: 2147483445}
"""Iceberg reserves the ids from 2147483447 on, and no column of a table gets as far as these."""


PREFIX = "polynya-"
"""Of the names of copies; template.yaml permits no others."""


@dataclass(frozen=True, slots=True)
class FileCopy:
    """A file, and where its copy is to be."""

    source: str
    target: str
    file_size: int
    footer_size: int
    hidden: tuple[int, ...]
    """The field ids that the copy does not have."""

    @classmethod
    def of(
        cls, source: str, target: str, file: ParquetMetadata, hidden: tuple[int, ...]
    ) -> "FileCopy":
        """The copy of a file, by what its footer says."""
        return cls(source, target, file.file_size, file.footer_size, hidden)

    def make(self, reader: ObjectReader) -> None:
        """Write the copy to S3.

        Raises:
            BadRequest: the file is gone, or its footer has an unexpected form.
            Misconfigured, ServiceUnavailable: S3 does not take it.
        """
        start = self.file_size - self.footer_size - TAIL
        try:
            footer = reader.read_range(self.source, start, self.file_size)
        except (NoSuchKey, Misconfigured):
            # S3 answers 403 for what does not exist, because no role may list the bucket.
            raise _is_gone() from None
        found = with_field_ids(footer, {id_: UNKNOWN_IDS[id_] for id_ in self.hidden})
        if found is None:
            raise BadRequest(
                "a data file of the commit has columns of row lineage (_row_id, "
                "_last_updated_sequence_number) that cannot be hidden from DuckLake: append, "
                "or delete and insert instead of updating"
            )
        try:
            copy_with_end(self.source, self.target, start, found)
        except NoSuchKey:
            raise _is_gone() from None


def _is_gone() -> BadRequest:
    return BadRequest("a data file of the commit does not exist in S3, or cannot be read")


def path_of_copy(path: str) -> str:
    """Where the copy of a file is: beside it. No client's file may have such a name."""
    directory, separator, name = path.rpartition("/")
    return f"{directory}{separator}{PREFIX}{name}"


def check_is_no_copy(path: str) -> None:
    """Refuse a client's file with the name of a copy, which would replace it.

    Raises:
        BadRequest: it has such a name.
    """
    if path.rpartition("/")[2].startswith(PREFIX):
        raise BadRequest(f"a data file of the commit has a name that begins with {PREFIX}")
