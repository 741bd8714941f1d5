"""The files of a commit that a client has put into S3: its delete files and its Avro files."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from ...iceberg.avro.client_manifests import (
    ListedManifest,
    ManifestBody,
    WrittenFile,
    files_in,
    files_in_all,
    manifests_in,
)
from ...iceberg.avro.limits import LONGEST_FILE, Allowance
from ...iceberg.avro.untrusted_schema import Malformed
from ...iceberg.deletion_vector import vector_positions
from ...iceberg.parquet.delete_files import MOST_POSITIONS, TooManyPositions, client_positions
from ...iceberg.sandbox import OutOfMemory, Unreadable
from ...mapping.adaptations import ShownFile
from ...runtime.errors import BadRequest, CommitFailed, Misconfigured, NoSuchKey
from ...runtime.prefetch import AT_A_TIME, map_in_parallel
from ...storage.objects import ObjectReader
from ...virtual_files.names import UUID, Name
from ...virtual_files.virtual_files import VirtualTable
from ..client_locations import FilePlaces, normalised, relative

OF_DUCKDB = re.compile(f"{UUID}-deletes[.](?:parquet|puffin)")
"""The name of a delete file of DuckDB: position deletes, or in version 3 deletion vectors."""

MOST_BYTES = 256 * 1024 * 1024
"""The size of all delete files of a commit together; they are in memory at once."""

Positions = dict[str, Sequence[int]]
"""Ascending positions, by the normalised location of the data file."""


@dataclass(frozen=True, slots=True)
class ClientDeletes:
    """Reads the delete files that a client wrote for one table."""

    reader: ObjectReader
    data_location: str
    """The directory of the client's files, with a slash at its end."""
    beside: tuple[str, ...]
    """The directories of the table's own files, below which DuckDB puts its delete files: beside
    the data file."""
    format_version: int
    behind: tuple[str, str] = ("", "")
    """A directory of locations, and where S3 keeps what is uploaded to it."""
    places: FilePlaces | None = None
    """Where the files of a table that is registered may be; None: where clients upload."""

    def positions(self, files: Sequence[WrittenFile]) -> Positions:
        """The deleted positions.

        Raises:
            BadRequest: a file is not in the table's place for data files, is damaged or too large.
        """
        return self.positions_in(list(zip(files, self.bodies(files), strict=True)))

    def positions_in(self, pairs: Sequence[tuple[WrittenFile, bytes]]) -> Positions:
        """The deleted positions of files that have been read. Raises: as `positions`."""
        vectors = [pair for pair in pairs if pair[0].file_format == "PUFFIN"]
        deletes = [body for file, body in pairs if file.file_format != "PUFFIN"]
        return merge_positions(
            [_read_positions(deletes), *(self._vector_positions(*pair) for pair in vectors)]
        )

    def bodies(self, files: Sequence[WrittenFile]) -> list[bytes]:
        """The delete files, in order. Raises: as `positions`."""
        for file in files:
            self._check_place(normalised(file.file_path))
        if sum(f.record_count for f in files if f.file_format == "PUFFIN") > MOST_POSITIONS:
            raise too_much(f"{MOST_POSITIONS:,} deleted rows")
        if sum(end - start for start, end in map(_span, files)) > MOST_BYTES:
            raise too_much(f"{MOST_BYTES >> 20} MB of delete files")
        return map_in_parallel(self._read, files)

    def _check_place(self, location: str) -> None:
        if self.places is not None:
            self.places.check(location, "a delete file")
            return
        is_duckdb = OF_DUCKDB.fullmatch(location.rpartition("/")[2]) is not None
        own = [path for path in self.beside if location.startswith(normalised(path))]
        relative(location, own[0] if is_duckdb and own else self.data_location, "a delete file")

    def _vector_positions(self, file: WrittenFile, body: bytes) -> Positions:
        if self.format_version < 3:
            raise BadRequest("a table of format version 2 has no deletion vectors")
        if file.referenced_data_file is None:
            raise BadRequest("a deletion vector of the commit names no data file")
        try:
            positions = vector_positions(body, MOST_POSITIONS)
        except ValueError as error:
            raise BadRequest(f"a delete file of the commit cannot be read: {error}") from None
        if len(positions) != file.record_count:
            raise BadRequest(
                f"a deletion vector of the commit has {len(positions)} positions, and its manifest "
                f"says {file.record_count}"
            )
        return {file.referenced_data_file: positions}

    def _read(self, file: WrittenFile) -> bytes:
        start, end = _span(file)
        # One byte more than the whole file, to see that it ends there.
        more = 0 if _is_part(file) else 1
        directory, uploads = self.behind
        location = normalised(file.file_path)
        if directory and location.startswith(directory):
            location = uploads + location.removeprefix(directory)
        try:
            body = self.reader.read_range(location, start, end + more)
        except (NoSuchKey, Misconfigured):
            # S3 answers 403 for what does not exist, because no role may list the bucket.
            raise BadRequest(
                "a delete file of the commit does not exist in S3, or cannot be read"
            ) from None
        if len(body) != end - start:
            raise BadRequest("a delete file of the commit has another size than its manifest says")
        return body


