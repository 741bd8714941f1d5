"""The partitioning of each file that a commit adds."""

from collections.abc import Iterable, Sequence

from ...ducklake import queries
from ...ducklake.rows.objects import PartitionColumn
from ...ducklake.writes import objects, partitionings
from ...ducklake.writes.new_files import NewDataFile
from ...ducklake.writes.new_snapshot import NewSnapshot
from ...mapping.partitions import ClientSpecs, client_keys, client_specs, specs_text
from ...mapping.properties import PARTITION_SPECS


def partition_ids(
    snapshot: NewSnapshot,
    table_id: int,
    partition_id: int | None,
    added: Sequence[NewDataFile],
) -> list[int | None]:
    """The partitioning of each file; a file without partition values has none.

    Args:
        partition_id: that of the table.
    """
    kinds = {file.directory_kind for file in added if file.directory_kind}
    by_kind: dict[str, int] = {}
    # Since 1.1 DuckLake merges files whatever their directories.
    if kinds and partition_id is not None and not snapshot.layout.is_1_1:
        by_kind = ensure_partitionings(snapshot, table_id, partition_id, kinds)
    return [
        by_kind.get(file.directory_kind, partition_id) if file.partition_values else None
        for file in added
    ]


def ensure_partitionings(
    snapshot: NewSnapshot, table_id: int, partition_id: int, kinds: Iterable[str]
) -> dict[str, int]:
    """The partitionings for files in these kinds of directories; new ones are written."""
    keys = partitionings.keys_of(snapshot.con, table_id, partition_id)
    specs = _specs(snapshot, table_id)
    fields = specs.get(partition_id, ())
    same_keys = partitionings.ids_with_keys_of(snapshot.con, table_id, partition_id)
    ids = [id_ for id_ in same_keys if specs.get(id_, ()) == fields]
    by_kind = partitionings.ensure_partitionings(
        snapshot, table_id, partition_id, keys or client_keys(fields), ids, kinds
    )
    if fields and (new := {id_: fields for id_ in by_kind.values() if id_ not in specs}):
        set_specs(snapshot, table_id, {**specs, **new})
    return by_kind


def keys_of(snapshot: NewSnapshot, table_id: int, partition_id: int) -> list[PartitionColumn]:
    """The keys by which `directory_kind` knows the directories of a partitioning."""
    keys = partitionings.keys_of(snapshot.con, table_id, partition_id)
    return keys or client_keys(_specs(snapshot, table_id).get(partition_id, ()))


def _specs(snapshot: NewSnapshot, table_id: int) -> ClientSpecs:
    return client_specs(queries.tags_at(snapshot.snapshot_id, table_id).run(snapshot.con))


def set_specs(snapshot: NewSnapshot, table_id: int, specs: ClientSpecs) -> None:
    """Replace the specs that clients gave."""
    objects.end_tags(snapshot.con, snapshot.snapshot_id, table_id, [PARTITION_SPECS])
    tag = {PARTITION_SPECS: specs_text(specs)}
    objects.add_tags(snapshot.con, snapshot.snapshot_id, table_id, tag)
