"""Scans that the server plans: the rows of DuckLake, and the files that manifests name.

PyIceberg asks the server in one session and reads manifests in another one. The judge of rows is
DuckDB's ducklake extension; a file that only the manifests name must hold no row that is wanted.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

import pytest
from polynya_local.clients import native, pyiceberg
from polynya_local.clients.canonical import difference, from_arrow
from pyiceberg.exceptions import BadRequestError
from pyiceberg.expressions import AlwaysTrue, BooleanExpression, Not
from pyiceberg.expressions.literals import LongLiteral
from pyiceberg.expressions.visitors import bind
from pyiceberg.io.pyarrow import ArrowScan, expression_to_pyarrow
from pyiceberg.table import FileScanTask, Table
from pyiceberg.types import DoubleType, FloatType, IntegerType, LongType

from tests.differential.test_filters import predicates
from tests.differential.test_rows import (
    CLIENT_FAULTS,
    NATIVE_DEFECTS,
    hidden_columns,
    listed,
    spread,
)
from tests.support import rest
from tests.support.lakes import number_of, version_of
from tests.support.servers import in_process

# Partitions; deletes are in tests/e2e/test_planned_scans.py.
pytestmark = pytest.mark.slow(but=["17_"])
MANY_FILES = {"32", "78"}
MODE = "scan-planning-mode"
MOST_SNAPSHOTS = 12
MOST_PREDICATES = 40
ALWAYS = AlwaysTrue()
YEAR_ONE = -719162
"""Its first day since 1970."""
INFINITE = {2**31 - 1, 2**63 - 1}
"""Days and microseconds since 1970."""


class Served(NamedTuple):
    """One lake, as PyIceberg reads it in both ways."""

    name: str
    native: native.Native
    catalog: rest.Rest
    by_server: pyiceberg.PyIceberg
    by_client: pyiceberg.PyIceberg

    def tables(self) -> Iterator[tuple[native.Table, dict]]:
        """The tables that are served and planned by the server, with their metadata."""
        for table in self.native.tables():
            try:
                # PyIceberg asks for credentials, and gets no configuration where there are none.
                loaded = self.catalog.load_table_result(table.namespace, table.name)
            except rest.Refused:
                continue
            if loaded["config"].get(MODE) != "client":
                yield table, loaded["metadata"]


def named(table: native.Table) -> tuple[str, str]:
    return table.namespace, table.name


@pytest.fixture(
    scope="module",
    params=[True, pytest.param(False, marks=pytest.mark.slow)],
    ids=["indexed", ""],
)
def served(lake_name, lake, moto, request) -> Iterator[Served]:
    """With and without the index on partition values."""
    one = (lake.indexed if request.param else lake)(lake_name)
    chunk = "100" if number_of(lake_name) in MANY_FILES else "2"
    settings = {"CHUNK_FILES": chunk, "SNAPSHOT_LIMIT": "2000", "SCAN_PLANNING": "server"}
    settings["CLIENTS"] = "all" if version_of(lake_name) == "1.1" else "none"
    with in_process.bridge(one, moto, delivery="object-lambda", settings=settings) as bridge:
        where = (bridge.catalog_uri, bridge.warehouse)
        try:
            catalog = rest.Rest(*where)
        except rest.Refused:
            pytest.skip("the whole lake is refused")
        clients = [pyiceberg.open(*where, bridge.s3_endpoint) for _ in range(2)]
        clients[1]._catalog.properties[MODE] = "client"
        for client in clients:
            client._catalog.load_table = cache(client._catalog.load_table)
        plans = [client._catalog.supports_server_side_planning() for client in clients]
        assert plans == [True, False]
        truth = native.open(one, moto)
        yield Served(one.name, truth, catalog, *clients)
        truth.close()
        for client in clients:
            client.close()


def snapshots(metadata: dict, most: int = MOST_SNAPSHOTS) -> list[int | None]:
    return [None, *spread(listed(metadata), most)]


def test_rows_and_counts_are_those_of_ducklake(served):
    if ("PyIceberg", number_of(served.name)) in CLIENT_FAULTS:
        pytest.skip("PyIceberg itself reads other rows")
    wrong = []
    for table, metadata in served.tables():
        loaded = served.by_server._catalog.load_table(named(table))
        for snapshot_id in snapshots(metadata):
            if (served.name, table.name, snapshot_id) not in NATIVE_DEFECTS:
                lines = differences(served, table, loaded, snapshot_id, hidden_columns(metadata))
                wrong += [f"{table.name} at {snapshot_id}: {line}" for line in lines]
    assert not wrong, "\n".join(wrong)


def differences(served: Served, table, loaded: Table, snapshot_id, hidden) -> list[str]:
    at = (*named(table), snapshot_id)
    truth = served.native.canonical(*at, hidden)
    scan = loaded.scan(snapshot_id=snapshot_id)
    try:
        rows = from_arrow(scan.to_arrow(), served.native.columns(*at), hidden)
        count = scan.count()
    except Exception as error:  # any error of the client is a finding
        return [f"{type(error).__name__}: {str(error)[:300]}"]
    expected = sum(truth.rows.values())
    counts = [f"count() is {count}, not {expected}"] if count != expected else []
    return [*difference(truth, rows), *counts]


def test_the_same_files_as_in_the_manifests(served):
    """The same data files, those with deletes included, and as many inlined rows."""
    for table, metadata in served.tables():
        for snapshot_id in snapshots(metadata):
            found, expected = (
                files(
                    client._catalog.load_table(named(table))
                    .scan(snapshot_id=snapshot_id)
                    .plan_files()
                )
                for client in (served.by_server, served.by_client)
            )
            assert found == expected, f"{table.name} at {snapshot_id}"


def files(tasks: Iterable[FileScanTask]) -> tuple[list[tuple], int]:
    """The lake's own data files, and the number of inlined rows."""
    found, inlined = [], 0
    for task in tasks:
        if is_generated(task.file.file_path):
            inlined += task.file.record_count
        else:
            file = task.file
            facts = file.file_path, file.file_size_in_bytes, file.record_count
            found.append((*facts, len(task.delete_files)))
    return sorted(found), inlined


