"""Groups small files into pages: neighbours in a list are also stored together in one object.

A thousand summaries are then read with about thirty requests. A page does not prove that its files
exist: if a bucket deletes objects by age, a page, which is younger, outlives them.
"""

import itertools
import zlib
from collections.abc import Iterable, Iterator, Sequence

from polynya.translate.fingerprints import fingerprint

PAGE = 32
"""The approximate number of files on a page: if one of them is new, all are read one by one."""

Page = tuple[str, ...]
"""The keys of the files on a page."""


def pages(keys: Sequence[str]) -> Iterator[Page]:
    """Divide keys into pages, unless they are few.

    Whether a page begins at a key depends on this key alone, so a new key changes only its page.
    """
    if len(keys) <= PAGE:
        return
    starts = [index for index, key in enumerate(keys) if not zlib.crc32(key.encode()) % PAGE]
    for start, end in itertools.pairwise(sorted({0, *starts, len(keys)})):
        yield tuple(keys[start:end])


def page_key(page: Page) -> str:
    """The key of the object that stores a page; it depends on all keys of the page."""
    return f"{page[0]}.{fingerprint(*page)}.page"


def pack(bodies: Iterable[bytes]) -> bytes:
    """The content of a page; each file must be one line."""
    return zlib.compress(b"\n".join(bodies))


def unpack(body: bytes) -> list[bytes]:
    """The contents of the files on a page, in the order of its keys."""
    return zlib.decompress(body).split(b"\n")
