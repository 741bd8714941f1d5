"""Overwrites that would lose rows or values which the client has not seen."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from ...errors import BadRequest, CommitFailed
from ...iceberg.avro.written import ListedManifest
from ...iceberg.commits.updates import Snapshot
from ...iceberg.manifest import ManifestContent, Status
from ...translate.commits.net_change import NetChange
from .client_files import ClientFiles
from .table_state import TableState

HIDDEN = "polynya.hidden-columns"

ROWS = "rows"
"""The kind of the names of files of inlined rows."""

REPLACES_PARTITIONS = "replace-partitions"
"""Java writes it into the summary of a dynamic overwrite."""


def check_hidden_columns(state: TableState, net: NetChange) -> None:
    """Refuse to replace files of a table with columns that clients do not see.

    Raises:
        BadRequest: the new files lack the values that these columns have in the removed ones.
    """
    hidden = state.document.properties.get(HIDDEN)
    if hidden and net.removed and net.added:
        raise BadRequest(
            f"the commit rewrites files of a table with columns that Iceberg does not see "
            f"({hidden}), and their values would be lost: delete and update with merge-on-read "
            "(write.delete.mode, write.update.mode and write.merge.mode), or in DuckDB"
        )


def check_moved_rows(
    client: ClientFiles, state: TableState, snapshots: Sequence[Snapshot], at: int
) -> None:
    """Refuse a stale commit that removes a file of inlined rows which has moved.

    Without an error PyIceberg would try again, and leave the rows where they are: an `append` may
    move them (`rows_files.MOST_NEW`), and with the isolation level `snapshot` it reads no appends.

    Args:
        at: the table's newest listed snapshot.

    Raises:
        BadRequest: the rows have moved.
    """
    for location in _removed(client, snapshots):
        name = client.own_name(location)
        if name and name.kind == ROWS and state.files.live_rows().inlined(name, at) is None:
            raise BadRequest(
                "rows that this commit removes have moved to another file since the client loaded "
                "the table: load the table, and run the statement again"
            )


def _removed(client: ClientFiles, snapshots: Iterable[Snapshot]) -> Iterator[str]:
    """The locations of the data files that the client's own manifests remove."""
    for snapshot in snapshots:
        # Whatever is wrong with a stale commit, the conflict is its answer.
        with suppress(BadRequest, CommitFailed):
            listed = client.manifests(snapshot.manifest_list)
            own = [one for one in listed if not client.own_name(one.manifest_path)]
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
    if not any(one.summary.get(REPLACES_PARTITIONS) == "true" for one in snapshots):
        return
    document = state.document
    spec = next(spec for spec in document.specs if spec.spec_id == document.default_spec_id)
    if not spec.fields:
        raise BadRequest(
            "the table is not partitioned for Iceberg, so that overwriting partitions would end "
            "all of its rows: overwrite it by a filter"
        )
    others = [
        one
        for one in base
        if one.content == ManifestContent.DATA and one.partition_spec_id != spec.spec_id
    ]
    if any(entry.status != Status.DELETED for entry in client.own_entries(others)):
        raise BadRequest(
            "some rows of the table have no certain partition value, so that overwriting "
            "partitions would leave rows behind: overwrite it by a filter, or CALL "
            "ducklake_flush_inlined_data and write older files again"
        )
