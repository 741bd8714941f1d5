"""Makes the lakes of this folder: run it with Python, polars, ducklake-dataframe 1.0.0 and
ducklake-sdk 0.0.21 (and polars-hash) in an environment of its own, and a folder. The catalogs
become SQL text, in which `{{DATA_PATH}}` is the folder of the data.
"""

import datetime as dt
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import polars as pl

HERE = Path(__file__).parent
TIMES = [dt.time(1, 2, 3, 4), dt.time(23, 59, 59, 999999)]
MOMENTS = [dt.datetime(2020, 1, 1, 1, 2, 3, 456789), dt.datetime(2021, 6, 7, 8, 9, 10, 1)]


def dataframe(folder: Path) -> None:
    """Nested columns, a TIME, and a column that was dropped and added again."""
    import ducklake_polars as lake

    where = {"data_path": f"{folder}/data"}
    file = f"{folder}/lake.sqlite"
    nested = {"i": [1, 2], "s": [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}], "l": [[1, 2], [3]]}
    lake.write_ducklake(pl.DataFrame(nested), file, "nested", mode="error", **where)
    times = pl.DataFrame({"i": [1, 2], "t": TIMES})
    lake.write_ducklake(times, file, "times", mode="error", **where)
    before = pl.DataFrame({"i": [1, 2], "c": [5, 6]})
    lake.write_ducklake(before, file, "readded", mode="error", **where)
    lake.alter_ducklake_drop_column(file, "readded", "c", **where)
    lake.alter_ducklake_add_column(file, "readded", "c", pl.Int64(), **where)
    after = pl.DataFrame({"i": [3], "c": [7]})
    lake.write_ducklake(after, file, "readded", mode="append", **where)


def sdk(folder: Path) -> None:
    """Bounds of timestamps with a T and +00:00, for columns with and without a time zone."""
    import ducklake
    from ducklake import Int64, Timestamp, TimestampTz

    lake = ducklake.create(f"sqlite:///{folder}/lake.sqlite", data_path=f"{folder}/data")
    columns = {"i": Int64(), "ts": Timestamp(), "tz": TimestampTz()}
    table = lake.create_table("moments", columns)
    for number, moment in enumerate(MOMENTS):
        # Fewer rows are inlined.
        moments = [moment - dt.timedelta(seconds=seconds) for seconds in range(20)]
        rows = pl.DataFrame({"i": [number] * 20, "ts": moments, "tz": moments})
        table.write_polars(rows.with_columns(pl.col("tz").dt.replace_time_zone("UTC")))
    lake.disconnect()


for make in (dataframe, sdk):
    folder = Path(sys.argv[1]) / make.__name__
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "data").mkdir(parents=True)
    make(folder)
    target = HERE / make.__name__
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder / "data", target / "data")
    with closing(sqlite3.connect(folder / "lake.sqlite")) as con:
        text = "\n".join(con.iterdump())
    (target / "lake.sql").write_text(text.replace(f"{folder}/data", "{{DATA_PATH}}") + "\n")
