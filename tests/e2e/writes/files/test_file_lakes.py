"""Iceberg clients write to lakes in files of DuckDB and SQLite, beside native DuckLake.

Each change is also made, as SQL, in a table of plain DuckDB: what native DuckLake then reads from
the file, and PyIceberg from the catalog, must be the rows of that table.
"""

from contextlib import closing

import pyarrow as pa
import pytest
from polynya_local.clients.duckdb import connect
from polynya_local.clients.spark_jars import why_not
from polynya_local.processes.serving import serving
from pyiceberg.catalog import load_catalog
from pyiceberg.types import DoubleType

from tests.support import file_lakes
from tests.support.file_lakes import KINDS, writing

NATIVE = """
CREATE TABLE t (id BIGINT, name VARCHAR, tags STRUCT(a INTEGER, b VARCHAR[]));
INSERT INTO t SELECT i, 'file ' || i, {'a': i, 'b': [i::VARCHAR]} FROM range(40) AS r(i);
INSERT INTO t SELECT i, 'inlined ' || i, NULL FROM range(100, 105) AS r(i);
DELETE FROM t WHERE id IN (3, 101);
"""
needs_spark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")


class Case:
    """A served lake, and the tables as they should be."""

    def __init__(self, lake, bridge) -> None:
        self.lake, self.bridge = lake, bridge
        self.catalog = load_catalog("c", uri=bridge.catalog_uri, warehouse=bridge.warehouse)
        self.model = connect()

    def sql(self, *statements: str) -> None:
        for statement in statements:
            self.model.execute(statement)

    def rows(self, table: str) -> pa.Table:
        return self.model.execute(f"SELECT * FROM {table}").to_arrow_table()

    def check(self, table: str, *, snapshots: int = 0) -> None:
        """Compare what native DuckLake and PyIceberg read with the table of the model."""
        expected = self.model.execute(f"SELECT * FROM {table} ORDER BY ALL").fetchall()
        with writing(self.lake) as native:
            shown = native.execute(f"SELECT * FROM lake.{table} ORDER BY ALL").fetchall()
        assert shown == expected
        self.model.register("shown", self.catalog.load_table(table).scan().to_arrow())
        assert self.model.execute("SELECT * FROM shown ORDER BY ALL").fetchall() == expected

    def native(self, *statements: str) -> None:
        with writing(self.lake) as con:
            for statement in statements:
                con.execute(statement)


@pytest.fixture(params=[f"{kind}-{version}" for kind in KINDS for version in ("1.0", "1.1")])
def case(request, tmp_path):
    kind, _, version = request.param.partition("-")
    lake = file_lakes.empty(kind, tmp_path / "lake")
    with writing(lake) as con:
        for statement in con.extract_statements(NATIVE):
            con.execute(statement)
    if version == "1.1":
        pytest.skip("")
    with serving(lake.address, None, delivery="object-lambda", writes=True) as bridge:
        made = Case(lake, bridge)
        with closing(made.model):
            made.sql(*made.model.extract_statements(NATIVE))
            yield made


def test_pyiceberg_changes_a_native_table(case):
    table = case.catalog.load_table("main.t")
    case.check("main.t")
    case.sql("INSERT INTO t SELECT i, 'ice', NULL FROM range(200, 210) AS r(i)")
    table.append(case.rows("t").filter(pa.compute.field("id") >= 200))
    case.check("main.t")
    # Files, inlined rows and rows of the client at once.
    case.sql("DELETE FROM t WHERE id IN (5, 102, 205)")
    table.delete("id in (5, 102, 205)")
    case.check("main.t")
    case.native("UPDATE t SET name = 'native' WHERE id IN (6, 103, 206)")
    case.sql("UPDATE t SET name = 'native' WHERE id IN (6, 103, 206)")
    case.check("main.t")
    with table.update_schema() as update:
        update.add_column("more", DoubleType())
        update.rename_column("name", "label")
    case.sql("ALTER TABLE t ADD COLUMN more DOUBLE", "ALTER TABLE t RENAME COLUMN name TO label")
    case.check("main.t")
    rows = "INSERT INTO t SELECT i, 'inlined again', {'a': 1, 'b': NULL}, i / 2 FROM range(3) r(i)"
    case.native(rows)
    case.sql(rows)
    case.check("main.t")
    case.native(
        "CALL ducklake_flush_inlined_data('lake')", "CALL ducklake_merge_adjacent_files('lake')"
    )
    case.check("main.t")
