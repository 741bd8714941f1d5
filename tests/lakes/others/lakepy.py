"""Makes the lakes `lakepy` and `lakepy-1.1` with ducklakepy 0.1.0.dev0; then `record.py`.

    python -m venv /tmp/v && /tmp/v/bin/pip install ducklakepy==0.1.0.dev0
    /tmp/v/bin/python lakepy.py /tmp/lakepy 1.0
    /tmp/v/bin/python lakepy.py /tmp/lakepy-1.1 1.1

Both have the same tables and the same snapshots, so that DuckDB, which reads 1.0, knows the rows of
both.
"""

import sys
from datetime import UTC, date
from datetime import datetime as at
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
from ducklakepy import DuckLakeCatalog, types
from ducklakepy.expressions import col
from ducklakepy.partitioning import PartitionKey, Transform
from ducklakepy.schema import Schema

FOLDER, VERSION = Path(sys.argv[1]), sys.argv[2]
FOLDER.mkdir(parents=True)
MOMENTS = [at(2020, 1, 1, 1, 2, 3, 456789), at(2020, 7, 1), at(2021, 3, 4, 5, 6, 7, 1), None]
STRUCT = types.StructType(
    (
        types.Column("a", types.Int32Type()),
        types.Column("l", types.ListType(types.Column("element", types.VarcharType()))),
    )
)
COLUMNS = {
    "id": (types.Int64Type(), pa.int64()),
    "b": (types.BooleanType(), pa.bool_()),
    "f": (types.Float64Type(), pa.float64()),
    "d": (types.DecimalType(30, 2), pa.decimal128(30, 2)),
    "s": (types.VarcharType(), pa.string()),
    "x": (types.BlobType(), pa.binary()),
    "day": (types.DateType(), pa.date32()),
    "ts": (types.TimestampType(), pa.timestamp("us")),
    "tz": (types.TimestampTzType(), pa.timestamp("us", "UTC")),
    "st": (STRUCT, pa.struct([("a", pa.int32()), ("l", pa.list_(pa.string()))])),
}
SCHEMA = Schema(*(types.Column(name, type_) for name, (type_, _) in COLUMNS.items()))


def rows(first: int) -> pa.Table:
    nan = float("nan")
    values = {
        "id": [first + number for number in range(4)],
        "b": [True, False, True, None],
        "f": [1.5, nan, -0.0, None],
        "d": [Decimal("12345678901234567890.12"), Decimal("-7.25"), Decimal("0.00"), None],
        "s": ["é/ü= %", "", "None", None],
        "x": [b"\x00\xff", b"", b"a" * 300, None],
        "day": [date(2020, 2, 29), date(1960, 1, 1), date(2021, 5, 5), None],
        "ts": MOMENTS,
        "tz": [moment and moment.replace(tzinfo=UTC) for moment in MOMENTS],
        "st": [{"a": 1, "l": ["x", None]}, {"a": None, "l": []}, {"a": 3, "l": None}, None],
    }
    return pa.table({name: pa.array(values[name], type_) for name, (_, type_) in COLUMNS.items()})


PARTITIONS = {
    "plain": [],
    "by_text": ["s"],
    "by_month": [PartitionKey("ts", Transform.YEAR), PartitionKey("ts", Transform.MONTH)],
    "by_bucket": [PartitionKey("s", Transform.BUCKET, 4)],
}

with DuckLakeCatalog(
    "lake", url=f"sqlite:///{FOLDER}/lake.sqlite", data_path=f"{FOLDER}/", spec_version=VERSION
) as lake:
    lake.initialize()
    lake.set_option("data_inlining_row_limit", 0)
    for name, keys in PARTITIONS.items():
        table = lake.create_table(f"main.{name}", schema=SCHEMA)
        if keys:
            table.set_partitioning(*keys)
        for first in (0, 10):
            lake.load_table(f"main.{name}").append(rows(first))
        lake.load_table(f"main.{name}").delete(col("id") == 11)
        lake.load_table(f"main.{name}").update(col("id") == 2, {"b": False})
    inlined = lake.create_table("main.inlined", schema=SCHEMA)
    inlined.set_option("data_inlining_row_limit", 100)
    for first in (0, 10):
        lake.load_table("main.inlined").append(rows(first))
    lake.load_table("main.inlined").delete(col("id") == 11)
