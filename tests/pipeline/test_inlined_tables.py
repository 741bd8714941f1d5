"""A job makes the same table of inlined rows as DuckLake itself."""

from contextlib import closing
from pathlib import Path

import pytest
from polynya.ducklake import queries
from polynya.ducklake.connection.catalog_connection import transaction
from polynya.ducklake.writes import inlined
from polynya.ducklake.writes.new_snapshot import claim_snapshot_id
from polynya.ducklake.writes.rows import Snapshot
from polynya_local.clients.duckdb import LAKE, connect, literal
from polynya_pipeline.common.database import connect as connect_catalog
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
        snapshot = Snapshot(99, 99, 99, 99)
        layout = queries.lake().run(con).layout
        inlined.add_table(con, snapshot, made.table_id, made.columns, layout)
        [newest] = queries.inlined_table_names(truth.table_id).run(con)
        name = f"ducklake_inlined_data_{made.table_id}_99"
        assert con.run(COLUMNS, name=name) == con.run(COLUMNS, name=newest) != []


ROLES = ("inlining owner", "inlining writer", "inlining reader")
OWNED = "SELECT format('ALTER TABLE %I OWNER TO \"inlining owner\"', relname) FROM pg_class AS c "
OWNED += "WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace"


def test_native_writers_that_are_not_the_owner_may_write_the_first_one(postgres_server, tmp_path):
    """They would own it if they had made it."""
    database = postgres_server.create_database("inlining_roles")
    source = literal(f"ducklake:postgres:{database.libpq}")
    with connect(LAKE) as con:
        con.execute(
            f"ATTACH {source} AS lake (DATA_PATH {literal(str(tmp_path))})",
        )
        con.execute("CALL lake.set_option('data_inlining_row_limit', 0)")
        con.execute("CREATE TABLE lake.t(id BIGINT)")
    run = database.run
    run("DELETE FROM ducklake_metadata WHERE key = 'data_inlining_row_limit'")
    for role in ROLES:
        run(f'CREATE ROLE "{role}"')
    for (statement,) in run(OWNED):
        run(statement)
    run('GRANT CREATE ON SCHEMA public TO "inlining owner"')
    run('GRANT SELECT ON ALL TABLES IN SCHEMA public TO "inlining reader", "inlining writer"')
    run('GRANT INSERT ON ALL TABLES IN SCHEMA public TO "inlining writer"')
    with closing(connect_catalog(database.url, "public")) as con, transaction(con):
        snapshot = claim_snapshot_id(con)
        columns = queries.columns_now(1).run(con)
        inlined.add_table(con, snapshot.row, 1, columns, snapshot.layout)
    [(name,)] = run("SELECT table_name FROM ducklake_inlined_data_tables")
    may = {
        role: run("SELECT has_table_privilege(:role, :name, 'INSERT')", role=role, name=name)
        for role in ROLES
    }
    assert may == {role: [[role != "inlining reader"]] for role in ROLES}
    run('DROP OWNED BY "inlining owner", "inlining writer", "inlining reader"')
    run('DROP ROLE "inlining owner", "inlining writer", "inlining reader"')
