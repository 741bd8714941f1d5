"""Small files that neighbours in a list have, kept together: a thousand are read as thirty.

Only of what is known to be there: a page outlives what was on it when a bucket forgets by age.
"""

import itertools
import zlib
from collections.abc import Iterable, Iterator, Sequence

from polynya.translate.fingerprints import fingerprint

PAGE = 32
"""Files on a page, about: when one of 1,000 is new, its page's are asked for one by one."""

Page = tuple[str, ...]
"""Of keys."""


def pages(keys: Sequence[str]) -> Iterator[Page]:
    """OtherTables of many. A page begins where a key says so, so that a new one leaves the other
    pages as they are."""
    if len(keys) <= PAGE:
        return
    starts = [place for place, key in enumerate(keys) if not zlib.crc32(key.encode()) % PAGE]
    for start, end in itertools.pairwise(sorted({0, *starts, len(keys)})):
        yield tuple(keys[start:end])


def key_of(page: Page) -> str:
    return f"{page[0]}.{fingerprint(*page)}.page"


def packed(bodies: Iterable[bytes]) -> bytes:
    """Of summaries, each of which is one line."""
    return zlib.compress(b"\n".join(bodies))


def unpacked(body: bytes) -> list[bytes]:
    return zlib.decompress(body).split(b"\n")
