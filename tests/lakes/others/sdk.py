"""Makes the lake `sdk` with ducklake-sdk 0.0.21 (and Polars 2.1); then `record.py`.

    python -m venv /tmp/v && /tmp/v/bin/pip install ducklake-sdk==0.0.21 polars==2.1
    /tmp/v/bin/python sdk.py /tmp/sdk

It writes the value of the last transform of a column for all of them, bounds as 2020-01-01T…+00:00,
and no number of values.
"""

import sys
from datetime import UTC
from datetime import datetime as at
from pathlib import Path

import ducklake
import polars as pl

FOLDER = Path(sys.argv[1])
FOLDER.mkdir(parents=True)
LAKE = ducklake.create(f"sqlite:///{FOLDER}/lake.sqlite", data_path=f"{FOLDER}/data/")
LAKE.set_metadata(data_inlining_row_limit=0)


def table(name, type_, partition, *inserts):
    schema = {"id": ducklake.Int64(), "v": type_}
    made = LAKE.create_table(name, schema=schema, partition_by=partition or None)
    number = 0
    for values in inserts:
        ids = range(number + 1, number + 1 + len(values))
        number += len(values)
        made.write_polars(pl.DataFrame({"id": list(ids), "v": values}))


def part(transform, **buckets):
    return ducklake.PartitionColumn("v", transform=transform, **buckets)


MOMENTS = [at(2020, 1, 1, 1, 2, 3, 456789), at(2020, 7, 1), at(2021, 3, 4, 5, 6, 7, 1), None]
table("by_month", ducklake.Timestamp(), [part("year"), part("month")], MOMENTS)
table("by_year", ducklake.Timestamp(), [part("year")], MOMENTS)
table("by_text", ducklake.Varchar(), ["v"], ["a", "a", "NULL", None])
BUCKETS = [part("bucket", num_buckets=4)]
table("by_bucket", ducklake.Varchar(), BUCKETS, ["alice", "bob", "carol", None])
table("floats", ducklake.Float64(), None, [1.5, float("nan"), None], [2.5], [float("nan")])
ZONED = [moment.replace(tzinfo=UTC) for moment in MOMENTS[:2]]
table("zoned", ducklake.TimestampTz(), None, ZONED, [MOMENTS[2].replace(tzinfo=UTC)])
