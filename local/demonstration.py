"""The steps of `polynya demo`: a lake is written, served, read by all, and changed meanwhile."""

import logging
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import boto3
from duckdb import DuckDBPyConnection
from moto.server import ThreadedMotoServer
from rich.console import Console

from .clients import Client, duckdb, native, pyiceberg, rest
from .comparison import Comparison, Moment, show, verdict
from .duckdb_connection import KEY_ID, LAKE, REGION, SECRET, connect
from .interruption import Interruption, Running
from .lakes import Lake, attach, write_lake
from .postgres import Server, postgres
from .progress import Failed, Progress, console
from .recipes import recipes
from .serving import Bridge, serving
from .spark_jars import why_not
from .spark_process import SparkProcess

STORY = Path(__file__).with_name("demo.sql")
BUCKET, PREFIX = "demo", "lake"
CHANGES = {
    "INSERT: two flocks, this moment": """
        INSERT INTO lake.birds.flocks (flock, seen_at, species, birds)
        VALUES (60005, now(), 'SPEI', 64), (60006, now(), NULL, 1)""",
    "DELETE: the flocks of no birds": "DELETE FROM lake.birds.flocks WHERE birds = 0",
}
"""What is done while the lake is being served: by DuckDB, each a commit of its own."""


@dataclass(frozen=True, slots=True)
class World:
    """The lake, and everything that has been started for it."""

    lake: Lake
    s3_endpoint: str
    bridge: Bridge
    owner: DuckDBPyConnection  # writes
    judge: native.Native  # reads


@dataclass(frozen=True, slots=True)
class Reader:
    name: str
    open: Callable[[], Client]

    @contextmanager
    def opened(self) -> Iterator[Client]:
        with closing(self.open()) as client:
            try:
                yield client
            except BaseException:
                for child in multiprocessing.active_children():
                    child.kill()  # in the midst of an answer it would complain of us
                raise


def demonstrate(*, delivery: str, with_spark: bool, keep: bool, interruption: Interruption) -> int:
    """Show it all; gives the exit code: 1 when any client saw other rows than DuckLake has."""
    only_this_machine()
    progress, out = Progress(), console(sys.stdout)
    with Running(interruption) as running:
        no_spark = why_not() if with_spark else "--without-spark"
        # It takes its time, so it starts while the lake is being written.
        spark = None if no_spark else running.enter_context(SparkProcess())
        world = started(running, progress, delivery)
        readers = [reader_of(module, world.bridge) for module in (pyiceberg, duckdb)]
        if spark and not (no_spark := trouble_with(spark, world.bridge, progress)):
            readers.append(Reader(spark.name, lambda: connected(spark, world.bridge)))
        past = compare_the_past(world, readers, interruption, progress)
        live = compare_changes(world, readers, interruption, progress)
        names = [reader.name for reader in readers]
        show(out, "What DuckLake has, and what each client read of it", past, names)
        show(out, "Changed while it was being served, read by clients opened then", live, names)
        out.print(what_s3_holds(world), soft_wrap=True)
        if no_spark:
            out.print(f"Spark was left out: {no_spark}.", soft_wrap=True)
        code = verdict(out, past, live)
        if keep:
            show_recipes(out, world)
            interruption.wait()
    return code


def only_this_machine() -> None:
    """Whatever is set up here for AWS or for a proxy is not meant for the demo."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(AWS_CONFIG_FILE=os.devnull, AWS_SHARED_CREDENTIALS_FILE=os.devnull)
    for name in ("NO_PROXY", "no_proxy"):
        os.environ[name] = ",".join(filter(None, (os.environ.get(name), "127.0.0.1")))


def started(running: Running, progress: Progress, delivery: str) -> World:
    with progress.stage("Starting PostgreSQL") as stage:
        server = running.enter_context(postgres())
        database = server.create_database("demo")
        stage.result = f"PostgreSQL {server_version(server)}"
    with progress.stage("Starting S3") as stage:
        s3_endpoint = running.enter_context(s3())
        stage.result = f"S3: moto {version('moto')} at {s3_endpoint}"
    with progress.stage("Writing a lake") as stage:
        lake = write_lake(STORY, database, f"s3://{BUCKET}/{PREFIX}", s3_endpoint)
        stage.result = f"A lake, written by DuckDB {version('duckdb')} and its extension ducklake"
    owner = running.enter_context(connect(LAKE, s3_endpoint))
    attach(owner, lake, read_only=False)
    judge = running.enter_context(closing(native.open(lake, s3_endpoint)))
    with progress.stage("Starting `polynya serve`") as stage:
        bridge = running.enter_context(serving(database.url, s3_endpoint, delivery=delivery))
        stage.result = f"polynya serve at {bridge.catalog_uri}, delivery {bridge.delivery}"
    return World(lake, s3_endpoint, bridge, owner, judge)


def server_version(server: Server) -> str:
    with closing(server.maintenance.connect()) as con:
        return con.run("SHOW server_version")[0][0].split()[0]


@contextmanager
def s3() -> Iterator[str]:
    """An S3 in memory, in this process; gives its endpoint."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it tells of every request
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        s3_client(endpoint).create_bucket(Bucket=BUCKET)
        yield endpoint
    finally:
        server.stop()


