"""The Avro files of a commit, which the client has put beside its data files."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ..errors import BadRequest, CommitFailed, NoSuchKey
from ..files.table_files import TableFiles
from ..iceberg.avro.limits import Malformed
from ..iceberg.avro.written import ListedManifest, WrittenFile, files_in, manifests_in
from ..storage.object_reader import ObjectReader
from ..storage.parallel import in_parallel
from ..translate.commits.paths import normalised, relative

Parsed = TypeVar("Parsed")

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
        found = in_parallel(self._entries, manifests)
        return [entry for entries in found for entry in entries]

    def _entries(self, manifest: ListedManifest) -> list[WrittenFile]:
        what = "a manifest of the commit"
        relative(manifest.manifest_path, self.staging, what)
        return _parsed(
            what,
            lambda: files_in(self._read(manifest.manifest_path, what), manifest.partition_spec_id),
        )

    def own_entries(self, manifests: list[ListedManifest]) -> list[WrittenFile]:
        """The entries of virtual manifests.

        Raises:
            CommitFailed: one of them is not of the table as it is now.
        """
        found: list[WrittenFile] = []
        for manifest in manifests:
            body = self.files and self.files.body_at(manifest.manifest_path)
            if not body:
                raise CommitFailed("the table's metadata was rewritten; load the table again")
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
            return self.reader.read(normalised(location))
        except NoSuchKey:
            raise BadRequest(f"{what} does not exist in S3") from None


def _parsed(what: str, parse: Callable[[], Parsed]) -> Parsed:
    try:
        return parse()
    except Malformed as error:
        raise BadRequest(f"{what} cannot be read: {error}") from None
