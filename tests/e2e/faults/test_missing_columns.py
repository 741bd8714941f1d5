"""A catalog without one of the columns that DuckLake's tables have, or without one of these
tables: other programs leave some out.

DuckDB fails on every query then. Here a client gets a table, or a sentence that names the column.
"""

from contextlib import closing

import pytest
from pg8000.native import identifier
from polynya.ducklake.connection.database import BEGIN_WRITE, Database
from polynya.ducklake.writes.rows import newest_snapshot
from polynya.runtime.errors import ConcurrentCommit

from tests.support.rest import Refused, Rest
from tests.support.servers.in_process import standing_in

COLUMNS = """
SELECT c.relname::text, a.attname::text FROM pg_class AS c JOIN pg_attribute AS a
  ON a.attrelid = c.oid
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0
  AND NOT a.attisdropped AND c.relname LIKE :tables AND c.relname !~ '_inlined_(data|delete)_[0-9]'
ORDER BY 1, a.attnum"""

# Tables, and how many of their columns are needed at least.
TABLES = [("ducklake_snapshot", 2), pytest.param("ducklake_%", 40, marks=pytest.mark.slow)]


@pytest.mark.parametrize(("tables", "least"), TABLES)
def test_a_column_that_is_missing_is_named(tables, least, lake, moto):
    made = lake.fresh("09")
    missed = []
    with standing_in(made, moto) as bridge, closing(made.database.connect()) as con:
        catalog = Rest(bridge.api_uri, "lake")
        names = catalog.tables()
        assert names
        for table, column in con.run(COLUMNS, tables=tables):
            change = f"ALTER TABLE {identifier(table)} RENAME COLUMN"
            con.run(f"{change} {identifier(column)} TO gone")
            try:
                for name in catalog.tables():
                    catalog.load_table(*name)
            except Refused as refusal:
                missed.append(column)
                words = f"the catalog lacks the column {column}, which DuckLake's tables have"
                assert words in refusal.message, (table, column)
            finally:
                con.run(f"{change} gone TO {identifier(column)}")
        assert catalog.tables() == names
    assert len(missed) >= least
    assert "next_file_id" in missed


@pytest.mark.parametrize("table", ["ducklake_column", "ducklake_snapshot", "ducklake_metadata"])
def test_a_table_that_is_missing_is_named(table, lake, moto):
    made = lake.fresh("09")
    with standing_in(made, moto) as bridge:
        catalog = Rest(bridge.api_uri, "lake")
        [name, *_] = catalog.tables()
        made.database.run(f"ALTER TABLE {table} RENAME TO gone")
        with pytest.raises(Refused) as refusal:
            catalog.load_table(*name)
    schema = "the PostgreSQL schema 'public'"
    words = f"{schema} lacks the table {table}, which DuckLake makes: restore it"
    assert refusal.value.message.startswith(
        f"no DuckLake catalog in {schema}" if table == "ducklake_metadata" else words
    )


def test_a_commit_names_it_too(lake):
    made = lake.fresh("09")
    made.database.run("ALTER TABLE ducklake_snapshot RENAME COLUMN next_catalog_id TO gone")
    with (
        closing(Database(made.database.url, made.metadata_schema)) as database,
        pytest.raises(ConcurrentCommit, match="the catalog lacks the column next_catalog_id"),
        database.transaction(BEGIN_WRITE) as con,
    ):
        newest_snapshot().run(con)
