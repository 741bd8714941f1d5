"""Table metadata from a table's history: which snapshots, their times, parents and contents."""

import datetime as dt
import json
from array import array
from dataclasses import replace

import pytest
from polynya.ducklake.queries.file_sums import file_sums
from polynya.ducklake.queries.history import TableHistory
from polynya.ducklake.rows.files import Event, FileGroups
from polynya.ducklake.rows.lifetimes import Inlined, UnservableRange
from polynya.ducklake.rows.objects import (
    NO_CHOSEN_IDS,
    ChosenIds,
    ClientSnapshot,
    Column,
    Lake,
    Layout,
    MappedName,
    Partitioning,
    Schema,
    Snapshot,
    Table,
    Tag,
)
from polynya.mapping.name_mappings import mappings
from polynya.mapping.partitions import partitions
from polynya.mapping.rows_files import rows_files
from polynya.mapping.schemas import schemas
from polynya.mapping.snapshots import BLOCK, SnapshotIds
from polynya.mapping.tables import (
    VERSIONS,
    MappedTable,
    Publication,
    check_lake,
    check_table,
    listed_snapshots,
    metadata,
)
from polynya.runtime.errors import Refused
from pyiceberg.table.metadata import TableMetadataUtil

EPOCH_MS = 1_700_000_000_000
LATE_MS = EPOCH_MS + 10**9
TABLE_ID = 4


def snapshot(snapshot_id: int, changes: str = "", seconds: float | None = None) -> Snapshot:
    seconds = snapshot_id if seconds is None else seconds
    time = dt.datetime.fromtimestamp(EPOCH_MS / 1000, dt.UTC) + dt.timedelta(seconds=seconds)
    return Snapshot(snapshot_id, time, changes, snapshot_id - 1, 0, 0)


def event(snapshot_id: int, kind="data", sign=1, files=1, rows=10, size=100) -> Event:
    return Event(snapshot_id, kind, sign, files, rows, size, 1000 + snapshot_id)


HISTORY = TableHistory(
    lake=Lake("1.0", "s3://b/", False, 9, Layout()),
    schema=Schema(0, "main", "main/", True),
    table=Table(TABLE_ID, "0198c3f4-0000-7000-8000-000000000000", 1, None, 0, "t", "t/", True),
    snapshot_id=9,
    columns=[Column(1, 1, None, "a", "int32", None, None)],
    snapshots=[snapshot(1, 'created_table:"main"."t"'), snapshot(3), snapshot(4), snapshot(9)],
    since=0,
    events=[event(3), event(4), event(9)],
    unservable=[],
    inlined=Inlined((), ()),
    has_partial=False,
    partitioning=Partitioning({}, {}, {}, {}, None),
    mapped_names=[],
    sort_keys=[],
    tags=[],
    column_tags=[],
    identifiers=[],
    commits=[],
    chosen_ids=NO_CHOSEN_IDS,
    sink_commits=[],
    file_sums=file_sums(9, 0, FileGroups({}, False, False, False, False), []),
)


def chosen_ids(commits: list[ClientSnapshot]) -> ChosenIds:
    chosen = {c.snapshot_id: c.client_snapshot_id for c in commits if c.client_snapshot_id}
    return ChosenIds(array("q", chosen), array("q", chosen.values()))


def document(
    history: TableHistory = HISTORY,
    snapshot_limit: int = 1000,
    now_ms: int = LATE_MS,
    client_snapshot_limit: int | None = None,
):
    shown = schemas(history.columns, history.table.begin_snapshot, history.snapshot_id)
    mapped = MappedTable(
        history=history,
        unservable=history.unservable,
        schemas=shown,
        partitions=partitions(history.partitioning, shown, history.snapshot_id),
        mappings=mappings(history.mapped_names, ()),
        ids=SnapshotIds(chosen_ids(history.commits)),
        rows=rows_files(history.events, history.layout_changes, history.table.begin_snapshot),
    )
    publication = Publication(
        "s3://virtual/t",
        lambda snapshot_id, state: f"s3://virtual/{snapshot_id}-{state['data'].files}",
        lambda snapshot_id: f"s3://virtual/expired-{snapshot_id}",
        snapshot_limit,
        snapshot_limit if client_snapshot_limit is None else client_snapshot_limit,
    )
    found = metadata(mapped, publication, now_ms)
    TableMetadataUtil.parse_raw(json.dumps(found.json()))  # PyIceberg's validation
    return found


