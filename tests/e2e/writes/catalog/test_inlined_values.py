"""Native DuckLake keeps inlined values when a column gets another name, or another type.

It reads a table of inlined rows with the columns of a snapshot that `ducklake_schema_versions`
names: without that row, with those of the CREATE TABLE, which lack what was added since.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import pytest
from polynya_local.processes.serving import serving
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, LongType, NestedField

from tests.support import file_lakes
from tests.support.servers.in_process import bridge
from tests.support.writes import twins
from tests.support.writes.writable import client_of, set_up_writes

pytestmark = pytest.mark.versions("1.0")


@dataclass(frozen=True, slots=True)
class Case:
    """A lake of one kind."""

    catalog: RestCatalog
    native: Callable[..., list[tuple[Any, ...]]]
    """Runs statements in a DuckDB of its own, and gives the rows of the last."""
    change_tables: Callable[[str], None]
    """Changes the catalog, without DuckLake."""


@contextmanager
def in_postgres(lakes, moto) -> Iterator[Case]:
    lake = set_up_writes(lakes.write("inlined_values", twins.SCRIPT))

    def change_tables(statements: str) -> None:
        for statement in statements.split(";"):
            lake.database.run(statement)

    with bridge(lake, moto, writes=True) as served, closing(client_of(served)) as catalog:
        yield Case(catalog, lambda *sql: twins.query(lake, moto, *sql), change_tables)


@contextmanager
def in_file(kind, folder) -> Iterator[Case]:
    lake = file_lakes.empty(kind, folder)

    def native(*statements: str) -> list[tuple[Any, ...]]:
        with file_lakes.writing(lake) as con:
            return [con.execute(statement).fetchall() for statement in statements][-1]

    with (
        serving(lake.address, None, delivery="object-lambda", writes=True) as served,
        closing(RestCatalog("c", uri=served.catalog_uri, warehouse=served.warehouse)) as catalog,
    ):
        yield Case(catalog, native, lambda sql: file_lakes.change_tables(lake, sql))


@pytest.fixture(scope="module", params=["postgres", *file_lakes.KINDS])
def case(request, lake, moto, tmp_path_factory):
    kind = request.param
    folder = tmp_path_factory.mktemp(kind)
    with in_postgres(lake, moto) if kind == "postgres" else in_file(kind, folder) as one:
        yield one


def created(case: Case, name: str, version: str = "2") -> None:
    """A client creates a table, and adds a column."""
    columns = Schema(NestedField(1, "id", LongType()))
    table = case.catalog.create_table(
        f"main.{name}", columns, properties={"format-version": version}
    )
    with table.update_schema() as change:
        change.add_column("c1", IntegerType())
    case.catalog.load_table(f"main.{name}")  # the copy of a catalog in a file has all of it then


def by_client(method: str, *arguments) -> Callable[[Case, str], None]:
    def change(case: Case, name: str) -> None:
        with case.catalog.load_table(f"main.{name}").update_schema() as columns:
            getattr(columns, method)(*arguments)

    return change


def natively(statement: str) -> Callable[[Case, str], None]:
    return lambda case, name: case.native(statement.format(name)) and None


CHANGES = {
    "renamed by a client": by_client("rename_column", "c1", "c2"),
    "again by a client": by_client("rename_column", "c1", "c2"),
    "renamed natively": natively("ALTER TABLE {} RENAME COLUMN c1 TO c2"),
    "again natively": natively("ALTER TABLE {} RENAME COLUMN c1 TO c2"),
    "promoted by a client": by_client("update_column", "c1", LongType()),
    "promoted natively": natively("ALTER TABLE {} ALTER c1 TYPE BIGINT"),
    "added by a client": by_client("add_column", "c2", LongType()),
}
ROWS = [(1, 10), (2, 20)]
INSERT = "INSERT INTO {} (id, c1) VALUES (1, 10), (2, 20)"


def check(case: Case, names: list[str]) -> None:
    """Compare what native DuckLake and PyIceberg read, before a flush and after it."""
    for _ in range(2):
        for name in names:
            assert [row[:2] for row in case.native(f"FROM {name} ORDER BY 1")] == ROWS, name
            found = case.catalog.load_table(f"main.{name}").scan().to_arrow()
            pairs = zip(found[0].to_pylist(), found[1].to_pylist(), strict=True)
            assert sorted(pairs) == ROWS, name
        case.native("CALL ducklake_flush_inlined_data('lake')")


@pytest.mark.slow(but=["[postgres]"])
def test_after_create_and_add_by_a_client(case):
    names = []
    # Both versions, by turns.
    for number, (version, change) in enumerate(zip(cycle("23"), CHANGES, strict=False)):
        names.append(f"t{number}")
        created(case, names[-1], version)
        case.native(INSERT.format(names[-1]))
        CHANGES[change](case, names[-1])
    check(case, names)


def as_polynya_left_it(case: Case, name: str) -> None:
    """Earlier, commits made no tables of inlined rows where DuckDB had made none."""
    [(table_id,)] = case.native(
        f"SELECT table_id FROM ducklake_table_info('lake') WHERE table_name = '{name}'"
    )
    for (table,) in case.native(
        "SELECT table_name FROM __ducklake_metadata_lake.ducklake_inlined_data_tables "
        f"WHERE table_id = {table_id}"
    ):
        case.change_tables(
            f"DROP TABLE {table};"
            f"DELETE FROM ducklake_inlined_data_tables WHERE table_name = '{table}'"
        )


@pytest.mark.slow
def test_in_a_table_of_an_earlier_polynya(case):
    """The next change by a client writes what is missing."""
    changes = [change for change in CHANGES if "client" in change]
    names = [f"old{number}" for number in range(len(changes) + 1)]
    for name, change in zip(names, [*changes, ""], strict=True):
        created(case, name)
        as_polynya_left_it(case, name)
        case.native(INSERT.format(name))
        if change:
            CHANGES[change](case, name)
    # The name of the table itself, which native DuckLake changes with a new schema version too.
    case.catalog.rename_table(f"main.{names[-1]}", "main.old_renamed")
    names[-1] = "old_renamed"
    for name in names:
        case.native(f"ALTER TABLE {name} RENAME COLUMN id TO key")
    check(case, names)
