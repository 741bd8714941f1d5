"""What DuckLake's catalog records of a lake, and what Iceberg's metadata says of it.

The judge is SQL on the catalog's tables: which data files began and ended at which snapshot, its
time, and the changes that it records. Native DuckLake gives the number of rows.
"""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property

from pg8000.native import identifier
from polynya_local.clients import native, pyiceberg
from polynya_local.clients.canonical import difference, from_arrow
from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.clients.native import attach
from pyiceberg.manifest import DataFileContent, FileFormat, ManifestEntryStatus

from tests.differential.test_rows import MOST_SNAPSHOTS, NATIVE_DEFECTS, hidden_columns, spread
from tests.support import rest
from tests.support.servers.in_process import cache_settings, standing_in
from tests.support.shared_duckdb import SharedDuckDB

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
QUOTED_NAME = re.compile(r'"(?:[^"]|"")*"')
ADDING = {"inserted_into_table", "inlined_insert"}
DELETING = {"deleted_from_table", "inlined_delete"}
# A flush records `deleted_from_table`, because it writes delete files.
REWRITING = {"inline_flush", "merge_adjacent", "compacted_table", "rewrite_delete"}
OPERATIONS = {
    (True, False): "append",
    (False, True): "delete",
    (True, True): "overwrite",
    (False, False): "replace",
}
ALL = {"SNAPSHOT_LIMIT": "2000", "POWERTOOLS_METRICS_DISABLED": "true"}
# In these lakes every snapshot is examined, with the smallest manifests; in the others a few.
THOROUGH = {"09", "10", "13", "14", "17", "19", "22", "25", "31", "36"}
SPREAD = 3


@dataclass(frozen=True, slots=True)
class DataFile:
    """A row of ducklake_data_file."""

    name: str  # the last part of its path, which is unique
    begin: int
    end: int | None
    records: int
    size: int
    partial_max: int | None  # the newest snapshot of its rows, if that is not `begin`
    file_id: int

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
    is_vector: bool

    @property
    def is_live(self) -> bool:
        return self.status != ManifestEntryStatus.DELETED

    def happened(self, status: ManifestEntryStatus, snapshot_id: int) -> bool:
        return self.status == status and self.snapshot_id == snapshot_id


class Case:
    """One served lake, and the clients that read it."""

    def __init__(self, lake, s3_endpoint: str, bridge, shared_duckdb: SharedDuckDB) -> None:
        self.where = (bridge.api_uri, "lake", bridge.s3_uri)
        self.lake, self.number = lake, lake.name.split("_")[0]
        self._pg = (lake.native or lake.database).connect()
        self._pg.run(f"SET search_path TO {identifier(lake.metadata_schema)}")
        self.native = native.open(lake, s3_endpoint)
        self.changes = connect(LAKE, s3_endpoint)
        attach(self.changes, lake)
        self.pyiceberg: pyiceberg.PyIceberg | None = None
        self.tables: list[ExpectedMetadata] = []
        """The tables that are served; test_rows.py checks that refusals are correct."""
        with suppress(rest.Refused):
            catalog = rest.Rest(*self.where[:2])
            self.pyiceberg = pyiceberg.open(*self.where)
            for table in self.native.tables():
                with suppress(rest.Refused):
                    self.tables.append(ExpectedMetadata(self, catalog, table))
        self.duckdb = cache(lambda: shared_duckdb.attached_to(*self.where))

    def ask(self, sql: str) -> list:
        return self._pg.run(sql)

    def close(self) -> None:
        for client in (self._pg, self.native, self.changes, self.pyiceberg):
            if client is not None:
                client.close()


@contextmanager
def served(
    lake, s3_endpoint: str, shared_duckdb: SharedDuckDB, hidden: tuple[str, ...] = (), **how: str
) -> Iterator[Case]:
    """A lake behind a bridge in this process, without columns of the `hidden` types."""
    chunk_files = "3" if lake.name.split("_")[0] in THOROUGH else "12"
    settings = ALL | {"CHUNK_FILES": chunk_files, "HIDDEN_TYPES": ",".join(hidden)}
    settings |= cache_settings(s3_endpoint)
    with standing_in(lake, s3_endpoint, **how, **settings) as bridge:
        case = Case(lake, s3_endpoint, bridge, shared_duckdb)
        try:
            yield case
        finally:
            case.close()


