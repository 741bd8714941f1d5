"""One value of DuckLake's catalog is wrong: in any column of any of its tables.

Clients get the rows that DuckLake reads then, or the table is refused by a sentence. No answer is
an unexpected error, and tables that the row is not about stay as they are.
"""

import json
import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple, TextIO
from urllib.parse import quote

import pyarrow as pa
import pytest
import requests
from duckdb.sqltypes import DuckDBPyType
from pg8000.native import Connection
from polynya_local.clients import pyiceberg
from polynya_local.clients.canonical import Canonical, from_arrow
from polynya_local.clients.native import Lake
from pyiceberg.catalog.rest import TableResponse
from pyiceberg.exceptions import CommitStateUnknownException, ServerError
from pyiceberg.expressions import And, BooleanExpression, LiteralPredicate, NotNull
from pyiceberg.expressions.visitors import bind, rewrite_not
from pyiceberg.io.pyarrow import expression_to_pyarrow
from pyiceberg.table import Table
from pyiceberg.types import (
    DoubleType,
    FloatType,
    GeometryType,
    IcebergType,
    IntegerType,
    LongType,
)

from tests.aws.stand_in import StandIn
from tests.differential.test_filters import predicates
from tests.support.changed_values import (
    Catalog,
    Change,
    Changes,
    Name,
    NativeProcess,
    Read,
    Truth,
    script,
    script_beside_another,
)
from tests.support.lakes import version_of
from tests.support.rest import Rest, quoted
from tests.support.servers.in_process import reset_functions, standing_in
from tests.support.shared_duckdb import SharedDuckDB
from tests.support.writes.writable import set_up_writes

MODE = "scan-planning-mode"
SETTINGS = {"CHUNK_FILES": "2", "SCAN_PLANNING": "server"}
SECONDS = 60
LONG = 300
"""After so many seconds an answer counts as wrong."""
FILTERS = 4
CHANGES = int(os.environ.get("POLYNYA_CHANGES", "0"))
SEED = int(os.environ.get("POLYNYA_FIRST_CHANGE", "1"))
FINDINGS = Path(tempfile.gettempdir()) / "polynya-changes"

# (scripts, whether rows are inlined, how many changes, seed)
LAKES = [
    pytest.param(("13",), True, 5, 3, id="few"),
    *(
        pytest.param(numbers, inlines, 400, 1, id="+".join(numbers), marks=pytest.mark.slow)
        for numbers, inlines in [
            (("13", "26"), True),  # inlined rows and deletes; comments, views, macros
            (("28",), False),  # added files with columns in their paths
            (("19", "21"), False),  # buckets, years; sort orders
            (("22", "54"), True),  # columns added with defaults, dropped, renamed; structs
        ]
    ),
]

LISTS = ("config?warehouse=lake", *(f"lake/namespaces{x}" for x in ("", "/main/tables")))

GONE = "either it is gone, or"
"""Without the right to list a bucket, a missing file looks like a missing right: 500 names both."""

UNLIKE_DUCKLAKE = {
    # Only the footer shows it, which is not read for each file.
    ("ducklake_data_file", "record_count"): "PyIceberg skips a file without rows",
    ("ducklake_data_file", "mapping_id"): "an added file looks like one of DuckLake",
    ("ducklake_delete_file", "partial_max"): "the deletes of a file begin together",
    (
        "ducklake_name_mapping",
        "is_partition",
    ): "a file without a column that its mapping says it has",
    ("ducklake_column", "column_type"): "clients do not cast what DuckLake casts",
    ("ducklake_column", "column_id"): "files have another type than the column that is left",
    ("ducklake_delete_file", "again"): "DuckLake counts the rows of two delete files twice",
    # PyIceberg fails on a column of a file that has no name in the mapping.
    **{
        ("ducklake_name_mapping", column): "a name that is not in the mapping"
        for column in ("mapping_id", "source_name", "target_field_id", "parent_column", "row")
    },
}
"""Where clients get other rows than DuckLake, or an error of their own."""

