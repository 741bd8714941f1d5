"""What must be true of what clients show of a table's metadata, whichever client it is."""

from collections import Counter
from datetime import datetime

from pyiceberg.manifest import ManifestEntryStatus

from .expected_metadata import MILLISECOND, ExpectedMetadata

METADATA_TABLES = (
    "snapshots",
    "history",
    "files",
    "data_files",
    "delete_files",
    "manifests",
    "entries",
    "partitions",
    "refs",
    "metadata_log_entries",
    "all_files",
    "all_data_files",
    "all_delete_files",
    "all_manifests",
)
"""Those that PyIceberg has, and Spark too."""


def assert_files(told: ExpectedMetadata, shown: dict) -> None:
    now = told.expected_files(told.ids[-1])
    expected = {
        "files": now,
        "data_files": Counter({k: n for k, n in now.items() if k[0] == 0}),
        "delete_files": Counter({k: n for k, n in now.items() if k[0] != 0}),
    }
    for what, files in expected.items():
        if what in shown:
            seen = Counter(
                (row["content"], row["file_path"].rpartition("/")[2], row["record_count"])
                for row in shown[what]
            )
            assert seen == files, f"{told.name}: {what}"


def assert_manifests(told: ExpectedMetadata, rows: list[dict], now: int) -> None:
    """What the manifest list says of its manifests is what is in them."""
    for content, entries in ((0, told.data(now)), (1, told.deletes(now))):
        kind = "data" if content == 0 else "delete"
        for status in ManifestEntryStatus:
            name = f"{status.name.lower()}_{kind}_files_count"
            listed = sum(row[name] for row in rows if row["content"] == content)
            assert listed == sum(e.status == status for e in entries), f"{told.name}: {name}"


def assert_partitions(told: ExpectedMetadata, rows: list[dict], now: int) -> None:
    data = [e for e in told.data(now) if e.is_live]
    deletes = [e for e in told.deletes(now) if e.is_live]
    for name, expected in {
        "record_count": sum(e.records for e in data),
        "file_count": len(data),
        "total_data_file_size_in_bytes": sum(e.size for e in data),
        "position_delete_record_count": sum(e.records for e in deletes),
        "position_delete_file_count": len(deletes),
        "equality_delete_file_count": 0,
    }.items():
        assert sum(row[name] for row in rows) == expected, f"{told.name}: {name}"


def moments(told: ExpectedMetadata) -> list[tuple[datetime, int]]:
    """When each snapshot was made and just before the next: of two in one millisecond the later
    one counts."""
    found = []
    for n, id_ in enumerate(told.ids):
        if id_ not in told.some:
            continue
        ends = told.time(told.ids[n + 1]) if n + 1 < len(told.ids) else None
        if ends is None or ends > told.time(id_):
            found.append((told.time(id_), id_))
        if ends is not None and ends - MILLISECOND > told.time(id_):
            found.append((ends - MILLISECOND, id_))
    return found