@pytest.mark.parametrize(
    ("snapshot_limit", "sinks", "parents"),
    [
        # 4 and 9 are listed: theirs and those of the summaries; clients chose ids from 100 on
        (2, [4], {104: 3, 9: 104}),
        (2, [1, 3], {1: 103, 3: 1, 4: 3, 9: 4}),
        (2, [1, 7, 8], {1: 3, 4: 1, 7: 4, 8: 7, 9: 8}),
        (9, [2], {1: None, 2: 1, 3: 2, 4: 3, 9: 4}),
    ],
)
def test_what_sinks_read_back_is_among_the_ancestors_of_main(snapshot_limit, sinks, parents):
    commits = [ClientSnapshot(id_, 0, 100 + id_, "append", "{}") for id_ in sinks]
    history = replace(HISTORY, commits=commits, sink_commits=commits)
    shown = document(history, snapshot_limit=snapshot_limit).json()["snapshots"]
    assert {one["snapshot-id"]: one.get("parent-snapshot-id") for one in shown} == parents
    summaries = [one for one in shown if "polynya.summary-only" in one["summary"]]
    assert [one["snapshot-id"] for one in summaries] == sorted(set(sinks) & parents.keys())


def test_each_snapshot_follows_the_one_before_it_that_touched_the_table():
    found = document().snapshots
    assert [one.snapshot_id for one in found] == [1, 3, 4, 9]
    assert [one.parent_snapshot_id for one in found] == [None, 1, 3, 4]
    assert [one.manifest_list for one in found] == [
        f"s3://virtual/{n}" for n in ("1-0", "3-1", "4-2", "9-3")
    ]


ALTERED = f"altered_table:{TABLE_ID}"
RENAMED = 'created_table:"main"."t"'


def renamed_at(snapshot_id: int, changes: str = RENAMED) -> Snapshot:
    return replace(snapshot(snapshot_id, changes), begins_name=True)


@pytest.mark.parametrize(
    ("snapshots", "ids"),
    [
        ([snapshot(1, RENAMED), snapshot(4), renamed_at(5), snapshot(9)], [1, 4, 9]),
        ([snapshot(1, RENAMED), snapshot(3), snapshot(9), renamed_at(12)], [1, 3, 9]),
        ([snapshot(1, RENAMED), renamed_at(2), renamed_at(3)], [1, 3]),  # rows are added at 3
        ([snapshot(1, RENAMED), renamed_at(2, f"{RENAMED},{ALTERED}"), snapshot(3)], [1, 2, 3]),
        # A commit of what DuckLake ignores, such as statistics, lists no change.
        ([snapshot(1, RENAMED), snapshot(4), snapshot(5)], [1, 4, 5]),
        # What is left is the first to show what those before it have changed.
        ([renamed_at(2), snapshot(3)], [2, 3]),
        ([snapshot(3), renamed_at(5), renamed_at(6), renamed_at(9)], [3, 5, 9]),
    ],
)
def test_a_rename_is_no_state_of_the_document(snapshots, ids):
    history = replace(HISTORY, snapshots=snapshots)
    assert [one.snapshot_id for one in history.document_snapshots] == ids
    known = {snapshot.snapshot_id for snapshot in document(history).snapshots}
    assert document(history).last_updated_ms == EPOCH_MS + 1000 * ids[-1]
    assert known <= set(ids)


def test_a_commit_of_a_schema_is_listed_if_it_is_the_first_to_show_a_change():
    assert listed_with_a_schema_at_4([1, 3, 4, 9], (3, 9), 0) == [1, 3, 9]
    assert listed_with_a_schema_at_4([1, 3, 4, 9], (2, 9), 0) == [1, 3, 9]
    assert listed_with_a_schema_at_4([1, 4, 9], (3, 9), 0) == [1, 4, 9]
    assert listed_with_a_schema_at_4([4, 9], (3, 9), 0) == [4, 9]
    # What is older than the first snapshot that was read is summed, with any snapshot.
    assert listed_with_a_schema_at_4([4, 9], (0, 3, 9), 4) == [9]


