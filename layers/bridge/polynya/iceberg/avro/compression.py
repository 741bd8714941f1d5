"""The compression of Avro blocks: one release of it gives the same bytes on every processor.

docs/decisions/0008-libdeflate.md compares it with others, whose bytes depend on the processor.
"""

from collections.abc import Callable

import deflate

LEVEL = 1
"""Each level above takes more time for few bytes: level 2 a third more, for 3 %."""

COMPRESSOR = f"deflate {deflate.__version__}, level {LEVEL}"
"""What the bytes of a block depend on besides its content. It is part of the names of Avro files:
another release of libdeflate gives other bytes."""

Block = bytes | bytearray | memoryview

CODECS: dict[str, Callable[[Block], Block]] = {
    "null": lambda block: block,
    "deflate": lambda block: deflate.deflate_compress(block, LEVEL),
}
"""By the name in the header. `deflate` is the only one besides `null` that every client reads."""