def _is_part(file: WrittenFile) -> bool:
    """Whether a deletion vector is a part of its file: several are in one Puffin file."""
    return file.file_format == "PUFFIN" and file.content_size_in_bytes is not None


def _span(file: WrittenFile) -> tuple[int, int]:
    """The bytes of a delete file that are read: the first one, and the one after the last."""
    if not _is_part(file):
        return 0, file.file_size_in_bytes
    start, size = file.content_offset or 0, file.content_size_in_bytes or 0
    if size == 0:
        raise BadRequest("a deletion vector of the commit has no bytes: content_size_in_bytes is 0")
    return start, start + size


def _read_positions(bodies: Sequence[bytes]) -> Positions:
    try:
        return client_positions(bodies)
    except Unreadable as error:
        raise BadRequest(f"a delete file of the commit cannot be read: {error}") from None
    except TooManyPositions as error:
        raise too_much(str(error)) from None
    except OutOfMemory:
        raise too_much("fits into memory in its delete files") from None


def merge_positions(parts: Sequence[Mapping[str, Sequence[int]]]) -> Positions:
    """The union of the positions of each data file."""
    merged: Positions = {}
    for part in parts:
        for location, positions in part.items():
            path = normalised(location)
            earlier = merged.get(path)
            merged[path] = sorted({*earlier, *positions}) if earlier else positions
    return merged


def too_much(what: str) -> BadRequest:
    """The error for a commit with more deletes than can be kept."""
    return BadRequest(
        f"the commit has more than {what}: delete fewer rows at a time, or let the client rewrite "
        "the files (write.delete.mode=copy-on-write)"
    )


Parsed = TypeVar("Parsed")

MANIFEST = "a manifest of the commit"

OF_CLICKHOUSE = re.compile("metadata/[A-Za-z0-9-]+[.]avro")
"""Where ClickHouse writes below the table's location, whatever `write.metadata.path` says."""

MOST_MANIFESTS = 10_000
"""The most new manifests of a commit; Java writes one for each 8 MB."""


