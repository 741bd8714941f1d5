"""The texts of views that DuckDB can parse, and whose tables have a schema."""

import pytest
from polynya.errors import BadRequest
from polynya.iceberg.view_text import names_are_qualified, view_text

# The text, and whether each table has a schema; None: it cannot be told, which counts as no.
TEXTS = [
    ("SELECT 1 AS a", True),
    ("VALUES (1)", True),
    ("SELECT * FROM s.t", True),
    ("SELECT * FROM lake.s.t", True),
    ("SELECT * FROM {DUCKLAKE_CATALOG}.s.t", True),
    ('SELECT * FROM "s.x"."t"', True),
    ("FROM t", False),
    ('SELECT * FROM "s.t"', False),
    ("SELECT * FROM s.t JOIN u USING (a)", False),
    ("WITH x AS (SELECT * FROM s.t) SELECT * FROM x", True),
    ("WITH x AS (SELECT * FROM t) SELECT * FROM x", False),
    ("SELECT (SELECT max(a) FROM t) AS m FROM s.t", False),
    ("SELECT * FROM read_parquet('s3://bucket/file')", False),
]


@pytest.mark.parametrize(("text", "is_qualified"), TEXTS)
def test_texts(text, is_qualified):
    assert view_text(f"  {text} ; \n") == text
    assert names_are_qualified(text) is is_qualified


REFUSED = [
    ("", "one query"),
    (";", "one query"),
    ("SELECT 1; SELECT 2", "one query"),
    ("DROP TABLE t", "one query"),
    ("COPY (SELECT 1) TO '/tmp/x'", "one query"),
    ("EXPLAIN SELECT 1", "one query"),
    ("SELECT ?", "parameters"),
    ("SELECT $a", "parameters"),
    ("SELECT FROM WHERE", "cannot parse"),
    ("SELECT '\0'", "NUL"),
    ("SELECT '" + "x" * 100_000 + "'", "characters"),
    ("SELECT " + "(" * 20_000 + "1" + ")" * 20_000, "cannot parse"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=range(len(REFUSED)))
def test_refusals(text, message):
    with pytest.raises(BadRequest, match=message):
        view_text(text)
