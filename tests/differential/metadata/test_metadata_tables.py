"""The metadata that clients show of a table is what DuckLake's catalog records.

The judges are native DuckLake and SQL on the catalog (`tests/metadata/expected_metadata.py`).
Everything else (the summaries, `inspect`, `iceberg_metadata`, time travel) must agree with them and
with each other, on every lake. Spark is in test_metadata_in_spark.py.
"""

import re
from collections import Counter
from datetime import UTC
from itertools import groupby

import pytest
from polynya_local.clients.duckdb import identifier
from pyiceberg.manifest import ManifestEntryStatus

from tests.metadata.expected_metadata import EPOCH, MILLISECOND, Entry, served
from tests.metadata.findings import Faults, Findings
from tests.metadata.shown import (
    METADATA_TABLES,
    assert_files,
    assert_manifests,
    assert_partitions,
    moments,
)

FAULTS: Faults = {
    # DuckDB takes the names for paths.
    ("test_duckdb_shows_snapshots_and_files", "50"): ("No version was provided",),
    # As in test_rows.py: a NULL map comes back empty, hidden variants need field ids.
    ("test_pyiceberg_travels_in_time", "02"): (r"is \{\}, not NULL",),
    ("test_pyiceberg_travels_in_time", "07"): ("Parquet file does not have field-ids",),
    ("test_pyiceberg_travels_in_time", "27"): ("Could not find field with name: st.c",),
}
# (PyIceberg's inspection, words of the error) -> faults of PyIceberg
PYICEBERG_FAULTS = {
    # It joins the tables of all manifests; a table that never held a row has none.
    (r"files", "Must pass at least one table"),
    # A partition value of type uuid.
    (r"files|entries", "extension"),
}
MOST_FOR_ALL = 12
pytestmark = pytest.mark.slow(but=["14_", "17_"])  # inlining, deletes and flushed rows; partitions


@pytest.fixture(scope="module")
def case(lake_name, lake, moto, shared_duckdb, request):
    delivery = request.config.getoption("--delivery") or "object-lambda"
    with served(lake(lake_name), moto, shared_duckdb, delivery=delivery) as case:
        yield case


@pytest.fixture
def found(case, request, left_out):
    found = Findings(request.node.originalname, case.number, FAULTS)
    yield found
    left_out.extend(f"known: {line}" for line in found.judge())


# Iceberg's metadata, compared with the catalog


def test_snapshots_are_those_of_the_catalog(case, found):
    for facts in case.tables:
        with found.at(facts.name):
            times = [facts.snapshots[id_]["timestamp-ms"] for id_ in facts.ids]
            recorded = [facts.times[id_] for id_ in facts.ids]
            assert times == [max(recorded[: n + 1]) for n in range(len(recorded))], facts.name
            parents = [facts.snapshots[id_].get("parent-snapshot-id") for id_ in facts.ids]
            assert parents == [facts.parents[id_] for id_ in facts.ids], facts.name
            log = [(e["snapshot-id"], e["timestamp-ms"]) for e in facts.metadata["snapshot-log"]]
            assert log == list(zip(facts.ids, times, strict=True)), facts.name


def test_operations_are_those_of_the_catalog(case, found):
    wrong = [
        f"{facts.name} at {id_}: {facts.snapshots[id_]['summary']['operation']}, not {operation} "
        f"({', '.join(sorted(facts.words(id_)))})"
        for facts in case.tables
        for id_ in facts.some
        if (operation := facts.operation(id_)) != facts.snapshots[id_]["summary"]["operation"]
    ]
    found.add(wrong)


def test_manifests_list_the_files_of_the_catalog(case, found):
    added, deleted = ManifestEntryStatus.ADDED, ManifestEntryStatus.DELETED
    for facts in case.tables:
        for id_ in facts.some:
            with found.at(f"{facts.name} at {id_}"):
                where, happened = f"{facts.name} at {id_}", facts.happened(id_)
                stored = [e for e in facts.data(id_) if not e.is_virtual]
                assert sorted(
                    (e.name, e.snapshot_id, e.sequence_number, e.records, e.size)
                    for e in stored
                    if e.is_live
                ) == sorted(
                    (f.name, id_ if f.name in happened[0] else f.begin, f.begin, f.records, f.size)
                    for f in facts.files
                    if f.is_live(id_)
                ), where
                assert {e.name for e in stored if e.happened(added, id_)} == happened[0], where
                assert {e.name for e in stored if e.happened(deleted, id_)} == happened[1], where


