"""Makes the lakes in SQLite of this folder again: `python tests/lakes/others/sqlite/make.py`.

Other programs than DuckDB wrote them. Each folder has the catalog (`catalog.sql`), the Parquet
files (`data/`) and the rows that were given to the program (`truth.json`). The paths of this
machine are `{{DATA_PATH}}` in the catalog. Needs PyPI.
"""

import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from polynya_local.clients.duckdb import connect, literal

HERE = Path(__file__).parent
COMMON = ("polars==2.1.0", "pyarrow==26.0.1")

# Small tables are inlined. Their floats and dates have the text NULL.
SDK = """
import ducklake as dl
lake = dl.create(f"sqlite:///{folder}/lake.sqlite", data_path=f"{folder}/data/")
lake.set_metadata(data_inlining_row_limit=10)
INLINED = {
    "numbers": (dl.Int64(), 1),
    "floats": (dl.Float64(), 1.5),
    "dates": (dl.Date(), dt.date(2020, 1, 1)),
    "zoned": (dl.TimestampTz(), dt.datetime(2020, 1, 1, 1, 2, 3, tzinfo=dt.timezone.utc)),
}
for name, (type_, value) in INLINED.items():
    table = lake.create_table(name, schema={"id": dl.Int64(), "v": type_})
    write(name, {"id": [1, 2], "v": [value, None]}, table.write_polars)
table = lake.create_table("decimals", schema={"id": dl.Int64(), "v": dl.Decimal(12, 2)})
table.set_metadata(data_inlining_row_limit=0)
write("decimals", {"id": [1, 2], "v": [decimal.Decimal("1.50"), None]}, lambda frame:
    table.write_polars(frame.cast({"v": pl.Decimal(12, 2)})))
"""

# A column of bytes has the type VARCHAR in SQLite. Bytes that are UTF-8 are no problem.
DATAFRAME = """
from ducklake_polars import write_ducklake
zoned = dt.datetime(2020, 1, 1, 1, 2, 3, tzinfo=dt.timezone.utc)
where = {"path": f"{folder}/lake.sqlite", "data_path": f"{folder}/data"}
for name, value, limit in [
    ("numbers", 1, 10), ("bytes", b"\\x00\\xff", 10), ("zoned", zoned, 10),
    ("zoned_files", zoned, 0),
]:
    write(name, {"id": [1, 2], "v": [value, None]}, lambda frame: write_ducklake(
        frame, table=name, data_inlining_row_limit=limit, **where))
"""

# Each write has a mapping, whose id does not come from the catalog's counter.
MAPPED = """
from ducklake_polars import write_ducklake
where = {"path": f"{folder}/lake.sqlite", "data_path": f"{folder}/data"}
for number in range(4):
    write("first", {"id": [number], "name": [f"n{number}"]}, lambda frame: write_ducklake(
        frame, table="first", mode="append" if number else "error", **where))
"""

WRITE = """
import datetime as dt, decimal, json, sys
import polars as pl
folder = sys.argv[1]
truth = {}
def write(name, columns, insert):
    frame = pl.DataFrame(columns)
    truth.setdefault(name, []).extend(frame.rows(named=True))
    insert(frame)
"""
END = """
print(json.dumps(truth, default=str))
"""

# The lake, its package, what it writes, and what DuckDB writes to it afterwards.
LAKES = {
    "sdk": (("ducklake-sdk==0.0.21", "polars-hash==0.9.3"), SDK, ()),
    "dataframe": (("ducklake-dataframe==1.0.0",), DATAFRAME, ()),
    "dataframe-mapped": (
        ("ducklake-dataframe==1.0.0",),
        MAPPED,
        (
            "CREATE TABLE second (a BIGINT, b VARCHAR)",
            "COPY (SELECT 7::BIGINT AS a, 'x' AS b) TO '{data}/added.parquet'",
            "CALL ducklake_add_data_files('lake', 'second', '{data}/added.parquet')",
        ),
    ),
}
NATIVE_ROWS = {"dataframe-mapped": {"second": [{"a": 7, "b": "x"}]}}


def main() -> None:
    for name, (packages, script, statements) in LAKES.items():
        with tempfile.TemporaryDirectory() as venv:
            make(name, packages, script, statements, Path(venv))


def make(name, packages, script, statements, venv: Path) -> None:
    run(sys.executable, "-m", "venv", venv)
    run(venv / "bin/python", "-m", "pip", "install", "-q", *COMMON, *packages)
    made, folder = venv / "lake", HERE / name
    (made / "data").mkdir(parents=True)
    truth = json.loads(run(venv / "bin/python", "-c", WRITE + script + END, made))
    if statements:
        with closing(connect(("ducklake", "sqlite_scanner"))) as con:
            con.execute(f"ATTACH {literal(f'ducklake:sqlite:{made}/lake.sqlite')} AS lake")
            con.execute("USE lake")
            for statement in statements:
                con.execute(statement.format(data=made / "data"))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copytree(made / "data", folder / "data")
    with closing(sqlite3.connect(made / "lake.sqlite")) as con:
        lines = "\n".join(con.iterdump())
    (folder / "catalog.sql").write_text(lines.replace(f"{made}/data", "{{DATA_PATH}}") + "\n")
    text = json.dumps(truth | NATIVE_ROWS.get(name, {}), indent=1)
    (folder / "truth.json").write_text(text + "\n")


def run(*words: object) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return done.stdout


if __name__ == "__main__":
    main()
