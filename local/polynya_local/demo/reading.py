"""The steps of `polynya demo`: write a lake, serve it, read it with each client, change it.

A `Comparison` has the rows of each client beside those of DuckLake.
`recipes` has what to paste into other programs while `polynya demo --keep` runs.
"""

import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

from duckdb import DuckDBPyConnection
from polynya_pipeline.common.progress import Failed, Progress
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from ..clients import Client, duckdb, pyiceberg
from ..clients.canonical import Canonical, Columns, difference, from_arrow
from ..clients.duckdb import literal
from ..clients.native import Lake, Native
from ..clients.spark_jars import jars, why_not
from ..processes.serving import KEY_ID, REGION, SECRET, Bridge
from ..reports.snippets import Client as Recipe
from ..reports.snippets import Place, client
from .environment import (
    FOLDER,
    DemoEnvironment,
    Run,
    bucket_summary,
    confine_to_this_machine,
    how_to_serve,
    keep_lake,
    start_demo,
    verdict,
)
from .processes import Interruption, Running, SparkProcess

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
    files = jars()  # without them Spark downloads its own
    if not files:
        return place
    return replace(place, jars_setting="spark.jars", jars=",".join(map(str, files)))


@dataclass(frozen=True, slots=True)
class TableVersion:
    """A table at a snapshot, or at the newest if there is no id."""

    namespace: str
    table: str
    snapshot_id: int | None
    event: str
    """The last change of the table, as the commit message says it."""

    @property
    def name(self) -> str:
        """`namespace.table`."""
        return f"{self.namespace}.{self.table}"

    @property
    def when(self) -> str:
        """The snapshot id, or `now`."""
        return "now" if self.snapshot_id is None else str(self.snapshot_id)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a client read."""

    row_count: int | None
    """None: the client failed."""
    report: tuple[str, ...]
    """The differences from DuckLake's rows, or the client's error; empty: the same rows."""


@dataclass(slots=True)
class Truth:
    """DuckLake's rows of a table version, and the answers of the clients by name."""

    version: TableVersion
    rows: Canonical
    columns: Columns
    answers: dict[str, Answer] = field(default_factory=dict)


class Comparison:
    """Table versions in the order of their addition, and the seconds that each client took."""

    def __init__(self, native: Native) -> None:
        self._native = native
        self.truths: list[Truth] = []
        self.seconds: dict[str, float] = {}

    def add(self, version: TableVersion) -> Truth:
        """Read DuckLake's rows."""
        where = (version.namespace, version.table, version.snapshot_id)
        truth = Truth(version, self._native.canonical(*where), self._native.columns(*where))
        self.truths.append(truth)
        return truth

    def ask(self, client: Client, truth: Truth) -> None:
        """Let a client read the same, and add its answer; its errors are answers, too."""
        version, start = truth.version, time.monotonic()
        self.seconds.setdefault(client.name, 0)
        try:
            rows = client.rows(version.namespace, version.table, version.snapshot_id)
        except Exception as error:
            words = " ".join(f"{type(error).__name__}: {error}".split())
            truth.answers[client.name] = Answer(None, (words[:600],))
        else:
            report = tuple(difference(truth.rows, from_arrow(rows, truth.columns)))
            truth.answers[client.name] = Answer(rows.num_rows, report)
        self.seconds[client.name] += time.monotonic() - start

    @property
    def reads(self) -> int:
        """How many answers there are."""
        return sum(len(truth.answers) for truth in self.truths)

    def disagreements(self) -> list[str]:
        """One line for each difference."""
        return [
            f"{name}, {truth.version.name} at {truth.version.when}: {line}"
            for truth in self.truths
            for name, answer in truth.answers.items()
            for line in answer.report
        ]


