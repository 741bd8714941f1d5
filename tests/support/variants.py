"""Data files as DuckDB 2.0 writes them, whose ducklake extension PyPI does not have.

DuckDB 2.0 writes each file again, as `UPDATE` in DuckLake would.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import boto3
from polynya_local.clients.native import Lake

from tests.support.file_lakes import DUCKDB_2
from tests.support.lakes import BUCKET

REWRITE = """
import duckdb, json, sys
con = duckdb.connect(config={"threads": 1})
for path in json.load(sys.stdin):
    ids = con.execute("SELECT name, field_id FROM parquet_schema(?) WHERE field_id > 0", [path])
    ids = ", ".join(f"{name}: {number}" for name, number in ids.fetchall())
    con.execute(f"CREATE OR REPLACE TABLE rows AS SELECT {sys.argv[1]} FROM read_parquet('{path}')")
    con.execute(f"COPY rows TO '{path}' (FORMAT parquet, FIELD_IDS {{{ids}}})")
print(duckdb.__version__)
"""

FILES = """
SELECT f.data_file_id, s.path || t.path || f.path
FROM ducklake_data_file AS f JOIN ducklake_table AS t USING (table_id)
JOIN ducklake_schema AS s USING (schema_id)
WHERE t.table_name = ANY(:tables) AND f.path_is_relative ORDER BY 1"""

SIZES = """
UPDATE ducklake_data_file SET file_size_bytes = :size, footer_size = :footer,
  path = replace(path, '.parquet', :suffix || '.parquet')
WHERE data_file_id = :id"""


def written_by_duckdb_2(
    lake: Lake,
    s3_endpoint: str,
    tables: list[str],
    numbers: slice = slice(None),
    what: str = "*",
    suffix: str = "",
) -> str:
    """Let DuckDB 2.0 write data files of these tables again; returns its version.

    Args:
        numbers: which of the files, in the order of their ids.
        what: the columns, in SQL.
        suffix: of the keys of the new files; without one they replace the old files.
    """
    s3 = boto3.client("s3", endpoint_url=s3_endpoint)
    prefix = lake.data_path.removeprefix(f"s3://{BUCKET}/").rstrip("/")
    run = lake.database.run
    with TemporaryDirectory() as folder:
        keys = {
            Path(folder) / f"{id_}.parquet": (id_, f"{prefix}/{path}")
            for id_, path in run(FILES, tables=tables)[numbers]
        }
        for file, (_, key) in keys.items():
            file.write_bytes(s3.get_object(Bucket=BUCKET, Key=key)["Body"].read())
        version = subprocess.run(
            [sys.executable, "-c", REWRITE, what],
            input=json.dumps([str(file) for file in keys]),
            env={**os.environ, **DUCKDB_2},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for file, (id_, key) in keys.items():
            body = file.read_bytes()
            new_key = key.replace(".parquet", f"{suffix}.parquet")
            s3.put_object(Bucket=BUCKET, Key=new_key, Body=body)
            footer = int.from_bytes(body[-8:-4], "little")
            run(SIZES, id=id_, size=len(body), footer=footer, suffix=suffix)
        return version
