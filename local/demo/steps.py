"""The steps of the demos.

`demonstrate` runs those of `polynya demo`: write a lake, serve it, read it with each client, change
it. `recipes` has what to paste into other programs while `polynya demo --keep` runs. `notebook` and
`walk_through` are the steps of `make write-demo`, in PyIceberg and in SQL: nothing in them is
special to Polynya but the catalog's URL.
"""

import multiprocessing
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
from duckdb import DuckDBPyConnection
from polynya_pipeline.common.progress import Failed, Progress, console
from rich.console import Console

from ..clients import Client, duckdb, pyiceberg, rest
from ..clients.duckdb import KEY_ID, REGION, SECRET, literal
from ..clients.native import Lake
from ..clients.spark_jars import jars, why_not
from ..processes.serving import Bridge
from ..reports.snippets import Client as Recipe
from ..reports.snippets import Place, client
from .comparison import Comparison, TableVersion, show, verdict
from .environment import (
    FOLDER,
    DemoEnvironment,
    bucket_summary,
    how_to_serve,
    keep_lake,
    only_this_machine,
    started,
)
from .interruption import Interruption, Running
from .spark_process import SparkProcess

DUCKDB = """\
SELECT species, sum(birds) AS birds FROM ice.birds.flocks GROUP BY species ORDER BY birds DESC;
SELECT count(*) FROM ice.birds.flocks AT (VERSION => 5);
"""

PYICEBERG = """\
from pyiceberg.expressions import EqualTo
print(catalog.list_tables("birds"), catalog.list_tables("ice"))
flocks = catalog.load_table("birds.flocks")
print(flocks.scan(row_filter=EqualTo("species", "KIEI"), limit=5).to_arrow().to_pylist())
print([snapshot.snapshot_id for snapshot in flocks.snapshots()])
print(flocks.scan(snapshot_id=5).count())
"""

SPARK = """\
spark.sql("SELECT satellite, avg(concentration) FROM ice.ice.cover GROUP BY satellite").show()
spark.sql("SELECT count(*) FROM ice.birds.flocks VERSION AS OF 5").show()
"""

DUCKLAKE = """\
INSTALL httpfs; INSTALL postgres; INSTALL ducklake; LOAD httpfs; LOAD postgres; LOAD ducklake;
CREATE SECRET (TYPE s3, KEY_ID '{key_id}', SECRET '{secret}', REGION '{region}',
    ENDPOINT '{lake_s3_host}', URL_STYLE 'path', USE_SSL false);
ATTACH {lake} AS lake;
INSERT INTO lake.birds.species VALUES ('BLSC', 'Black Scoter', 'Melanitta americana');
FROM lake.snapshots();
"""


def recipes(bridge: Bridge, lake: Lake, lake_s3_endpoint: str) -> dict[str, str]:
    """The text to paste, by the title of a program."""
    place = _place(bridge)
    lake_address = literal(f"ducklake:postgres:{lake.database.libpq}")
    lake_s3_host = lake_s3_endpoint.partition("://")[2]
    owner = DUCKLAKE.format(
        key_id=KEY_ID, secret=SECRET, region=REGION, lake_s3_host=lake_s3_host, lake=lake_address
    )
    return {
        "DuckDB, as an Iceberg client": _connected(client("DuckDB"), place) + DUCKDB,
        "PyIceberg, in Python": _connected(client("PyIceberg"), place) + PYICEBERG,
        "Spark, in Python": _connected(client("Spark"), place) + SPARK,
        "DuckDB again, as the owner of the lake: write, and the others see it": owner,
    }


def _connected(recipe: Recipe, place: Place) -> str:
    # An empty line is between two programs only.
    return "".join(part.text(place) for part in recipe.connect).replace("\n\n", "\n")


def _place(bridge: Bridge) -> Place:
    """Where a client connects; each of the queries above names its table."""
    place = Place(
        catalog_uri=bridge.catalog_uri,
        warehouse=bridge.warehouse,
        s3_endpoint=bridge.s3_endpoint,
        namespace="birds",
        table="flocks",
        key_id=KEY_ID,
        secret=SECRET,
        region=REGION,
    )
    here = jars()  # without them Spark downloads its own
    if not here:
        return place
    return replace(place, jars_setting="spark.jars", jars=",".join(map(str, here)))


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
                stage.doing(f"{reader.name} reads {truth.moment.name} at {truth.moment.when}")
                comparison.ask(client, truth)
            stage.result = f"{reader.name}: {len(comparison.truths)} reads"
    return comparison


def moments(demo: DemoEnvironment) -> list[TableVersion]:
    """Every table at every snapshot that Polynya lists; the newest one without its id."""
    catalog = rest.Rest(demo.bridge.catalog_uri, demo.bridge.warehouse)
    events = commit_messages(demo.writer)
    table_states = []
    for table in sorted(demo.native.tables(), key=lambda table: (table.namespace, table.name)):
        metadata = catalog.load_table(table.namespace, table.name)
        listed = sorted(snapshot["snapshot-id"] for snapshot in metadata.get("snapshots", []))
        if not listed:
            raise Failed(f"{table.namespace}.{table.name} has no snapshot")
        # The first snapshot is CREATE TABLE, without rows.
        for snapshot_id in listed[1:-1]:
            table_states.append(
                TableVersion(table.namespace, table.name, snapshot_id, events[snapshot_id])
            )
        table_states.append(TableVersion(table.namespace, table.name, None, events[listed[-1]]))
    return table_states


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
            truth = comparison.add(TableVersion("birds", "flocks", None, event))
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


