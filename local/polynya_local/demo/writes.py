"""`make write-demo`: Iceberg clients write to a DuckLake; after each step, what DuckLake has.

A notebook in PyIceberg and a walk-through in Spark SQL and DuckDB SQL run unchanged: nothing in
them is special to Polynya but the catalog's URL. After each step the rows that native DuckLake has
are compared with those that PyIceberg reads.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pyarrow as pa
from duckdb import DuckDBPyConnection
from polynya.ducklake.queries.writers import writer_rights
from polynya.ducklake.writes import new_snapshot
from polynya_pipeline.common.database import connect as open_database
from polynya_pipeline.common.progress import Failed
from pyiceberg.catalog import Catalog, load_catalog
from rich.table import Table as Grid

from ..clients import spark
from ..clients.duckdb import ICEBERG, LAKE, attaching, connect, identifier
from ..clients.pyiceberg import s3_properties
from ..clients.spark_jars import why_not
from ..processes.serving import Bridge
from .environment import BUCKET, Run, confine_to_this_machine, verdict

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

    def cell(code: str, run: Callable[[Catalog], Any]) -> Step:
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


DIFFERENT = """
SELECT (SELECT count(*) FROM (SELECT * FROM ours EXCEPT ALL SELECT * FROM theirs))
     + (SELECT count(*) FROM (SELECT * FROM theirs EXCEPT ALL SELECT * FROM ours))"""


class State(NamedTuple):
    """A table after a step."""

    rows: int
    different: int
    """Rows that native DuckLake and PyIceberg do not both have."""
    snapshots: int
    manifests: int
    data_files: int
    delete_files: int
    newest: int
    """DuckLake's newest snapshot."""
    changes: str


def main() -> None:
    parser = ArgumentParser(prog="make write-demo", description=__doc__)
    parser.add_argument("--without-spark", action="store_true")
    with_spark = not parser.parse_args().without_spark and why_not() is None
    try:
        sys.exit(demonstrate(with_spark))
    except (Failed, RuntimeError) as error:
        sys.exit(f"polynya: {error}")


def demonstrate(with_spark: bool) -> int:
    """Run the demo; returns the exit code: 1 if any rows differ."""
    confine_to_this_machine()
    with ExitStack() as stack:
        run = Run(stack)
        database, endpoint = run.stores()
        native = stack.enter_context(connect(LAKE, endpoint))
        native.execute(
            f"ATTACH 'ducklake:postgres:{database.libpq}' AS lake (DATA_PATH 's3://{BUCKET}/lake')"
        )
        with closing(open_database(database.url, "public")) as con:
            new_snapshot.set_up(con, writer_rights().run(con))
        bridge = run.bridge(database, endpoint, writes=True)
        catalog = open_pyiceberg(bridge)
        different = 0
        for client, execute, steps in clients(run, bridge, catalog, with_spark):
            different += show(run, client, execute, steps, lambda t: state(native, catalog, t))
    good = "After each step native DuckLake and PyIceberg have the same rows."
    return verdict(run.out, different == 0, good, "Rows differ: see above.")


def open_pyiceberg(bridge: Bridge) -> Catalog:
    """PyIceberg's catalog: only these lines would differ for another catalog."""
    return load_catalog(
        "lake",
        type="rest",
        uri=bridge.catalog_uri,
        warehouse=bridge.warehouse,
        **s3_properties(bridge.s3_endpoint),
    )


Client = tuple[str, Any, list[Step]]
"""The name of a client, what its steps get, and the steps."""


def clients(run: Run, bridge: Bridge, catalog: Catalog, with_spark: bool) -> list[Client]:
    """The clients and what they do."""
    programs: list[Client] = [("PyIceberg", catalog, notebook())]
    if with_spark:
        session = run.spark()
        name = spark.open(bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint).catalog
        programs.append(("Spark", session.sql, walk_through("spark", name)))
    con = run.stack.enter_context(connect(ICEBERG, bridge.s3_endpoint))
    con.execute(attaching(bridge.catalog_uri, bridge.warehouse))
    programs.append(("DuckDB", con.execute, walk_through("duckdb", "ice")))
    return programs


def show(
    run: Run,
    client: str,
    execute: Any,
    steps: list[Step],
    state_of: Callable[[str], State],
) -> int:
    """Run the steps of a client, print what there is after each; returns the rows that differ."""
    grid = Grid(title=client, title_justify="left", box=None, pad_edge=False, header_style="bold")
    grid.add_column("statement", ratio=1, overflow="fold")
    for column in ("rows", "differ", "snapshots", "manifests", "files", "delete files", "DuckLake"):
        grid.add_column(column, justify="right" if column != "DuckLake" else "left")
    different = 0
    for step in steps:
        shown = step.run(execute)
        if not step.table:
            grid.add_row(step.code)
            if isinstance(shown, str):
                grid.add_row(shown, style="dim")
            continue
        after = state_of(step.table)
        different += after.different
        numbers = map(str, after[:6])
        grid.add_row(step.code, *numbers, f"{after.newest}: {after.changes}")
    run.out.print(grid)
    return different


def state(native: DuckDBPyConnection, catalog: Catalog, name: str) -> State:
    """What native DuckLake and PyIceberg know of a table now."""
    table = catalog.load_table(f"{NAMESPACE}.{name}")
    theirs = table.scan().to_arrow()
    source = f"lake.{NAMESPACE}.{identifier(name)}"
    native.register("theirs", theirs)
    native.execute(f"CREATE OR REPLACE TEMP VIEW ours AS FROM {source}")
    [[different]] = native.execute(DIFFERENT).fetchall()
    [[rows]] = native.execute(f"SELECT count(*) FROM {source}").fetchall()
    newest, changes = native.execute(
        "SELECT snapshot_id, changes FROM ducklake_snapshots('lake') ORDER BY 1 DESC LIMIT 1"
    ).fetchall()[0]
    files = table.inspect.files().to_pylist()
    return State(
        rows=rows,
        different=different,
        snapshots=len(table.snapshots()),
        manifests=len(table.inspect.manifests()),
        data_files=sum(file["content"] == 0 for file in files),
        delete_files=sum(file["content"] != 0 for file in files),
        newest=newest,
        changes=", ".join(changes),
    )


if __name__ == "__main__":
    main()
