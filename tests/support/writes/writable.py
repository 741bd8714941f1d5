"""Lakes that Iceberg clients may write, and native DuckLake as the judge of what they wrote."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from duckdb import DuckDBPyConnection
from polynya.ducklake.queries.writers import writer_rights
from polynya.ducklake.writes import new_snapshot
from polynya_local.clients.duckdb import LAKE, connect, identifier, literal
from polynya_local.clients.native import Lake, attach
from polynya_local.clients.pyiceberg import s3_properties
from polynya_local.processes.serving import Bridge
from polynya_pipeline.common.database import connect as connect_catalog
from pyiceberg.catalog.rest import RestCatalog

EMPTY = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
CALL lake.set_option('data_inlining_row_limit', 0);
USE lake;
CREATE SCHEMA other;
"""
"""The script of a lake without tables and without inlining."""


def set_up_writes(lake: Lake) -> Lake:
    """What `polynya writes --setup` does."""
    with closing(connect_catalog(lake.database.url, lake.metadata_schema)) as con:
        new_snapshot.set_up(con, writer_rights().run(con))
    return lake


def client_of(served: Bridge) -> RestCatalog:
    """PyIceberg's client of a catalog that is served."""
    s3 = s3_properties(served.s3_endpoint)
    return RestCatalog("c", uri=served.catalog_uri, warehouse="lake", **s3)


class Judge:
    """Native DuckLake, with expected rows in a table in memory beside it.

    The lake is attached as `lake`, tables of expected rows are in `memory.main`.
    """

    def __init__(self, con: DuckDBPyConnection) -> None:
        self.con = con

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        return self.con.execute(sql).fetchall()

    def expect(self, name: str, sql: str) -> None:
        """Add rows to the expected ones of `name`."""
        known = self.query(
            "SELECT 1 FROM duckdb_tables() "
            f"WHERE table_name = '{name}' AND database_name = 'memory'"
        )
        what = f"INSERT INTO memory.main.{name}" if known else f"CREATE TABLE memory.main.{name} AS"
        self.con.execute(f"{what} {sql}")

    def check(self, table: str, name: str, *, at: int | None = None) -> None:
        """Compare a table of the lake with the expected rows: also min, max, count and filters.

        Args:
            table: with its schema.
            at: a snapshot of the lake.
        """
        source = f"lake.{table}" + (f" AT (VERSION => {at})" if at is not None else "")
        twin = f"memory.main.{name}"
        for one, other in ((source, twin), (twin, source)):
            assert self.query(f"(FROM {one}) EXCEPT ALL (FROM {other})") == [], (one, other)
        described = f"SELECT column_name, column_type FROM (DESCRIBE {source})"
        columns = [identifier(name) for name, _ in self.query(described)]
        assert self.query(described) == self.query(described.replace(source, twin))
        asked = [f"{function}({column})" for column in columns for function in FUNCTIONS]
        self._compare(source, twin, ["count(*)", *asked], [])
        filters = [one for column in columns for one in self._filters(twin, column)]
        self._compare(source, twin, ["count(*)"], filters)

    def _compare(self, source: str, twin: str, asked: list[str], filters: list[str]) -> None:
        """Compare the answers to the same questions, each with a scan of its own."""
        wheres = [f" WHERE {one}" for one in filters] or [""]
        questions = [(one, where) for one in asked for where in wheres]
        answers = []
        for of in (source, twin):
            # As text, because NaN is not equal to itself.
            parts = (f"SELECT CAST({one} AS VARCHAR) FROM {of}{where}" for one, where in questions)
            answers.append(
                self.query(" UNION ALL BY NAME ".join(f"SELECT ({p}) AS a" for p in parts))
            )
        differing = [
            (question, found[0], wanted[0])
            for question, found, wanted in zip(questions, *answers, strict=True)
            if found != wanted
        ]
        assert differing == [], source

    def _filters(self, twin: str, column: str) -> list[str]:
        """Filters with constants, by which DuckLake leaves out files before it reads them."""
        is_null = [f"{column} IS NULL", f"{column} IS NOT NULL"]
        [[type_]] = self.query(f"SELECT column_type FROM (DESCRIBE SELECT {column} FROM {twin})")
        if ("(" in type_ and not type_.startswith("DECIMAL")) or type_.endswith("[]"):
            return is_null
        values = self.query(
            f"SELECT CAST(v AS VARCHAR) FROM (SELECT DISTINCT {column} AS v FROM {twin}) "
            "WHERE v IS NOT NULL ORDER BY v"
        )
        texts = {value for (value,) in [*values[:1], *values[2:3], *values[-1:]]}
        constants = [f"CAST({literal(text)} AS {type_})" for text in sorted(texts)]
        compared = [f"{column} {op} {one}" for one in constants for op in ("=", "<", ">=")]
        return [*compared, *is_null]


FUNCTIONS = ("min", "max", "count")


@contextmanager
def judging(lake: Lake, s3_endpoint: str) -> Iterator[Judge]:
    """A judge with a new connection, which can also write to the lake."""
    with connect(LAKE, s3_endpoint) as con:
        attach(con, lake, read_only=False)
        yield Judge(con)