BELIEVED = re.compile("min_value|max_value|value_count|null_count|contains_nan|record_count|row")
"""Columns of statistics that DuckLake believes, so that a filter loses rows there too."""


class Answer(NamedTuple):
    """What a client gets of a read."""

    rows: pa.Table | None
    hidden: frozenset[str] = frozenset()
    status: int = 200
    message: str = ""


UNREADABLE = -1
"""The status of an error in the client, which gets all files of metadata."""
UNREADABLE_GEOMETRIES = -2
"""The status of PyIceberg's own error with a table of nothing but geometries.

They are shown when a change has taken all other columns (test_version_3.py fails once PyIceberg
reads them). DuckDB alone is asked for the rows then.
"""
GEOMETRY_ERROR = "ResolveError: Cannot promote an binary to geometry"


class Served:
    """A lake behind the functions, as PyIceberg, DuckDB and a plain client see it."""

    def __init__(self, stand_in: StandIn, shared_duckdb: SharedDuckDB) -> None:
        self._where = (stand_in.api_uri, "lake", stand_in.s3_uri)
        self._client = pyiceberg.open(*self._where)
        self._client._catalog.properties[MODE] = "client"
        self._shared_duckdb, self._duckdb = shared_duckdb, None
        self.close = self._client.close

    def reset(self) -> None:
        """Forget what was read, as new processes would."""
        reset_functions()
        self._duckdb = None

    def get(self, target: str) -> requests.Response:
        return requests.get(f"{self._where[0]}/v1/{target}", timeout=SECONDS)

    def names(self) -> list[Name]:
        return Rest(*self._where[:2]).tables()

    def table(self, name: Name) -> Table | Answer:
        namespace, table = map(quoted, name)
        answer = self.get(f"lake/namespaces/{namespace}/tables/{table}?snapshots=all")
        if not answer.ok:
            return Answer(None, status=answer.status_code, message=answer.text)
        loaded = TableResponse.model_validate_json(answer.text)
        return self._client._catalog._response_to_table(name, loaded)

    def rows(self, table: Table | Answer, snapshot_id: int | None) -> Answer:
        if isinstance(table, Answer):
            return table
        if snapshot_id is not None and table.snapshot_by_id(snapshot_id) is None:
            return Answer(None, status=404, message="the snapshot is not listed")
        snapshot = table.snapshot_by_id(snapshot_id) if snapshot_id else table.current_snapshot()
        # Clients try again for many seconds.
        if snapshot and not (answer := self._file(snapshot.manifest_list)).ok:
            return Answer(None, status=answer.status_code, message=answer.text)
        hidden = frozenset(json.loads(table.properties.get("polynya.hidden-columns", "[]")))
        try:
            return Answer(table.scan(snapshot_id=snapshot_id).to_arrow(), hidden)
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            columns = table.scan(snapshot_id=snapshot_id).projection().columns
            is_known = message == GEOMETRY_ERROR and all(
                isinstance(column.field_type, GeometryType) for column in columns
            )
            status = UNREADABLE_GEOMETRIES if is_known else UNREADABLE
            return Answer(None, hidden, status, message)

    def rows_in_duckdb(self, read: Read, hidden: frozenset[str]) -> Answer:
        """What DuckDB reads, or its error, which is UNREADABLE."""
        try:
            client = self._duckdb = self._duckdb or self._shared_duckdb.attached_to(*self._where)
            return Answer(client.rows(*read.table, read.snapshot_id), hidden)
        except RuntimeError as error:
            return Answer(None, status=UNREADABLE, message=str(error))

    def _file(self, location: str) -> requests.Response:
        path = quote(location.removeprefix("s3://"))
        return requests.get(f"{self._where[2]}/{path}", timeout=SECONDS)

    def append(self, name: Name, random: Random) -> tuple[pa.Table, None]:
        """Append some rows that a table has; returns them.

        Raises:
            Exception: those of PyIceberg.
        """
        table, rows = self._writable(name)
        rows = rows.take(random.sample(range(rows.num_rows), min(2, rows.num_rows)))
        table.append(rows)
        return rows, None

    def delete(self, name: Name, random: Random) -> tuple[None, pa.Table]:
        """Delete the rows that match a filter; returns them.

        Raises:
            Exception: those of PyIceberg.
        """
        table, rows = self._writable(name)
        predicate = random.choice([predicate for _, predicate in predicates(table, rows, 2)])
        bound = bind(table.schema(), rewrite_not(predicate), case_sensitive=True)
        table.delete(predicate)
        return None, rows.filter(expression_to_pyarrow(bound))

    def _writable(self, name: Name) -> tuple[Table, pa.Table]:
        table = self._client._catalog.load_table(name)
        return table, table.scan().to_arrow()

    def lost(self, table: Table, rows: pa.Table, random: Random) -> Iterator[str]:
        """Filters with which a scan gives other rows than those that match."""
        possible = [
            without_null(table, column, predicate)
            for column, predicate in predicates(table, rows, 2)
            if is_compared_exactly(table, column) and not is_unsigned(predicate)
        ]
        for predicate in random.sample(possible, min(FILTERS, len(possible))):
            bound = bind(table.schema(), rewrite_not(predicate), case_sensitive=True)
            expected = rows.filter(expression_to_pyarrow(bound)).num_rows
            for mode in ("client", "server"):
                self._client._catalog.properties[MODE] = mode
                try:
                    count = table.scan(predicate).to_arrow().num_rows
                except Exception as error:
                    if IS_REFUSED.search(str(error)):
                        continue
                    yield f"{predicate}, planned by the {mode}: {error}"
                else:
                    if count != expected:
                        yield f"{predicate}, planned by the {mode}: {count} rows, not {expected}"
                finally:
                    self._client._catalog.properties[MODE] = "client"


