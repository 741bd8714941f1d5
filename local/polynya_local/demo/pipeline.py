"""`make pipeline-demo`: Spark's jobs write an hour of device events, and every client reads it."""

import os
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from duckdb import DuckDBPyConnection
from polynya_pipeline.common.progress import Failed, Progress
from polynya_pipeline.ingest.job import ingest
from polynya_pipeline.ingest.sources import frame
from polynya_pipeline.publish.job import publish
from polynya_pipeline.verify.job import verify
from pyiceberg.table import StaticTable
from rich.table import Table as Grid

from ..clients import duckdb, pyiceberg, spark
from ..clients.duckdb import LAKE, connect
from ..clients.spark_jars import why_not
from ..processes.postgres import Database
from ..processes.serving import Bridge, environment
from .environment import BUCKET, Run, confine_to_this_machine, verdict

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = tuple[Any, ...]

REGIONS = ("north", "south", "east", "west")
SCHEMA = (
    "event_id bigint, seen_at timestamp, device string, region string, celsius decimal(5,2), "
    "tags array<string>"
)
TABLE = "main.events"
# The sum is exact, so every engine must give the same digits.
QUESTION = """
SELECT region, count(*) AS events, sum(celsius) AS celsius, min(seen_at) AS first,
  max(seen_at) AS last
FROM {} GROUP BY region ORDER BY region"""


def main() -> None:
    parser = ArgumentParser(prog="make pipeline-demo", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    rows = parser.parse_args().rows
    if reason := why_not():
        sys.exit(f"polynya: {reason}")
    try:
        sys.exit(demonstrate(rows))
    except (Failed, RuntimeError) as error:
        sys.exit(f"polynya: {error}")


def demonstrate(rows: int) -> int:
    """Run the demo; returns the exit code: 1 if answers differ or verify finds anything."""
    confine_to_this_machine()
    with ExitStack() as stack:
        run = Run(stack)
        progress = run.progress
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="polynya-events-")))
        database, endpoint = run.stores()
        os.environ.update(environment({"AWS_ENDPOINT_URL_S3": endpoint}))
        session = run.spark()
        native = stack.enter_context(connect(LAKE, endpoint))
        source = f"ducklake:postgres:{database.libpq}"
        native.execute(f"ATTACH '{source}' AS lake (DATA_PATH 's3://{BUCKET}/events')")
        ingest_events(session, database, folder, rows, progress)
        exported = publish_table(session, database, folder, progress)
        bridge = run.bridge(database, endpoint)
        well = verify_lake(session, database, bridge, progress)
        same = compare_answers(native, bridge, exported, run)
    return verdict(
        run.out,
        well and same,
        "All answers are the same, and verify has no findings.",
        "Answers differ, or verify has findings: see above.",
    )


def write_events(
    session: "SparkSession", folder: Path, first: int, count: int, region: str | None = None
) -> str:
    """Write `count` events as JSON lines; returns their folder."""
    names = ", ".join(f"'{name}'" for name in REGIONS)
    place = f"'{region}'" if region else f"element_at(array({names}), 1 + CAST(id % 4 AS int))"
    lines = session.range(first, first + count, 1, 4).selectExpr(
        "id AS event_id",
        # Within an hour, in another order than the ids.
        "timestamp_micros(1767225600000000 + (id * 7919) % 3600000000) AS seen_at",
        "concat('device-', id % 5000) AS device",
        f"{place} AS region",
        "CAST(20 + (id * 31 % 1500) / 100 AS decimal(5,2)) AS celsius",
        "CASE WHEN id % 10 = 0 THEN array('reset', concat('v', id % 3)) ELSE array() END AS tags",
    )
    target = str(folder / f"from-{first}")
    lines.write.json(target)
    return target


def ingest_events(
    session: "SparkSession", database: Database, folder: Path, rows: int, progress: Progress
) -> None:
    """Write events as JSON lines and ingest them, with one job repeated."""
    late, corrected = rows // 20, rows // 8
    jobs: tuple[tuple[str, int, int, str | None, dict[str, Any]], ...] = (
        ("the hour", 0, rows, None, {"create": True, "partition_by": ("region",)}),
        ("late events", rows, late, None, {}),
        ("the north again", 2 * rows, corrected, "north", {"mode": "overwrite-partitions"}),
        ("late events", rows, late, None, {}),  # a scheduler may run a job twice
    )
    paths: dict[int, str] = {}
    for token, first, count, region, options in jobs:
        if first not in paths:
            with progress.stage(f"Making JSON lines: {token}") as stage:
                paths[first] = write_events(session, folder, first, count, region)
                stage.result = f"{count:,} events as JSON lines: {token}"
        with progress.stage(f"ingest: {token}") as stage:
            read = frame(session, [paths[first]], "json", None, SCHEMA)
            done = ingest(read, TABLE, database=database.url, token=token, **options)
            stage.result = f"ingest, token {token!r}: {done.lines[0]}"


