"""The files that a commit changes, by the manifests before and after it."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from ...iceberg.avro.client_manifests import ListedManifest, WrittenFile
from ...iceberg.manifest import FileContent, ManifestContent, Status
from ...iceberg.parquet.kept_rows import Uncertain
from ...rest.updates import Snapshot
from ...runtime.errors import BadRequest, CommitFailed
from ..client_locations import normalised
from ..request.client_files import ClientFiles
from .current_table import TableState


@dataclass(frozen=True, slots=True)
class Difference:
    """The manifests that are in only one of two manifest lists."""

    new: list[ListedManifest]
    gone: list[ListedManifest]


def difference(base: Iterable[ListedManifest], after: Iterable[ListedManifest]) -> Difference:
    """The manifests that only a commit's list has, and those that only its base has."""
    old = {normalised(manifest.manifest_path): manifest for manifest in base}
    new = {normalised(manifest.manifest_path): manifest for manifest in after}
    return Difference(
        [manifest for path, manifest in new.items() if path not in old],
        [manifest for path, manifest in old.items() if path not in new],
    )


@dataclass(frozen=True, slots=True)
class NetChange:
    """The files that a commit adds to the table and removes from it."""

    added: Sequence[WrittenFile] = ()
    removed: Sequence[WrittenFile] = ()
    added_deletes: Sequence[WrittenFile] = ()
    removed_deletes: Sequence[WrittenFile] = ()
    equality_deletes: Sequence[WrittenFile] = ()
    """Files with keys of deleted rows, which have no positions yet."""
    lost: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """The positions of deleted rows, ascending, in data files that stay and lose rows, by their
    normalised locations."""

    @property
    def ends_rows(self) -> bool:
        """Whether the change may end rows that the table had before."""
        return bool(self.removed or self.added_deletes or self.lost)


def net_change(new: Iterable[WrittenFile], gone: Iterable[WrittenFile]) -> NetChange:
    """The files that are live in new manifests and not in those that are gone, and the reverse.

    Raises:
        BadRequest: an entry is of a kind that DuckLake does not have.
    """
    # Only the status "deleted" matters: a commit may have merged and rewritten manifests, and files
    # that it added and removed again never become rows.
    before, twice = _live(gone)
    if twice:
        raise BadRequest(
            "the commit changes the list of a data file that is registered twice in the table, and "
            "does not say which of the two it means: copy the rows into a new table with DuckLake, "
            "and drop this one"
        )
    after, twice = _live(new)
    if twice:
        raise BadRequest("the commit adds one file twice")
    added = [file for path, file in after.items() if path not in before]
    removed = [file for path, file in before.items() if path not in after]
    for file in added:
        _check(file)
    return NetChange(
        added=[file for file in added if file.content == FileContent.DATA],
        removed=[file for file in removed if file.content == FileContent.DATA],
        added_deletes=[file for file in added if file.content == FileContent.POSITION_DELETES],
        equality_deletes=[file for file in added if file.content == FileContent.EQUALITY_DELETES],
        removed_deletes=[file for file in removed if file.content != FileContent.DATA],
    )