def s3_client(endpoint: str):
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id=KEY_ID,
        aws_secret_access_key=SECRET,
    )


def reader_of(module, bridge: Bridge) -> Reader:
    where = (bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint)
    return Reader(module.NAME, lambda: module.open(*where))


def trouble_with(spark: SparkProcess, bridge: Bridge, progress: Progress) -> str | None:
    """Why this Spark is of no use, as with a Java that is too old; it is no reason to stop."""
    with progress.stage("Waiting for Spark") as stage:
        try:
            connected(spark, bridge)
        except RuntimeError as error:
            stage.result = "Spark did not start"
            return f"it did not start: {error}"
        stage.result = f"Spark {version('pyspark')} is there"
    return None


def connected(spark: SparkProcess, bridge: Bridge) -> SparkProcess:
    """The same session with a new catalog: starting another takes seconds."""
    spark.connect(bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint)
    return spark


def compare_the_past(
    world: World, readers: list[Reader], interruption: Interruption, progress: Progress
) -> Comparison:
    comparison = Comparison(world.judge)
    with progress.stage("DuckLake reads") as stage:
        for moment in moments(world):
            comparison.add(moment)
        stage.result = f"DuckLake: {len(comparison.truths)} reads"
    for reader in readers:
        with progress.stage(f"{reader.name} reads") as stage, Running(interruption) as running:
            client = running.enter_context(reader.opened())
            for truth in comparison.truths:
                stage.doing(f"{reader.name} reads {truth.moment.name} at {truth.moment.at}")
                comparison.ask(client, truth)
            stage.result = f"{reader.name}: {len(comparison.truths)} reads"
    return comparison


def moments(world: World) -> list[Moment]:
    """Every table at every snapshot that the bridge lists; the newest one as it is now."""
    catalog = rest.Rest(world.bridge.catalog_uri, world.bridge.warehouse)
    events = messages(world.owner)
    found = []
    for table in sorted(world.judge.tables(), key=lambda table: (table.namespace, table.name)):
        metadata = catalog.load_table(table.namespace, table.name)
        listed = sorted(snapshot["snapshot-id"] for snapshot in metadata.get("snapshots", []))
        if not listed:
            raise Failed(f"{table.namespace}.{table.name} is there without a snapshot")
        # The first is the CREATE TABLE, without a row.
        for snapshot_id in listed[1:-1]:
            found.append(Moment(table.namespace, table.name, snapshot_id, events[snapshot_id]))
        found.append(Moment(table.namespace, table.name, None, events[listed[-1]]))
    return found


def messages(owner: DuckDBPyConnection) -> dict[int, str]:
    """What DuckLake itself keeps as the message of each commit."""
    snapshots = "SELECT snapshot_id, coalesce(commit_message, '') FROM ducklake_snapshots('lake')"
    return dict(owner.execute(snapshots).fetchall())


def compare_changes(
    world: World, readers: list[Reader], interruption: Interruption, progress: Progress
) -> Comparison:
    comparison = Comparison(world.judge)
    for event, sql in CHANGES.items():
        with progress.stage(event) as stage:
            world.owner.execute(sql)
            truth = comparison.add(Moment("birds", "flocks", None, event))
            for reader in readers:
                stage.doing(f"{event}: a new {reader.name} reads")
                with Running(interruption) as running:
                    comparison.ask(running.enter_context(reader.opened()), truth)
            stage.result = f"{event.partition(':')[0]}, and new clients read"
    return comparison


def what_s3_holds(world: World) -> str:
    pages = s3_client(world.s3_endpoint).get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
    keys = [item["Key"] for page in pages for item in page.get("Contents", [])]
    theirs = [key for key in keys if key.startswith(f"{PREFIX}/")]
    without = [
        f"{table.namespace}.{table.name}"
        for table in world.judge.tables()
        if not any(key.startswith(f"{PREFIX}/{table.namespace}/{table.name}/") for key in theirs)
    ]
    return (
        f"\nS3 holds {len(theirs)} files that DuckLake wrote and {len(keys) - len(theirs)} that "
        f"Polynya wrote. {' and '.join(sorted(without))} have no file of their own: their rows "
        "are in PostgreSQL."
    )


def show_recipes(out: Console, world: World) -> None:
    for title, text in recipes(world.bridge, world.lake, world.s3_endpoint).items():
        out.print(f"\n{title}\n", style="bold")
        out.print(text.rstrip(), soft_wrap=True)
    out.print("\nAll of it is here until you press Ctrl-C.", style="bold")