def without_null(table: Table, column: str, predicate: BooleanExpression) -> BooleanExpression:
    """The predicate and IS NOT NULL, if it compares a column that old files lack or have narrower,
    or by which files are partitioned.

    There PyIceberg takes NULL for another value than that of the literal, with any catalog.
    """
    if not isinstance(predicate, LiteralPredicate):
        return predicate
    field_id = table.schema().find_field(column).field_id
    sources = {field.source_id for spec in table.specs().values() for field in spec.fields}
    is_taken = len(types_of(table, column)) > 1 or field_id in sources
    return And(predicate, NotNull(column)) if is_taken else predicate


def is_compared_exactly(table: Table, column: str) -> bool:
    """Whether PyIceberg compares a column right, with any catalog.

    It rounds a DOUBLE to the FLOAT of the file before it compares, takes a UINTEGER of the file for
    an INTEGER, looks for the part before a point in a name, and compares a default with a number.
    """
    types = types_of(table, column)
    if table.schema().find_field(column).initial_default is not None:
        return False
    is_promoted = {FloatType(), DoubleType()} <= types or {IntegerType(), LongType()} <= types
    return not is_promoted and "." not in table.schema().find_field(column).name


def is_unsigned(predicate: BooleanExpression) -> bool:
    """Whether PyIceberg may take a UINTEGER of a file for another number than that of a literal."""
    value = predicate.literal.value if isinstance(predicate, LiteralPredicate) else None
    return isinstance(value, int) and 2**31 <= value < 2**32


def types_of(table: Table, column: str) -> set[IcebergType | None]:
    """All types that a column has had, and None if it has not always been there."""
    field_id = table.schema().find_field(column).field_id
    return {
        schema.find_type(field_id) if field_id in schema.field_ids else None
        for schema in table.schemas().values()
    }