def listed_with_a_schema_at_4(ids: list[int], changes: tuple[int, ...], since: int) -> list[int]:
    history = replace(
        HISTORY,
        snapshots=[
            snapshot(n, ALTERED if n == 4 else f"inserted_into_table:{TABLE_ID}") for n in ids
        ],
        events=[event(n) for n in changes],
        since=since,
        commits=[ClientSnapshot(4, 0, None, None, None)],
    )
    return [one.snapshot_id for one in listed_snapshots(history, ())]


@pytest.mark.parametrize(
    ("limit", "ids"), [(1, [9]), (2, [4, 9]), (4, [1, 3, 4, 9]), (99, [1, 3, 4, 9])]
)
def test_limit_keeps_the_newest_snapshots_unchanged(limit, ids):
    found = document(snapshot_limit=limit)
    assert [one.snapshot_id for one in found.snapshots] == ids
    assert found.snapshots == document().snapshots[-limit:]
    assert found.json()["current-snapshot-id"] == 9


@pytest.mark.parametrize(
    ("committed", "limit", "ids"),
    [
        ((1, 3, 4, 9), 4, [1, 3, 4, 9]),
        ((1, 3, 4, 9), 3, [3, 4, 9]),
        ((1, 9), 4, [4, 9]),  # no gap: clients walk from parent to parent
        ((3,), 4, [3, 4, 9]),
        ((1, 3), 4, [1, 3, 4, 9]),
        ((), 4, [4, 9]),
    ],
)
def test_commits_of_clients_are_listed_beyond_the_limit(committed, limit, ids):
    commits = [ClientSnapshot(n, 0, 1000 + n, "append", "{}") for n in committed]
    found = document(replace(HISTORY, commits=commits), 2, client_snapshot_limit=limit)
    assert [one.sequence_number for one in found.snapshots] == ids


def test_a_commit_without_a_snapshot_lists_no_more():
    commits = [ClientSnapshot(n, 0, None, None, None) for n in (1, 3)]
    found = document(replace(HISTORY, commits=commits), 2, client_snapshot_limit=4)
    assert [one.snapshot_id for one in found.snapshots] == [4, 9]


# (seconds of the snapshots 1, 3, 4, 9; now; milliseconds since EPOCH_MS)
TIMES = [
    ([1, 3, 4, 9], 100, [1000, 3000, 4000, 9000]),
    ([1, 3, 4, 200], 100, [1000, 3000, 4000, 100_000]),  # the catalog's clock is ahead
    ([200, 300, 400, 500], 100, [100_000] * 4),
    ([4, 3, 2, 9], 100, [4000, 4000, 4000, 9000]),  # commits in another order than their times
    ([200, 3, 4, 9], 100, [100_000] * 4),
    ([0.0019, 0.002, 1, 2], 100, [1, 2, 1000, 2000]),  # rounded down, never into the future
]


@pytest.mark.parametrize(("seconds", "now", "expected"), TIMES)
def test_times_never_decrease_and_are_never_ahead_of_now(seconds, now, expected):
    ids = (1, 3, 4, 9)
    moved = [snapshot(n, seconds=second) for n, second in zip(ids, seconds, strict=True)]
    found = document(replace(HISTORY, snapshots=moved), now_ms=EPOCH_MS + now * 1000)
    assert [one.timestamp_ms - EPOCH_MS for one in found.snapshots] == expected
    assert found.last_updated_ms == found.snapshots[-1].timestamp_ms


def test_times_do_not_depend_on_the_limit():
    moved = [snapshot(1, seconds=50), snapshot(3, seconds=3), snapshot(4), snapshot(9)]
    history = replace(HISTORY, snapshots=moved)
    whole, short = document(history), document(history, snapshot_limit=2)
    assert whole.snapshots[-2:] == short.snapshots


