"""The steps of `polynya demo`: a lake is written, served, read by all, and changed meanwhile."""

import multiprocessing
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.metadata import version

from duckdb import DuckDBPyConnection
from rich.console import Console

from ..clients import Client, duckdb, pyiceberg, rest
from ..clients.spark_jars import why_not
from ..progress import Failed, Progress, console
from ..serving import Bridge
from .comparison import Comparison, Moment, show, verdict
from .environment import DemoEnvironment, only_this_machine, started, what_s3_holds
from .interruption import Interruption, Running
from .recipes import recipes
from .spark_process import SparkProcess

CHANGES = {
    "INSERT: two flocks, this moment": """
        INSERT INTO lake.birds.flocks (flock, seen_at, species, birds)
        VALUES (60005, now(), 'SPEI', 64), (60006, now(), NULL, 1)""",
    "DELETE: the flocks of no birds": "DELETE FROM lake.birds.flocks WHERE birds = 0",
}
"""What is done while the lake is being served: by DuckDB, each a commit of its own."""


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
            return f"it did not start: {error}".rstrip(".")
        stage.result = f"Spark {version('pyspark')} is there"
    return None


def connected(spark: SparkProcess, bridge: Bridge) -> SparkProcess:
    """The same session with a new catalog: starting another takes seconds."""
    spark.connect(bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint)
    return spark


def compare_the_past(
    world: DemoEnvironment, readers: list[Reader], interruption: Interruption, progress: Progress
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


def moments(world: DemoEnvironment) -> list[Moment]:
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
    world: DemoEnvironment, readers: list[Reader], interruption: Interruption, progress: Progress
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


def show_recipes(out: Console, world: DemoEnvironment) -> None:
    for title, text in recipes(world.bridge, world.lake, world.s3_endpoint).items():
        out.print(f"\n{title}\n", style="bold")
        out.print(text.rstrip(), soft_wrap=True)
    out.print("\nAll of it is here until you press Ctrl-C.", style="bold")
