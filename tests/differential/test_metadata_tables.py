"""Iceberg's own eyes: what clients show of a table's metadata is what DuckLake's catalog records.

The judge is SQL on the catalog's tables: which data files began and ended at which snapshot, when
that was, what it says it did. Native DuckLake says how many rows there were. Everything else (the
summaries, `inspect`, `iceberg_metadata`, Spark's metadata tables, reads of what was appended) must
agree with it and with each other.
"""

import re
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import groupby, pairwise

import pytest
from pg8000.native import identifier
from pyiceberg.manifest import DataFileContent, ManifestEntryStatus

from local.canonical import canonical, columns_of, difference, from_arrow
from local.clients import duckdb, native, pyiceberg, rest, spark
from local.duckdb_connection import LAKE, connect, literal
from local.lakes import attach
from local.serving import serving
from local.spark_jars import why_not

LAKES = ("09", "10", "13", "14", "17", "19", "22", "25", "31", "36")
# (test, lake) -> what is not true there yet
UNTRUE: dict[tuple[str, str], str] = {}
# (what PyIceberg is asked for, its words) -> faults of its own
PYICEBERG_FAULTS = {
    # It joins the tables of all manifests, and a table that never held a row has none.
    (r"files", "Must pass at least one table"),
    # A partition value of type uuid.
    (r"files|entries", "extension"),
}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
QUOTED_NAME = re.compile(r'"(?:[^"]|"")*"')
ADDING = {"inserted_into_table", "inlined_insert"}
DELETING = {"deleted_from_table", "inlined_delete"}
# A flush says `deleted_from_table` of itself, because it writes delete files.
REWRITING = {"inline_flush", "merge_adjacent", "compacted_table", "rewrite_delete"}
OPERATIONS = {
    (True, False): "append",
    (False, True): "delete",
    (True, True): "overwrite",
    (False, False): "replace",
}
METADATA_TABLES = [
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
    "position_deletes",
    "all_data_files",
    "all_delete_files",
    "all_files",
    "all_manifests",
    "all_entries",
]
INSPECTED = [
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
]
MOST_FOR_SPARK = 4  # a second each
ALL = {"SNAPSHOT_LIMIT": "1000", "CHUNK_FILES": "3"}

needs_spark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")


def pytest_generate_tests(metafunc):
    if "number" not in metafunc.fixturenames:
        return
    wanted = (metafunc.config.getoption("--lakes") or ",".join(LAKES)).split(",")
    params = []
    for number in LAKES:
        reason = UNTRUE.get((metafunc.function.__name__, number))
        marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
        if number in wanted:
            params.append(pytest.param(number, marks=marks))
    metafunc.parametrize("number", params, scope="module")


