"""The files of one table by name: kept, or made now; and what others must know of each.

A manifest list tells the length of its manifests and a manifest that of its delete files. So a
summary is kept beside each file, for a list of many manifests of which one is new shall not read
all the others.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..iceberg.avro.manifests import summary_of
from ..iceberg.parquet.footer import row_count
from ..storage.file_cache import FileCache
from .names import Name

Summary = Mapping[str, Any]


def _length(body: bytes) -> Summary:
    return {"file_size_in_bytes": len(body)}


def _deletes(body: bytes) -> Summary:
    return {"file_size_in_bytes": len(body), "record_count": row_count(body)}


SUMMARIES: dict[str, Callable[[bytes], Summary]] = {
    "data": summary_of,
    "deletes-manifest": summary_of,
    "rows-manifest": summary_of,
    "rows": _length,
    "deletes": _deletes,
}
"""By the kind of a file."""


class SummarizedFiles:
    def __init__(
        self, kept: FileCache, key: Callable[[Name], str], build: Callable[[Name], bytes]
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
        summarized = [self._summary_key(n) if n.kind in SUMMARIES else self._key(n) for n in names]
        if not self._kept.is_listed:
            # A summary is smaller than what it is of, and is asked for next.
            missing = set(self._kept.missing(summarized))
            return [name for name, key in zip(names, summarized, strict=True) if key in missing]
        # Each may be gone without the other.
        keys = [self._key(name) for name in names]
        missing = set(self._kept.missing(list(dict.fromkeys([*keys, *summarized]))))
        return [name for name, key in zip(names, keys, strict=True) if key in missing]

    def restore(self, name: Name, body: bytes | None) -> None:
        """Keep again what the store has lost: its bytes, if they are known, or it is built."""
        body = body or self._kept.remembered(self._key(name))
        self.put(name, self._build(name) if body is None else body)

    def summaries(self, names: Iterable[Name]) -> list[Summary]:
        """The summary of each file; those that are not kept are made."""
        names = list(names)
        kept = self._kept.get_many([self._summary_key(name) for name in names])
        return [
            self._summary(name) if body is None else json.loads(body)
            for name, body in zip(names, kept, strict=True)
        ]

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