# PyIceberg writes infinity and NaN as null, and pyarrow takes the type of decimals from the first.
IS_REFUSED = re.compile(
    "BadRequest|HTTP status 400|planned by the client|null is none|precision inferred from first"
)


@pytest.mark.parametrize(("numbers", "inlines", "most", "seed"), LAKES)
def test_a_wrong_value_changes_no_other_table_and_no_answer_is_unexpected(
    numbers, inlines, most, seed, lake, moto, shared_duckdb
):
    written = lake.write(f"changed_{'_'.join(numbers)}", script(*numbers, inlines=inlines))
    with judging(written, moto, shared_duckdb, seed) as judge:
        assert not judge.unlike_native
        judge.try_all(judge.changes.drawn(), most)
    assert not judge.wrong, "\n".join(judge.wrong)
    assert judge.tried > min(most, 300) - 1


EARLY = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 2);
USE lake;
CREATE TABLE bystander(i INTEGER);
CREATE TABLE inlined(i INTEGER);
INSERT INTO inlined VALUES (7);
CREATE TABLE deleted(i INTEGER);
INSERT INTO deleted SELECT range FROM range(9);
DELETE FROM deleted WHERE i < 5;
CREATE TABLE twice(i INTEGER);
INSERT INTO twice SELECT range FROM range(9);
INSERT INTO twice SELECT range FROM range(20, 29);
INSERT INTO bystander VALUES (1);
DELETE FROM twice WHERE i < 3;
DELETE FROM twice WHERE i < 6;
"""


def test_rows_and_deletes_from_before_their_table(lake, moto, shared_duckdb):
    """A generated file has a name that can be asked for, and is not empty; a path that S3 cannot
    have is refused."""
    written = lake.write("changed_early", EARLY)
    with closing(written.database.connect()) as con, judging(written, moto, shared_duckdb, 1) as j:
        [[rows, place]] = con.run(
            "SELECT i.table_name, t.ctid::text FROM ducklake_inlined_data_tables AS i "
            "JOIN ducklake_table AS t USING (table_id) WHERE t.table_name = 'inlined'"
        )
        [[row]] = con.run(f"SELECT ctid::text FROM {rows}")
        [[other, file]] = con.run(
            "SELECT t.ctid::text, f.ctid::text FROM ducklake_table AS t "
            "JOIN ducklake_data_file AS f USING (table_id) WHERE table_name = 'deleted'"
        )
        [[deletes, begun]] = con.run(
            "SELECT d.ctid::text, d.begin_snapshot FROM ducklake_delete_file AS d "
            "JOIN ducklake_table AS t USING (table_id) WHERE table_name = 'twice'"
        )
        tables = {name: frozenset((("main", name),)) for name in ("inlined", "deleted", "twice")}
        of_file = Change("ducklake_data_file", file, "file_order", "1", tables["deleted"])
        changes = [
            Change(rows, row, "begin_snapshot", "-1", tables["inlined"]),
            Change(rows, row, "begin_snapshot", "0", tables["inlined"]),
            Change("ducklake_table", place, "begin_snapshot", "4", tables["inlined"]),
            Change("ducklake_table", other, "begin_snapshot", "7", tables["deleted"], of_file),
            Change("ducklake_table", other, "path", "repeat('x', 100000)", tables["deleted"]),
            *(
                Change("ducklake_delete_file", deletes, "begin_snapshot", str(at), tables["twice"])
                for at in range(begun - 3, begun)
            ),
        ]
        j.try_all(changes, len(changes))
        assert not j.wrong, "\n".join(j.wrong)
        assert j.tried == len(changes)


@pytest.mark.slow
@pytest.mark.skipif(not CHANGES, reason="make changed-values")
def test_wrong_values_of_all_lakes(lake_name, lake, moto, shared_duckdb, capfd):
    """Half of the changes are two together. All wrong answers are in a file, too."""
    written = lake.write(f"changed_{lake_name}", script_beside_another(lake_name))
    if version_of(lake_name) == "1.1":
        written = lake._migrated_copy(written)
    FINDINGS.mkdir(exist_ok=True)
    with (
        judging(written, moto, shared_duckdb, SEED) as judge,
        (FINDINGS / f"{lake_name}-{version_of(lake_name)}-{SEED}.txt").open("w") as file,
    ):
        judge.log = file
        judge.try_all(judge.changes.drawn(), CHANGES)
        judge.try_all(judge.changes.drawn_pairs(), CHANGES)
        with capfd.disabled():
            print(f"\n{file.name}: {judge.tried} changes, {len(judge.wrong)} wrong answers")
    assert not judge.wrong, "\n".join(judge.wrong)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["09", "13", "19", "22"])
def test_a_commit_to_a_table_with_a_wrong_value_is_exact_or_refused(
    name, lake, moto, shared_duckdb
):
    written = set_up_writes(lake.write(f"written_{name}", script_beside_another(name)))
    with judging(written, moto, shared_duckdb, SEED, writes=True) as judge:
        judge.try_commits(judge.changes.drawn(), CHANGES or 3)
    assert not judge.wrong, "\n".join(judge.wrong)
    assert judge.tried


@contextmanager
def judging(
    lake: Lake, moto: str, shared_duckdb: SharedDuckDB, seed: int, *, writes: bool = False
) -> Iterator["Judge"]:
    native = NativeProcess(lake, moto)
    with (
        closing(native),
        closing(lake.database.connect()) as con,
        closing((lake.native or lake.database).connect()) as native_con,
        standing_in(lake, moto, writes=writes, **SETTINGS) as stand_in,
        closing(Served(stand_in, shared_duckdb)) as served,
    ):
        catalogs = [Catalog(con, lake.metadata_schema)]
        if lake.native:
            catalogs.append(Catalog(native_con, lake.metadata_schema))
        yield Judge(served, native, catalogs, seed)


Operation = Callable[[Served, Name, Random], tuple[pa.Table | None, pa.Table | None]]
"""Commits; returns the rows that it adds, and those that it removes."""


class Judge:
    """Compares what clients get of a lake with what DuckLake reads of it, after each change."""

    def __init__(
        self, served: Served, native: NativeProcess, catalogs: list[Catalog], seed: int
    ) -> None:
        self._served, self._native, self._catalogs = served, native, catalogs
        self._random = Random(seed)
        self.changes = Changes(catalogs[0], seed)
        self.wrong: list[str] = []
        self.tried = 0
        self.log: TextIO | None = None
        self._reads = [*reads_of(served, catalogs[0].con)]
        # Nothing makes DuckDB hang here, but on a busy machine its process takes long to start.
        self._intact = native.read(self._reads, LONG)
        self._in_duckdb = {
            read
            for read in self._reads
            if not self._problem_in_duckdb(read, self._intact[read], frozenset())
        }
        """The reads that DuckDB does right where nothing is changed."""
        self.unlike_native = self._wrong_answers(NOTHING, self._intact)
        self._left_out = {read for read, _ in self.unlike_native}

    def try_all(self, changes: Iterable[Change], most: int) -> None:
        """Try so many changes; what is wrong is in `wrong`."""
        last = self.tried + most
        for change in changes:
            with ExitStack() as stack:
                if all(stack.enter_context(c.changed(change)) for c in self._catalogs):
                    self._try(change)
            if self.tried == last:
                break
        self._served.reset()
        again = self._wrong_answers(NOTHING, self._native.read(self._reads))
        self.wrong += [f"put back: {line}" for read, line in again if read not in self._left_out]

    def _try(self, change: Change) -> None:
        self.tried += 1
        self._served.reset()
        started = time.monotonic()
        # Other tables at the newest snapshot alone.
        reads = [r for r in self._reads if r.table in change.names or not r.snapshot_id]
        truths = self._native.read(reads)
        native_ended = time.monotonic()
        wrong = self._wrong_answers(change, truths)
        seconds = time.monotonic() - native_ended
        # DuckLake keeps what it knows of a schema version: reads before change what a read gives.
        alone = {read: self._native.read([read])[read] for read, _ in wrong if read}
        if any(alone[read] != truths[read] for read in alone):
            wrong = self._wrong_answers(change, truths | alone)
        lines = [line for read, line in wrong if read not in self._left_out]
        if seconds > LONG:
            lines.append(f"took {seconds:.0f} s, native {native_ended - started:.0f} s")
        lines = [f"{change}: {line}" for line in lines]
        self.wrong += lines
        if self.log:
            print(*(lines or [f"right: {change}"]), sep="\n", file=self.log, flush=True)

    def try_commits(self, changes: Iterable[Change], most: int) -> None:
        """After each of so many changes, append to the tables that it is about, and delete."""
        [catalog] = self._catalogs
        for change in changes:
            if self.tried == most:
                break
            with catalog.put_back():
                if not catalog.apply(change):
                    continue
                self.tried += 1
                for name in sorted(change.names):
                    for operation in (Served.append, Served.delete):
                        lines = self._wrong_commit(name, operation)
                        self.wrong += [f"{change}: {operation.__name__}: {line}" for line in lines]

    def _wrong_commit(self, name: Name, operation: Operation) -> list[str]:
        """Commit: what is refused changes nothing, and what is not changes its rows alone."""
        newest = [read for read in self._reads if read.snapshot_id is None]
        self._served.reset()
        before = self._native.read(newest)
        lines, added, removed = [], None, None
        try:
            added, removed = operation(self._served, name, self._random)
        except Exception as error:
            is_unexpected = isinstance(error, ServerError | CommitStateUnknownException)
            if is_unexpected and GONE not in str(error):
                lines.append(f"{name}: {error}")
        after = self._native.read(newest)
        for read in newest:
            expected = before[read].rows
            if expected is None:
                continue
            rows = expected.rows
            if read.table == name:
                rows = rows - counted(removed, before[read]) + counted(added, before[read])
            if after[read].rows is None or after[read].rows.rows != rows:
                lines.append(f"{read}: {after[read].error or 'other rows than were committed'}")
        return lines

    def _wrong_answers(
        self, change: Change, truths: dict[Read, Truth]
    ) -> list[tuple[Read | None, str]]:
        served, wrong = self._served, []
        for target in LISTS:
            answer = served.get(target)
            if answer.status_code >= 500:
                wrong.append((None, f"{target}: {answer.status_code} {answer.text}"))
        tables = {name: served.table(name) for name in {read.table for read in truths}}
        for read, truth in truths.items():
            name, is_about = read.table, read.table in change.names
            answer = served.rows(tables[name], read.snapshot_id)
            problem = problem_of(answer, truth, self._intact[read], change, is_about)
            if problem:
                wrong.append((read, f"{read}: {problem}"))
                continue
            is_left_to_duckdb = answer.status == UNREADABLE_GEOMETRIES
            if answer.rows is None and not is_left_to_duckdb:
                continue
            is_read_by_duckdb = read in self._in_duckdb or is_left_to_duckdb
            if is_read_by_duckdb and not is_unlike(change, is_about):
                problem = self._problem_in_duckdb(read, truth, answer.hidden)
                is_refused = is_about and "(HTTP 400)" in (problem or "")
                if problem and not is_refused:
                    wrong.append((read, f"{read} in DuckDB: {problem}"))
            if is_left_to_duckdb:
                continue
            if is_about and not read.snapshot_id and has_claims(change):
                lost = served.lost(tables[name], answer.rows, self._random)
                wrong += [(read, f"{name}: {line}") for line in lost]
        return wrong

    def _problem_in_duckdb(self, read: Read, truth: Truth, hidden: frozenset[str]) -> str | None:
        if truth.rows is None:
            return None
        answer = self._served.rows_in_duckdb(read, hidden)
        if answer.rows is None:
            return answer.message
        same = rows_of(answer, truth) == shown(truth, answer)
        return None if same else "other rows than those of DuckLake"


NOTHING = Change("nothing", "", "", "", frozenset())


def reads_of(served: Served, con: Connection) -> Iterator[Read]:
    """The newest snapshot of each table, and an earlier one."""
    for name in served.names():
        table = served.table(name)
        if isinstance(table, Answer):
            continue
        yield Read(name, None, name)
        ids = sorted(snapshot.snapshot_id for snapshot in table.snapshots())
        if len(ids) > 1:
            earlier = ids[len(ids) // 2]
            [then] = con.run(NAME_AT, namespace=name[0], table=name[1], snapshot_id=earlier)
            yield Read(name, earlier, tuple(then))


NAME_AT = """
SELECT s.schema_name, old.table_name FROM ducklake_table AS t
JOIN ducklake_schema AS s USING (schema_id) JOIN ducklake_table AS old USING (table_id)
WHERE s.schema_name = :namespace AND t.table_name = :table
  AND t.end_snapshot IS NULL AND s.end_snapshot IS NULL AND old.begin_snapshot <= :snapshot_id
  AND (old.end_snapshot IS NULL OR old.end_snapshot > :snapshot_id)"""


def has_claims(change: Change) -> bool:
    """Whether a table of the catalog says what files hold, and no change is believed."""
    return any(map(is_claim, change.parts)) and not any(map(is_believed, change.parts))


def is_believed(change: Change) -> bool:
    is_of_files = change.table.endswith("column_stats") or change.table == "ducklake_data_file"
    return is_of_files and BELIEVED.fullmatch(change.column) is not None


def is_claim(change: Change) -> bool:
    return "partition" in change.table or "file" in change.table


def is_unlike(change: Change, is_about: bool) -> bool:
    """Whether clients are known to get something else than DuckLake."""
    return is_about and any(
        UNLIKE_DUCKLAKE.keys() & {(c.table, c.column), (c.table, c.value)} for c in change.parts
    )


def problem_of(
    answer: Answer, truth: Truth, intact: Truth, change: Change, is_about: bool
) -> str | None:
    is_known = is_unlike(change, is_about)
    if answer.rows is None:
        if answer.status == UNREADABLE_GEOMETRIES:
            return None
        if answer.status == UNREADABLE:
            return None if truth.error or is_known else answer.message
        if (answer.status >= 500 and GONE not in answer.message) or "NoSuchKey" in answer.message:
            return f"{answer.status} {answer.message}"
        is_one_of_others = not is_about and not truth.error
        return f"refused: {answer.message}" if is_one_of_others else None
    if truth.rows is None:
        # Where DuckLake reads nothing, anything goes but another table's rows.
        return None if is_about or rows_of(answer, intact) == shown(intact, answer) else "changed"
    if rows_of(answer, truth) == shown(truth, answer) or is_known:
        return None
    return "other rows than those of DuckLake"


def counted(rows: pa.Table | None, truth: Truth) -> Counter:
    return Counter() if rows is None else rows_of(Answer(rows), truth).rows


def rows_of(answer: Answer, truth: Truth) -> Canonical:
    types = {name: DuckDBPyType(type_) for name, type_ in truth.types.items()}
    return from_arrow(answer.rows, types, answer.hidden)


def shown(truth: Truth, answer: Answer) -> Canonical:
    """DuckLake's rows without the columns that are hidden."""
    columns, rows = truth.rows.columns, Counter()
    places = [place for place, name in enumerate(columns) if name not in answer.hidden]
    for row, count in truth.rows.rows.items():
        rows[tuple(row[place] for place in places)] += count
    return Canonical(tuple(columns[place] for place in places), rows)
