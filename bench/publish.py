"""`publish`: all files of a table into an empty folder, by one process and by Spark; then a commit.

Each way runs in a process of its own with a folder of its own. For comparison, a plain loop reads
rows with pg8000 and encodes a sample with fastavro.
"""

import io
import json
import os
import subprocess
import sys
import time
from typing import Any

import boto3
import fastavro
from polynya_local.clients.native import Lake
from polynya_local.processes.postgres import Database
from polynya_local.processes.serving import COMMAND
from polynya_pipeline.common.spark import session
from polynya_pipeline.publish.job import publish

from .measure import once
from .report import Row, Table
from .support.lakes import BUCKET, COMMIT, change
from .support.workshop import Workshop, say

HELP = "publish: every manifest and list, in one process and on Spark, and again after a commit"

MASTERS = ("none", "local[1]", "local[2]")
SAMPLE = 20_000
RUNS = ("first", "a commit", "nothing new")


def run(shop: Workshop) -> list[Table]:
    return [_table(shop, files) for files in shop.files]


def _table(shop: Workshop, files: int) -> Table:
    lake = shop.lake(files)
    _index(lake)
    rows: list[Row] = []
    for number, master in enumerate(MASTERS):
        say(f"publish: {files:,} files, {master} ...")
        prefix = f"published-{files}-{number}"
        found = _process(master, lake, shop.s3_endpoint, prefix)
        say(json.dumps(found))
        rows += [_row(files, master, what, found) for what in RUNS]
    say("publish: a plain loop ...")
    rows.append(_plain(shop, lake, prefix, min(files, SAMPLE)))
    notes = (
        "with the indexes of `polynya indexes`; all listed snapshots",
        "wall: from the call to the document, without the start of Spark",
        "CPU: of the process itself, without PostgreSQL, S3 and Spark",
        "plain loop: rows of the files and their statistics by pg8000, then fastavro on dicts that",
        "  are already in memory: only a part of the work",
    )
    return Table(f"publish, {files:,} files in 10 snapshots (seconds)", rows, notes)


def _index(lake: Lake) -> None:
    """Create the indexes that `polynya doctor` recommends."""
    at = lake.database.url
    command = [*COMMAND, "indexes", "--database", at, "--create-as", at]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _row(files: int, master: str, what: str, run: dict[str, Any]) -> Row:
    wall, first = run[what]["seconds"], run["first"]["seconds"]
    made = run[what]["bytes"]
    return {
        "by": master,
        "run": what,
        "start": round(run["start"], 1) if what == "first" else "",
        "wall": round(wall, 1),
        "files/s": round(files / wall) if what == "first" else "",
        "CPU": round(run[what]["CPU"], 1) if master == "none" else "",
        "manifests": run[what]["manifests"],
        "lists": run[what]["lists"],
        "MB": round(made / 1e6, 1),
        "wall of the first": f"{wall / first:.1%}",
        "bytes of the first": f"{made / run['first']['bytes']:.1%}",
    }


def _process(master: str, lake: Lake, endpoint: str, prefix: str) -> dict[str, Any]:
    at = json.dumps([lake.name, lake.database.dbname, lake.database.host, lake.database.port])
    command = [sys.executable, "-m", __name__, master, at, prefix]
    environ = os.environ | {"AWS_ENDPOINT_URL_S3": endpoint}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    if done.returncode:
        sys.exit(f"bench: publish by {master} failed: {done.stderr[-2000:]}")
    run: dict[str, Any] = json.loads(done.stdout)
    return run


def _measured(master: str, at: str, prefix: str) -> dict[str, Any]:
    name, dbname, host, port = json.loads(at)
    lake = Lake(name, Database(host=host, port=port, user="postgres", dbname=dbname), "")
    started = time.perf_counter()
    spark = None if master == "none" else session(master)
    if spark is not None:
        spark.range(1).count()  # the first job of a session takes seconds
    run: dict[str, Any] = {"start": time.perf_counter() - started}
    environ = {"DELIVERY": "materialize", "VIRTUAL_BUCKET": BUCKET, "VIRTUAL_PREFIX": prefix}
    for what in RUNS:
        if what == "a commit":
            change(lake, COMMIT)
        cpu = time.process_time()
        done = publish(database=lake.database.url, environ=environ, spark=spark)
        [table] = done.tables
        run[what] = {
            "seconds": done.seconds,
            "CPU": time.process_time() - cpu,
            "bytes": table.bytes,
            "manifests": table.manifests_built,
            "lists": table.lists_built,
        }
    if spark is not None:
        spark.stop()
    return run


def _plain(shop: Workshop, lake: Lake, prefix: str, sample: int) -> Row:
    """A plain loop over the table's first files; it encodes entries of published manifests."""
    s3 = boto3.client("s3", endpoint_url=shop.s3_endpoint)
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{prefix}/")
    keys = [item["Key"] for page in pages for item in page["Contents"]]
    entries: list[Any] = []
    for key in (key for key in keys if "/data-" in key and key.endswith(".avro")):
        manifest = fastavro.reader(s3.get_object(Bucket=BUCKET, Key=key)["Body"])
        schema = manifest.writer_schema
        entries += manifest
        if len(entries) >= sample:
            break
    con = lake.database.connect()

    def read() -> None:
        for table in ("ducklake_data_file", "ducklake_file_column_stats"):
            con.run(f"SELECT * FROM {table} WHERE data_file_id < {sample}")

    reading = once(read)
    encoding = once(lambda: fastavro.writer(io.BytesIO(), schema, entries[:sample], "deflate"))
    con.close()
    wall = reading.wall + encoding.wall
    return {
        "by": "plain loop",
        "run": f"{sample:,} files",
        "wall": round(wall, 1),
        "files/s": round(sample / wall),
        "CPU": round(reading.cpu + encoding.cpu, 1),
    }


if __name__ == "__main__":
    print(json.dumps(_measured(*sys.argv[1:])))