T = f":{TABLE_ID}"
# (DuckLake's changes, Iceberg's operation)
OPERATIONS = [
    (f"inserted_into_table{T}", "append"),
    (f"inlined_insert{T}", "append"),
    (f"deleted_from_table{T}", "delete"),
    (f"inlined_delete{T}", "delete"),
    (f"inserted_into_table{T},deleted_from_table{T}", "overwrite"),
    (f"inlined_insert{T},inlined_delete{T}", "overwrite"),
    (f"altered_table{T}", "replace"),
    (f"merge_adjacent{T}", "replace"),
    (f"inline_flush{T}", "replace"),
    ("", "replace"),
    (f"inserted_into_table:{TABLE_ID}0,deleted_from_table{T}", "delete"),  # of another table
    (f'created_table:"main"."inserted_into_table{T},x",deleted_from_table{T}', "delete"),
]


@pytest.mark.parametrize(("changes", "operation"), OPERATIONS)
def test_operation_follows_the_changes_in_ducklake(changes, operation):
    touched = [snapshot(1), snapshot(9, changes)]
    found = document(replace(HISTORY, snapshots=touched))
    assert found.snapshots[-1].summary["operation"] == operation


@pytest.mark.parametrize(("previous_id", "operation"), [(8, "replace"), (4, "overwrite")])
def test_a_clients_operation_says_nothing_of_what_expired_snapshots_did(previous_id, operation):
    changes = f"inserted_into_table{T},deleted_from_table{T}"
    newest = replace(snapshot(9, changes), previous_id=previous_id)
    commit = ClientSnapshot(9, 0, 2**50, "replace", "{}")
    touched = [*HISTORY.snapshots[:3], newest]
    found = document(replace(HISTORY, snapshots=touched, commits=[commit]))
    assert found.snapshots[-1].summary["operation"] == operation


def test_first_snapshot_is_an_append():
    assert document().snapshots[0].summary["operation"] == "append"


# None: the count is omitted, because it is not known before the files are generated.
SUMMARY = {
    "total-data-files": (0, 3, 5, 4),
    "total-records": (0, 23, 45, 42),
    "total-files-size": (0, None, None, 420),
    "total-delete-files": (0, 0, 2, 0),
    "total-position-deletes": (0, 0, 5, 0),
    "total-equality-deletes": (0, 0, 0, 0),
    "added-data-files": (0, 3, 3, 0),
    "added-records": (0, 23, 30, 0),
    "deleted-data-files": (0, 0, 1, 1),
    "deleted-records": (0, 0, 8, 3),
    "added-delete-files": (0, 0, 2, 0),
    "added-position-deletes": (0, 0, 5, 0),
    "removed-delete-files": (0, 0, 0, 2),
    "removed-position-deletes": (0, 0, 0, 5),
}


def test_summary_has_the_totals_and_the_changes_of_the_snapshot():
    """Inlined rows are two files: rows that the snapshot added, and the other rows."""
    history = replace(
        HISTORY,
        events=[
            event(3, files=2, rows=20, size=200),
            event(3, "inlined", files=3, rows=3, size=0),
            event(4, sign=-1, files=1, rows=8, size=80),
            event(4, files=3, rows=30, size=300),
            event(4, "delete", rows=5, size=50),
            event(4, "hidden", files=2, rows=5, size=0),
            event(9, "hidden", sign=-1, files=2, rows=5, size=0),
            event(9, "delete", sign=-1, rows=5, size=50),
            event(9, "inlined", sign=-1, files=3, rows=3, size=0),
        ],
    )
    found = document(history).snapshots
    expected = {key: [n if n is None else str(n) for n in ns] for key, ns in SUMMARY.items()}
    assert {key: [one.summary.get(key) for one in found] for key in SUMMARY} == expected
    assert all(one.summary.keys() <= {"operation", *SUMMARY} for one in found)


def test_earlier_and_new_inlined_rows_are_two_files():
    events = [event(3, "inlined", rows=2), event(4, "inlined", rows=5)]
    touched = [*HISTORY.snapshots[:3], snapshot(9, f"deleted_from_table:{TABLE_ID}")]
    history = replace(HISTORY, events=events, snapshots=touched)
    _, before, both, after = document(history).snapshots
    files = [one.summary["total-data-files"] for one in (before, both, after)]
    # The last snapshot changes no inlined row and shares the manifest of the one before.
    assert files == ["1", "2", "2"]
    assert both.summary["added-records"] == "5" and after.summary["added-records"] == "0"


