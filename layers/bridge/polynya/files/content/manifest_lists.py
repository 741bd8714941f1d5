"""The manifest list of a snapshot: its manifests, with the summary of each."""

from collections.abc import Iterable
from dataclasses import replace

from ...iceberg.avro.manifests import manifest_file, manifest_list_bytes
from ..summarized_files import Summary

NO_SNAPSHOT = 0
"""DuckLake's first snapshot, which no table has."""


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
    # Only the list of the snapshot itself says that it added a manifest. Later snapshots may have
    # the same files in other chunks: a reader of added rows would get them twice.
    files = [
        file
        if file.added_snapshot_id == snapshot_id
        else replace(file, added_snapshot_id=NO_SNAPSHOT)
        for file in files
        if file.has_entries
    ]
    return manifest_list_bytes(files, sequence_number, snapshot_id, format_version)
