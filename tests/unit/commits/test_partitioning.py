"""Partition specs of clients as DuckLake's keys, and the values of the files that they add."""

import pytest
from polynya.commits.file_statistics import partition_values
from polynya.commits.table_layout import partition_keys
from polynya.ducklake.column_tree import ColumnNode
from polynya.ducklake.rows.objects import PartitionColumn
from polynya.ducklake.writes.files import FileColumnStats
from polynya.rest.updates import PartitionSpec
from polynya.runtime.errors import BadRequest

YEAR, MONTH, DAY = ("year",), ("year", "month"), ("year", "month", "day")

# (type, Iceberg's transform, DuckLake's so far, DuckLake has epochs, DuckLake's then)
KEYS = [
    ("timestamp", "month", (), False, MONTH),
    ("timestamp", "month", (), True, ("epoch_month",)),
    ("timestamptz", "day", (), True, ("epoch_day",)),
    ("timestamptz", "day", (), False, None),
    ("timestamptz", "day", ("epoch_day",), False, ("epoch_day",)),
    ("timestamp_ms", "hour", (), True, ("epoch_hour",)),
    ("date", "day", (), True, ("epoch_day",)),
    ("date", "hour", (), True, None),
    ("varchar", "day", (), True, None),
    # A partitioning that the table has already stays.
    ("timestamp", "day", DAY, True, DAY),
    ("timestamp", "day", ("epoch_day",), True, ("epoch_day",)),
    ("timestamp", "year", DAY, True, YEAR),
    ("timestamp", "day", YEAR, True, ("epoch_day",)),
]


@pytest.mark.parametrize(("column_type", "transform", "before", "has_epochs", "after"), KEYS)
def test_keys_count_from_1970_where_ducklake_can(column_type, transform, before, has_epochs, after):
    field = {"source-id": 1, "field-id": 1000, "name": "f", "transform": transform}
    spec = PartitionSpec.model_validate({"spec-id": 1, "fields": [field]})
    known = [PartitionColumn(n, 1, one) for n, one in enumerate(before)]
    columns = [ColumnNode(1, "c", column_type)]

    def keys():
        return partition_keys(spec, columns, {}, known, has_epochs=has_epochs)

    if after is None:
        with pytest.raises(BadRequest, match=f"no partitioning by {transform} of c"):
            keys()
    else:
        assert keys() == tuple(PartitionColumn(n, 1, one) for n, one in enumerate(after))


# (type, key, the smallest and the largest value of a file, the partition value)
VALUES = [
    ("timestamptz", "epoch_day", "1969-12-31 00:00:00+00", "1969-12-31 23:59:59.999999+00", "-1"),
    ("timestamptz", "epoch_day", "2024-01-01 23:30:00+00", "2024-01-02 00:00:00+00", ()),
    ("timestamptz", "epoch_hour", "2024-01-01 23:30:00+00", "2024-01-01 23:59:00+00", "473375"),
    ("timestamptz", "epoch_hour", "2024-01-02 01:30:00+02", "2024-01-01 23:59:00+00", "473375"),
    ("timestamp", "epoch_month", "2024-01-01 00:00:00", "2024-01-31 23:59:59.5", "648"),
    ("date", "epoch_year", "2024-01-01", "2024-12-31", "54"),
    ("date", "epoch_month", "2024-01-31", "2024-02-01", ()),
    ("timestamp", "epoch_day", "infinity", "infinity", ()),
    ("timestamp", "epoch_day", None, None, ()),
]


@pytest.mark.parametrize(("column_type", "transform", "low", "high", "value"), VALUES)
def test_a_file_has_the_number_that_both_bounds_have(column_type, transform, low, high, value):
    """Expected values from DuckLake 1.1-dev1, seen with its own extension, or by hand."""
    keys, columns = [PartitionColumn(0, 1, transform)], [ColumnNode(1, "c", column_type)]
    stats = FileColumnStats(1, 40, 9, 0, low, high, None)
    assert partition_values(keys, columns, [stats], {}) == (value and (value,))
    only_null = FileColumnStats(1, 40, 0, 9, None, None, None)
    assert partition_values(keys, columns, [only_null], {}) == (None,)
    some_null = FileColumnStats(1, 40, 8, 1, low, high, None)
    assert partition_values(keys, columns, [some_null], {}) == ()
