"""The manifest list of a snapshot: its manifests, with the summary of each."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace
from itertools import accumulate

from ...ducklake.rows.sums import Event
from ...errors import PolynyaError
from ...iceberg.avro.manifests import manifest_file, manifest_list_bytes
from ..summarized_files import Summary
from ..table_names import Manifest

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
        wanted = self._counts[bisect_right(self._snapshot_ids, snapshot_id)]
        summaries = [summary for manifest, summary in listed if manifest.kind == "data"]
        found = sum(summary[field] for summary in summaries for field in LIVE)
        if found != wanted:
            raise PolynyaError(
                f"the manifests of snapshot {snapshot_id} have {found} data files, and the catalog "
                f"has {wanted}: nothing of it is served; please report it with the output of "
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
