"""A body in pieces as a file, which boto3 sends without all of it in memory."""

from collections.abc import Iterator
from io import RawIOBase
from typing import Any


class Pieces(RawIOBase):
    """Reads pieces of bytes one after the other."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = memoryview(b"")

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """As `RawIOBase.readinto`. Raises: what the pieces raise."""
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._left = memoryview(piece)
        number = min(len(buffer), len(self._left))
        buffer[:number] = self._left[:number]
        self._left = self._left[number:]
        return number