def is_generated(path: str) -> bool:
    return "/polynya/" in path


def test_generated_files_have_the_planned_sizes(served):
    """Clients open a file by its size, which the plan names before the file is built."""
    for table, metadata in served.tables():
        loaded = served.by_server._catalog.load_table(named(table))
        for snapshot_id in snapshots(metadata, 4):
            for task in loaded.scan(snapshot_id=snapshot_id).plan_files():
                for file in (task.file, *task.delete_files):
                    if is_generated(file.file_path):
                        body = loaded.io.new_input(file.file_path).open().read()
                        assert len(body) == file.file_size_in_bytes, file.file_path


def test_a_filter_skips_the_files_that_manifests_skip(served):
    """And no file with a row that passes, whatever the manifests skip."""
    if ("PyIceberg", number_of(served.name)) in CLIENT_FAULTS:
        pytest.skip("PyIceberg itself reads other rows")
    for table, metadata in served.tables():
        by_server, by_client = (
            client._catalog.load_table(named(table))
            for client in (served.by_server, served.by_client)
        )
        for snapshot_id in snapshots(metadata, 1):
            whole = planned(by_client, snapshot_id)
            for predicate in wanted(by_client, snapshot_id):
                try:
                    expected = planned(by_client, snapshot_id, predicate).keys()
                except OverflowError:  # PyIceberg has no date for `infinity`
                    continue
                found = planned(by_server, snapshot_id, predicate).keys()
                what = f"{table.name} at {snapshot_id}: {predicate}"
                assert found <= whole.keys(), what
                assert found <= expected or is_uncertain(by_client, predicate), what
                for path in expected - found:
                    assert not matching(by_client, snapshot_id, whole[path], predicate), what


def planned(table: Table, snapshot_id, predicate: BooleanExpression = ALWAYS) -> dict:
    """The tasks of a scan, by the lake's own data files."""
    tasks = table.scan(predicate, snapshot_id=snapshot_id).plan_files()
    return {t.file.file_path: t for t in tasks if not is_generated(t.file.file_path)}


def is_uncertain(table: Table, predicate: BooleanExpression) -> bool:
    """Whether the server may keep more files than manifests do.

    It does not tell 0.0 from -0.0, nor compare the bounds of floats with doubles; it does not read
    dates before the year 1, nor infinite ones; and two schemas may give one name to two columns.
    """
    one = predicate.child if isinstance(predicate, Not) else predicate
    fields = [field for schema in table.schemas().values() for field in schema.fields]
    if len({field.field_id for field in fields if field.name == one.term.name}) > 1:
        return True
    type_ = table.schema().find_type(one.term.name)
    if isinstance(type_, FloatType | DoubleType):
        return True
    literals = getattr(one, "literals", None) or [getattr(one, "literal", None)]
    values = [literal.value for literal in literals if isinstance(literal, LongLiteral)]
    is_date = not isinstance(type_, IntegerType | LongType)
    return any(value < YEAR_ONE or (is_date and value in INFINITE) for value in values)


def wanted(table: Table, snapshot_id: int | None) -> Iterator[BooleanExpression]:
    """Conditions on every column, with values of its rows, and their negations."""
    scan = table.scan(snapshot_id=snapshot_id)
    if scan.projection().fields != table.schema().fields:
        return  # an older schema
    rows = scan.to_arrow()
    every = [one for _, one in predicates(table, rows, 3) if "inf" not in repr(one)]  # null in JSON
    for number, predicate in enumerate(every[:: len(every) // MOST_PREDICATES + 1]):
        yield Not(predicate) if number % 3 == 2 else predicate


def matching(table: Table, snapshot_id, task: FileScanTask, predicate) -> int:
    """How many rows of a file pass."""
    scan = table.scan(snapshot_id=snapshot_id)
    projection = scan.projection()
    rows = ArrowScan(table.metadata, table.io, projection, ALWAYS, True).to_table([task])
    return rows.filter(expression_to_pyarrow(bind(projection, predicate, True))).num_rows


def test_tables_with_columns_in_paths_are_planned_by_the_client(served):
    for table in served.native.tables():
        try:
            loaded = served.by_server._catalog.load_table(named(table))
        except BadRequestError:
            continue
        if loaded.config.get(MODE) == "client":
            with pytest.raises(BadRequestError, match="planned by the client"):
                loaded.scan().plan_files()
