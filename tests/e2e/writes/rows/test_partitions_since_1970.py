"""PyIceberg appends to tables that are partitioned by epoch_day and its like.

The values in the catalog are computed by Python. Native DuckLake reads the rows after the keys were
written in the way of 1.0 (`catalog_versions`), because DuckDB 1.5.5 does not know such keys.
"""

from contextlib import closing
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from tests.support.catalog_versions import calendar_parts, catalog_of, to_calendar
from tests.support.writes.starts import DO_NOT_INLINE

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOMENTS = {
    1: EPOCH - timedelta(microseconds=1),
    2: EPOCH - timedelta(days=1),
    3: EPOCH,
    4: datetime(2024, 2, 29, 23, 59, 59, 999999, tzinfo=UTC),
    5: datetime(2024, 3, 1, tzinfo=UTC),
    6: None,
}
SINCE = {
    "year": lambda moment: moment.year - 1970,
    "month": lambda moment: 12 * (moment.year - 1970) + moment.month - 1,
    "day": lambda moment: (moment - EPOCH) // timedelta(days=1),
    "hour": lambda moment: (moment - EPOCH) // timedelta(hours=1),
}

SET_TRANSFORM = """
UPDATE ducklake_partition_column AS c SET transform = :transform
FROM ducklake_table AS t WHERE t.table_id = c.table_id AND t.table_name = :name"""
KEYS = """
SELECT k.transform FROM ducklake_partition_column AS k JOIN ducklake_table AS t USING (table_id)
JOIN ducklake_partition_info AS i USING (partition_id)
WHERE t.table_name = :name AND i.end_snapshot IS NULL ORDER BY k.partition_key_index"""
VALUES = """
SELECT s.min_value, array_agg(v.partition_value ORDER BY v.partition_key_index)
FROM ducklake_data_file AS f JOIN ducklake_table AS t USING (table_id)
JOIN ducklake_file_partition_value AS v USING (data_file_id)
JOIN ducklake_partition_column AS k
  ON k.partition_id = f.partition_id AND k.partition_key_index = v.partition_key_index
JOIN ducklake_file_column_stats AS s ON s.data_file_id = f.data_file_id AND s.column_id = 1
WHERE t.table_name = :name GROUP BY 1"""


def expected(part: str, keys: list[str], moment: datetime | None) -> list[str | None]:
    """The texts of a row's partition values: of one key, or of those that 1.0 has instead."""
    number = None if moment is None else str(SINCE[part](moment))
    return [number] if keys == [f"epoch_{part}"] else calendar_parts(f"epoch_{part}", number)


@pytest.mark.parametrize(("type_", "part"), [("TIMESTAMPTZ", "day"), ("TIMESTAMP", "month")])
def test_pyiceberg_appends(twin, type_, part):
    twin.native(
        DO_NOT_INLINE,
        f"CREATE TABLE {{t}} (id BIGINT, c {type_})",
        "ALTER TABLE {t} SET PARTITIONED BY (year(c))",
    )
    with closing(catalog_of(twin.lake)) as con:
        con.run(SET_TRANSFORM, name=twin.name, transform=f"epoch_{part}")
    table = twin.table()
    assert [str(field.transform) for field in table.spec().fields] == [part]
    arrow = pa.timestamp("us", "UTC" if type_ == "TIMESTAMPTZ" else None)
    moments = [
        one if one is None or arrow.tz else one.replace(tzinfo=None) for one in MOMENTS.values()
    ]
    table.append(pa.table({"id": list(MOMENTS), "c": pa.array(moments, arrow)}))
    with closing(catalog_of(twin.lake)) as con:
        keys = [key for (key,) in con.run(KEYS, name=twin.name)]
        found = {int(id_): values for id_, values in con.run(VALUES, name=twin.name)}
        for id_, values in found.items():
            assert values == expected(part, keys, MOMENTS[id_]), id_
        partitions = {None if one is None else SINCE[part](one) for one in MOMENTS.values()}
        assert len(found) == len(partitions)
        to_calendar(con)
    twin.con.execute("SET TimeZone = 'UTC'")
    rows = twin.con.execute(f"SELECT id, c FROM {twin.source} ORDER BY id").fetchall()
    assert [id_ for id_, _ in rows] == list(MOMENTS)
    assert [one and one.replace(tzinfo=UTC) for _, one in rows] == list(MOMENTS.values())