if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

NAMESPACE = "ducks"
ROWS = 30_000

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("species", pa.string()),
        ("region", pa.string()),
        ("grams", pa.float64()),
        ("seen_at", pa.timestamp("us")),
    ]
)
SPECIES = ("mallard", "teal", "eider", "pintail", None)
REGIONS = ("north", "south", "east")
START = 1_767_225_600_000_000  # 2026-01-01


def sightings(first: int) -> pa.Table:
    """Rows of a table of sightings, with ids from `first` on."""
    ids = range(first, first + ROWS)
    return pa.table(
        {
            "id": list(ids),
            "species": [SPECIES[number % 5] for number in ids],
            "region": [REGIONS[number % 3] for number in ids],
            "grams": [300 + number % 1500 / 2 for number in ids],
            "seen_at": pa.array([START + number * 1_000_000 for number in ids], pa.timestamp("us")),
        },
        schema=SCHEMA,
    )


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a person types."""

    table: str
    """The table that it changes; empty: none."""
    code: str
    run: Callable[[Any], Any]
    """Takes the client; gives what the client shows, or nothing."""


def notebook() -> list[Step]:
    """The cells of a notebook; each gets the catalog of PyIceberg."""
    name = "notebook"
    table = f"{NAMESPACE}.{name}"

    def cell(code: str, run: Callable[["Catalog"], Any]) -> Step:
        return Step(name, code, run)

    return [
        Step(
            "",
            f'catalog.create_namespace("{NAMESPACE}")',
            lambda catalog: catalog.create_namespace(NAMESPACE),
        ),
        cell(
            f'table = catalog.create_table("{table}", df.schema)',
            lambda catalog: catalog.create_table(table, SCHEMA),
        ),
        cell("table.append(df)", lambda catalog: catalog.load_table(table).append(sightings(0))),
        cell("table.append(df)", lambda catalog: catalog.load_table(table).append(sightings(ROWS))),
        cell(
            "table.delete(\"species = 'mallard'\")",
            lambda catalog: catalog.load_table(table).delete("species = 'mallard'"),
        ),
        Step(
            "",
            "table.history()",
            lambda catalog: "\n".join(
                f"{datetime.fromtimestamp(entry.timestamp_ms / 1000, UTC):%H:%M:%S}  "
                f"{entry.snapshot_id}"
                for entry in catalog.load_table(table).history()
            ),
        ),
        Step(
            "",
            "table.inspect.snapshots()",
            lambda catalog: "\n".join(
                f"{row['snapshot_id']:<20} {row['operation']:<10} ducklake.snapshot-id "
                + dict(row["summary"])["ducklake.snapshot-id"]
                for row in catalog.load_table(table).inspect.snapshots().to_pylist()
            ),
        ),
    ]


WALK_THROUGH = {
    "spark": (
        "CREATE TABLE {table} (id bigint, species string, region string, grams double) "
        "USING iceberg PARTITIONED BY (region)",
        "INSERT INTO {table} VALUES (1, 'eider', 'north', 2200), (2, 'teal', 'south', 330), "
        "(3, 'mallard', 'north', 1100)",
        "INSERT INTO {table} VALUES (4, 'pintail', 'east', 850), (5, NULL, 'south', NULL)",
        "UPDATE {table} SET grams = grams + 10 WHERE region = 'north'",
        "DELETE FROM {table} WHERE species = 'teal'",
        "MERGE INTO {table} AS t USING (SELECT 4L AS id, 900D AS grams UNION ALL "
        "SELECT 6L, 1200D) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.grams = s.grams "
        "WHEN NOT MATCHED THEN INSERT (id, species, region, grams) "
        "VALUES (s.id, 'mallard', 'east', s.grams)",
    ),
    "duckdb": (
        "CREATE TABLE {table} (id BIGINT, species VARCHAR, region VARCHAR, grams DOUBLE)",
        "INSERT INTO {table} VALUES (1, 'eider', 'north', 2200), (2, 'teal', 'south', 330), "
        "(3, 'mallard', 'north', 1100)",
        "INSERT INTO {table} VALUES (4, 'pintail', 'east', 850), (5, NULL, 'south', NULL)",
        "UPDATE {table} SET grams = grams + 10 WHERE region = 'north'",
        "DELETE FROM {table} WHERE species = 'teal'",
    ),
}
"""The statements of a table's life, by client."""


def walk_through(client: str, catalog: str) -> list[Step]:
    """The statements for a client whose catalog has this name; each gets a function from SQL."""
    name = f"walk_{client}"

    def step(template: str) -> Step:
        sql = template.format(table=f"{catalog}.{NAMESPACE}.{name}")
        return Step(name, sql, lambda execute: execute(sql))

    return [step(template) for template in WALK_THROUGH[client]]
