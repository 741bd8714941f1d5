"""Lakes with schemas within schemas, made of flat ones: no release on PyPI makes them.

Native DuckLake writes and reads a flat lake; it is migrated to 1.1, and `nest` puts schemas into
each other. After `flatten` and `to_1_0` native DuckLake reads what was written to nested ones.
"""

from collections.abc import Sequence

from polynya_local.clients.duckdb import identifier
from polynya_local.clients.native import Lake

from tests.support.catalog_versions import catalog_of

NEST = """
UPDATE ducklake_schema SET schema_name = :name, parent_schema_id = (
  SELECT schema_id FROM ducklake_schema WHERE schema_name = :parent)
WHERE schema_name = :flat"""
FLATTEN = """
WITH RECURSIVE named AS (
  SELECT schema_id, schema_name FROM ducklake_schema WHERE parent_schema_id IS NULL
  UNION ALL
  SELECT s.schema_id, CAST(n.schema_name || '/' || s.schema_name AS varchar)
  FROM named AS n JOIN ducklake_schema AS s ON s.parent_schema_id = n.schema_id)
UPDATE ducklake_schema AS s SET schema_name = n.schema_name, parent_schema_id = NULL
FROM named AS n WHERE n.schema_id = s.schema_id"""

# The schema of each namespace in the flat lake.
FLAT = {
    ("main",): "main",
    ("sales",): "sales",
    ("sales", "europe"): "in_sales",
    ("sales", "europe", "north"): "in_in_sales",
    ("europe",): "europe",
    ("a.b",): "a.b",
    ("a",): "a",
    ("a", "b"): "in_a",
    ("a", 'q"uo.te'): "in_a_too",
    ("sp ace",): "sp ace",
    ("sp ace", "in ner"): "in_space",
}
# Inner ones first: a schema loses its flat name when it is put into another one.
NESTED = [
    ("in_in_sales", "in_sales", "north"),
    ("in_sales", "sales", "europe"),
    ("in_a", "a", "b"),
    ("in_a_too", "a", 'q"uo.te'),
    ("in_space", "sp ace", "in ner"),
]


SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 5);
USE lake;
BEGIN;
"""
# Of one table the rows have a history: files, inlined rows and deletes.
CHANGES = """
COMMIT;
INSERT INTO in_sales.t VALUES (100, 'inlined');
DELETE FROM in_sales.t WHERE i < 5;
INSERT INTO in_sales.t SELECT i, 'later' FROM range(200, 210) AS r(i);
"""


def script() -> str:
    """Tables of the same names with different rows."""
    lines = [SCRIPT]
    for number, flat in enumerate(FLAT.values()):
        schema = f"lake.{identifier(flat)}"
        lines += [
            f"CREATE SCHEMA IF NOT EXISTS {schema};",
            f"CREATE TABLE {schema}.t AS SELECT i, '{number}' AS s FROM range({20 + number}) r(i);",
            f"CREATE VIEW {schema}.v AS SELECT {number} AS n FROM {schema}.t;",
        ]
    return "\n".join([*lines, CHANGES])


def nest(lake: Lake, schemas: Sequence[tuple[str, str, str]]) -> None:
    """Put schemas of a lake of version 1.1 into others, which no release on PyPI can do.

    The names of flat schemas go first, so that those of several levels may be the same.

    Args:
        schemas: of each its name in the flat lake, that of the one that it goes into in the flat
            lake, and its name there; inner ones first.
    """
    con = catalog_of(lake)
    for flat, parent, name in schemas:
        con.run(NEST, flat=flat, parent=parent, name=name)
    con.close()


def flatten(lake: Lake) -> None:
    """Make schemas that are in others flat ones, with a slash between the levels of their names."""
    con = catalog_of(lake)
    con.run(FLATTEN)
    con.close()