def unservable_range(begin: int, end: int | None, reason: str = "a merged file") -> UnservableRange:
    return UnservableRange(begin, end, reason)


# (files that cannot be shown, listed snapshots, their parents: the previous snapshots, listed or
# not, so that no client reads added rows from one side of a gap to the other)
ODD = [
    ([unservable_range(3, 4)], [1, 4, 9], [None, 3, 4]),
    ([unservable_range(1, 9)], [9], [4]),
    ([unservable_range(3, 4), unservable_range(4, 9)], [1, 9], [None, 4]),
    ([unservable_range(2, 3)], [1, 3, 4, 9], [None, 1, 3, 4]),
]


@pytest.mark.parametrize(("unservable", "ids", "parents"), ODD)
def test_snapshot_without_an_exact_form_is_omitted(unservable, ids, parents):
    history = replace(HISTORY, unservable=unservable)
    assert [one.snapshot_id for one in listed_snapshots(history, history.unservable)] == ids
    found = document(history).snapshots
    assert [one.snapshot_id for one in found] == ids
    assert [one.parent_snapshot_id for one in found] == parents
    assert found[0].summary["operation"] == "append"


def check(history: TableHistory) -> None:
    shown = schemas(history.columns, 1, history.snapshot_id)
    check_table(history, history.unservable, shown, mappings(history.mapped_names, ()))


def test_table_is_refused_if_its_newest_state_has_no_exact_form():
    with pytest.raises(Refused, match=r"main\.t is not served: deletion vectors"):
        check(replace(HISTORY, unservable=[unservable_range(9, None, "deletion vectors")]))
    check(replace(HISTORY, unservable=[unservable_range(3, 9)]))


def test_table_is_refused_if_the_rows_of_its_mappings_are_broken():
    names = [MappedName(1, 0, "a", field_id, None, False) for field_id in (1, 2)]
    with pytest.raises(Refused, match="a column_id is there twice"):
        check(replace(HISTORY, mapped_names=names))
    check(replace(HISTORY, mapped_names=names[:1]))


def test_table_is_refused_if_no_column_can_be_shown():
    columns = [Column(1, 1, None, "u", "uint64", None, None)]
    with pytest.raises(Refused, match=r"no column can be shown \(u: values from"):
        check(replace(HISTORY, columns=columns))


@pytest.mark.parametrize("version", sorted(VERSIONS))
def test_known_catalog_versions_are_served(version):
    check_lake(replace(HISTORY.lake, version=version))


MIGRATE, UPDATE = "attach the lake once with AUTOMATIC_MIGRATION", "newer than .*: update Polynya$"
UNKNOWN = {
    **dict.fromkeys(["0.1", "", "1.0-dev9", "1.1-dev9", "x"], MIGRATE),
    **dict.fromkeys(["1.2", "1.10", "1.2-dev1", "2.0", "2.0-dev1", "10.0"], UPDATE),
}


@pytest.mark.parametrize(("version", "remedy"), UNKNOWN.items())
def test_unknown_catalog_version_is_refused_with_a_remedy(version, remedy):
    with pytest.raises(Refused, match=f"'{version}' is not served.*; .*{remedy}"):
        check_lake(replace(HISTORY.lake, version=version))


def test_encrypted_lake_is_refused():
    with pytest.raises(Refused, match="encrypted"):
        check_lake(replace(HISTORY.lake, encrypted=True))


def test_hidden_columns_are_named_with_their_reasons():
    columns = [*HISTORY.columns, Column(2, 1, None, "ü", "uint64", None, None)]
    properties = document(replace(HISTORY, columns=columns)).properties
    assert json.loads(properties["polynya.hidden-columns"]) == ["ü"]
    assert "2^63" in json.loads(properties["polynya.hidden-columns-reason"])["ü"]
    assert document().properties == {}


