"""What must be true of the metadata that any client shows of a table."""

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
"""The metadata tables that both PyIceberg and Spark have."""


def assert_files(facts: ExpectedMetadata, shown: dict) -> None:
    now = facts.expected_files(facts.ids[-1])
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
            assert seen == files, f"{facts.name}: {what}"


def assert_manifests(facts: ExpectedMetadata, rows: list[dict], now: int) -> None:
    """What the manifest list records of its manifests is what is in them."""
    for content, entries in ((0, facts.data(now)), (1, facts.deletes(now))):
        kind = "data" if content == 0 else "delete"
        for status in ManifestEntryStatus:
            name = f"{status.name.lower()}_{kind}_files_count"
            listed = sum(row[name] for row in rows if row["content"] == content)
            assert listed == sum(e.status == status for e in entries), f"{facts.name}: {name}"


def assert_partitions(facts: ExpectedMetadata, rows: list[dict], now: int) -> None:
    data = [e for e in facts.data(now) if e.is_live]
    deletes = [e for e in facts.deletes(now) if e.is_live]
    for name, expected in {
        "record_count": sum(e.records for e in data),
        "file_count": len(data),
        "total_data_file_size_in_bytes": sum(e.size for e in data),
        "position_delete_record_count": sum(e.records for e in deletes),
        "position_delete_file_count": len(deletes),
        "equality_delete_file_count": 0,
    }.items():
        assert sum(row[name] for row in rows) == expected, f"{facts.name}: {name}"


def moments(facts: ExpectedMetadata) -> list[tuple[datetime, int]]:
    """When each snapshot was made and just before the next: if two have the same millisecond, the
    later one counts."""
    found = []
    for n, id_ in enumerate(facts.ids):
        if id_ not in facts.some:
            continue
        ends = facts.time(facts.ids[n + 1]) if n + 1 < len(facts.ids) else None
        if ends is None or ends > facts.time(id_):
            found.append((facts.time(id_), id_))
        if ends is not None and ends - MILLISECOND > facts.time(id_):
            found.append((ends - MILLISECOND, id_))
    return found