def show(out: Console, title: str, comparison: Comparison, clients: list[str]) -> None:
    """Print a comparison under a title: a row for each table version, a column for each client."""
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    grid.add_column("table", no_wrap=True)
    grid.add_column("snapshot", no_wrap=True, justify="right")
    grid.add_column("last change")  # the only column that may be shortened
    for name in ("DuckLake", *clients):
        grid.add_column(name, no_wrap=True, justify="right")
    for truth in comparison.truths:
        version = truth.version
        event = Text(version.event, no_wrap=True, overflow="ellipsis")
        native = f"{truth.rows.rows.total():,}"
        answers = [cell(truth.answers.get(name)) for name in clients]
        grid.add_row(version.name, version.when, event, native, *answers)
    out.print(f"\n{title}\n", style="bold")
    out.print(grid)


def cell(answer: Answer | None) -> Text:
    """A client's row count and verdict; `-`: it did not read."""
    if answer is None:
        return Text("-")
    count = "no rows" if answer.row_count is None else f"{answer.row_count:,}"
    same = Text("DIFFERS", "bold red") if answer.report else Text("same", "green")
    return Text(f"{count} ") + same


def conclude(out: Console, *comparisons: Comparison) -> int:
    """Print whether all rows are the same, or the differences; returns the exit code."""
    wrong = [line for comparison in comparisons for line in comparison.disagreements()]
    reads = sum(comparison.reads for comparison in comparisons)
    for line in wrong:
        out.print(f"DIFFERS: {line}", style="red", soft_wrap=True)
    return verdict(
        out,
        not wrong,
        f"Each of {reads} reads gave exactly the rows that DuckLake has.",
        "Not every client read the rows that DuckLake has.",
    )


CHANGES = {
    "INSERT: two flocks, this moment": """
        INSERT INTO lake.birds.flocks (flock, seen_at, species, birds)
        VALUES (60005, now(), 'SPEI', 64), (60006, now(), NULL, 1)""",
    "DELETE: the flocks of no birds": "DELETE FROM lake.birds.flocks WHERE birds = 0",
}
"""Statements that DuckDB runs while the lake is served, one commit each."""


Readers = dict[str, Callable[[], Client]]
"""What opens each client, by its name; each comparison opens it again."""


@contextmanager
def opened(reader: Callable[[], Client]) -> Iterator[Client]:
    """The client for the block; if that fails, the processes of all clients are killed."""
    with closing(reader()) as client:
        try:
            yield client
        except BaseException:
            for child in multiprocessing.active_children():
                child.kill()  # a query under way would print an error
            raise


def demonstrate(*, delivery: str, with_spark: bool, keep: bool, interruption: Interruption) -> int:
    """Run the demo; returns the exit code: 1 if any client read other rows than DuckLake has."""
    confine_to_this_machine()
    with Running(interruption) as running:
        run = Run(running)
        progress, out = run.progress, run.out
        no_spark = why_not() if with_spark else "--without-spark"
        # It takes long to start, so it starts while the lake is written.
        spark = None if no_spark else running.enter_context(SparkProcess())
        demo = start_demo(run, delivery)
        where = (demo.bridge.catalog_uri, demo.bridge.warehouse, demo.bridge.s3_endpoint)
        readers: Readers = {
            pyiceberg.NAME: partial(pyiceberg.open, *where),
            duckdb.NAME: partial(duckdb.open, *where),
        }
        if spark:
            readers[spark.name] = partial(spark.connected, *where)
            if no_spark := spark_failure(readers[spark.name], progress):
                del readers[spark.name]
        past = compare_snapshots(demo, readers, interruption, progress)
        live = compare_changes(demo, readers, interruption, progress)
        names = list(readers)
        show(out, "Rows at each snapshot: DuckLake's, and those that each client read", past, names)
        show(out, "After a change while the lake is served, read by new clients", live, names)
        out.print(bucket_summary(demo), soft_wrap=True)
        if no_spark:
            out.print(f"Spark was left out: {no_spark}.", soft_wrap=True)
        code = conclude(out, past, live)
        if keep:
            with progress.stage("Writing the lake to keep") as stage, interruption.held():
                is_new = keep_lake(Path(FOLDER))
                stage.result = f"The lake to keep: {FOLDER}"
            show_recipes(out, demo)
            out.print(f"\n{how_to_serve(Path(FOLDER), is_new)}", soft_wrap=True)
            out.print("\nEverything else runs until you press Ctrl-C.", style="bold")
            interruption.wait()
    return code