def test_inlined_rows_are_counted_at_the_snapshot_where_they_begin(case, found):
    for facts in case.tables:
        for id_ in facts.some:
            with found.at(f"{facts.name} at {id_}"):
                where = f"{facts.name} at {id_}"
                rows = [e for e in facts.data(id_) if e.is_virtual]
                assert sum(e.records for e in rows if e.is_live) == facts.inlined(id_), where
                new = [e for e in rows if e.happened(ManifestEntryStatus.ADDED, id_)]
                # After a delete the remaining rows are written again, as in copy-on-write, and
                # with the new columns or partitions after a change of these.
                are_moved = facts.inlined_ended(id_) or facts.changes_layout(id_)
                is_new = "true" if are_moved else "r.begin_snapshot = {0}"
                assert sum(e.records for e in new) == facts.inlined(id_, is_new), where


def test_inlined_rows_that_ended_leave_a_deleted_entry(case, found):
    """Without it, a reader of changes sees a table from which nothing was deleted."""
    wrong = [
        f"{facts.name} at {id_}: {facts.inlined_ended(id_)} rows ended without a trace"
        for facts in case.tables
        for id_ in facts.some
        if facts.inlined_ended(id_)
        and not any(
            (e.is_virtual and e.happened(ManifestEntryStatus.DELETED, id_)) for e in facts.data(id_)
        )
        and not any(e.happened(ManifestEntryStatus.ADDED, id_) for e in facts.deletes(id_))
    ]
    found.add(wrong)


def test_a_delete_removes_the_number_of_rows_that_it_declares(case, found):
    for facts in case.tables:
        for id_ in facts.some:
            with found.at(f"{facts.name} at {id_}"):
                data = sum(e.records for e in facts.data(id_) if e.is_live)
                deleted = sum(e.records for e in facts.deletes(id_) if e.is_live)
                assert data - deleted == facts.row_count(id_), f"{facts.name} at {id_}"


def test_summaries_count_what_the_manifests_list(case, found):
    wrong = []
    for facts in case.tables:
        for id_ in facts.some:
            summary = facts.snapshots[id_]["summary"]
            counted = counts(facts.data(id_), facts.deletes(id_), id_)
            # Other engines write more keys, but readers compute with these.
            said = {key: int(summary[key]) for key in counted if key in summary}
            wrong += [
                f"{facts.name} at {id_}: {key} is {said[key]}, not {counted[key]}"
                for key in said
                if said[key] != counted[key]
            ]
    found.add(wrong)


def test_summaries_name_the_deletes(case, found):
    """A reader that answers count(*) from total-records must subtract the deleted rows.

    Only a merged or flushed file itself records how many of its rows belong to later snapshots. In
    the past of a table with such a file the numbers may be missing, but never now.
    """
    wrong = [
        f"{facts.name} at {id_}: no {key}"
        for facts in case.tables
        for id_ in (facts.ids[-1:] if facts.was_rewritten else facts.some)
        for key in ("total-delete-files", "total-position-deletes")
        if facts.deletes(id_) and key not in facts.snapshots[id_]["summary"]
    ]
    found.add(wrong)


def counts(data: list[Entry], deletes: list[Entry], id_: int) -> dict[str, int]:
    live_data, live_deletes = ([e for e in es if e.is_live] for es in (data, deletes))
    new, gone, new_deletes, gone_deletes = (
        [e for e in entries if e.happened(status, id_)]
        for entries in (data, deletes)
        for status in (ManifestEntryStatus.ADDED, ManifestEntryStatus.DELETED)
    )
    return {
        "total-data-files": len(live_data),
        "total-records": sum(e.records for e in live_data),
        "total-files-size": sum(e.size for e in live_data + live_deletes),
        "total-delete-files": len(live_deletes),
        "total-position-deletes": sum(e.records for e in live_deletes),
        "total-equality-deletes": 0,
        "added-data-files": len(new),
        "added-records": sum(e.records for e in new),
        "deleted-data-files": len(gone),
        "deleted-records": sum(e.records for e in gone),
        "added-delete-files": len(new_deletes),
        "added-position-deletes": sum(e.records for e in new_deletes),
        "removed-delete-files": len(gone_deletes),
        "removed-position-deletes": sum(e.records for e in gone_deletes),
        "added-dvs": sum(e.is_vector for e in new_deletes),
        "removed-dvs": sum(e.is_vector for e in gone_deletes),
    }


# What clients show of the metadata


