"""The statistics of a table are those that native DuckLake has after the same files."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from polynya.ducklake.column_tree import ColumnNode, column_tree
from polynya.ducklake.rows.files import TableColumnStats
from polynya.ducklake.writes.new_files import FileColumnStats, NewDataFile
from polynya.ducklake.writes.stats import WiderStats, widen_floats, widened
from polynya_local.clients.duckdb import LAKE, connect, literal

COLUMNS = """
SELECT column_id, column_name, column_type, nulls_allowed, nullif(default_value, 'NULL'),
  parent_column
FROM meta.ducklake_column WHERE end_snapshot IS NULL ORDER BY column_order"""
FILES = "SELECT data_file_id, record_count FROM meta.ducklake_data_file ORDER BY 1"
FILE_STATS = """
SELECT column_id, column_size_bytes, value_count, null_count, min_value, max_value, contains_nan
FROM meta.ducklake_file_column_stats WHERE data_file_id = ? ORDER BY column_id"""
TABLE_STATS = """
SELECT column_id, contains_null, contains_nan, min_value, max_value
FROM meta.ducklake_table_column_stats ORDER BY column_id"""


class NativeLake:
    """A DuckLake whose catalog is a DuckDB file; its one table is t."""

    def __init__(self, folder) -> None:
        self._con = connect(LAKE[:1])
        options = f"DATA_PATH {literal(f'{folder}/data')}, DATA_INLINING_ROW_LIMIT 0"
        self._con.execute(f"ATTACH {literal(f'ducklake:{folder}/catalog')} AS lake ({options})")
        self._con.execute("USE lake")

    def run(self, statement: str) -> None:
        self._con.execute(statement)

    def query(self, statement: str, *parameters: int) -> list:
        statement = statement.replace("meta.", "__ducklake_metadata_lake.")
        return self._con.execute(statement, parameters).fetchall()

    @property
    def columns(self) -> tuple[ColumnNode, ...]:
        return column_tree((ColumnNode(*row[:5]), row[5]) for row in self.query(COLUMNS))

    @property
    def files(self) -> list[NewDataFile]:
        return [
            NewDataFile(
                path=f"{file_id}.parquet",
                record_count=rows,
                file_size_bytes=1,
                footer_size=1,
                stats=tuple(FileColumnStats(*s) for s in self.query(FILE_STATS, file_id)),
            )
            for file_id, rows in self.query(FILES)
        ]

    @property
    def table_stats(self) -> list[TableColumnStats]:
        return [TableColumnStats(*row) for row in self.query(TABLE_STATS)]


CREATE = """
CREATE TABLE t(i INTEGER, u UBIGINT, f FLOAT, d DOUBLE, c DECIMAL(9, 2), s VARCHAR, b BOOLEAN,
  da DATE, tz TIMESTAMPTZ, id UUID, n STRUCT(a INTEGER, l VARCHAR[]), m MAP(VARCHAR, INTEGER))"""
INSERT = """
INSERT INTO t SELECT i, i, {number}, {number}, i / 4, {text}, i > 5,
  DATE '2024-01-01' + i, TIMESTAMPTZ '1970-01-01 00:00:00.5+00' + to_days(i),
  ('00000000-0000-4000-8000-00000000000' || i % 10)::UUID,
  {{'a': i, 'l': [{text}, NULL]}}, MAP {{ 'k' || i: i }}