@dataclass(frozen=True, slots=True)
class ClientFiles:
    """Reads manifest lists and manifests of one table: the client's, and our own virtual ones."""

    reader: ObjectReader
    staging: str
    """The directory of the client's files, with a slash at its end."""
    files: VirtualTable | None
    """The virtual files of the table; None: it does not exist yet."""
    places: FilePlaces | None = None
    """Where the files of a table that is registered may be; None: where clients upload."""

    def manifests(self, manifest_list: str) -> list[ListedManifest]:
        """The manifests in the client's manifest list.

        Raises:
            BadRequest: it is not in the table's place for such files, or malformed.
            CommitFailed: it is one of our own that the table does not have any more.
        """
        what = "the manifest list of the commit"
        self._check_place(manifest_list, what)
        return _parsed(what, lambda: manifests_in(self._read(manifest_list, what)))

    def entries(self, manifests: list[ListedManifest]) -> list[WrittenFile]:
        """The entries of these manifests, in order. Raises: as `manifests`."""
        if len(manifests) > MOST_MANIFESTS:
            raise BadRequest(
                f"the commit has {len(manifests):,} new manifests; at most {MOST_MANIFESTS:,} are "
                "allowed: commit fewer files at a time"
            )
        entries: list[WrittenFile] = []
        allowance = Allowance()
        for start in range(0, len(manifests), AT_A_TIME):
            batch = manifests[start : start + AT_A_TIME]
            bodies = map_in_parallel(self._manifest, batch)
            files, allowance = _parsed(MANIFEST, partial(files_in_all, bodies, allowance))
            entries += files
        return self._replace_shown(entries)

    def _manifest(self, manifest: ListedManifest) -> ManifestBody:
        if self.own_name(manifest.manifest_path):
            raise rewritten()
        self._check_place(manifest.manifest_path, MANIFEST)
        body = self._read(manifest.manifest_path, MANIFEST)
        return ManifestBody(body, manifest.partition_spec_id, manifest.sequence_number)

    def _check_place(self, location: str, what: str) -> None:
        if self.places is not None:
            self.places.check(location, what)
        elif not self._is_beside_virtual(normalised(location)):
            relative(location, self.staging, what)

    def _is_beside_virtual(self, location: str) -> bool:
        if self.files is None or self.files.table.context.bucket is None:
            return False
        directory = f"{normalised(self.files.table.location)}/"
        is_below = location.startswith(directory)
        return is_below and bool(OF_CLICKHOUSE.fullmatch(location.removeprefix(directory)))

    def own_name(self, location: str) -> Name | None:
        """The name of a virtual file of this table, of now or of the past; None for other files."""
        with suppress(NoSuchKey):
            return self.files.name_at(location) if self.files else None
        return None

    def own_entries(self, manifests: list[ListedManifest]) -> list[WrittenFile]:
        """The entries of virtual manifests.

        Raises:
            CommitFailed: one of them is not of the table as it is now.
        """
        entries: list[WrittenFile] = []
        for manifest in manifests:
            body = self.files and self.files.body_at(manifest.manifest_path)
            if not body:
                raise rewritten()
            entries += files_in(body, manifest.partition_spec_id)
        return self._replace_shown(entries)

    def _replace_shown(self, entries: list[WrittenFile]) -> list[WrittenFile]:
        """The entries, with the lake's own data files in place of those that clients read."""
        if self.files is None:
            return entries
        locations = {location for entry in entries for location in _named_by(entry)}
        own = self.files.own_files(locations)
        return [_replace_with_own(entry, own) for entry in entries] if own else entries

    def base(self, snapshot_id: int) -> list[ListedManifest]:
        """The manifests of a listed snapshot.

        Args:
            snapshot_id: DuckLake's.
        """
        assert self.files is not None
        return manifests_in(self.files.list_body(snapshot_id))

    def _read(self, location: str, what: str) -> bytes:
        try:
            # One byte more shows that it is longer.
            return self.reader.read_range(normalised(location), 0, LONGEST_FILE + 1)
        except (NoSuchKey, Misconfigured):
            # S3 answers 403 for what does not exist, because no role may list the bucket.
            raise BadRequest(f"{what} does not exist in S3, or cannot be read") from None


def _named_by(entry: WrittenFile) -> tuple[str, str]:
    """The location of a file, and that of the data file to which its deletes belong."""
    return normalised(entry.file_path), normalised(entry.referenced_data_file or "")


def _replace_with_own(entry: WrittenFile, own: Mapping[str, ShownFile]) -> WrittenFile:
    file, referenced = map(own.get, _named_by(entry))
    if referenced is not None:
        entry = replace(entry, referenced_data_file=referenced.location)
    if file is not None:
        entry = replace(entry, file_path=file.location, file_size_in_bytes=file.size)
    return entry


def rewritten() -> CommitFailed:
    """The error for a commit that names virtual files which the table does not have any more."""
    return CommitFailed("the table's metadata was rewritten; load the table again")


def _parsed(what: str, parse: Callable[[], Parsed]) -> Parsed:
    try:
        return parse()
    except Malformed as error:
        raise BadRequest(f"{what} cannot be read: {error}") from None
