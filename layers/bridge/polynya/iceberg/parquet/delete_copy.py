"""A stored DuckLake delete file with Iceberg's field ids: ten bytes differ.

DuckLake writes the ids 2147483646 and 2147483645 (Iceberg's `_file` and `_pos`), Iceberg's position
deletes need 2147483546 and 2147483545; Java refuses the file otherwise. As varints of Parquet's
compact Thrift footer all four have five bytes, so the copy has exactly the size of the stored file.
"""

FOOTER_TAIL = 8
"""Bytes after the footer: its length (little-endian) and the magic `PAR1`."""


def _length(number: int) -> bytes:
    """Thrift compact protocol, the length before a text: 7 bits to a byte, lowest first."""
    groups = []
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    return bytes([*groups, number])


def _varint(number: int) -> bytes:
    """Thrift compact protocol, an i32 that is not negative: zigzag, then as a length."""
    return _length(number << 1)


IDS = {
    _varint(2147483646): _varint(2147483546),
    _varint(2147483645): _varint(2147483545),
}


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
    if footer.count(_length(len(path)) + path) != 4 * row_groups or row_groups < 1:
        return None
    if any(footer.count(id_) != 1 for id_ in IDS):
        return None
    for ducklake, iceberg in IDS.items():
        footer = footer.replace(ducklake, iceberg)
    return stored[:start] + footer
