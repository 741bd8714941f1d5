"""What `polynya doctor` finds, `polynya writes --repair` repairs; then native DuckLake goes on."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from polynya_local.cli import app
from polynya_local.clients.pyiceberg import s3_properties
from polynya_local.processes.serving import serving
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.schema import Schema
from pyiceberg.transforms import TruncateTransform
from pyiceberg.types import IntegerType, LongType, NestedField
from typer.testing import CliRunner

from tests.support import file_lakes
from tests.support.servers.in_process import bridge
from tests.support.writes import twins
from tests.support.writes.writable import set_up_writes

SCRIPT = """
CREATE TABLE keyed (id BIGINT, p INTEGER, s VARCHAR);
ALTER TABLE keyed SET PARTITIONED BY (p);
CREATE TABLE by_client (id BIGINT, p INTEGER, s VARCHAR);
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A lake that clients have written."""

    native: Callable[..., list[tuple[Any, ...]]]
    """Runs statements in a DuckDB of its own, and gives the rows of the last."""
    tables: Callable[[str], list[Any]]
    """Runs statements in the catalog, without DuckLake; gives the rows of a SELECT."""
    where: tuple[str, ...]
    """The lake for commands."""
    served: Callable[[], Any]
    """PyIceberg's catalog of it, for a block."""


@contextmanager
def in_postgres(lakes, moto) -> Iterator[Case]:
    lake = set_up_writes(lakes.write("repairs", twins.SCRIPT + SCRIPT))

    def tables(statements: str) -> list[Any]:
        return [lake.database.run(one) for one in statements.split(";")][-1] or []

    @contextmanager
    def served() -> Iterator[RestCatalog]:
        with (
            bridge(lake, moto, writes=True) as one,
            closing(
                RestCatalog("c", uri=one.catalog_uri, warehouse="lake", **s3_properties(moto))
            ) as catalog,
        ):
            yield catalog

    yield Case(
        lambda *sql: twins.query(lake, moto, *sql),
        tables,
        ("--database", lake.database.url, "--s3-endpoint", moto),
        served,
    )


@contextmanager
def in_sqlite(folder) -> Iterator[Case]:
    lake = file_lakes.empty("sqlite", folder)

    def native(*statements: str) -> list[tuple[Any, ...]]:
        with file_lakes.writing(lake) as con:
            return [con.execute(statement).fetchall() for statement in statements][-1]

    def tables(statements: str) -> list[Any]:
        if statements.lstrip().startswith("SELECT"):
            return [list(row) for row in file_lakes.query(lake, statements)]
        file_lakes.change_tables(lake, statements)
        return []

    @contextmanager
    def served() -> Iterator[RestCatalog]:
        with (
            serving(lake.address, None, delivery="object-lambda", writes=True) as one,
            closing(RestCatalog("c", uri=one.catalog_uri, warehouse=one.warehouse)) as catalog,
        ):
            yield catalog

    native(*filter(str.strip, SCRIPT.split(";")))
    yield Case(native, tables, (lake.address,), served)


@pytest.fixture(params=["postgres", pytest.param("sqlite", marks=pytest.mark.slow)])
def case(request, lake, moto, tmp_path):
    with in_postgres(lake, moto) if request.param == "postgres" else in_sqlite(tmp_path) as one:
        yield one


def found(case: Case, part: str) -> list[dict[str, Any]]:
    """The findings of doctor with these words."""
    done = CliRunner().invoke(app, ["doctor", *case.where, "--json"])
    return [one for one in json.loads(done.stdout)["findings"] if part in one["message"]]


def repair(case: Case) -> str:
    where = [word for word in case.where if not word.startswith(("--s3", "http"))]
    done = CliRunner().invoke(app, ["writes", *where, "--repair"])
    assert done.exit_code == 0, done.stderr
    return done.stderr


ROWS = [(i, i % 2, ["a", "b c", None][i % 3]) for i in range(8)]
NATIVE_ROWS = [(i, i % 2, "n") for i in range(8, 12)]

AS_IT_WAS = """
INSERT INTO ducklake_file_partition_value
SELECT f.data_file_id, f.table_id, k.keys, replace(f.path, '.parquet', '')
FROM ducklake_data_file AS f JOIN (
  SELECT data_file_id, count(*) AS keys FROM ducklake_file_partition_value GROUP BY 1
) AS k ON k.data_file_id = f.data_file_id WHERE f.path NOT LIKE '%/ducklake-%';
UPDATE ducklake_data_file SET partition_id = (
  SELECT min(i.partition_id) FROM ducklake_partition_info AS i
  WHERE i.table_id = ducklake_data_file.table_id) WHERE partition_id IS NOT NULL;
DELETE FROM ducklake_partition_column WHERE partition_id IN (
  SELECT partition_id FROM ducklake_partition_info WHERE begin_snapshot = end_snapshot);
DELETE FROM ducklake_partition_info WHERE begin_snapshot = end_snapshot AND partition_id > (
  SELECT min(i.partition_id) FROM ducklake_partition_info AS i
  WHERE i.table_id = ducklake_partition_info.table_id)"""
"""What an earlier Polynya wrote instead: one value more, and no partitioning apart."""

VALUES_AND_KEYS = """
SELECT DISTINCT t.table_name, coalesce(k.keys, 0), v.number
FROM ducklake_data_file AS f JOIN ducklake_table AS t ON t.table_id = f.table_id
JOIN (SELECT data_file_id, count(*) AS number FROM ducklake_file_partition_value GROUP BY 1) AS v
  ON v.data_file_id = f.data_file_id
LEFT JOIN (SELECT partition_id, count(*) AS keys FROM ducklake_partition_column GROUP BY 1) AS k
  ON k.partition_id = f.partition_id ORDER BY 1, 2, 3"""


