"""The steps of `polynya demo`: write a lake, serve it, read it with each client, change it."""

import multiprocessing
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from duckdb import DuckDBPyConnection
from rich.console import Console

from ..clients import Client, duckdb, pyiceberg, rest
from ..clients.spark_jars import why_not
from ..processes.serving import Bridge
from ..progress import Failed, Progress, console
from .comparison import Comparison, Moment, show, verdict
from .environment import DemoEnvironment, bucket_summary, only_this_machine, started
from .interruption import Interruption, Running
from .kept import FOLDER, how_to_serve, keep_lake
from .recipes import recipes
from .spark_process import SparkProcess


class ClientModule(Protocol):
    """A module of an Iceberg client."""

    NAME: str

    def open(self, catalog_uri: str, warehouse: str, s3_endpoint: str) -> Client:
        """A client of the catalog."""


CHANGES = {
    "INSERT: two flocks, this moment": """
        INSERT INTO lake.birds.flocks (flock, seen_at, species, birds)
        VALUES (60005, now(), 'SPEI', 64), (60006, now(), NULL, 1)""",
    "DELETE: the flocks of no birds": "DELETE FROM lake.birds.flocks WHERE birds = 0",
}
"""Statements that DuckDB runs while the lake is served, one commit each."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A client that is opened again for each comparison."""

    name: str
    open: Callable[[], Client]

    @contextmanager
    def opened(self) -> Iterator[Client]:
        """The client; if the block fails, its processes are killed."""
        with closing(self.open()) as client:
            try:
                yield client
            except BaseException:
                for child in multiprocessing.active_children():
                    child.kill()  # a query under way would print an error
                raise


def demonstrate(*, delivery: str, with_spark: bool, keep: bool, interruption: Interruption) -> int:
    """Run the demo; gives the exit code: 1 if any client read other rows than DuckLake has."""
    only_this_machine()
    progress, out = Progress(), console(sys.stdout)
    with Running(interruption) as running:
        no_spark = why_not() if with_spark else "--without-spark"
        # It takes long to start, so it starts while the lake is written.
        spark = None if no_spark else running.enter_context(SparkProcess())
        demo = started(running, progress, delivery)
        readers = [reader_of(module, demo.bridge) for module in (pyiceberg, duckdb)]
        if spark and not (no_spark := spark_failure(spark, demo.bridge, progress)):
            readers.append(Reader(spark.name, lambda: connected(spark, demo.bridge)))
        past = compare_snapshots(demo, readers, interruption, progress)
        live = compare_changes(demo, readers, interruption, progress)
        names = [reader.name for reader in readers]
        show(out, "Rows at each snapshot: DuckLake's, and those that each client read", past, names)
        show(out, "After a change while the lake is served, read by new clients", live, names)
        out.print(bucket_summary(demo), soft_wrap=True)
        if no_spark:
            out.print(f"Spark was left out: {no_spark}.", soft_wrap=True)
        code = verdict(out, past, live)
        if keep:
            with progress.stage("Writing the lake to keep") as stage, interruption.held():
                is_new = keep_lake(Path(FOLDER))
                stage.result = f"The lake to keep: {FOLDER}"
            show_recipes(out, demo)
            out.print(f"\n{how_to_serve(Path(FOLDER), is_new)}", soft_wrap=True)
            out.print("\nEverything else runs until you press Ctrl-C.", style="bold")
            interruption.wait()
    return code


def reader_of(module: ClientModule, bridge: Bridge) -> Reader:
    """The reader of a client module."""
    where = (bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint)
    return Reader(module.NAME, lambda: module.open(*where))


def spark_failure(spark: SparkProcess, bridge: Bridge, progress: Progress) -> str | None:
    """Why Spark did not start, for example because Java is too old; None: it started."""
    with progress.stage("Waiting for Spark") as stage:
        try:
            connected(spark, bridge)
        except RuntimeError as error:
            stage.result = "Spark did not start"
            return f"it did not start: {error}".rstrip(".")
        stage.result = f"Spark {version('pyspark')}"
    return None


def connected(spark: SparkProcess, bridge: Bridge) -> SparkProcess:
    """Spark's one session, with a new catalog."""
    spark.connect(bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint)
    return spark


def compare_snapshots(
    demo: DemoEnvironment, readers: list[Reader], interruption: Interruption, progress: Progress
) -> Comparison:
    """Let every reader read every table at every snapshot."""
    comparison = Comparison(demo.native)
    with progress.stage("DuckLake reads") as stage:
        for moment in moments(demo):
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


def moments(demo: DemoEnvironment) -> list[Moment]:
    """Every table at every snapshot that Polynya lists; the newest one without its id."""
    catalog = rest.Rest(demo.bridge.catalog_uri, demo.bridge.warehouse)
    events = commit_messages(demo.writer)
    found = []
    for table in sorted(demo.native.tables(), key=lambda table: (table.namespace, table.name)):
        metadata = catalog.load_table(table.namespace, table.name)
        listed = sorted(snapshot["snapshot-id"] for snapshot in metadata.get("snapshots", []))
        if not listed:
            raise Failed(f"{table.namespace}.{table.name} has no snapshot")
        # The first snapshot is CREATE TABLE, without rows.
        for snapshot_id in listed[1:-1]:
            found.append(Moment(table.namespace, table.name, snapshot_id, events[snapshot_id]))
        found.append(Moment(table.namespace, table.name, None, events[listed[-1]]))
    return found


def commit_messages(writer: DuckDBPyConnection) -> dict[int, str]:
    """DuckLake's commit messages by snapshot id."""
    snapshots = "SELECT snapshot_id, coalesce(commit_message, '') FROM ducklake_snapshots('lake')"
    return dict(writer.execute(snapshots).fetchall())


def compare_changes(
    demo: DemoEnvironment, readers: list[Reader], interruption: Interruption, progress: Progress
) -> Comparison:
    """Change the lake, and let a new client of every reader read the change."""
    comparison = Comparison(demo.native)
    for event, sql in CHANGES.items():
        with progress.stage(event) as stage:
            demo.writer.execute(sql)
            truth = comparison.add(Moment("birds", "flocks", None, event))
            for reader in readers:
                stage.doing(f"{event}: a new {reader.name} reads")
                with Running(interruption) as running:
                    comparison.ask(running.enter_context(reader.opened()), truth)
            stage.result = f"{event.partition(':')[0]}, and new clients read"
    return comparison


def show_recipes(out: Console, demo: DemoEnvironment) -> None:
    """Print what to paste into other programs."""
    for title, text in recipes(demo.bridge, demo.lake, demo.s3_endpoint).items():
        out.print(f"\n{title}\n", style="bold")
        out.print(text.rstrip(), soft_wrap=True)