def publish_table(
    session: "SparkSession", database: Database, folder: Path, progress: Progress
) -> str:
    """Generate the metadata files in the bucket, then export an Iceberg table; returns the location
    of the exported metadata."""
    ways: dict[str, dict[str, Any]] = {
        "into the bucket": {"environ": {"DELIVERY": "materialize", "VIRTUAL_BUCKET": BUCKET}},
        "--export": {"environ": {}, "export": str(folder / "exported")},
    }
    for words, options in ways.items():
        with progress.stage(f"publish {words}") as stage:
            done = publish(database=database.url, tables=[TABLE], spark=session, **options)
            stage.result = f"publish {words}: {done.summary}"
    location = done.tables[0].metadata_location
    assert location is not None
    return location


def verify_lake(
    session: "SparkSession", database: Database, bridge: Bridge, progress: Progress
) -> bool:
    """Whether the job verify has no findings."""
    with progress.stage("verify") as stage:
        report = verify(
            database=database.url,
            levels=("catalog", "storage", "metadata", "client"),
            footers=True,
            catalog_uri=bridge.catalog_uri,
            bridge_s3_endpoint=bridge.s3_endpoint,
            spark=session,
        )
        stage.result = f"verify: {report.summary}"
    for finding in report.findings:
        progress.say(f"{finding.level} {finding.check}: {finding.message}")
    return not report.findings


def compare_answers(native: DuckDBPyConnection, bridge: Bridge, exported: str, run: Run) -> bool:
    """Ask every client the same question and print the answers; returns whether all are equal."""
    answers: dict[str, list[Row]] = {}
    questions: dict[str, Callable[[], list[Row]]] = {
        "DuckLake (DuckDB)": lambda: native.sql(QUESTION.format("lake.main.events")).fetchall(),
        "Spark (Iceberg)": lambda: ask_spark(bridge),
        "DuckDB (Iceberg)": lambda: ask_duckdb(bridge),
        "PyIceberg": lambda: ask_pyiceberg(bridge),
        "exported table": lambda: ask_exported(exported),
    }
    for name, ask in questions.items():
        with run.progress.stage(f"Asking {name}") as stage:
            answers[name] = [tuple(map(str, row)) for row in ask()]
            stage.result = f"{name} answered"
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    for column in ("client", "region", "events", "sum of celsius", "first", "last"):
        grid.add_column(column, no_wrap=True)
    for name, answer in answers.items():
        for row in answer:
            grid.add_row(name, *row)
    run.out.print(grid)
    return all(answer == answers["DuckLake (DuckDB)"] for answer in answers.values())


def opened(client: Any, bridge: Bridge) -> closing[Any]:
    """A client of a module of `clients`, for a block."""
    return closing(client.open(bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint))


def ask_spark(bridge: Bridge) -> list[Row]:
    """Spark's answer through Polynya."""
    with opened(spark, bridge) as reader:
        question = QUESTION.format(f"{reader.catalog}.main.events")
        return rows_of(spark.session().sql(question).toArrow())


def ask_duckdb(bridge: Bridge) -> list[Row]:
    """DuckDB's answer through Polynya."""
    with opened(duckdb, bridge) as reader:
        return rows_of(reader.query(QUESTION.format("ice.main.events")))


def ask_pyiceberg(bridge: Bridge) -> list[Row]:
    """PyIceberg's answer: it has no SQL, so DuckDB groups the rows that it has read."""
    with opened(pyiceberg, bridge) as reader:
        return rows_of(reader.rows("main", "events"), QUESTION.format("answer"))


def ask_exported(metadata_location: str) -> list[Row]:
    """The answer of PyIceberg from the exported files, without Polynya."""
    s3 = pyiceberg.s3_properties(os.environ["AWS_ENDPOINT_URL_S3"])
    events = StaticTable.from_metadata(metadata_location, s3).scan().to_arrow()
    return rows_of(events, QUESTION.format("answer"))


def rows_of(answer: pa.Table, sql: str = "FROM answer ORDER BY region") -> list[Row]:
    """The rows of a statement over the table `answer`."""
    with connect() as con:
        con.register("answer", answer)
        rows: list[Row] = con.execute(sql).fetchall()
        return rows


if __name__ == "__main__":
    main()
