"""Starts what the demos need: PostgreSQL, S3, a lake in them, Spark, and `polynya serve`.

`Run` is what all of them share: the progress, the output, and what ends with the demo. `start_demo`
starts everything for `polynya demo`, and `keep_lake` writes the lake that it leaves with --keep: a
file of DuckDB and a folder.
"""

import logging
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
from botocore.client import BaseClient
from duckdb import DuckDBPyConnection
from moto.server import ThreadedMotoServer
from polynya_pipeline.common.progress import Progress, console
from rich.console import Console

from ..clients import native, spark
from ..clients.duckdb import LAKE, connect
from ..clients.native import Lake, attach, filled_in, write_lake
from ..processes.postgres import Database, Server, postgres
from ..processes.serving import KEY_ID, REGION, SECRET, Bridge, serving

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCRIPT = Path(__file__).with_name("demo.sql")
BUCKET, PREFIX = "demo", "lake"


@dataclass(frozen=True, slots=True)
class Run:
    """A demo under way."""

    stack: ExitStack
    """It ends what the demo has started."""
    progress: Progress = field(default_factory=Progress)
    out: Console = field(default_factory=lambda: console(sys.stdout))

    def stores(self) -> tuple[Database, str]:
        """Start PostgreSQL and S3; returns an empty database, and the endpoint."""
        with self.progress.stage("Starting PostgreSQL and S3") as stage:
            database = self.stack.enter_context(postgres()).create_database("demo")
            endpoint = self.stack.enter_context(s3())
            stage.result = f"PostgreSQL at port {database.port}, S3 at {endpoint}"
        return database, endpoint

    def spark(self) -> "SparkSession":
        """Start Spark."""
        with self.progress.stage("Starting Spark") as stage:
            session = spark.session()
            self.stack.callback(spark.stop)
            stage.result = f"Spark {session.version}"
        return session

    def bridge(self, database: Database, s3_endpoint: str, *, writes: bool = False) -> Bridge:
        """Start `polynya serve`."""
        command = "polynya serve --writes" if writes else "polynya serve"
        with self.progress.stage(f"Starting `{command}`") as stage:
            bridge = self.stack.enter_context(serving(database.url, s3_endpoint, writes=writes))
            stage.result = f"{command} at {bridge.catalog_uri}"
        return bridge


def verdict(out: Console, is_well: bool, good: str, bad: str) -> int:
    """Print the sentence at the end of a demo; returns the exit code."""
    out.print(good if is_well else bad, style="bold green" if is_well else "bold red")
    return 0 if is_well else 1


@dataclass(frozen=True, slots=True)
class DemoEnvironment:
    """The lake, and what has been started for it."""

    lake: Lake
    s3_endpoint: str
    bridge: Bridge
    writer: DuckDBPyConnection
    """DuckDB with the lake attached as `lake`, for changes."""
    native: native.Native
    """Reads the rows that every client must give."""


def confine_to_this_machine() -> None:
    """Remove AWS settings from this process's environment, and proxies for 127.0.0.1."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(AWS_CONFIG_FILE=os.devnull, AWS_SHARED_CREDENTIALS_FILE=os.devnull)
    for name in ("NO_PROXY", "no_proxy"):
        os.environ[name] = ",".join(filter(None, (os.environ.get(name), "127.0.0.1")))


def start_demo(run: Run, delivery: str) -> DemoEnvironment:
    """Start everything; the run ends it."""
    running, progress = run.stack, run.progress
    with progress.stage("Starting PostgreSQL") as stage:
        server = running.enter_context(postgres())
        database = server.create_database("demo")
        stage.result = f"PostgreSQL {server_version(server)}"
    with progress.stage("Starting S3") as stage:
        s3_endpoint = running.enter_context(s3())
        stage.result = f"S3: moto {version('moto')} at {s3_endpoint}"
    with progress.stage("Writing a lake") as stage:
        lake = write_lake(
            SCRIPT.stem, SCRIPT.read_text(), database, f"s3://{BUCKET}/{PREFIX}", s3_endpoint
        )
        stage.result = f"A lake, written by DuckDB {version('duckdb')} and its extension ducklake"
    writer = running.enter_context(connect(LAKE, s3_endpoint))
    attach(writer, lake, read_only=False)
    reader = running.enter_context(closing(native.open(lake, s3_endpoint)))
    with progress.stage("Starting `polynya serve`") as stage:
        bridge = running.enter_context(serving(database.url, s3_endpoint, delivery=delivery))
        stage.result = f"polynya serve at {bridge.catalog_uri}, delivery {bridge.delivery}"
    return DemoEnvironment(lake, s3_endpoint, bridge, writer, reader)


def server_version(server: Server) -> str:
    """PostgreSQL's version, such as `18.6`."""
    with closing(server.maintenance.connect()) as con:
        [[words]] = con.run("SHOW server_version")
    return str(words.split()[0])


@contextmanager
def s3() -> Iterator[str]:
    """Run an S3 in memory in this process, with an empty bucket; yields its endpoint."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # moto logs every request
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        s3_client(endpoint).create_bucket(Bucket=BUCKET)
        yield endpoint
    finally:
        server.stop()


def s3_client(endpoint: str) -> BaseClient:
    """A boto3 client of a local S3."""
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id=KEY_ID,
        aws_secret_access_key=SECRET,
    )


def bucket_summary(demo: DemoEnvironment) -> str:
    """A sentence on who wrote how many files, and one on tables without a file."""
    pages = s3_client(demo.s3_endpoint).get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
    keys = [item["Key"] for page in pages for item in page.get("Contents", [])]
    theirs = [key for key in keys if key.startswith(f"{PREFIX}/")]
    without = [
        f"{table.namespace}.{table.name}"
        for table in demo.native.tables()
        if not any(key.startswith(f"{PREFIX}/{table.namespace}/{table.name}/") for key in theirs)
    ]
    return (
        f"\nS3 holds {len(theirs)} files that DuckLake wrote and {len(keys) - len(theirs)} that "
        f"Polynya wrote. {' and '.join(sorted(without))} have no file of their own: their rows "
        "are in PostgreSQL."
    )


FOLDER = "polynya-demo"
CATALOG, DATA = "metadata.ducklake", "data"


def keep_lake(folder: Path) -> bool:
    """Write the lake into a new folder; False: the folder exists, and is left as it is."""
    try:
        folder.mkdir()
    except FileExistsError:
        return False
    # DuckLake stores the path as it is given; an absolute one works from any folder.
    data = folder.absolute() / DATA
    with connect(("ducklake",)) as con:
        script = filled_in(SCRIPT.read_text(), str(folder / CATALOG), str(data))
        for statement in con.extract_statements(script):
            con.execute(statement)
    return True


def how_to_serve(folder: Path, is_new: bool) -> str:
    """What the demo says about the folder."""
    state = "The lake without these changes is in" if is_new else "A lake of an earlier demo is in"
    catalog = folder / CATALOG
    return (
        f"{state} the folder {folder}, which stays: a file of DuckDB and Parquet files. "
        "Serve it:\n"
        f"\n{shlex.join([_command(), 'serve', str(catalog)])}\n"
        "\nAnd write to it with DuckDB, also while it is served:\n"
        f"\nATTACH 'ducklake:{catalog}' AS lake; FROM lake.birds.species;"
    )


def _command() -> str:
    """The command as the user has started it."""
    return sys.argv[0] if Path(sys.argv[0]).name == "polynya" else "polynya"
