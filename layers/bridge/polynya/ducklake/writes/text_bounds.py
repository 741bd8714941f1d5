"""Long bounds of statistics are truncated, as DuckLake does, and remain bounds."""

TEXT_BYTES = 256

TEXTS = {"blob", "varchar", "json"}
"""The types whose bounds can be too long."""


def truncated(column_type: str, low: str, high: str) -> tuple[str | None, str | None]:
    """The texts of the smallest and the largest value of a column, as the catalog can hold them.

    Returns:
        None for a bound that cannot be written.
    """
    if column_type == "blob":
        upper = _upper_digits(high)
        return (low[: 2 * TEXT_BYTES], upper) if upper is not None else (None, None)
    if column_type in {"varchar", "json"}:
        upper = _upper_text(high)
        if upper is None:
            return None, None
        lower = low.encode()[:TEXT_BYTES].decode(errors="ignore")
        # PostgreSQL's texts cannot contain a NUL.
        return (None if "\0" in lower else lower), (None if "\0" in upper else upper)
    return low, high


def _upper_text(text: str) -> str | None:
    data = text.encode()
    if len(data) <= TEXT_BYTES:
        return text
    head = data[:TEXT_BYTES]
    # The last byte is incremented, as DuckLake does; without a bound if it would leave ASCII.
    if head[-1] >= 0x7E:
        return None
    return (head[:-1] + bytes([head[-1] + 1])).decode()


def _upper_digits(digits: str) -> str | None:
    """The bound of a blob, which is written in hexadecimal digits."""
    if len(digits) <= 2 * TEXT_BYTES:
        return digits
    head, last = digits[: 2 * TEXT_BYTES - 2], digits[2 * TEXT_BYTES - 2 : 2 * TEXT_BYTES]
    return None if last == "FF" else f"{head}{int(last, 16) + 1:02X}"
