"""Partition specs of clients as DuckLake's keys, and the values of the files that they add."""

from decimal import Decimal
from uuid import UUID

import pytest
from polynya.commits.plan.partition_and_sort_keys import partition_fields, partition_keys
from polynya.commits.plan.partition_values import client_values, partition_values
from polynya.ducklake.column_tree import ColumnNode
from polynya.ducklake.rows.objects import PartitionColumn
from polynya.ducklake.writes.new_files import FileColumnStats
from polynya.iceberg.manifest import PartitionField
from polynya.rest.updates import PartitionSpec
from polynya.runtime.errors import BadRequest
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import DecimalType, UUIDType

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

    expected = after and tuple(PartitionColumn(n, 1, one) for n, one in enumerate(after))
    assert keys() == expected


# (the fields as (source, id, name, transform), those that the table has, the ids or the refusal)
FIELDS = [
    ([(1, 1000, "a", "truncate[2]"), (3, 1001, "b", "day")], {}, [1000, 1001]),
    ([(1, None, "a", "void"), (1, None, "b", "bucket[4]")], {}, [1000, 1001]),
    # A field has the id that it had, and no other field gets it.
    ([(1, 1000, "a", "void"), (3, 1001, "b", "day")], {(3, "day"): 1000}, [1001, 1000]),
    ([(1, 7, "a", "void")], {(3, "day"): 1000}, [1001]),
    ([(1, 2**31, "a", "void")], {}, [1000]),  # Java's ids are ints
    ([(1, 1000, "a", "hour")], {}, "by hour of s "),
    ([(3, 1000, "a", "void"), (3, 1001, "b", "void")], {}, "two partition fields are void"),
    ([(3, 1000, "a", "year"), (3, 1001, "b", "hour")], {}, [1000, 1001]),
    ([(2, 1000, "a", "identity")], {}, "holds single values"),
    ([(5, 1000, "a", "identity")], {}, "holds single values"),
]


@pytest.mark.parametrize(("fields", "field_ids", "expected"), FIELDS)
def test_fields_as_a_table_keeps_them(fields, field_ids, expected):
    names = ("source-id", "field-id", "name", "transform")
    spec = PartitionSpec.model_validate(
        {"fields": [dict(zip(names, field, strict=True)) for field in fields]}
    )
    columns = [
        ColumnNode(1, "s", "varchar"),
        ColumnNode(2, "st", "struct", children=(ColumnNode(3, "ts", "timestamptz"),)),
        ColumnNode(4, "l", "list", children=(ColumnNode(5, "element", "int32"),)),
    ]
    if isinstance(expected, str):
        with pytest.raises(BadRequest, match=expected):
            partition_fields(spec, columns, field_ids)
    else:
        shown = partition_fields(spec, columns, field_ids)
        assert [field.field_id for field in shown] == expected
        assert [(f.source_id, f.name, f.transform) for f in shown] == [
            (source, name, transform) for source, _, name, transform in fields
        ]


# (type, transform, the smallest and the largest value, the client's value, the partition value)
OF_CLIENTS = [
    ("timestamptz", "day", "1969-12-31 00:00:00+00", "1969-12-31 23:59:59.999999+00", None, "-1"),
    ("timestamptz", "day", "2024-01-01 23:30:00+00", "2024-01-02 00:00:00+00", 19723, ()),
    ("timestamptz", "day", "infinity", "infinity", 1, ()),
    ("timestamptz", "identity", "2024-01-01 00:00:00+00", "2024-01-01 00:00:00+00", None, ...),
    ("varchar", "truncate[3]", "eid", "eider", "eid", "eid"),
    ("varchar", "truncate[3]", "ei", "eid", "eid", ()),
    ("varchar", "truncate[1]", "ä", "äö", None, "ä"),
    ("varchar", "identity", "x" * 256, "x" * 256, None, ()),  # it may be cut
    ("varchar", "truncate[3]", "x" * 256, "x" * 255 + "y", None, "xxx"),
    ("blob", "truncate[2]", "00FF", "00FFAB", None, "00FF"),
    ("int32", "truncate[10]", "-9", "-1", None, "-10"),
    ("int32", "truncate[10]", "-1", "0", None, ()),
    ("int32", "truncate[10]", "-2147483648", "-2147483648", None, ()),  # too small for an int
    ("decimal(9,2)", "truncate[100]", "-0.50", "-0.01", None, "-1.00"),
    ("decimal(9,2)", "bucket[4]", "1.50", "1.50", "by hand", ...),
    ("int64", "bucket[16]", "34", "34", 3, "3"),
    ("int64", "bucket[16]", "34", "34", 4, ()),
    ("int64", "bucket[16]", "34", "34", None, ()),
    ("int64", "bucket[16]", "34", "34", True, ()),
    ("float64", "identity", "1.5", "1.5", None, "1.5"),
    ("float64", "identity", "-0.0", "-0.0", None, ()),
    ("int32", "void", "1", "2", None, None),
    ("uuid", "bucket[4]", *["f47ac10b-58cc-4372-a567-0e02b2c3d479"] * 2, "by hand", ...),
]


@pytest.mark.parametrize(("column_type", "transform", "low", "high", "given", "value"), OF_CLIENTS)
def test_a_file_has_the_value_that_both_bounds_prove(
    column_type, transform, low, high, given, value
):
    """The bucket of 34 is the specification's (Appendix B); others are PyIceberg's."""
    if given == "by hand":
        given = pyiceberg_bucket(column_type, low)
        value = str(given)
    value = low if value is ... else value
    fields, columns = (
        [PartitionField(1, 1000, "p", transform, "")],
        [ColumnNode(1, "c", column_type)],
    )
    of_client = [(1, transform, given)]
    stats = FileColumnStats(1, 40, 9, 0, low, high, False)
    assert client_values(fields, columns, [stats], of_client) == (() if value == () else (value,))
    only_null = FileColumnStats(1, 40, 0, 9, None, None, None)
    assert client_values(fields, columns, [only_null], of_client) == (None,)
    assert client_values(fields, columns, [], of_client) == (None,)  # the file lacks the column
    some_null = FileColumnStats(1, 40, 8, 1, low, high, None)
    is_void = transform == "void"
    assert client_values(fields, columns, [some_null], of_client) == ((None,) if is_void else ())
    with_nan = FileColumnStats(1, 40, 9, 0, low, high, True)
    if column_type == "float64":
        assert client_values(fields, columns, [with_nan], of_client) == ()


def pyiceberg_bucket(column_type, text) -> int:
    type_, value = {
        "uuid": lambda: (UUIDType(), UUID(text)),
        "decimal(9,2)": lambda: (DecimalType(9, 2), Decimal(text)),
    }[column_type]()
    return BucketTransform(4).transform(type_)(value)


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