class ExpectedMetadata:
    """One table: what DuckLake's catalog records of it, and what Iceberg's metadata says of it."""

    def __init__(self, case: Case, catalog: rest.Rest, table: native.Table) -> None:
        self.case, self.table = case, table
        self.name = f"{table.namespace}.{table.name}"
        self.metadata = catalog.load_table(table.namespace, table.name)
        self.snapshots = {s["snapshot-id"]: s for s in self.metadata["snapshots"]}
        self.ids = sorted(self.snapshots)
        few = SPREAD if len(self.ids) <= MOST_SNAPSHOTS else 2
        some = spread(self.ids, MOST_SNAPSHOTS if case.number in THOROUGH else few)
        # Native DuckLake cannot be the judge here; test_rows.py checks that this is still so.
        self.some = [n for n in some if (case.lake.name, table.name, n) not in NATIVE_DEFECTS]
        self.hidden = hidden_columns(self.metadata)
        self.iceberg = case.pyiceberg._catalog.load_table((table.namespace, table.name))
        self.entries = cache(self._entries)
        self.truth = cache(self._truth)
        rows = case.ask(f"""
            SELECT path, begin_snapshot, end_snapshot, record_count, file_size_bytes, partial_max,
              data_file_id FROM ducklake_data_file WHERE table_id = {table.table_id}""")
        self.files = [DataFile(path.rpartition("/")[2], *row) for path, *row in rows]
        changes = case.ask("""
            SELECT s.snapshot_id, s.snapshot_time, coalesce(c.changes_made, '')
            FROM ducklake_snapshot AS s LEFT JOIN ducklake_snapshot_changes AS c USING (snapshot_id)
            """)
        self._next_file_ids = dict(
            case.ask("SELECT snapshot_id, next_file_id FROM ducklake_snapshot")
        )
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

    @cached_property
    def parents(self) -> dict[int, int | None]:
        """The snapshot that touched the table before, listed or not."""
        [[created]] = self.case.ask(f"""
            SELECT min(begin_snapshot) FROM ducklake_table WHERE table_id = {self.table.table_id}
            """)
        columns = {
            id_
            for edges in self.case.ask(f"""
                SELECT begin_snapshot, end_snapshot FROM ducklake_column
                WHERE table_id = {self.table.table_id}""")
            for id_ in edges
        }
        touched = {
            id_
            for id_ in self._changes
            if self.words(id_) - {"altered_table"} or id_ == created or id_ in columns
        }
        order = sorted(touched | set(self.ids))
        return dict(zip(order, [None, *order], strict=False))

    @property
    def ancestors(self) -> list[bool]:
        """For each listed snapshot, whether the parents of the newest one lead to it."""
        found, id_ = set(), self.ids[-1]
        while id_ in self.snapshots:
            found.add(id_)
            id_ = self.parents[id_]
        return [id_ in found for id_ in self.ids]

    def words(self, snapshot_id: int) -> set[str]:
        found = re.findall(r"(\w+):(\d+)", self._changes[snapshot_id])
        return {word for word, id_ in found if int(id_) == self.table.table_id}

    def operation(self, snapshot_id: int) -> str:
        words = self.words(snapshot_id)
        if self.previous(snapshot_id) < snapshot_id - 1:
            return "overwrite"  # it shows what expired snapshots did, too
        deleting, rewriting = bool(words & DELETING), bool(words & REWRITING)
        if rewriting and "inlined_delete" not in words:
            deleting = deleting and self.may_delete(snapshot_id)
        adding = bool(words & ADDING) or snapshot_id == min(self.ids)
        if rewriting and (adding or deleting):
            return "overwrite"
        if adding and not deleting and not self.is_added_whole(snapshot_id):
            return "overwrite"
        return OPERATIONS[adding, deleting]

    def may_delete(self, snapshot_id: int) -> bool:
        """Whether files end or deletes begin at a snapshot that also moves rows.

        A flush of deletes says `deleted_from_table`, as a DELETE does.
        """
        first_file = self._next_file_ids.get(snapshot_id - 1, 0)
        [[deletes]] = self.case.ask(f"""
            SELECT count(*) FROM ducklake_delete_file AS d WHERE table_id = {self.table.table_id}
            AND begin_snapshot <= {snapshot_id}
            AND (greatest(begin_snapshot, partial_max) >= {snapshot_id}
              -- DuckLake leaves partial_max out of some files that a flush makes.
              OR partial_max IS NULL AND delete_file_id >= {first_file})
            """)
        return bool(deletes) or any(file.end == snapshot_id for file in self.files)

    def previous(self, snapshot_id: int) -> int:
        """The snapshot before that has not expired; one less where the table did not exist."""
        before = max((id_ for id_ in self.times if id_ < snapshot_id), default=0)
        [[created]] = self.case.ask(f"""
            SELECT min(begin_snapshot) FROM ducklake_table WHERE table_id = {self.table.table_id}
            """)
        return before if before >= created else snapshot_id - 1

    def happened(self, snapshot_id: int) -> tuple[set[str], set[str]]:
        """The names of the files that a snapshot shows as ADDED and as DELETED.

        Files that may show other rows since, or that were made of older rows, are both.
        """
        before, words = self.previous(snapshot_id), self.words(snapshot_id)
        first = self._next_file_ids.get(before)
        made = range(first, self._next_file_ids[snapshot_id]) if first is not None else ()
        adds = before < snapshot_id - 1 or bool(words - DELETING - {"altered_table"})
        added, deleted = set(), set()
        for file in self.files:
            was, is_live = file.is_live(before), file.is_live(snapshot_id)
            is_other = (adds and (file.partial_max or 0) > before) or file.file_id in made
            if is_live and (not was or is_other):
                added.add(file.name)
            if was and (not is_live or is_other):
                deleted.add(file.name)
        return added, deleted

    def is_added_whole(self, snapshot_id: int) -> bool:
        """Whether the rows that a snapshot added are in files of their own.

        After a merge or a flush they are in a file with rows of other snapshots, which deletes
        hide. A reader of the rows that an `append` added reads whole files, without deletes.
        """
        return not any(
            file.begin <= snapshot_id <= file.partial_max and file.begin < file.partial_max
            for file in self.files
            if file.partial_max is not None and file.is_live(snapshot_id)
        )

    def inlined(self, snapshot_id: int, condition: str = "true") -> int:
        """The number of visible inlined rows."""
        counts = [
            self.case.ask(f"""
                SELECT count(*) FROM {identifier(name)} AS r
                WHERE r.begin_snapshot <= {snapshot_id} AND {condition.format(snapshot_id)}
                AND (r.end_snapshot IS NULL OR r.end_snapshot > {snapshot_id})""")[0][0]
            for name in self._inlined
        ]
        return sum(counts)

    def changes_layout(self, snapshot_id: int) -> bool:
        """Whether columns or the partitioning of the table changed at a snapshot."""
        return any(
            self.case.ask(f"""
                SELECT FROM {changed} WHERE table_id = {self.table.table_id}
                AND {snapshot_id} IN (begin_snapshot, end_snapshot) LIMIT 1""")
            for changed in ("ducklake_column", "ducklake_partition_info")
        )

    def inlined_ended(self, snapshot_id: int) -> int:
        counts = [
            self.case.ask(f"""
                SELECT count(*) FROM {identifier(name)} AS r
                WHERE r.end_snapshot = {snapshot_id}""")[0][0]
            for name in self._inlined
        ]
        return sum(counts)

    def _truth(self, snapshot_id: int | None = None):
        where = (self.table.namespace, self.table.name, snapshot_id)
        return self.case.native.canonical(*where, self.hidden)

    def row_count(self, snapshot_id: int) -> int:
        return self.truth(snapshot_id).rows.total()

    def difference(self, arrow, snapshot_id: int) -> list[str]:
        columns = self.case.native.columns(self.table.namespace, self.table.name, snapshot_id)
        return difference(self.truth(snapshot_id), from_arrow(arrow, columns, self.hidden))

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
                entry.data_file.file_format == FileFormat.PUFFIN,
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
        """The snapshot's time without a zone, as clients return it."""
        time = EPOCH + self.snapshots[snapshot_id]["timestamp-ms"] * MILLISECOND
        return time.replace(tzinfo=None)

    def expected_snapshots(self) -> list[tuple]:
        return [
            (
                id_,
                self.parents[id_],
                self.time(id_),
                self.snapshots[id_]["summary"]["operation"],
                self.snapshots[id_]["manifest-list"],
            )
            for id_ in self.ids
        ]

    def expected_files(self, snapshot_id: int) -> Counter:
        """(content, name, records) of the live files."""
        return Counter((int(e.content), e.name, e.records) for e in self.live(snapshot_id))