FROM (SELECT unnest(range({low}, {high}))::INTEGER AS i)"""


def insert(low: int, high: int, number: str = "i", text: str = "'v' || i") -> str:
    return INSERT.format(low=low, high=high, number=number, text=text)


DELETE = "DELETE FROM t"
HISTORIES = {
    "disjoint": [insert(5, 7), insert(0, 3), insert(9, 12)],
    "covered": [insert(0, 12), insert(5, 6)],
    "numbers, not texts": [insert(9, 10), insert(100, 101)],
    "NaN": [insert(0, 3), insert(3, 6, "if(i = 4, 'nan', i::VARCHAR)::FLOAT"), insert(6, 9)],
    "infinity": [insert(0, 3), insert(3, 4, "'-inf'::FLOAT"), insert(4, 5, "'inf'::FLOAT")],
    "zeros": [insert(0, 1, "'0.0'::FLOAT"), insert(0, 1, "'-0.0'::FLOAT")],
    "NULL": [insert(0, 3), insert(3, 6, text="if(i = 4, NULL, 'v' || i)"), insert(6, 9)],
    "bytes, not letters": [insert(0, 1, text="'ä'"), insert(0, 1, text="'z'")],
    "deleted rows": [insert(0, 3), DELETE, insert(5, 6)],
}


def history(lake: NativeLake, statements: list[str]) -> Iterator[list[TableColumnStats]]:
    """Run the statements; yields our statistics of the table after each that adds files."""
    known: dict[int, TableColumnStats] = {}
    count = 0
    for statement in statements:
        lake.run(statement)
        if files := lake.files[count:]:
            covering = widened(known, lake.columns, files, had_rows=count > 0, new_ids=()).certain
            yield covering
            known, count = {stats.column_id: stats for stats in covering}, count + len(files)


@pytest.mark.parametrize("statements", HISTORIES.values(), ids=HISTORIES)
def test_statistics_are_widened_as_native_ducklake_widens_them(statements, tmp_path):
    lake = NativeLake(tmp_path)
    lake.run(CREATE)
    steps = 0
    for covering in history(lake, statements):
        assert covering == lake.table_stats
        steps += 1
    assert steps == sum(statement != DELETE for statement in statements)


WITHOUT_BOUNDS = [("f", insert(0, 3, "'nan'::FLOAT")), ("s", insert(0, 3, text="NULL::VARCHAR"))]


@pytest.mark.parametrize(("name", "first"), WITHOUT_BOUNDS)
def test_a_column_whose_bounds_are_not_known_has_no_statistics(name, first, tmp_path):
    """Native DuckLake takes NULL for "no values so far"; another writer may mean "unknown"."""
    lake = NativeLake(tmp_path)
    lake.run(CREATE)
    *_, covering = history(lake, [first, insert(3, 6)])
    [column_id] = [column.column_id for column in lake.columns if column.column_name == name]
    assert column_id not in [stats.column_id for stats in covering]


NEW_COLUMN = ColumnNode(9, "x", "int32")
NEW_STATS = FileColumnStats(9, 40, 2, 0, "3", "4", None)
WITHOUT_VALUES = FileColumnStats(9, 40, 0, 2, None, None, None)
ALL_NULL = TableColumnStats(
    9, contains_null=True, contains_nan=None, min_value=None, max_value=None
)


def new_file(*stats):
    return NewDataFile(
        path="x.parquet", record_count=2, file_size_bytes=1, footer_size=1, stats=stats
    )


@pytest.mark.parametrize(
    ("had_rows", "new_ids", "expected"),
    [
        (False, (), [TableColumnStats(9, False, None, "3", "4")]),
        (False, {9}, [TableColumnStats(9, False, None, "3", "4")]),
        # Older rows have NULL in a column that is added now.
        (True, {9}, [TableColumnStats(9, True, None, "3", "4")]),
        # Nothing is known about the older rows of an older column.
        (True, (), []),
    ],
)
def test_a_column_without_statistics_is_widened_by_what_older_rows_may_hold(
    had_rows, new_ids, expected
):
    files = [new_file(NEW_STATS)]
    found = widened({}, [NEW_COLUMN], files, had_rows=had_rows, new_ids=new_ids)
    assert (found.certain, found.unknown) == (expected, [] if expected else [9])


# The table's statistics before, the file's, and the table's afterwards.
WITHOUT_CERTAIN_BOUNDS = [
    (None, WITHOUT_VALUES, [ALL_NULL]),
    (ALL_NULL, NEW_STATS, []),
    (TableColumnStats(9, False, None, "1", None), NEW_STATS, []),
    (TableColumnStats(9, False, None, "1", "2"), FileColumnStats(9, 40, 2, 0, "3", None, None), []),
    (None, FileColumnStats(9, 40, None, None, None, None, None), []),
]


@pytest.mark.parametrize(("before", "file", "expected"), WITHOUT_CERTAIN_BOUNDS)
def test_without_certain_bounds_there_are_no_statistics(before, file, expected):
    known = {9: before} if before else {}
    found = widened(known, [NEW_COLUMN], [new_file(file)], had_rows=bool(before), new_ids=())
    assert (found.certain, found.unknown) == (expected, [] if expected else [9])


@pytest.mark.parametrize("stats", [(), (WITHOUT_VALUES,)])
def test_of_a_column_without_new_values_only_null_is_new(stats):
    """Its row may have more than we know of, for example the box of geometries."""
    found = widened({9: ALL_NULL}, [NEW_COLUMN], [new_file(*stats)], had_rows=True, new_ids=())
    assert found == WiderStats(with_null=[9])


# The bounds of the table before and whether they are values, those of a new file, and the result.
EXACTNESS = {
    "the new bounds win": ((4, 5, True, True), (3, 9, False, True), (False, True)),
    "the old bounds win": ((1, 9, None, False), (3, 4, True, True), (None, False)),
    "of equal bounds one is a value": ((3, 4, False, None), (3, 4, True, True), (True, True)),
    "of equal bounds none is known to be": (
        (3, 4, None, False),
        (3, 4, False, False),
        (None, False),
    ),
}


@pytest.mark.parametrize("before, new, exact", EXACTNESS.values(), ids=EXACTNESS)
def test_a_bound_is_a_value_if_it_is_one_where_it_comes_from(before, new, exact):
    low, high, *of_table = before
    table = TableColumnStats(9, False, None, str(low), str(high), *of_table)
    low, high, *of_file = new
    stats = FileColumnStats(9, 40, 2, 0, str(low), str(high), None, *of_file)
    columns = (ColumnNode(9, "c", "int64"),)
    [found] = widened({9: table}, columns, [new_file(stats)], had_rows=True, new_ids=()).certain
    assert (found.min_is_exact, found.max_is_exact) == exact


FLOATS = ["0.1", "-0.1", "0.0", "16777217", "1e-45", "3.4028235e+38", "-3.4028235e38", "1.5e10"]
NO_FLOATS = ["inf", "-inf", "nan", "1e400", "-1e39", "1e-300", "9" * 5000, "x", "", None]


def test_bounds_that_become_those_of_a_double_are_the_same_numbers(postgres_server):
    database = postgres_server.create_database("widened_floats")
    columns = "(table_id bigint, column_id bigint, min_value varchar, max_value varchar)"
    with closing(database.connect()) as con, connect() as duck:
        for table in ("ducklake_file_column_stats", "ducklake_table_column_stats"):
            con.run(f"CREATE TABLE {table} {columns}")
        for number, text in enumerate(FLOATS + NO_FLOATS):
            sql = "INSERT INTO ducklake_file_column_stats VALUES (1, :number, :text, :text)"
            con.run(sql, number=number, text=text)
        widen_floats(con, 1, range(len(FLOATS + NO_FLOATS)))
        rows = con.run("SELECT min_value, max_value FROM ducklake_file_column_stats ORDER BY 2, 1")
        texts = [low for low, high in rows if low == high]
        assert len(texts) == len(rows)
        sql = "SELECT CAST(CAST(unnest(?) AS FLOAT) AS DOUBLE)"
        doubles = {value for (value,) in duck.execute(sql, [FLOATS]).fetchall()}
    assert {float(text) for text in texts if text not in NO_FLOATS} == doubles
    assert set(NO_FLOATS) <= set(texts)
