"""A job makes the same table of inlined rows as DuckLake itself."""

from contextlib import closing
from pathlib import Path

import pytest
from polynya.ducklake import queries
from polynya.ducklake.writes import inlined
from polynya.ducklake.writes.rows import Snapshot
from polynya_local.clients.duckdb import LAKE, connect, literal
from polynya_pipeline.ingest import catalog

TYPES = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"),
    *("UBIGINT", "HUGEINT", "UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL(9,2)", "VARCHAR", "JSON"),
    *("BLOB", "DATE", "TIME", "TIMETZ", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"),
    *("TIMESTAMP_NS", "TIMESTAMPTZ", "INTERVAL", "UUID", "INTEGER[]", "STRUCT(x INTEGER)"),
    "MAP(VARCHAR, INTEGER)",
)
COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute AS a
WHERE a.attrelid = to_regclass(:name) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""


@pytest.mark.parametrize("stale", [False, True], ids=["inlining", "altered without inlining"])
def test_a_table_of_inlined_rows_has_the_columns_of_ducklakes(
    stale, postgres_server, tmp_path: Path
):
    database = postgres_server.create_database(f"made_inlined_{stale}")
    source = literal(f"ducklake:postgres:{database.libpq}")
    first, *others = [f'"c {n}" {type_}' for n, type_ in enumerate(TYPES)]
    with connect(LAKE) as con:
        con.execute(f"ATTACH {source} AS lake (DATA_PATH {literal(str(tmp_path))})")
        con.execute(f"CREATE TABLE lake.made({first})")
        con.execute(f"CREATE TABLE lake.truth({', '.join([first, *others])})")
        if stale:
            con.execute("CALL lake.set_option('data_inlining_row_limit', 0)")
        for column in others:
            con.execute(f"ALTER TABLE lake.made ADD COLUMN {column}")
    with closing(database.connect()) as con:
        lake = catalog.lake(con)
        schema = catalog.schema(con, lake, ("main",))
        made, truth = (catalog.table(con, lake, schema, name) for name in ("made", "truth"))
        before = inlined.newest_table(con, made.table_id)
        snapshot = Snapshot(99, 99, 99, 99)
        layout = queries.lake().run(con).layout
        inlined.add_table(con, snapshot, made.table_id, before, made.columns, layout)
        [newest] = queries.inlined_table_names(truth.table_id).run(con)
        name = f"ducklake_inlined_data_{made.table_id}_99"
        assert con.run(COLUMNS, name=name) == con.run(COLUMNS, name=newest) != []
