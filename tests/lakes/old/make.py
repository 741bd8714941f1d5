"""Makes the fixtures of this folder again: `python tests/lakes/old/make.py [NAME…]`.

A catalog of a past version is only written by the DuckDB of its time, and DuckDB 1.5.5 does not
read it without migrating it. So each fixture holds what that DuckDB wrote, the catalog
(`catalog.sql`) and the Parquet files (`files/`), and what the same DuckDB read in every table at
every snapshot (`truth.json`). Needs PyPI, and `pg_dump` on PATH.
"""

import json
import logging
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import boto3
from moto.server import ThreadedMotoServer
from polynya_local.processes.postgres import Database, postgres

HERE = Path(__file__).parent
BUCKET = "lakes"
# Fixture: the DuckDB that writes it, and the script. The fixture's catalog version is in its name.
FIXTURES = {
    "0.2": ("1.3.2", "lake.sql"),
    "0.3": ("1.4.4", "lake.sql"),
    "0.3-inlined": ("1.4.4", "inlined.sql"),
    "0.4": ("1.5.1", "lake.sql"),
}
PACKAGES = (
    "duckdb",
    *(f"duckdb-extension-{x}" for x in ("ducklake", "postgres-scanner", "httpfs")),
)
NOISE = re.compile(r"^(--.*|\\.*|SET .*|SELECT pg_catalog\.set_config.*|)\n", re.MULTILINE)


def main(names: list[str]) -> None:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it tells of every request
    moto = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    moto.start()
    host, port = moto.get_host_and_port()
    s3 = boto3.client(
        "s3",
        endpoint_url=f"http://{host}:{port}",
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    s3.create_bucket(Bucket=BUCKET)
    try:
        with postgres() as server:
            for name in names or FIXTURES:
                database = server.create_database(f"old-{name}")
                make(name, database, s3, f"{host}:{port}")
    finally:
        moto.stop()


def make(name: str, database: Database, s3, s3_address: str) -> None:
    duckdb, script = FIXTURES[name]
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    data_path = f"s3://{BUCKET}/old-{name}/"
    with tempfile.TemporaryDirectory() as venv:
        python = f"{venv}/bin/python"
        run(sys.executable, "-m", "venv", venv)
        run(python, "-m", "pip", "install", "-q", "pytz", *(f"{p}=={duckdb}" for p in PACKAGES))
        words = (str(HERE / script), database.libpq, data_path, s3_address)
        truth = json.loads(run(python, str(HERE / "write.py"), *words))
    (folder / "truth.json").write_text(json_text(truth))
    dump = run("pg_dump", "--inserts", "--no-owner", "--no-privileges", "-d", database.url)
    (folder / "catalog.sql").write_text(NOISE.sub("", dump))
    prefix = f"old-{name}/"
    for item in s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", []):
        file = folder / "files" / item["Key"].removeprefix(prefix)
        file.parent.mkdir(parents=True, exist_ok=True)
        s3.download_file(BUCKET, item["Key"], str(file))


def run(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def json_text(truth: dict) -> str:
    """One line for each table at each snapshot, so that a difference can be read."""
    tables = []
    for table, at in truth.items():
        lines = (f"  {json.dumps(n)}: {json.dumps(then)}" for n, then in at.items())
        tables.append(f"{json.dumps(table)}: {{\n" + ",\n".join(lines) + "\n}")
    return "{\n" + ",\n".join(tables) + "\n}\n"


if __name__ == "__main__":
    main(sys.argv[1:])