INT, LONG = "int32", "int64"
# (versions of a column besides `a`, whether Java's vectorized reader fails on the files)
ROW_READER = [
    ([Column(2, 1, None, "b", LONG, None, None)], False),
    ([Column(2, 1, 3, "b", INT, None, None), Column(2, 3, None, "b", LONG, None, None)], True),
    ([Column(2, 1, 3, "b", "int8", None, None), Column(2, 3, None, "b", INT, None, None)], False),
    ([Column(2, 1, None, "b", "timestamp_ms", None, None)], True),
    ([Column(2, 3, None, "b", "decimal(9,2)", "1.00", None)], True),
    ([Column(2, 1, None, "b", "decimal(9,2)", "1.00", None)], False),
    ([Column(2, 3, None, "b", INT, "1", None)], False),
    (
        [
            Column(2, 1, None, "s", "struct", None, None),
            Column(3, 3, None, "b", "decimal(9,2)", "1.00", 2),
        ],
        True,
    ),
]


@pytest.mark.parametrize(("columns", "by_rows"), ROW_READER)
def test_java_reads_by_rows_if_its_vectorized_reader_fails(columns, by_rows):
    properties = document(replace(HISTORY, columns=[*HISTORY.columns, *columns])).properties
    assert properties.get("read.parquet.vectorization.enabled") == ("false" if by_rows else None)


def test_tags_are_properties_and_column_comments_are_docs():
    history = replace(
        HISTORY,
        tags=[
            Tag(TABLE_ID, "comment", "a table"),
            Tag(TABLE_ID, "s3.endpoint", "http://x"),
            Tag(TABLE_ID, "gone", None),
        ],
        column_tags=[Tag(1, "comment", "a column"), Tag(1, "unit", "m"), Tag(2, "comment", None)],
    )
    found = document(history)
    assert found.properties == {"comment": "a table", "polynya.tag.s3.endpoint": "http://x"}
    assert found.docs == {1: "a column"}


def test_a_default_requires_format_version_3():
    added = Column(2, 3, None, "b", "int32", "42", None)
    found = document(replace(HISTORY, columns=[*HISTORY.columns, added]))
    assert (found.format_version, document().format_version) == (3, 2)
    assert [one.schema_id for one in found.snapshots] == [0, 1, 1, 1]
    assert found.current_schema_id == 1


def test_current_schema_may_be_newer_than_the_newest_snapshot():
    """The schema's own snapshot has expired."""
    added = Column(2, 6, None, "b", "int32", None, None)
    touched = [one for one in HISTORY.snapshots if one.snapshot_id < 5]
    found = document(replace(HISTORY, columns=[*HISTORY.columns, added], snapshots=touched))
    assert found.current_schema_id == 1 and found.snapshots[-1].schema_id == 0


def test_table_without_snapshots_is_empty():
    found = document(replace(HISTORY, snapshots=[], events=[]))
    assert found.snapshots == [] and found.last_updated_ms == 0


def test_each_snapshot_has_a_digest_of_the_ids_up_to_it():
    count = 2 * BLOCK + 5
    snapshots, chosen = (
        array("q", range(3, 3 + 2 * count, 2)),
        array("q", range(10**12, 10**12 + count)),
    )
    ids = SnapshotIds(ChosenIds(snapshots, chosen))
    assert ids.digests(2) == () and not ids.are_same
    assert [ids.iceberg_id(n) for n in (2, 3, 4, 5)] == [2, 10**12, 4, 10**12 + 1]
    assert (3 in ids, 4 in ids) == (True, False)
    of_each = [ids.digests(snapshot_id) for snapshot_id in snapshots]
    assert len({*of_each}) == count
    assert ids.digests(snapshots[-1] + 9) == of_each[-1] and ids.digests(6) == of_each[1]
    for number in (1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, count):
        fewer = SnapshotIds(ChosenIds(snapshots[:number], chosen[:number]))
        assert fewer.digests(10**9) == of_each[number - 1]
    changed = array("q", chosen)
    changed[BLOCK] += 1
    other = SnapshotIds(ChosenIds(snapshots, changed))
    digests = [other.digests(snapshot_id) for snapshot_id in snapshots]
    assert digests[:BLOCK] == of_each[:BLOCK]
    assert not {*digests[BLOCK:]} & {*of_each}