def arrow(rows) -> pa.Table:
    types = {"id": pa.int64(), "p": pa.int32(), "s": pa.string()}
    values = zip(*rows, strict=True)
    return pa.table({name: pa.array(v, types[name]) for name, v in zip(types, values, strict=True)})


def test_partition_values_that_belong_to_no_key(case):
    """The other rows are as before, and native DuckLake 1.0 merges and rewrites the files."""
    with case.served() as catalog:
        with catalog.load_table("main.by_client").update_spec() as spec:
            spec.add_field("s", TruncateTransform(1), "beginning")
        for table in ("keyed", "by_client"):
            for rows in (ROWS[:4], ROWS[4:]):
                catalog.load_table(f"main.{table}").append(arrow(rows))
    for n in (8, 10):
        case.native(f"INSERT INTO keyed SELECT i, i % 2, 'n' FROM range({n}, {n + 2}) AS r(i)")
        case.native(f"INSERT INTO by_client SELECT i, i % 2, 'n' FROM range({n}, {n + 2}) AS r(i)")
    case.native("CALL ducklake_flush_inlined_data('lake')")
    case.tables(AS_IT_WAS)
    assert case.tables(VALUES_AND_KEYS) == [["by_client", 0, 2], ["keyed", 1, 1], ["keyed", 1, 2]]
    findings = found(case, "one partition value more")
    assert [one["about"] for one in findings] == ["main.by_client", "main.keyed"]
    assert all("polynya writes --repair" in one["remedy"] for one in findings)

    assert repair(case).count("data files have a partition value for each key now") == 2
    assert case.tables(VALUES_AND_KEYS) == [["by_client", 0, 1], ["keyed", 1, 1]]
    assert found(case, "one partition value more") == []
    assert "there is nothing to repair" in repair(case)

    def check() -> None:
        with case.served() as catalog:
            for table in ("keyed", "by_client"):
                expected = sorted([*ROWS, *NATIVE_ROWS])
                assert case.native(f"FROM {table} ORDER BY id") == expected
                shown = catalog.load_table(f"main.{table}").scan("s = 'a' or p = 1").to_arrow()
                read = sorted(zip(*shown.to_pydict().values(), strict=True))
                assert read == [row for row in expected if row[2] == "a" or row[1] == 1]

    check()
    case.native("CALL ducklake_merge_adjacent_files('lake')")
    case.native("CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)")
    check()
    assert case.tables(VALUES_AND_KEYS) == [["by_client", 0, 1], ["keyed", 1, 1]]


def test_files_that_ducklake_1_0_cannot_merge(lake, moto):
    with in_postgres(lake, moto) as case:
        assert found(case, "in several directories") == []
        with case.served() as catalog:
            table = catalog.load_table("main.keyed")
            hashed = {"write.object-storage.enabled": "true"}
            table.transaction().set_properties(hashed).commit_transaction()
            for _ in range(2):
                catalog.load_table("main.keyed").append(arrow(ROWS))
        [finding] = found(case, "in several directories")
        assert finding["message"].startswith("files of 2 partitions are")
        with pytest.raises(duckdb.Error, match="Files have different hive partition path"):
            case.native("CALL ducklake_merge_adjacent_files('lake')")


def without_inlined_table(case: Case, name: str) -> None:
    """An earlier Polynya made none."""
    ids = f"(SELECT table_id FROM ducklake_table WHERE table_name = '{name}')"
    names = f"SELECT table_name FROM ducklake_inlined_data_tables WHERE table_id IN {ids}"
    dropped = [f"DROP TABLE {table}" for (table,) in case.tables(names)]
    deleted = f"DELETE FROM ducklake_inlined_data_tables WHERE table_id IN {ids}"
    case.tables(";".join([*dropped, deleted]))


def test_inlined_rows_of_which_ducklake_does_not_know_the_columns(case):
    """Their values come back, as long as no flush has written NULL in place of them."""
    names = ("renamed", "kept", "empty")
    with case.served() as catalog:
        for name in names:
            columns = Schema(NestedField(1, "id", LongType()))
            table = catalog.create_table(f"main.{name}", columns)
            with table.update_schema() as change:
                change.add_column("c1", IntegerType())
    for name in names:
        without_inlined_table(case, name)
    for name in ("renamed", "kept"):
        case.native(f"INSERT INTO {name} VALUES (1, 10), (2, 20)")
    case.native("ALTER TABLE renamed RENAME COLUMN c1 TO c2")
    assert case.native("FROM renamed ORDER BY id") == [(1, None), (2, None)]  # DuckLake's fault
    findings = found(case, "does not know which columns")
    assert [one["about"] for one in findings] == ["main.kept", "main.renamed"]

    said = repair(case)
    assert found(case, "does not know which columns") == []
    assert case.native("FROM renamed ORDER BY id") == [(1, 10), (2, 20)]
    assert "empty: DuckLake knows which columns rows have that it inlines next" in said
    case.native("INSERT INTO empty VALUES (1, 10), (2, 20)")
    for name in ("kept", "empty"):
        case.native(f"ALTER TABLE {name} RENAME COLUMN c1 TO c2")
    case.native("CALL ducklake_flush_inlined_data('lake')")
    with case.served() as catalog:
        for name in names:
            assert case.native(f"FROM {name} ORDER BY id") == [(1, 10), (2, 20)], name
            shown = catalog.load_table(f"main.{name}").scan().to_arrow().to_pydict()
            assert sorted(zip(*shown.values(), strict=True)) == [(1, 10), (2, 20)], name
