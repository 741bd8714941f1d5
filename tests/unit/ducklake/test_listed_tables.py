"""The list of a schema's tables takes one pass over ducklake_table, which has no index."""

import json
from contextlib import closing

from polynya.ducklake.queries.named_objects import TABLES_AT

TABLE = """
CREATE TABLE ducklake_table(table_id bigint, table_uuid uuid, begin_snapshot bigint,
  end_snapshot bigint, schema_id bigint, table_name varchar, path varchar,
  path_is_relative boolean)"""
# Every tenth table was renamed.
ROWS = """
INSERT INTO ducklake_table
SELECT i, gen_random_uuid(), i + later, CASE WHEN later = 0 AND i % 10 = 0 THEN i + 1 END, 0,
  't' || i || later, 't/', true
FROM generate_series(1, 1000) AS i, generate_series(0, 1) AS later WHERE later = 0 OR i % 10 = 0"""


def loops(plan: dict) -> int:
    """How often the part of a plan that ran most often did."""
    return max([plan["Actual Loops"], *map(loops, plan.get("Plans", []))])


def test_the_begins_of_all_tables_are_read_at_once(postgres_server):
    database = postgres_server.create_database("listed_tables")
    where = {"schema_id": 0, "snapshot_id": 10_000}
    with closing(database.connect()) as con:
        con.run(TABLE)
        con.run(ROWS)
        con.run("ANALYZE ducklake_table")
        rows = con.run(TABLES_AT, **where)
        [[plan]] = con.run(f"EXPLAIN (ANALYZE, FORMAT JSON) {TABLES_AT}", **where)
    assert sorted((row[0], row[2]) for row in rows) == [(i, i) for i in range(1, 1001)]
    plan = json.loads(plan) if isinstance(plan, str) else plan
    assert loops(plan[0]["Plan"]) == 1
