"""Makes the lake `delta` with delta2ducklake 0.2.1 and deltalake 1.6.6; then `record.py`.

    python -m venv /tmp/v && /tmp/v/bin/pip install delta2ducklake==0.2.1 deltalake==1.6.6
    .venv/bin/python delta.py catalog /tmp/delta     # an empty lake, with DuckDB
    /tmp/v/bin/python delta.py tables /tmp/delta

Delta's bounds are cut to milliseconds and rounded to doubles, and nobody looks for NaN.
"""

import sys
from datetime import UTC
from datetime import datetime as at
from decimal import Decimal
from pathlib import Path

FOLDER = Path(sys.argv[2])


def catalog():
    from polynya_local.clients.duckdb import connect

    FOLDER.mkdir(parents=True)
    con = connect(("ducklake", "sqlite_scanner"))
    source, data = f"ducklake:sqlite:{FOLDER}/lake.sqlite", f"{FOLDER}/"
    con.execute(f"ATTACH '{source}' AS lake (DATA_PATH '{data}')")
    con.close()


def tables():
    import deltalake
    import pyarrow as pa
    from delta2ducklake.convert import sync_table
    from delta2ducklake.ducklake.catalog import SQLiteCatalogConfig

    nan = float("nan")
    rows = [
        (1, at(2020, 1, 1, 1, 2, 3, 456789), Decimal("12345678901234567890.12"), 1.5, "a"),
        (2, at(2020, 1, 1, 1, 2, 3, 456001), Decimal("1234567890123456.78"), nan, "a"),
        (3, at(1960, 1, 1, 1, 2, 3, 456789), Decimal("-7.25"), 2.5, None),
        (4, None, None, None, "c"),
        (5, at(2021, 5, 5), Decimal("1234567890123456.79"), nan, "b"),
    ]

    def of(rows):
        moments = [row[1] and row[1].replace(tzinfo=UTC) for row in rows]
        return pa.table(
            {
                "id": pa.array([row[0] for row in rows], pa.int64()),
                "ts": pa.array([row[1] for row in rows], pa.timestamp("us")),
                "tz": pa.array(moments, pa.timestamp("us", "UTC")),
                "d": pa.array([row[2] for row in rows], pa.decimal128(30, 2)),
                "f": pa.array([row[3] for row in rows], pa.float64()),
                "p": pa.array([row[4] for row in rows], pa.string()),
            }
        )

    lake = SQLiteCatalogConfig(f"{FOLDER}/lake.sqlite")
    for row in rows:
        deltalake.write_deltalake(f"{FOLDER}/plain", of([row]), mode="append")
    deltalake.write_deltalake(f"{FOLDER}/together", of(rows))
    deltalake.write_deltalake(f"{FOLDER}/split", of(rows), partition_by=["p"])
    for name in ("plain", "together", "split"):
        sync_table(f"{FOLDER}/{name}", lake, name)


if __name__ == "__main__":
    {"catalog": catalog, "tables": tables}[sys.argv[1]]()
