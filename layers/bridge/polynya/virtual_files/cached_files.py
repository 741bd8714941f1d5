"""The virtual files of one table in the cache, and the operations of each kind of them.

A manifest list holds the length of its manifests, and a manifest that of its delete files. So a
summary is cached beside each file: a list of many manifests, one of which is new, does not read the
others.
"""

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, TypeVar

from ..runtime import budget
from ..runtime.errors import NoSuchKey, ServiceUnavailable
from ..runtime.prefetch import map_in_parallel
from .contexts import TableContext
from .names import Name

Summary = Mapping[str, Any]
"""The fields of a file that the files which refer to it repeat, under Iceberg's names."""


class FileKind(ABC):
    """The files of one kind of one table; `names.KINDS` has the form of their names."""

    kind: ClassVar[str]
    """As in the names of the files."""
    summary: "ClassVar[staticmethod[[bytes], Summary] | None]" = None
    """Summarizes a file; None: no virtual file refers to it."""
    paths: "ClassVar[staticmethod[[bytes], list[str]] | None]" = None
    """Reads the locations to which a file refers; None: it refers to no virtual file."""

    def __init__(self, files: "CachedFiles") -> None:
        """`files` of all kinds, to which a file of this kind may refer."""
        self.files, self.table = files, files.table

    def may_refer(self, name: Name) -> bool:
        """Whether a file may refer to virtual files: `paths` says to which."""
        return self.paths is not None

    @abstractmethod
    def build(self, name: Name) -> bytes:
        """The bytes of a file.

        Raises:
            NoSuchKey: the rows of the catalog were rewritten, and no longer give a file of this
                name.
            Refused: it cannot be built exactly.
            ServiceUnavailable: building the files to which it refers takes longer than one request
                may.
        """


def unfinished(what: str, built: int, total: int) -> ServiceUnavailable:
    """The answer to a request that has no more time to build files. Args: as `check_time`."""
    return ServiceUnavailable(
        f"the first build of this table takes longer than one request may take: {built} of {total} "
        f"{what} have been built; repeat the request to continue, or build all of them with "
        "`polynya publish`"
    )


def rewritten() -> NoSuchKey:
    """The answer to a name that the rows of the catalog no longer give."""
    return NoSuchKey("DuckLake has rewritten this part of the table's history")


Kind = TypeVar("Kind", bound=FileKind)

COUNTS = ("added_files_count", "existing_files_count", "deleted_files_count")
"""The fields of a manifest's summary that count its entries."""


class CachedFiles:
    """Builds files, and reads and writes them and their summaries in the cache."""

    def __init__(self, table: TableContext, kinds: Iterable[type[FileKind]]) -> None:
        """Nothing is read yet."""
        self.table = table
        self.kinds = {kind.kind: kind(self) for kind in kinds}
        self._cache = table.context.cache
        self._deadline = budget.started_at() + table.context.settings.build_seconds

    def files_of(self, kind: type[Kind]) -> Kind:
        """The files of one kind."""
        files = self.kinds[kind.kind]
        assert isinstance(files, kind)
        return files

    def check_time(self, what: str, built: int, total: int) -> None:
        """Stop a build that takes too long. Built files are cached, so the next request goes on.

        Args:
            what: the kind of files, for the error's message.

        Raises:
            ServiceUnavailable: BUILD_SECONDS are over, and not all files are built.
        """
        if built < total and time.monotonic() > self._deadline:
            raise unfinished(what, built, total)

    def body(self, name: Name) -> bytes:
        """The bytes of a file, from the cache or built."""
        body = self._cache.get(self.table.key(name))
        return self.put(name, self._build(name)) if body is None else body

    def put(self, name: Name, body: bytes) -> bytes:
        """Cache a file unless its name is taken; returns the bytes that are cached."""
        return self.put_many([(name, body)])[0]

    def put_many(self, files: Iterable[tuple[Name, bytes]]) -> list[bytes]:
        """As `put`, for each file in order; the files and their summaries are put in parallel."""
        files = list(files)
        new: dict[str, bytes] = {}
        for name, body in files:
            summary_of = self.kinds[name.kind].summary
            summary = None if summary_of is None else summary_of(body)
            # No list refers to a manifest without entries: its summary, which shows that, is
            # enough.
            if summary is None or not _is_empty(summary):
                new[self.table.key(name)] = body
            if summary is not None:
                new[self._summary_key(name)] = _encoded(summary)
        put = map_in_parallel(lambda file: self._cache.put(*file), list(new.items()))
        cached = dict(zip(new, put, strict=True))
        return [cached.get(self.table.key(name), body) for name, body in files]

    def missing(self, names: Iterable[Name]) -> list[Name]:
        """The files that have to be built, in order."""
        names = list(names)
        keys = [self.table.key(name) for name in names]
        summarized = [
            self._summary_key(name) if self.kinds[name.kind].summary else key
            for name, key in zip(names, keys, strict=True)
        ]
        if not self._cache.is_listed:
            # A summary is smaller than its file, and is needed next.
            missing = set(self._cache.missing(summarized))
            return [name for name, key in zip(names, summarized, strict=True) if key in missing]
        # Either may be missing without the other.
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
        body = body or self._cache.get_local(self.table.key(name))
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

    def _build(self, name: Name) -> bytes:
        return self.kinds[name.kind].build(name)

    def _stored_summaries(self, names: Iterable[Name]) -> list[Summary | None]:
        bodies = self._cache.get_many([self._summary_key(name) for name in names])
        return [None if body is None else json.loads(body) for body in bodies]

    def _summary(self, name: Name, build: Callable[[Name], bytes]) -> Summary:
        """The summary of a file, if it is not cached: most likely the file is missing too."""
        summary_of = self.kinds[name.kind].summary
        assert summary_of is not None
        body = self._cache.get(self.table.key(name))
        if body is None:
            return summary_of(self.put(name, build(name)))
        summary = summary_of(body)
        self._cache.put(self._summary_key(name), _encoded(summary))
        return summary

    def _summary_key(self, name: Name) -> str:
        return f"{self.table.key(name)}.summary"


def _encoded(summary: Summary) -> bytes:
    return json.dumps(summary).encode()


def _is_empty(summary: Summary) -> bool:
    """Whether a summary is that of a manifest without entries."""
    return all(summary.get(field) == 0 for field in COUNTS)
