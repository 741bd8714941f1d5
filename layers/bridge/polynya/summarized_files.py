"""The files of one table by name: kept, or made now; and what others must know of each.

A manifest list tells the length of its manifests and a manifest that of its delete files. So a
summary is kept beside each file, for a list of many manifests of which one is new shall not read
all the others; and the summaries of neighbours on a page, for it shall not ask for each of them.
"""

import itertools
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from .iceberg.avro import summary_of
from .iceberg.parquet import positions
from .kept import Kept
from .translate.fingerprints import fingerprint
from .virtual_names import Name

Summary = Mapping[str, Any]


def _length(body: bytes) -> Summary:
    return {"file_size_in_bytes": len(body)}


def _deletes(body: bytes) -> Summary:
    return {"file_size_in_bytes": len(body), "record_count": len(positions(body))}


SUMMARIES: dict[str, Callable[[bytes], Summary]] = {
    "data": summary_of,
    "deletes-manifest": summary_of,
    "rows-manifest": summary_of,
    "rows": _length,
    "deletes": _deletes,
}
"""By the kind of a file."""

PAGE = 32
"""Summaries on a page, about: of 1,000 manifests one is new, so its page's are asked for singly."""

Page = tuple[Name, ...]


def pages(names: Sequence[Name]) -> Iterator[Page]:
    """Neighbours of many files; a page begins where a name says so, so that a new file leaves the
    other pages as they are."""
    if len(names) <= PAGE:
        return
    starts = [place for place, name in enumerate(names) if not int(name.fingerprint, 16) % PAGE]
    edges = sorted({0, *starts, len(names)})
    for start, end in itertools.pairwise(edges):
        yield tuple(names[start:end])


class SummarizedFiles:
    def __init__(
        self, kept: Kept, key: Callable[[Name], str], build: Callable[[Name], bytes]
    ) -> None:
        """`build` makes a file that is not kept."""
        self._kept, self._key, self._build = kept, key, build

    def body(self, name: Name) -> bytes:
        """The bytes of a file."""
        body = self._kept.get(self._key(name))
        return self.put(name, self._build(name)) if body is None else body

    def put(self, name: Name, body: bytes) -> bytes:
        """Keep a file; what was kept under its name before comes back."""
        body = self._kept.put(self._key(name), body)
        if name.kind in SUMMARIES:
            self._put_summary(name, body)
        return body

    def missing(self, names: Iterable[Name]) -> list[Name]:
        """Those of which nothing is kept."""
        names = list(names)
        keys = [self._summary_key(n) if n.kind in SUMMARIES else self._key(n) for n in names]
        missing = set(self._kept.missing(keys))
        return [name for name, key in zip(names, keys, strict=True) if key in missing]

    def unknown(self, names: Iterable[Name]) -> list[Name]:
        """Those of which no summary is kept."""
        names = list(names)
        known, _ = self._known(names)
        return [name for name in names if name not in known]

    def summaries(self, names: Iterable[Name]) -> list[Summary]:
        """The summary of each file; those that are not kept are made."""
        names = list(names)
        known, new = self._known(names)
        for name in names:
            if name not in known:
                known[name] = self._summary(name)
        for page in new:
            body = json.dumps([known[name] for name in page]).encode()
            self._kept.put(self._page_key(page), zlib.compress(body))
        return [known[name] for name in names]

    def _known(self, names: Sequence[Name]) -> tuple[dict[Name, Summary], list[Page]]:
        """The summaries that are kept, and the pages that are not."""
        every = list(pages(names))
        known: dict[Name, Summary] = {}
        new = []
        for page, body in zip(every, self._many(map(self._page_key, every)), strict=True):
            if body is None:
                new.append(page)
            else:
                known |= zip(page, json.loads(zlib.decompress(body)), strict=True)
        single = [name for name in names if name not in known]
        for name, body in zip(single, self._many(map(self._summary_key, single)), strict=True):
            if body is not None:
                known[name] = json.loads(body)
        return known, new

    def _many(self, keys: Iterable[str]) -> list[bytes | None]:
        return self._kept.get_many(list(keys))

    def _summary(self, name: Name) -> Summary:
        """Of a file that has none: most likely it is not there either."""
        body = self._kept.get(self._key(name))
        if body is None:
            return SUMMARIES[name.kind](self.put(name, self._build(name)))
        return self._put_summary(name, body)

    def _put_summary(self, name: Name, body: bytes) -> Summary:
        summary = SUMMARIES[name.kind](body)
        self._kept.put(self._summary_key(name), json.dumps(summary).encode())
        return summary

    def _summary_key(self, name: Name) -> str:
        return f"{self._key(name)}.summary"

    def _page_key(self, page: Page) -> str:
        digest = fingerprint(*map(self._key, page))
        return f"{self._key(page[0])}.{digest}.summaries"