def spark_failure(spark: Callable[[], Client], progress: Progress) -> str | None:
    """Why Spark did not start, for example because Java is too old; None: it started."""
    with progress.stage("Waiting for Spark") as stage:
        try:
            spark()
        except RuntimeError as error:
            stage.result = "Spark did not start"
            return f"it did not start: {error}".rstrip(".")
        stage.result = f"Spark {version('pyspark')}"
    return None


def compare_snapshots(
    demo: DemoEnvironment, readers: Readers, interruption: Interruption, progress: Progress
) -> Comparison:
    """Let every reader read every table at every snapshot."""
    comparison = Comparison(demo.native)
    with progress.stage("DuckLake reads") as stage:
        for table_version in table_versions(demo):
            comparison.add(table_version)
        stage.result = f"DuckLake: {len(comparison.truths)} reads"
    for name, reader in readers.items():
        with progress.stage(f"{name} reads") as stage, Running(interruption) as running:
            client = running.enter_context(opened(reader))
            for truth in comparison.truths:
                stage.doing(f"{name} reads {truth.version.name} at {truth.version.when}")
                comparison.ask(client, truth)
            stage.result = f"{name}: {len(comparison.truths)} reads"
    return comparison


def table_versions(demo: DemoEnvironment) -> list[TableVersion]:
    """Every table at every listed snapshot but CREATE TABLE's; the newest one without its id."""
    bridge = demo.bridge
    tables = sorted(demo.native.tables(), key=lambda table: (table.namespace, table.name))
    with closing(
        pyiceberg.open(bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint)
    ) as catalog:
        listed = [catalog.snapshot_ids(table.namespace, table.name) for table in tables]
    events = commit_messages(demo.writer)
    table_states = []
    for table, snapshot_ids in zip(tables, listed, strict=True):
        if not snapshot_ids:
            raise Failed(f"{table.namespace}.{table.name} has no snapshot")
        *past, newest = snapshot_ids
        # The first snapshot is CREATE TABLE, without rows.
        states = [*((id_, events[id_]) for id_ in past[1:]), (None, events[newest])]
        table_states += [TableVersion(table.namespace, table.name, *state) for state in states]
    return table_states


def commit_messages(writer: DuckDBPyConnection) -> dict[int, str]:
    """DuckLake's commit messages by snapshot id."""
    snapshots = "SELECT snapshot_id, coalesce(commit_message, '') FROM ducklake_snapshots('lake')"
    return dict(writer.execute(snapshots).fetchall())


def compare_changes(
    demo: DemoEnvironment, readers: Readers, interruption: Interruption, progress: Progress
) -> Comparison:
    """Change the lake, and let a new client of every reader read the change."""
    comparison = Comparison(demo.native)
    for event, sql in CHANGES.items():
        with progress.stage(event) as stage:
            demo.writer.execute(sql)
            truth = comparison.add(TableVersion("birds", "flocks", None, event))
            for name, reader in readers.items():
                stage.doing(f"{event}: a new {name} reads")
                with Running(interruption) as running:
                    comparison.ask(running.enter_context(opened(reader)), truth)
            stage.result = f"{event.partition(':')[0]}, and new clients read"
    return comparison


def show_recipes(out: Console, demo: DemoEnvironment) -> None:
    """Print what to paste into other programs."""
    for title, text in recipes(demo.bridge, demo.lake, demo.s3_endpoint).items():
        out.print(f"\n{title}\n", style="bold")
        out.print(text.rstrip(), soft_wrap=True)
