"""A stored DuckLake delete file with Iceberg's field ids: ten bytes differ.

DuckLake writes the ids 2147483646 and 2147483645 (Iceberg's `_file` and `_pos`), Iceberg's position
deletes need 2147483546 and 2147483545; Java refuses the file otherwise. As varints of Parquet's
compact Thrift footer all four have five bytes, so the copy has exactly the size of the stored file.
"""

from .field_ids import length as length_of
from .field_ids import with_field_ids

FOOTER_TAIL = 8
"""Bytes after the footer: its length (little-endian) and the magic `PAR1`."""


IDS = {2147483646: 2147483546, 2147483645: 2147483545}


def delete_copy(stored: bytes, data_file: str) -> bytes | None:
    """The copy for the data file at this location.

    None if the file does not have the known pattern, or its deletes name another location (a lake
    that was moved): Iceberg compares locations byte by byte. Then the caller writes a new file.
    """
    length = int.from_bytes(stored[-FOOTER_TAIL:-4], "little")
    start = len(stored) - FOOTER_TAIL - length
    if stored[-4:] != b"PAR1" or start < 4:
        return None
    footer = stored[start:]
    # For each row group the footer has the column's name once, in addition to the schema, and the
    # smallest and the largest path twice each: all are the same path.
    row_groups = footer.count(b"file_path") - 1
    path = data_file.encode()
    if footer.count(length_of(len(path)) + path) != 4 * row_groups or row_groups < 1:
        return None
    copy = with_field_ids(footer, IDS)
    return None if copy is None else stored[:start] + copy
