"""What a caller sees of each table that a statement of the page may read."""

import ast
from pathlib import Path

import pytest
from polynya.ducklake.connection.catalog_connection import TABLE
from polynya_local.queries.visible_rows import QUERIES, Unlimited, limited

ROOT = Path(__file__).parents[4]
FOLDERS = ("layers/bridge/polynya/ducklake/queries", "local/polynya_local/queries")
NOT_OF_THE_PAGE = {"writers.py", "state_changes.py", "repairs.py"}
"""Queries of writers and of commands."""


def texts(path: Path) -> list[str]:
    nodes = ast.walk(ast.parse(path.read_text()))
    constants = [node.value for node in nodes if isinstance(node, ast.Constant)]
    return [text for text in constants if isinstance(text, str)]


def test_each_table_that_a_statement_reads_has_a_query():
    names = {
        match["table"]
        for folder in FOLDERS
        for path in (ROOT / folder).glob("*.py")
        if path.name not in NOT_OF_THE_PAGE
        for text in texts(path)
        for match in TABLE.finditer(text)
        if match["table"] and not match["table"].startswith('"')
    }
    assert len(names) > 15 and names - QUERIES.keys() == set()


def test_every_mention_of_a_table_is_limited():
    sql = "SELECT 'FROM ducklake_table' FROM ducklake_table AS t JOIN ducklake_schema USING (s)"
    text = limited(sql)
    assert text.startswith("WITH seen_ducklake_table AS NOT MATERIALIZED (SELECT * FROM ducklake_")
    assert "FROM seen_ducklake_table AS t JOIN seen_ducklake_schema USING (s)" in text
    assert limited("WITH RECURSIVE a AS (SELECT 1) SELECT * FROM ducklake_table, a").startswith(
        "WITH RECURSIVE seen_ducklake_table AS"
    )
    assert limited("SELECT 1") == "SELECT 1"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM ducklake_unknown",
        "UPDATE ducklake_table SET x = 1",
        "INSERT INTO ducklake_table VALUES (1)",
        "COPY ducklake_table TO STDOUT",
        "LOCK TABLE ducklake_table",
    ],
)
def test_what_is_not_known_is_an_error(sql):
    with pytest.raises(Unlimited):
        limited(sql)
