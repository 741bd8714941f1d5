"""The Avro files of a commit, which the client has put beside its data files."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from ...errors import BadRequest, CommitFailed, Misconfigured, NoSuchKey
from ...files.names import Name
from ...files.table_files import TableFiles
from ...iceberg.avro.limits import LONGEST_FILE, Allowance
from ...iceberg.avro.malformed import Malformed
from ...iceberg.avro.written import ListedManifest, WrittenFile, files_in, manifests_in
from ...parallel import AT_A_TIME, in_parallel
from ...storage.objects.reader import ObjectReader
from ...translate.commits.paths import normalised, relative

Parsed = TypeVar("Parsed")

MANIFEST = "a manifest of the commit"

MOST_MANIFESTS = 10_000
"""A commit may name so many manifests that are new; Java writes one for each 8 MB."""


@dataclass(frozen=True, slots=True)
class ClientFiles:
    """Reads manifest lists and manifests of one table: the client's, and our own virtual ones."""

    reader: ObjectReader
    staging: str
    """The directory of the client's files, with a slash at its end."""
    files: TableFiles | None
    """The virtual files of the table; None: it does not exist yet."""

    def manifests(self, manifest_list: str) -> list[ListedManifest]:
        """The manifests in the client's manifest list.

        Raises:
            BadRequest: it is not in the table's place for such files, or malformed.
            CommitFailed: it is one of our own that the table does not have any more.
        """
        what = "the manifest list of the commit"
        relative(manifest_list, self.staging, what)
        return _parsed(what, lambda: manifests_in(self._read(manifest_list, what)))

    def entries(self, manifests: list[ListedManifest]) -> list[WrittenFile]:
        """The entries of these manifests, in order. Raises: as `manifests`."""
        if len(manifests) > MOST_MANIFESTS:
            raise BadRequest(
                f"the commit has {len(manifests):,} new manifests; {MOST_MANIFESTS:,} are the "
                "most: commit fewer files at a time"
            )
        found: list[WrittenFile] = []
        allowance = Allowance()
        for start in range(0, len(manifests), AT_A_TIME):
            some = manifests[start : start + AT_A_TIME]
            for manifest, body in zip(some, in_parallel(self._manifest, some), strict=True):
                parse = partial(files_in, body, manifest.partition_spec_id, allowance)
                found += _parsed(MANIFEST, parse)
        return found

    def _manifest(self, manifest: ListedManifest) -> bytes:
        if self.own_name(manifest.manifest_path):
            raise _rewritten()
        relative(manifest.manifest_path, self.staging, MANIFEST)
        return self._read(manifest.manifest_path, MANIFEST)

    def own_name(self, location: str) -> Name | None:
        """The name of a virtual file of this table, as it is now or was; None for other files."""
        with suppress(NoSuchKey):
            return self.files.name_at(location) if self.files else None
        return None

    def own_entries(self, manifests: list[ListedManifest]) -> list[WrittenFile]:
        """The entries of virtual manifests.

        Raises:
            CommitFailed: one of them is not of the table as it is now.
        """
        found: list[WrittenFile] = []
        for manifest in manifests:
            body = self.files and self.files.body_at(manifest.manifest_path)
            if not body:
                raise _rewritten()
            found += files_in(body, manifest.partition_spec_id)
        return found

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


def _rewritten() -> CommitFailed:
    return CommitFailed("the table's metadata was rewritten; load the table again")


def _parsed(what: str, parse: Callable[[], Parsed]) -> Parsed:
    try:
        return parse()
    except Malformed as error:
        raise BadRequest(f"{what} cannot be read: {error}") from None
