"""Twin lakes: an operation by an Iceberg client in one, by native DuckLake in the other."""

import re
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.clients.native import Lake, attach
from polynya_pipeline.common.database import connect as connect_catalog

from tests.support.lakes import Lakes
from tests.support.writes.writable import set_up_writes

# Both lakes inline small inserts, so that tables of inlined rows are compared too.
SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 10);
USE lake;
"""
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
IGNORED = {"snapshot_time", "schedule_start", "author", "commit_message", "commit_extra_info"}
"""Columns that say when and by whom."""
IGNORED_IN = {
    "ducklake_delete_file": {"file_size_bytes", "footer_size", "delete_file_id"},
    "ducklake_files_scheduled_for_deletion": {"data_file_id"},
}
"""Columns whose value depends on the lake's name, which is in the path of a data file, or on the
order in which DuckLake writes the delete files of a statement."""

COLUMNS = """
SELECT table_name, column_name FROM information_schema.columns
WHERE table_schema = :schema AND table_name LIKE 'ducklake\\_%'
ORDER BY table_name, ordinal_position"""

Rows = dict[str, list[dict[str, str | None]]]


@dataclass(frozen=True, slots=True)
class Twins:
    """A lake that Iceberg clients write, and its native twin."""

    lake: Lake
    twin: Lake
    s3_endpoint: str

    def native(self, *statements: str, also_here: bool = False) -> None:
        """Run statements in the twin; the lake is attached as `lake` and in use.

        Args:
            also_here: in the other lake too.
        """
        for one in [self.twin, self.lake] if also_here else [self.twin]:
            query(one, self.s3_endpoint, *statements)

    def check(self, *, ignoring_our_tags: bool = False, ignoring: Collection[str] = ()) -> None:
        """Compare all rows of both catalogs.

        Args:
            ignoring_our_tags: without the tags that keep what DuckLake has no place for.
            ignoring: tables that differ.
        """
        here, there = catalog_rows(self.lake), catalog_rows(self.twin)
        if ignoring_our_tags:
            tags = here["ducklake_tag"]
            here["ducklake_tag"] = [
                row for row in tags if not (row["key"] or "").startswith("polynya.")
            ]
        names = {*here, *there} - {*ignoring}
        differing = {name: difference(here.get(name), there.get(name)) for name in names}
        found = {name: rows for name, rows in differing.items() if rows}
        assert found == {}, found


def difference(here: list | None, there: list | None) -> list[tuple[str, dict]]:
    """The rows that only one of two tables has; None: there is no such table."""
    if here is None or there is None:
        return [("no table here" if here is None else "no table there", {})]
    only_here = [("only here", row) for row in here if row not in there]
    return only_here + [("only there", row) for row in there if row not in here]


@contextmanager
def twins(lakes: Lakes, s3_endpoint: str, script: str) -> Iterator[Twins]:
    """Two lakes of the same script, of which the first may be written by Iceberg clients."""
    one, other = (lakes.write(name, SCRIPT + script) for name in ("writable", "twin"))
    set_up_writes(one)
    yield Twins(one, other, s3_endpoint)


def query(lake: Lake, s3_endpoint: str, *statements: str) -> list[tuple]:
    """The rows of the last statement, by a new native DuckLake that may write."""
    rows: list[tuple] = []
    with connect(LAKE, s3_endpoint) as con:
        attach(con, lake, read_only=False)
        con.execute("USE lake")
        for statement in statements:
            rows = con.execute(statement).fetchall()
    return rows


def catalog_rows(lake: Lake) -> Rows:
    """All rows of DuckLake's tables, without what differs between two lakes."""
    tables: dict[str, list[str]] = {}
    found: Rows = {}
    with closing(connect_catalog(lake.database.url, lake.metadata_schema)) as con:
        for table, column in con.run(COLUMNS, schema=lake.metadata_schema):
            tables.setdefault(table, []).append(column)
        for table, columns in tables.items():
            if table == "ducklake_metadata":
                continue
            # pg8000 cannot read every value: TIME '24:00:00'.
            texts = ", ".join(f'CAST("{column}" AS text)' for column in columns)
            rows = con.run(f'SELECT {texts} FROM "{table}"')
            named = [dict(zip(columns, (_text(v, lake) for v in row), strict=True)) for row in rows]
            ignored = IGNORED | IGNORED_IN.get(table, set())
            kept = [{k: v for k, v in row.items() if k not in ignored} for row in named]
            found[table] = sorted(kept, key=str)
    return found


def _text(value: object, lake: Lake) -> str | None:
    if value is None:
        return None
    return UUID.sub("UUID", str(value).replace(lake.data_path, "DATA"))
