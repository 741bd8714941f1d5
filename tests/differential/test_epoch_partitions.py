"""Partitions by epoch_year and its like, which DuckLake 1.1 has: Iceberg's transforms, in UTC.

No package on PyPI writes them. DuckDB writes a file for each year, and the catalog then gets the
transform and the values that DuckLake 1.1 computes, which here are Python's: whole years, months,
days and hours since 1970, negative before it.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from polynya_local.clients import duckdb, native, pyiceberg
from polynya_local.clients.native import Lake
from polynya_local.processes.serving import Bridge
from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual, IsNull, LessThan
from pyiceberg.table import Table

from tests.support.catalog_versions import catalog_of, to_1_1
from tests.support.servers import in_process

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICRO = timedelta(microseconds=1)

SINCE: dict[str, Callable[[datetime], int]] = {
    "year": lambda moment: moment.year - 1970,
    "month": lambda moment: 12 * (moment.year - 1970) + moment.month - 1,
    "day": lambda moment: (moment - EPOCH) // timedelta(days=1),
    "hour": lambda moment: (moment - EPOCH) // timedelta(hours=1),
}

MOMENTS = {
    1: datetime(1, 1, 1, tzinfo=UTC),
    2: EPOCH - MICRO,
    3: EPOCH,
    4: datetime(2024, 2, 29, 23, 30, 0, 1, tzinfo=UTC),
    5: datetime(2025, 1, 1, tzinfo=UTC),
    6: datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    7: None,
    # These are inlined.
    8: datetime(2024, 3, 1, 0, 30, tzinfo=UTC),
    9: EPOCH - 90 * timedelta(minutes=1),
    10: None,
}
"""By id; none of those in files is in the same year as another."""
IN_FILES = range(1, 8)

TABLES = {
    "tz_year": ("TIMESTAMPTZ", "year"),
    "tz_month": ("TIMESTAMPTZ", "month"),
    "tz_day": ("TIMESTAMPTZ", "day"),
    "tz_hour": ("TIMESTAMPTZ", "hour"),
    "ts_hour": ("TIMESTAMP", "hour"),
    "ms_month": ("TIMESTAMP_MS", "month"),
    "d_day": ("DATE", "day"),
    "evolved": ("TIMESTAMP", "year"),
}
"""The type of the column `c`, and what it is partitioned by."""

DISTANT = datetime(2030, 1, 1, tzinfo=UTC)
INFINITE = """
CREATE TABLE infinite(id INTEGER, c TIMESTAMP);
ALTER TABLE infinite SET PARTITIONED BY (year(c));
INSERT INTO infinite VALUES (1, '2024-01-01'), (2, 'infinity'), (3, '-infinity');
INSERT INTO infinite VALUES (4, NULL);
"""


def script() -> str:
    lines = [
        "ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');",
        "USE lake; SET TimeZone = 'UTC'; CALL lake.set_option('data_inlining_row_limit', 0);",
        INFINITE,
    ]
    for name, (type_, _) in TABLES.items():
        lines += [
            f"CREATE TABLE {name}(id INTEGER, c {type_});",
            f"ALTER TABLE {name} SET PARTITIONED BY (year(c));",
            f"INSERT INTO {name} VALUES {values(name, IN_FILES)};",
        ]
    lines += [
        "ALTER TABLE evolved RESET PARTITIONED BY;",
        "ALTER TABLE evolved SET PARTITIONED BY (year(c));",
        "INSERT INTO evolved VALUES (11, '2024-05-05'), (12, NULL), (13, '1960-01-01');",
        "CALL lake.set_option('data_inlining_row_limit', 10);",
        *(f"INSERT INTO {name} VALUES {values(name, range(8, 11))};" for name in TABLES),
    ]
    return "\n".join(lines)


def values(name: str, ids: range) -> str:
    of_ids = moments(name)
    texts = ("NULL" if of_ids[i] is None else f"'{of_ids[i].isoformat(' ')}'" for i in ids)
    rows = (f"({i}, CAST({text} AS TIMESTAMPTZ))" for i, text in zip(ids, texts, strict=True))
    return ", ".join(rows)


KEYS = """
SELECT t.table_name, p.partition_id FROM ducklake_partition_info AS p
JOIN ducklake_table AS t USING (table_id)
WHERE t.table_name <> 'infinite' AND p.end_snapshot IS NULL"""
FILES = """
SELECT f.data_file_id, s.min_value FROM ducklake_data_file AS f
JOIN ducklake_table AS t USING (table_id)
JOIN ducklake_file_column_stats AS s ON s.data_file_id = f.data_file_id AND s.column_id = 1
WHERE f.partition_id = :partition_id AND s.min_value = s.max_value"""
SET_TRANSFORM = """
UPDATE ducklake_partition_column SET transform = :transform WHERE partition_id = :partition_id"""
SET_VALUE = """
UPDATE ducklake_file_partition_value SET partition_value = :text WHERE data_file_id = :file_id"""

LATER = {11: datetime(2024, 5, 5, tzinfo=UTC), 12: None, 13: datetime(1960, 1, 1, tzinfo=UTC)}


def moments(table: str) -> dict[int, datetime | None]:
    """What the column `c` holds, by id."""
    unit = {"DATE": timedelta(days=1), "TIMESTAMP_MS": timedelta(milliseconds=1)}
    step = unit.get(TABLES[table][0], MICRO)
    rows = MOMENTS | (LATER if table == "evolved" else {})
    return {i: None if one is None else one - (one - EPOCH) % step for i, one in rows.items()}


def to_epochs(lake: Lake) -> None:
    """Turn the newest partitioning of each table by `year` into the one of the table."""
    with closing(catalog_of(lake)) as con:
        for table, partition_id in con.run(KEYS):
            part = TABLES[table][1]
            con.run(SET_TRANSFORM, partition_id=partition_id, transform=f"epoch_{part}")
            for file_id, id_ in con.run(FILES, partition_id=partition_id):
                moment = moments(table)[int(id_)]
                text = None if moment is None else str(SINCE[part](moment))
                con.run(SET_VALUE, file_id=file_id, text=text)


class Served(NamedTuple):
    lake: Lake
    bridge: Bridge
    client: pyiceberg.PyIceberg
    by_server: pyiceberg.PyIceberg

    def table(self, name: str, *, by_server: bool = False) -> Table:
        client = self.by_server if by_server else self.client
        return client._catalog.load_table(("main", name))


@pytest.fixture(scope="module")
def served(lake, moto) -> Iterator[Served]:
    one = lake.write("epochs", script())
    with closing(native.open(one, moto)) as truth:
        infinite = truth.query(f"SELECT id FROM lake.main.infinite WHERE c >= '{DISTANT}'")
        assert infinite == [(2,)]
    to_epochs(one)
    to_1_1(one)
    settings = {"CHUNK_FILES": "2", "SCAN_PLANNING": "server"}
    with in_process.bridge(one, moto, delivery="object-lambda", settings=settings) as bridge:
        where = (bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint)
        with closing(pyiceberg.open(*where)) as client, closing(pyiceberg.open(*where)) as planned:
            client._catalog.properties["scan-planning-mode"] = "client"
            yield Served(one, bridge, client, planned)


def ids(table: Table, path: str) -> set[int]:
    """The ids in a data file."""
    with table.io.new_input(path).open() as file:
        rows = pq.read_table(pa.BufferReader(file.read()))
    return set(rows.column("id").to_pylist())


@pytest.mark.parametrize("name", TABLES)
def test_partition_values_are_counted_from_1970_in_utc(name, served):
    """Files of rows that are inlined have them, too."""
    table, of_ids, part = served.table(name), moments(name), TABLES[name][1]
    [field] = table.spec().fields
    assert str(field.transform) == part
    seen = set()
    for task in table.scan().plan_files():
        of_file = ids(table, task.file.file_path)
        expected = {None if of_ids[i] is None else SINCE[part](of_ids[i]) for i in of_file}
        assert task.file.spec_id == table.spec().spec_id
        assert expected == {task.file.partition[0]}, of_file
        seen |= of_file
    assert seen == of_ids.keys()


def test_a_partitioning_by_the_years_of_the_calendar_is_the_same(served):
    specs = [spec for spec in served.table("evolved").specs().values() if spec.fields]
    assert len(specs) == 1


@pytest.mark.slow("tz_hour", "tz_month", "ms_month", "d_day")
@pytest.mark.parametrize("by_server", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", TABLES)
def test_pyiceberg_finds_every_row(name, by_server, served):
    table, of_ids = served.table(name, by_server=by_server), moments(name)

    def found(filter_) -> set[int]:
        return set(table.scan(filter_, selected_fields=("id",)).to_arrow()["id"].to_pylist())

    assert found(IsNull("c")) == {i for i, one in of_ids.items() if one is None}
    known = {i: one for i, one in of_ids.items() if one is not None}
    for moment in {known[2], known[4], known[8]}:
        value = literal(moment, name)
        assert found(EqualTo("c", value)) == {i for i, one in known.items() if one == moment}
        later = {i for i, one in known.items() if moment <= one < DISTANT}
        both = And(GreaterThanOrEqual("c", value), LessThan("c", literal(DISTANT, name)))
        assert found(both) == later


def literal(moment: datetime, name: str) -> str:
    type_ = TABLES[name][0]
    if type_ == "DATE":
        return moment.date().isoformat()
    return (moment if type_ == "TIMESTAMPTZ" else moment.replace(tzinfo=None)).isoformat()


def lost_by_duckdb(name: str, moment: datetime) -> set[int]:
    """Rows that DuckDB 1.5.5 misses: its months and days of times before 1970 are rounded to 0."""
    type_, part = TABLES[name]
    if type_ == "DATE" or part not in {"month", "day"} or moment >= EPOCH:
        return set()
    known = ((i, one) for i, one in moments(name).items() if one is not None)
    return {i for i, one in known if SINCE[part](one) == SINCE[part](moment)}


@pytest.mark.slow("tz_hour", "tz_month", "ms_month", "d_day")
@pytest.mark.parametrize("name", TABLES)
def test_duckdb_finds_the_rows(name, served, duckdb_client):
    known = {i: one for i, one in moments(name).items() if one is not None}
    for moment in (known[2], known[8]):
        sql = f"SELECT id FROM ice.main.{name} WHERE c >= '{literal(moment, name)}'"
        expected = {i for i, one in known.items() if one >= moment}
        found = set(duckdb_client.query(sql)["id"].to_pylist())
        assert found == expected - lost_by_duckdb(name, moment)


@pytest.fixture(scope="module")
def duckdb_client(served):
    where = (served.bridge.catalog_uri, served.bridge.warehouse, served.bridge.s3_endpoint)
    with closing(duckdb.open(*where)) as client:
        client.query("SET TimeZone = 'Asia/Tokyo'")
        yield client


def test_infinite_times_are_in_no_partition(served):
    """DuckDB's year of an infinite time is NULL, and clients skip NULL when they look for times."""
    table = served.table("infinite")

    def found(filter_) -> set[int]:
        files = (task.file for task in table.scan(filter_).plan_files())
        return set().union(*(ids(table, file.file_path) for file in files))

    assert 2 in found(GreaterThanOrEqual("c", f"{DISTANT:%FT%T}"))
    assert 3 in found(LessThan("c", "1000-01-01T00:00:00"))
    assert found(IsNull("c")) >= {4}
    specs = {task.file.spec_id for task in table.scan().plan_files()}
    assert specs == {0, table.spec().spec_id}
