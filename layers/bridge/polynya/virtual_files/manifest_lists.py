"""The manifest list of a snapshot, and the summaries of the files that lists and manifests name.

A manifest list holds the length of its manifests, and a manifest that of its delete files. So a
summary is cached beside each file: a list of many manifests, one of which is new, does not read the
others. A manifest without entries has a summary only: no list refers to it.
"""

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import accumulate
from typing import Any

from ..ducklake.rows.files import Event
from ..iceberg.avro.manifests import manifest_file, manifest_list_bytes, summary_of
from ..iceberg.parquet.footer import row_count
from ..runtime.errors import PolynyaError
from ..runtime.prefetch import in_parallel
from ..storage.stores import Cache
from .names import Manifest, Name

Summary = Mapping[str, Any]
"""The fields of a file that the files which refer to it repeat, under Iceberg's names."""


def _rows_summary(body: bytes) -> Summary:
    return {"file_size_in_bytes": len(body)}


def _deletes_summary(body: bytes) -> Summary:
    return {"file_size_in_bytes": len(body), "record_count": row_count(body)}


SUMMARIES: dict[str, Callable[[bytes], Summary]] = {
    "data": summary_of,
    "deletes-manifest": summary_of,
    "rows-manifest": summary_of,
    "rows": _rows_summary,
    "deletes": _deletes_summary,
}
"""The function that summarizes a file, by its kind."""

COUNTS = ("added_files_count", "existing_files_count", "deleted_files_count")
"""The fields of a manifest's summary that count its entries."""


class SummarizedFiles:
    """Reads and writes files and their summaries in the cache."""

    def __init__(
        self, cache: Cache, key: Callable[[Name], str], build: Callable[[Name], bytes]
    ) -> None:
        """`build` gives the bytes of a file that is not cached."""
        self._cache, self._key, self._build = cache, key, build

    def body(self, name: Name) -> bytes:
        """The bytes of a file, from the cache or built."""
        body = self._cache.get(self._key(name))
        return self.put(name, self._build(name)) if body is None else body

    def put(self, name: Name, body: bytes) -> bytes:
        """Cache a file unless its name is taken; returns the bytes that are cached."""
        return self.put_many([(name, body)])[0]

    def put_many(self, files: Iterable[tuple[Name, bytes]]) -> list[bytes]:
        """As `put`, for each file in order; the files and their summaries are put side by side."""
        files = list(files)
        new: dict[str, bytes] = {}
        for name, body in files:
            summary = SUMMARIES[name.kind](body) if name.kind in SUMMARIES else None
            if summary is None or not _is_empty(summary):
                new[self._key(name)] = body
            if summary is not None:
                new[self._summary_key(name)] = _encoded(summary)
        put = in_parallel(lambda file: self._cache.put(*file), list(new.items()))
        cached = dict(zip(new, put, strict=True))
        return [cached.get(self._key(name), body) for name, body in files]

    def missing(self, names: Iterable[Name]) -> list[Name]:
        """The files that have to be built, in order."""
        names = list(names)
        summarized = [self._summary_key(n) if n.kind in SUMMARIES else self._key(n) for n in names]
        if not self._cache.is_listed:
            # A summary is smaller than its file, and is needed next.
            missing = set(self._cache.missing(summarized))
            return [name for name, key in zip(names, summarized, strict=True) if key in missing]
        # Each may be gone without the other.
        keys = [self._key(name) for name in names]
        missing = set(self._cache.missing(list(dict.fromkeys([*keys, *summarized]))))
        by_name = zip(names, keys, summarized, strict=True)
        gone = {name: summary for name, key, summary in by_name if key in missing}
        unsure = [name for name, summary in gone.items() if summary not in missing]
        summaries = zip(unsure, self._stored_summaries(unsure), strict=True)
        empty = {name for name, summary in summaries if summary and _is_empty(summary)}
        return [name for name in gone if name not in empty]

    def restore(self, name: Name, body: bytes | None) -> None:
        """Cache a file again that the store has lost.

        Args:
            body: its bytes; None: they are taken from this process's memory, or built.
        """
        body = body or self._cache.get_local(self._key(name))
        self.put(name, self._build(name) if body is None else body)

    def summaries(
        self, names: Iterable[Name], build: Callable[[Name], bytes] | None = None
    ) -> list[Summary]:
        """The summary of each file in order; files without one are read or built.

        Args:
            build: gives the bytes of one of these files, if the caller has read its rows already.
        """
        names = list(names)
        return [
            self._summary(name, build or self._build) if summary is None else summary
            for name, summary in zip(names, self._stored_summaries(names), strict=True)
        ]

    def _stored_summaries(self, names: Iterable[Name]) -> list[Summary | None]:
        bodies = self._cache.get_many([self._summary_key(name) for name in names])
        return [None if body is None else json.loads(body) for body in bodies]

    def _summary(self, name: Name, build: Callable[[Name], bytes]) -> Summary:
        """The summary of a file, if it is not cached: most likely the file is missing too."""
        body = self._cache.get(self._key(name))
        if body is None:
            return SUMMARIES[name.kind](self.put(name, build(name)))
        summary = SUMMARIES[name.kind](body)
        self._cache.put(self._summary_key(name), _encoded(summary))
        return summary

    def _summary_key(self, name: Name) -> str:
        return f"{self._key(name)}.summary"


def _encoded(summary: Summary) -> bytes:
    return json.dumps(summary).encode()


def _is_empty(summary: Summary) -> bool:
    """Whether a summary is that of a manifest without entries."""
    return all(summary.get(field) == 0 for field in COUNTS)


NO_SNAPSHOT = 0
"""DuckLake's first snapshot, which no table has."""
LIVE = ("added_files_count", "existing_files_count")
"""The fields of a summary that count the entries which are not deleted."""


class LiveFiles:
    """How many data files a table has at each snapshot, by the rows of the catalog."""

    def __init__(self, events: Iterable[Event]) -> None:
        """`events` of the table, in ascending order."""
        data = [event for event in events if event.kind == "data"]
        self._snapshot_ids = [event.snapshot_id for event in data]
        self._counts = [0, *accumulate(event.sign * event.files for event in data)]

    def check(self, snapshot_id: int, listed: Iterable[tuple[Manifest, Summary]]) -> None:
        """Compare with the manifests of a snapshot's list: a cached one may be of other files.

        Raises:
            PolynyaError: the list would have too many files, or too few.
        """
        expected = self._counts[bisect_right(self._snapshot_ids, snapshot_id)]
        summaries = [summary for manifest, summary in listed if manifest.kind == "data"]
        live = sum(summary[field] for summary in summaries for field in LIVE)
        if live != expected:
            raise PolynyaError(
                f"the manifests of snapshot {snapshot_id} have {live} data files, and the catalog "
                f"has {expected}: nothing of it is served; please report it with the output of "
                "`polynya inspect`. Clear the cache to go on"
            )


def manifest_list(
    snapshot_id: int,
    sequence_number: int,
    manifests: Iterable[tuple[str, Summary]],
    format_version: int,
) -> bytes:
    """The list as Avro; manifests without entries are left out.

    Args:
        manifests: the location and the summary of each.
    """
    files = [manifest_file(location, summary) for location, summary in manifests]
    # A manifest without changes was added by no snapshot: others may have its files in other
    # chunks, and a reader of what a snapshot added would get them twice.
    files = [
        file
        if file.added_snapshot_id == snapshot_id
        else replace(file, added_snapshot_id=NO_SNAPSHOT)
        for file in files
        if file.has_entries
    ]
    return manifest_list_bytes(files, sequence_number, snapshot_id, format_version)
