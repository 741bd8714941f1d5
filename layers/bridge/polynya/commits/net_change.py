"""What a commit changes: the manifests after it, compared with those before it.

Statuses of entries are not trusted further than live or not: a commit may have merged and
rewritten manifests, and files that it added and removed again never become rows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...errors import BadRequest
from ...iceberg.avro.written import ListedManifest, WrittenFile
from ...iceberg.manifest import FileContent, Status
from .paths import normalised


@dataclass(frozen=True, slots=True)
class Difference:
    """The manifests that one of two manifest lists has and the other has not."""

    new: list[ListedManifest]
    gone: list[ListedManifest]


def difference(base: Iterable[ListedManifest], after: Iterable[ListedManifest]) -> Difference:
    """Compare the manifest list of a commit with that of its base."""
    before = {normalised(one.manifest_path): one for one in base}
    then = {normalised(one.manifest_path): one for one in after}
    return Difference(
        [one for path, one in then.items() if path not in before],
        [one for path, one in before.items() if path not in then],
    )


@dataclass(frozen=True, slots=True)
class NetChange:
    """The files that a commit adds to the table and removes from it."""

    added: Sequence[WrittenFile] = ()
    removed: Sequence[WrittenFile] = ()
    added_deletes: Sequence[WrittenFile] = ()
    removed_deletes: Sequence[WrittenFile] = ()

    @property
    def ends_rows(self) -> bool:
        """Whether rows may end that were there before."""
        return bool(self.removed or self.added_deletes)


def net_change(new: Iterable[WrittenFile], gone: Iterable[WrittenFile]) -> NetChange:
    """The files that are live in new manifests and not in those that are gone, and the reverse.

    Raises:
        BadRequest: an entry is of a kind that DuckLake does not have.
    """
    after, before = _live(new), _live(gone)
    added = [file for path, file in after.items() if path not in before]
    removed = [file for path, file in before.items() if path not in after]
    for file in added:
        _check(file)
    return NetChange(
        added=[file for file in added if file.content == FileContent.DATA],
        removed=[file for file in removed if file.content == FileContent.DATA],
        added_deletes=[file for file in added if file.content != FileContent.DATA],
        removed_deletes=[file for file in removed if file.content != FileContent.DATA],
    )


def _live(files: Iterable[WrittenFile]) -> dict[tuple[str, int | None], WrittenFile]:
    """The live entries by path; several deletion vectors are in one file."""
    found: dict[tuple[str, int | None], WrittenFile] = {}
    for file in files:
        if file.status == Status.DELETED:
            continue
        offset = file.content_offset if file.content != FileContent.DATA else None
        key = (normalised(file.file_path), offset)
        if key in found:
            raise BadRequest("the commit adds one file twice")
        found[key] = file
    return found


EQUALITY_DELETES = 2


def _check(file: WrittenFile) -> None:
    if file.content == EQUALITY_DELETES:
        raise BadRequest(
            "DuckLake has no equality deletes: it deletes rows by their positions. In Flink turn "
            "off upsert mode (write.upsert.enabled=false) and write to a table without "
            "identifier fields"
        )
    formats = {"PARQUET"} if file.content == FileContent.DATA else {"PARQUET", "PUFFIN"}
    if file.file_format not in formats:
        raise BadRequest(
            f"DuckLake has no {file.file_format.lower()} files: set write.format.default=parquet"
        )
