"""Makes the lake `dataframe` with ducklake-dataframe 1.0.0 (and Polars 2.1); then `record.py`.

    python -m venv /tmp/v && /tmp/v/bin/pip install ducklake-dataframe==1.0.0 polars==2.1
    /tmp/v/bin/python dataframe.py /tmp/dataframe

It writes NULL of a partition column as the text None, and counts years and months from 1970.
"""

import sys
from datetime import datetime as at
from pathlib import Path

import polars as pl
from ducklake_polars import (
    alter_ducklake_set_partitioned_by,
    create_ducklake_table,
    write_ducklake,
)

FOLDER = Path(sys.argv[1])
FOLDER.mkdir(parents=True)
LAKE = str(FOLDER / "lake.sqlite")
DATA = {"data_path": str(FOLDER / "data")}


def table(name, type_, partition, *inserts):
    schema = {"id": pl.Int64, "v": type_}
    create_ducklake_table(LAKE, name, schema, **DATA)
    if partition:
        alter_ducklake_set_partitioned_by(LAKE, name, partition, **DATA)
    number = 0
    for values in inserts:
        ids = range(number + 1, number + 1 + len(values))
        number += len(values)
        rows = pl.DataFrame({"id": list(ids), "v": values}, schema=schema)
        write_ducklake(rows, LAKE, name, mode="append", **DATA)


MOMENTS = [at(2020, 1, 1, 1, 2, 3, 456789), at(2020, 7, 1), at(2021, 3, 4, 5, 6, 7, 1), None]
table("by_month", pl.Datetime("us"), [("v", "year"), ("v", "month")], MOMENTS)
table("by_text", pl.String, ["v"], ["a", "a", "b", None, None, "None"], ["c", None])
table("by_number", pl.Int32, ["v"], [1, 2, 2, None])
table("floats", pl.Float64, None, [1.5, float("nan"), None], [2.5], [float("nan")])