def _live(files: Iterable[WrittenFile]) -> tuple[dict[tuple[str, int | None], WrittenFile], bool]:
    """The live entries by path, and whether one occurs twice.

    One file may hold several deletion vectors.
    """
    live: dict[tuple[str, int | None], WrittenFile] = {}
    twice = False
    for file in files:
        if file.status == Status.DELETED:
            continue
        offset = file.content_offset if file.content != FileContent.DATA else None
        key = (normalised(file.file_path), offset)
        twice = twice or key in live
        live[key] = file
    return live, twice


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Data files, and those with which a client has replaced them: these hold the rows that
    stay."""

    replaced: Sequence[WrittenFile]
    added: Sequence[WrittenFile]


PYICEBERG = "PyIceberg "
MANIFEST_LIST = re.compile(r"snap-\d+-\d+-(?P<uuid>[0-9a-f-]{36})[.]avro")
OF_DELETE = r"00000-\d+-{uuid}[.]parquet"


def rewrites(steps: Iterable[tuple[str, NetChange]], client: str) -> list[Rewrite]:
    """The files that a commit rewrites to delete rows, snapshot by snapshot.

    Args:
        steps: the manifest list of each snapshot of the commit, and what has changed up to it.
        client: as it names itself.

    Raises:
        Uncertain: a snapshot may have removed rows and added them again, with other values in
            columns that the client does not see.
    """
    rewritten: list[Rewrite] = []
    before = NetChange()
    for manifest_list, after in steps:
        if _more(before.added, after.added) or _more(before.removed, after.removed):
            raise Uncertain("it rewrites a file that it has added itself: commit in between")
        added, removed = _more(after.added, before.added), _more(after.removed, before.removed)
        if added and removed:
            # A snapshot which removes and adds files certainly has no new rows only if PyIceberg's
            # `delete` made it. PyIceberg's `overwrite` and `upsert` begin with one too, and write
            # new rows in a snapshot of their own. `delete` names its files by the uuid of the
            # snapshot. So does iceberg-go, whose files may hold new rows; programs that use
            # PyIceberg give their own files other names.
            match = MANIFEST_LIST.fullmatch(_name(manifest_list))
            names = re.compile(OF_DELETE.format(uuid=match["uuid"] if match else "(?!)"))
            is_delete = all(names.fullmatch(_name(file.file_path)) for file in added)
            if after.added_deletes or not is_delete or not client.startswith(PYICEBERG):
                raise Uncertain("it does not say which rows it keeps and which are new")
            rewritten.append(Rewrite(removed, added))
        before = after
    return rewritten


def _more(files: Sequence[WrittenFile], earlier: Sequence[WrittenFile]) -> list[WrittenFile]:
    """The files that are not among earlier ones."""
    paths = {normalised(file.file_path) for file in earlier}
    return [file for file in files if normalised(file.file_path) not in paths]


def _name(location: str) -> str:
    return location.rpartition("/")[2]


FORMATS: Mapping[int, Collection[str]] = {
    FileContent.DATA: {"PARQUET"},
    FileContent.POSITION_DELETES: {"PARQUET", "PUFFIN"},
    FileContent.EQUALITY_DELETES: {"PARQUET"},
}


def _check(file: WrittenFile) -> None:
    if file.content not in FORMATS:
        raise BadRequest(f"the commit adds a file of unknown content: {file.content}")
    if file.file_format not in FORMATS[file.content]:
        property_ = "write" if file.content == FileContent.DATA else "write.delete"
        raise BadRequest(
            f"DuckLake has no {file.file_format.lower()} files: set "
            f"{property_}.format.default=parquet"
        )


ROWS = "rows"
"""The kind of the names of files of inlined rows."""

REPLACES_PARTITIONS = "replace-partitions"
"""Java writes this into the summary of a dynamic overwrite."""


def check_moved_rows(
    client: ClientFiles, state: TableState, snapshots: Sequence[Snapshot], snapshot_id: int
) -> None:
    """Refuse a stale commit that removes a file of inlined rows which has moved.

    Args:
        snapshot_id: the table's newest listed snapshot.

    Raises:
        BadRequest: the rows have moved.
    """
    # After a conflict PyIceberg would try again, and not find the rows in their new file: an
    # `append` may move them (`MOST_NEW`), and with the isolation level `snapshot` PyIceberg reads
    # no appends.
    for location in _removed(client, snapshots):
        name = client.own_name(location)
        if (
            name
            and name.kind == ROWS
            and state.files.live_rows().inlined(name, snapshot_id) is None
        ):
            raise BadRequest(
                "rows that this commit removes have moved to another file since the client loaded "
                "the table: load the table, and run the statement again"
            )


def _removed(client: ClientFiles, snapshots: Iterable[Snapshot]) -> Iterator[str]:
    """The locations of the data files that the client's own manifests remove."""
    for snapshot in snapshots:
        # A stale commit is answered with the conflict, whatever else is wrong with it.
        with suppress(BadRequest, CommitFailed):
            listed = client.manifests(snapshot.manifest_list)
            own = [manifest for manifest in listed if not client.own_name(manifest.manifest_path)]
            for file in client.entries(own):
                if file.status == Status.DELETED:
                    yield file.file_path


def check_replaced_partitions(
    state: TableState,
    client: ClientFiles,
    base: Sequence[ListedManifest],
    snapshots: Sequence[Snapshot],
) -> None:
    """Refuse a dynamic overwrite that cannot replace whole partitions.

    Args:
        base: the manifests of the table now.

    Raises:
        BadRequest: rows have no certain partition value, so that the client does not replace them,
            or all of them are in one partition, so that it replaces them all.
    """
    if not any(snapshot.summary.get(REPLACES_PARTITIONS) == "true" for snapshot in snapshots):
        return
    document = state.document
    spec = next(spec for spec in document.specs if spec.spec_id == document.default_spec_id)
    if not spec.fields:
        raise BadRequest(
            "the table is not partitioned for Iceberg, so that overwriting partitions would end "
            "all of its rows: overwrite it by a filter"
        )
    of_other_specs = [
        manifest
        for manifest in base
        if manifest.content == ManifestContent.DATA and manifest.partition_spec_id != spec.spec_id
    ]
    if any(entry.status != Status.DELETED for entry in client.own_entries(of_other_specs)):
        raise BadRequest(
            "some rows of the table have no certain partition value, so that overwriting "
            "partitions would leave rows behind: overwrite it by a filter, or CALL "
            "ducklake_flush_inlined_data and write older files again"
        )