@dataclass(frozen=True, slots=True)
class DataFile:
    """A row of ducklake_data_file."""

    name: str  # the last part of its path, which no other file has
    begin: int
    end: int | None
    records: int
    size: int
    partial_max: int | None  # the newest snapshot of which it has rows, where that is not `begin`

    def is_live(self, snapshot_id: int) -> bool:
        return self.begin <= snapshot_id and (self.end is None or snapshot_id < self.end)


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of an Iceberg manifest."""

    name: str
    is_virtual: bool
    content: DataFileContent
    status: ManifestEntryStatus
    snapshot_id: int
    sequence_number: int
    records: int
    size: int

    @property
    def is_live(self) -> bool:
        return self.status != ManifestEntryStatus.DELETED

    def happened(self, status: ManifestEntryStatus, snapshot_id: int) -> bool:
        return self.status == status and self.snapshot_id == snapshot_id


class Case:
    """One lake, served, and one connection of each client."""

    def __init__(self, lake, s3_endpoint: str, bridge) -> None:
        where = (bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint)
        self.lake = lake
        self.native = native.open(lake, s3_endpoint)
        self.changes = connect(LAKE, s3_endpoint)
        attach(self.changes, lake)
        self.pyiceberg = pyiceberg.open(*where)
        self.duckdb = duckdb.open(*where)
        self.spark = cache(lambda: spark.open(*where))
        rest_catalog = rest.Rest(bridge.catalog_uri, bridge.warehouse)
        self.tables = [Told(self, rest_catalog, table) for table in self.native.tables()]

    def ask(self, sql: str) -> list:
        with closing(self.lake.database.connect()) as con:
            return con.run(sql)

    def close(self) -> None:
        for client in (self.native, self.changes, self.pyiceberg, self.duckdb):
            client.close()


class Told:
    """One table: what DuckLake's catalog records of it, and how Iceberg's metadata tells it."""

    def __init__(self, case: Case, catalog: rest.Rest, table: native.Table) -> None:
        self.case, self.table = case, table
        self.name = f"{table.namespace}.{table.name}"
        self.metadata = catalog.load_table(table.namespace, table.name)
        self.snapshots = {s["snapshot-id"]: s for s in self.metadata["snapshots"]}
        self.ids = sorted(self.snapshots)
        self.iceberg = case.pyiceberg._catalog.load_table((table.namespace, table.name))
        self.entries = cache(self._entries)
        self.truth = cache(self._truth)
        rows = case.ask(f"""
            SELECT path, begin_snapshot, end_snapshot, record_count, file_size_bytes, partial_max
            FROM ducklake_data_file WHERE table_id = {table.table_id}""")
        self.files = [DataFile(path.rpartition("/")[2], *row) for path, *row in rows]
        changes = case.ask("""
            SELECT s.snapshot_id, s.snapshot_time, coalesce(c.changes_made, '')
            FROM ducklake_snapshot AS s LEFT JOIN ducklake_snapshot_changes AS c USING (snapshot_id)
            """)
        self.times = {id_: (time - EPOCH) // MILLISECOND for id_, time, _ in changes}
        self._changes = {id_: QUOTED_NAME.sub("", words) for id_, _, words in changes}
        [[self.was_rewritten]] = case.ask(f"""
            SELECT bool_or(partial_max IS NOT NULL) FROM (
              SELECT partial_max FROM ducklake_data_file WHERE table_id = {table.table_id} UNION ALL
              SELECT partial_max FROM ducklake_delete_file WHERE table_id = {table.table_id}) AS f
            """)
        self._inlined = [
            name
            for (name,) in case.ask(f"""
                SELECT table_name FROM ducklake_inlined_data_tables
                WHERE table_id = {table.table_id}""")
        ]

    # DuckLake

    def words(self, snapshot_id: int) -> set[str]:
        found = re.findall(r"(\w+):(\d+)", self._changes[snapshot_id])
        return {word for word, id_ in found if int(id_) == self.table.table_id}

    def operation(self, snapshot_id: int) -> str:
        words = self.words(snapshot_id)
        deleting = bool(words & DELETING) and not words & REWRITING
        adding = bool(words & ADDING) or snapshot_id == min(self.ids)
        if adding and not deleting and not self.is_added_whole(snapshot_id):
            return "overwrite"
        return OPERATIONS[adding, deleting]

    def is_added_whole(self, snapshot_id: int) -> bool:
        """Whether the rows that a snapshot added are in files of their own.

        After a merge or a flush they stand in one that has rows of other snapshots too, which are
        hidden by deletes. Whoever reads what an `append` added takes whole files, without deletes.
        """
        return not any(
            file.begin <= snapshot_id <= file.partial_max and file.begin < file.partial_max
            for file in self.files
            if file.partial_max is not None and file.is_live(snapshot_id)
        )

    def inlined(self, snapshot_id: int, condition: str = "true") -> int:
        """How many inlined rows are visible."""
        counts = [
            self.case.ask(f"""
                SELECT count(*) FROM {identifier(name)} AS r
                WHERE r.begin_snapshot <= {snapshot_id} AND {condition.format(snapshot_id)}
                AND (r.end_snapshot IS NULL OR r.end_snapshot > {snapshot_id})""")[0][0]
            for name in self._inlined
        ]
        return sum(counts)

    def inlined_ended(self, snapshot_id: int) -> int:
        counts = [
            self.case.ask(f"""
                SELECT count(*) FROM {identifier(name)} AS r
                WHERE r.end_snapshot = {snapshot_id}""")[0][0]
            for name in self._inlined
        ]
        return sum(counts)

    def _truth(self, snapshot_id: int | None = None):
        return self.case.native.canonical(self.table.namespace, self.table.name, snapshot_id)

    def row_count(self, snapshot_id: int) -> int:
        return self.truth(snapshot_id).rows.total()

    def difference(self, arrow, snapshot_id: int) -> list[str]:
        columns = self.case.native.columns(self.table.namespace, self.table.name, snapshot_id)
        return difference(self.truth(snapshot_id), from_arrow(arrow, columns))

    # Iceberg

    def _entries(self, snapshot_id: int) -> list[Entry]:
        io, location = self.iceberg.io, self.metadata["location"]
        snapshot = self.iceberg.metadata.snapshot_by_id(snapshot_id)
        return [
            Entry(
                entry.data_file.file_path.rpartition("/")[2],
                entry.data_file.file_path.startswith(location + "/"),
                entry.data_file.content,
                entry.status,
                entry.snapshot_id,
                entry.sequence_number,
                entry.data_file.record_count,
                entry.data_file.file_size_in_bytes,
            )
            for manifest in snapshot.manifests(io)
            for entry in manifest.fetch_manifest_entry(io, discard_deleted=False)
        ]

    def data(self, snapshot_id: int) -> list[Entry]:
        return [e for e in self.entries(snapshot_id) if e.content == DataFileContent.DATA]

    def deletes(self, snapshot_id: int) -> list[Entry]:
        return [e for e in self.entries(snapshot_id) if e.content != DataFileContent.DATA]

    def live(self, snapshot_id: int) -> list[Entry]:
        return [e for e in self.entries(snapshot_id) if e.is_live]

    def time(self, snapshot_id: int) -> datetime:
        """As clients give it: without a zone."""
        time = EPOCH + self.snapshots[snapshot_id]["timestamp-ms"] * MILLISECOND
        return time.replace(tzinfo=None)

    def expected_snapshots(self) -> list[tuple]:
        return [
            (
                id_,
                self.snapshots[id_].get("parent-snapshot-id"),
                self.time(id_),
                self.snapshots[id_]["summary"]["operation"],
                self.snapshots[id_]["manifest-list"],
            )
            for id_ in self.ids
        ]

    def expected_files(self, snapshot_id: int) -> Counter:
        """(content, name, records) of the live files."""
        return Counter((int(e.content), e.name, e.records) for e in self.live(snapshot_id))


@pytest.fixture(scope="module")
def case(number, lake, moto, request):
    the_lake = lake(number)
    delivery = request.config.getoption("--delivery") or "object-lambda"
    with serving(the_lake.database.url, moto, delivery=delivery, settings=ALL) as bridge:
        case = Case(the_lake, moto, bridge)
        yield case
        case.close()


@pytest.fixture(scope="session", autouse=True)
def spark_session():
    yield
    spark.stop()


# What Iceberg's metadata says, against the catalog


def test_snapshots_are_those_of_the_catalog(case):
    for told in case.tables:
        times = [told.snapshots[id_]["timestamp-ms"] for id_ in told.ids]
        recorded = [told.times[id_] for id_ in told.ids]
        assert times == [max(recorded[: n + 1]) for n in range(len(recorded))], told.name
        parents = [told.snapshots[id_].get("parent-snapshot-id") for id_ in told.ids]
        assert parents[1:] == told.ids[:-1], told.name
        assert parents[0] is None or parents[0] < told.ids[0], told.name
        log = [(e["snapshot-id"], e["timestamp-ms"]) for e in told.metadata["snapshot-log"]]
        assert log == list(zip(told.ids, times, strict=True)), told.name


def test_operations_say_what_happened(case):
    wrong = [
        f"{told.name} at {id_}: {told.snapshots[id_]['summary']['operation']}, not {operation} "
        f"({', '.join(sorted(told.words(id_)))})"
        for told in case.tables
        for id_ in told.ids
        if (operation := told.operation(id_)) != told.snapshots[id_]["summary"]["operation"]
    ]
    assert not wrong, "\n".join(wrong)


def test_manifests_list_the_files_of_the_catalog(case):
    added, deleted = ManifestEntryStatus.ADDED, ManifestEntryStatus.DELETED
    for told in case.tables:
        for id_ in told.ids:
            where = f"{told.name} at {id_}"
            stored = [e for e in told.data(id_) if not e.is_virtual]
            assert sorted(
                (e.name, e.snapshot_id, e.sequence_number, e.records, e.size)
                for e in stored
                if e.is_live
            ) == sorted(
                (f.name, f.begin, f.begin, f.records, f.size) for f in told.files if f.is_live(id_)
            ), where
            assert {e.name for e in stored if e.happened(added, id_)} == {
                f.name for f in told.files if f.begin == id_
            }, where
            assert {e.name for e in stored if e.happened(deleted, id_)} == {
                f.name for f in told.files if f.end == id_
            }, where


def test_inlined_rows_are_counted_where_they_began(case):
    for told in case.tables:
        for id_ in told.ids:
            where = f"{told.name} at {id_}"
            rows = [e for e in told.data(id_) if e.is_virtual]
            assert sum(e.records for e in rows if e.is_live) == told.inlined(id_), where
            new = [e for e in rows if e.happened(ManifestEntryStatus.ADDED, id_)]
            # Where rows ended, whatever is left is written anew, as a copy-on-write delete does.
            is_new = "true" if told.inlined_ended(id_) else "r.begin_snapshot = {0}"
            assert sum(e.records for e in new) == told.inlined(id_, is_new), where


def test_inlined_rows_that_ended_leave_a_deleted_entry(case):
    """Else a reader of changes sees a table from which nothing was deleted."""
    wrong = [
        f"{told.name} at {id_}: {told.inlined_ended(id_)} rows ended without a trace"
        for told in case.tables
        for id_ in told.ids
        if told.inlined_ended(id_)
        and not any(
            (e.is_virtual and e.happened(ManifestEntryStatus.DELETED, id_)) for e in told.data(id_)
        )
        and not any(e.happened(ManifestEntryStatus.ADDED, id_) for e in told.deletes(id_))
    ]
    assert not wrong, "\n".join(wrong)


def test_a_delete_takes_as_many_rows_as_it_says(case):
    for told in case.tables:
        for id_ in told.ids:
            data = sum(e.records for e in told.data(id_) if e.is_live)
            deleted = sum(e.records for e in told.deletes(id_) if e.is_live)
            assert data - deleted == told.row_count(id_), f"{told.name} at {id_}"


def test_summaries_count_what_the_manifests_list(case):
    wrong = []
    for told in case.tables:
        for id_ in told.ids:
            summary = told.snapshots[id_]["summary"]
            counted = counts(told.data(id_), told.deletes(id_), id_)
            # Other engines name further ones, but these are what readers compute with.
            said = {key: int(summary[key]) for key in counted if key in summary}
            wrong += [
                f"{told.name} at {id_}: {key} is {said[key]}, not {counted[key]}"
                for key in said
                if said[key] != counted[key]
            ]
    assert not wrong, "\n".join(wrong)


def test_summaries_name_the_deletes(case):
    """A reader that answers count(*) from total-records must know what to take off.

    How many rows of a merged or flushed file are of later snapshots stands in the file alone, so
    in the past of a table that has one the numbers may be missing; never now.
    """
    wrong = [
        f"{told.name} at {id_}: no {key}"
        for told in case.tables
        for id_ in (told.ids[-1:] if told.was_rewritten else told.ids)
        for key in ("total-delete-files", "total-position-deletes")
        if told.deletes(id_) and key not in told.snapshots[id_]["summary"]
    ]
    assert not wrong, "\n".join(wrong)


def counts(data: list[Entry], deletes: list[Entry], id_: int) -> dict[str, int]:
    live_data, live_deletes = ([e for e in es if e.is_live] for es in (data, deletes))
    new, gone = (
        [e for e in data if e.happened(status, id_)]
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
        "added-delete-files": sum(e.happened(ManifestEntryStatus.ADDED, id_) for e in deletes),
    }


# What clients show of it


def test_pyiceberg_inspects(case, left_out):
    for told in case.tables:
        inspect, now = told.iceberg.inspect, told.ids[-1]
        shown = {}
        for what in INSPECTED:
            try:
                shown[what] = getattr(inspect, what)().to_pylist()
            except Exception as error:
                faults = [f for f in PYICEBERG_FAULTS if re.search(f[0], what)]
                assert any(fault in str(error) for _, fault in faults), f"{told.name}: {what}"
                left_out.append(f"PyIceberg's inspect.{what} of {told.name}: {error}")
        keys = ("snapshot_id", "parent_id", "committed_at", "operation", "manifest_list")
        seen = [tuple(row[key] for key in keys) for row in shown["snapshots"]]
        assert seen == told.expected_snapshots(), told.name
        history = [(row["snapshot_id"], row["made_current_at"]) for row in shown["history"]]
        assert history == [(id_, told.time(id_)) for id_ in told.ids], told.name
        assert all(row["is_current_ancestor"] for row in shown["history"]), told.name
        [ref] = shown["refs"]
        assert (ref["name"], ref["type"], ref["snapshot_id"]) == ("main", "BRANCH", now)
        [log] = shown["metadata_log_entries"]
        assert (log["latest_snapshot_id"], log["file"]) == (now, told.iceberg.metadata_location)
        assert_files(told, shown)
        assert_manifests(told, shown["manifests"], now)
        assert_partitions(told, shown["partitions"], now)


def test_duckdb_shows_snapshots_and_files(case):
    for told in case.tables:
        table = f"ice.{told.table.namespace}.{told.table.name}"
        now = told.ids[-1]
        for source in (f"'{told.iceberg.metadata_location}'", table):
            rows = case.duckdb.query(f"FROM iceberg_snapshots({source})").to_pylist()
            keys = ("sequence_number", "snapshot_id", "timestamp_ms", "operation", "manifest_list")
            expected = [
                (id_, id_, time, operation, at)
                for id_, _, time, operation, at in told.expected_snapshots()
            ]
            assert sorted(tuple(row[key] for key in keys) for row in rows) == expected, source
            rows = case.duckdb.query(f"FROM iceberg_metadata({source})").to_pylist()
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
            assert seen == told.expected_files(now), source


@pytest.mark.spark
@needs_spark
def test_spark_shows_its_metadata_tables(case):
    for told in case.tables:
        now = told.ids[-1]
        shown = {}
        for what in METADATA_TABLES:
            arrow = spark.session().sql(f"SELECT * FROM {source_in_spark(told)}.{what}").toArrow()
            shown[what] = arrow.to_pylist()
        keys = ("snapshot_id", "parent_id", "committed_at", "operation", "manifest_list")
        seen = [tuple(row[key] for key in keys) for row in shown["snapshots"]]
        assert [(*r[:2], r[2].replace(tzinfo=None), *r[3:]) for r in seen] == [
            *told.expected_snapshots()
        ], told.name
        history = [row["snapshot_id"] for row in shown["history"]]
        assert history == told.ids and all(r["is_current_ancestor"] for r in shown["history"])
        assert [(r["name"], r["snapshot_id"]) for r in shown["refs"]] == [("main", now)]
        assert [r["latest_snapshot_id"] for r in shown["metadata_log_entries"]] == [now]
        assert_files(told, shown)
        assert_manifests(told, shown["manifests"], now)
        assert_partitions(told, shown["partitions"], now)
        entries = [
            (row["status"], row["snapshot_id"], row["data_file"]["file_path"].rpartition("/")[2])
            for row in shown["entries"]
        ]
        assert sorted(entries) == sorted(
            (int(e.status), e.snapshot_id, e.name) for e in told.entries(now)
        ), told.name
        deleted = sum(e.records for e in told.deletes(now) if e.is_live)
        assert len(shown["position_deletes"]) == deleted, told.name
        every = {e.name for id_ in told.ids for e in told.data(id_) if e.is_live}
        listed = {row["file_path"].rpartition("/")[2] for row in shown["all_data_files"]}
        assert listed == every, told.name


def assert_files(told: Told, shown: dict) -> None:
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


def assert_manifests(told: Told, rows: list[dict], now: int) -> None:
    """What the manifest list says of its manifests is what is in them."""
    for content, entries in ((0, told.data(now)), (1, told.deletes(now))):
        kind = "data" if content == 0 else "delete"
        for status in ManifestEntryStatus:
            name = f"{status.name.lower()}_{kind}_files_count"
            listed = sum(row[name] for row in rows if row["content"] == content)
            assert listed == sum(e.status == status for e in entries), f"{told.name}: {name}"


def assert_partitions(told: Told, rows: list[dict], now: int) -> None:
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


def source_in_spark(told: Told) -> str:
    names = (told.case.spark().catalog, told.table.namespace, told.table.name)
    return ".".join(map(spark.identifier, names))


# Time travel


def moments(told: Told) -> list[tuple[datetime, int]]:
    """When each snapshot was made and just before the next: of two in one millisecond the later
    one counts."""
    found = []
    for n, id_ in enumerate(told.ids):
        ends = told.time(told.ids[n + 1]) if n + 1 < len(told.ids) else None
        if ends is None or ends > told.time(id_):
            found.append((told.time(id_), id_))
        if ends is not None and ends - MILLISECOND > told.time(id_):
            found.append((ends - MILLISECOND, id_))
    return found


def test_pyiceberg_travels_in_time(case):
    for told in case.tables:
        for time, id_ in moments(told):
            then = (time.replace(tzinfo=UTC) - EPOCH) // MILLISECOND
            assert told.iceberg.snapshot_as_of_timestamp(then).snapshot_id == id_, told.name
        first = (told.time(told.ids[0]).replace(tzinfo=UTC) - EPOCH) // MILLISECOND
        assert told.iceberg.snapshot_as_of_timestamp(first - 1) is None
        for id_ in told.ids:
            arrow = told.iceberg.scan(snapshot_id=id_).to_arrow()
            assert not told.difference(arrow, id_), f"{told.name} at {id_}"
            assert told.iceberg.scan(snapshot_id=id_).count() == told.row_count(id_)


def test_duckdb_travels_in_time(case):
    for told in case.tables:
        table = f"ice.{told.table.namespace}.{told.table.name}"
        for time, id_ in moments(told):
            arrow = case.duckdb.query(f"SELECT * FROM {table} AT (TIMESTAMP => '{time}')")
            assert not told.difference(arrow, id_), f"{told.name} as of {time}"
        for id_ in told.ids:
            arrow = case.duckdb.query(f"SELECT count(*) AS n FROM {table} AT (VERSION => {id_})")
            assert arrow.to_pylist() == [{"n": told.row_count(id_)}], f"{told.name} at {id_}"


@pytest.mark.spark
@needs_spark
def test_spark_travels_in_time(case):
    for told in case.tables:
        found = moments(told)
        for time, id_ in found[:: max(1, len(found) // MOST_FOR_SPARK)]:
            source = source_in_spark(told)
            for at in (f"TIMESTAMP AS OF '{time}'", f"VERSION AS OF {id_}"):
                rows = spark.session().sql(f"SELECT count(*) AS n FROM {source} {at}").collect()
                assert rows[0]["n"] == told.row_count(id_), f"{told.name} {at}"


# What was added between two snapshots


def appended(told: Told) -> list[tuple[int, int]]:
    """(from, to): all that happened after `from` and up to `to` was appending."""
    found = []
    is_append = {id_: told.snapshots[id_]["summary"]["operation"] == "append" for id_ in told.ids}
    pairs = list(pairwise(told.ids))
    for appends, run in groupby(pairs, key=lambda pair: is_append[pair[1]]):
        if appends:
            steps = list(run)
            found += [(steps[0][0], steps[-1][1]), steps[-1]]
    return sorted(set(found))


@pytest.mark.spark
@needs_spark
def test_spark_reads_what_was_appended(case):
    wrong = []
    for told in case.tables:
        for start, end in appended(told):
            reader = spark.session().read.format("iceberg")
            reader = reader.option("start-snapshot-id", start).option("end-snapshot-id", end)
            arrow = reader.table(source_in_spark(told)).toArrow()
            columns, expected = insertions(told, start, end)
            count = expected.rows.total()
            if arrow.num_rows != count:
                wrong.append(
                    f"{told.name} from {start} to {end}: {arrow.num_rows} rows, not {count}"
                )
            # Spark gives the columns of now, DuckLake those of then.
            elif set(arrow.column_names) == set(columns):
                wrong += difference(expected, from_arrow(arrow, columns))
    assert not wrong, "\n".join(wrong)


def insertions(told: Told, start: int, end: int):
    """The rows that DuckLake itself says were inserted after `start`, and their columns."""
    names = ", ".join(map(literal, ("lake", told.table.namespace, told.table.name)))
    source = f"ducklake_table_insertions({names}, {start + 1}, {end})"
    columns = columns_of(told.case.changes, source)
    return columns, canonical(told.case.changes, source, columns)


@pytest.mark.spark
@needs_spark
def test_spark_shows_what_changed(case):
    """Its changelog view, up to the first delete file: beyond that it refuses."""
    client, wrong = case.spark(), []
    for told in case.tables:
        until = [id_ for id_ in told.ids if not any(told.deletes(n) for n in told.ids if n <= id_)]
        if len(until) < 2:
            continue
        start, end = until[0], until[-1]
        name = ".".join(map(spark.identifier, (told.table.namespace, told.table.name)))
        view = (
            spark.session()
            .sql(f"""
            CALL {client.catalog}.system.create_changelog_view(table => '{name}', options =>
            map('start-snapshot-id', '{start}', 'end-snapshot-id', '{end}'))""")
            .collect()[0][0]
        )
        seen = Counter(
            row[0] for row in spark.session().sql(f"SELECT _change_type FROM {view}").collect()
        )
        names = ", ".join(map(literal, ("lake", told.table.namespace, told.table.name)))
        expected = Counter()
        for kind, function in (("INSERT", "insertions"), ("DELETE", "deletions")):
            sql = f"SELECT count(*) FROM ducklake_table_{function}({names}, {start + 1}, {end})"
            expected[kind] = case.changes.execute(sql).fetchone()[0]
        if +seen != +expected:
            wrong.append(f"{told.name} from {start} to {end}: {dict(seen)}, not {dict(expected)}")
    assert not wrong, "\n".join(wrong)