def test_pyiceberg_inspects(case, found, left_out):
    for facts in case.tables:
        with found.at(facts.name):
            inspect, now = facts.iceberg.inspect, facts.ids[-1]
            shown = {}
            for what in METADATA_TABLES:
                if what.startswith("all_") and len(facts.ids) > MOST_FOR_ALL:
                    continue  # it reads every manifest of every snapshot sequentially
                try:
                    shown[what] = getattr(inspect, what)().to_pylist()
                except Exception as error:
                    faults = [f for f in PYICEBERG_FAULTS if re.search(f[0], what)]
                    assert any(fault in str(error) for _, fault in faults), f"{facts.name}: {what}"
                    left_out.append(f"PyIceberg's inspect.{what} of {facts.name}: {error}")
            keys = ("snapshot_id", "parent_id", "committed_at", "operation", "manifest_list")
            seen = [tuple(row[key] for key in keys) for row in shown["snapshots"]]
            assert seen == facts.expected_snapshots(), facts.name
            history = [(row["snapshot_id"], row["made_current_at"]) for row in shown["history"]]
            assert history == [(id_, facts.time(id_)) for id_ in facts.ids], facts.name
            ancestors = [row["is_current_ancestor"] for row in shown["history"]]
            assert ancestors == facts.ancestors, facts.name
            [ref] = shown["refs"]
            assert (ref["name"], ref["type"], ref["snapshot_id"]) == ("main", "BRANCH", now)
            # Some states are between two snapshots: another layout, a comment.
            states = [row["latest_snapshot_id"] for row in shown["metadata_log_entries"]]
            assert [id_ for id_, _ in groupby(states)] == facts.ids, facts.name
            log = shown["metadata_log_entries"][-1]
            assert (log["latest_snapshot_id"], log["file"]) == (
                now,
                facts.iceberg.metadata_location,
            )
            assert_files(facts, shown)
            assert_manifests(facts, shown["manifests"], now)
            assert_partitions(facts, shown["partitions"], now)


def test_duckdb_shows_snapshots_and_files(case, found):
    for facts in case.tables:
        table = f"ice.{identifier(facts.table.namespace)}.{identifier(facts.table.name)}"
        now = facts.ids[-1]
        for source in (f"'{facts.iceberg.metadata_location}'", table):
            with found.at(source):
                rows = case.duckdb().query(f"FROM iceberg_snapshots({source})").to_pylist()
                keys = (
                    "sequence_number",
                    "snapshot_id",
                    "timestamp_ms",
                    "operation",
                    "manifest_list",
                )
                expected = [
                    (id_, id_, time, operation, at)
                    for id_, _, time, operation, at in facts.expected_snapshots()
                ]
                assert sorted(tuple(row[key] for key in keys) for row in rows) == expected, source
                rows = case.duckdb().query(f"FROM iceberg_metadata({source})").to_pylist()
                # DuckDB 1.5.5 calls the content of a data file EXISTING.
                contents = {"EXISTING": 0, "DATA": 0, "POSITION_DELETES": 1}
                seen = Counter(
                    (
                        contents[row["content"]],
                        row["file_path"].rpartition("/")[2],
                        row["record_count"],
                    )
                    for row in rows
                    if row["status"] != "DELETED"
                )
                assert seen == facts.expected_files(now), source


# Time travel


def test_pyiceberg_travels_in_time(case, found):
    for facts in case.tables:
        for time, id_ in moments(facts):
            then = (time.replace(tzinfo=UTC) - EPOCH) // MILLISECOND
            assert facts.iceberg.snapshot_as_of_timestamp(then).snapshot_id == id_, facts.name
        first = (facts.time(facts.ids[0]).replace(tzinfo=UTC) - EPOCH) // MILLISECOND
        assert facts.iceberg.snapshot_as_of_timestamp(first - 1) is None
        for id_ in facts.some:
            with found.at(f"{facts.name} at {id_}"):
                arrow = facts.iceberg.scan(snapshot_id=id_).to_arrow()
                assert not facts.difference(arrow, id_), f"{facts.name} at {id_}"
                assert facts.iceberg.scan(snapshot_id=id_).count() == facts.row_count(id_)


def test_duckdb_travels_in_time(case, found):
    for facts in case.tables:
        table = f"ice.{identifier(facts.table.namespace)}.{identifier(facts.table.name)}"
        if "." in facts.table.namespace:  # it takes the dot for one between two levels until then
            case.duckdb().query("SHOW ALL TABLES")
        for time, id_ in moments(facts):
            with found.at(f"{facts.name} as of {time}, {id_}"):
                arrow = case.duckdb().query(f"SELECT * FROM {table} AT (TIMESTAMP => '{time}')")
                assert not facts.difference(arrow, id_), f"{facts.name} as of {time}"
        for id_ in facts.some:
            with found.at(f"{facts.name} at {id_}"):
                arrow = case.duckdb().query(
                    f"SELECT count(*) AS n FROM {table} AT (VERSION => {id_})"
                )
                assert arrow.to_pylist() == [{"n": facts.row_count(id_)}], f"{facts.name} at {id_}"
